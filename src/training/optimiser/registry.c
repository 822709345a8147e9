/* The table of optimisers, generated from optimisers.def. */
#include "kith/optimiser.h"

#include <string.h>

#define X(name) extern const struct kith_optimiser kith_optimiser_##name;
#include "optimisers.def"
#undef X

const struct kith_optimiser *const kith_optimisers[] = {
#define X(name) &kith_optimiser_##name,
#include "optimisers.def"
#undef X
    NULL};

const struct kith_optimiser *kith_optimiser_find(const char *name)
{
    for (size_t i = 0; kith_optimisers[i] != NULL; i++) {
        if (strcmp(kith_optimisers[i]->name, name) == 0)
            return kith_optimisers[i];
    }
    return NULL;
}
