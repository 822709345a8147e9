/* The table of quantities, generated from checks.def. */
#include "kith/check.h"

#include <stddef.h>
#include <string.h>

#define X(name) extern const struct kith_quantity kith_quantity_##name;
#include "checks.def"
#undef X

const struct kith_quantity *const kith_quantities[] = {
#define X(name) &kith_quantity_##name,
#include "checks.def"
#undef X
    NULL};

const struct kith_quantity *kith_quantity_find(const char *name)
{
    for (size_t i = 0; kith_quantities[i] != NULL; i++)
        if (strcmp(kith_quantities[i]->name, name) == 0)
            return kith_quantities[i];
    return NULL;
}
