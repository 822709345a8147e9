/* The table of guards, generated from guards.def. */
#include "kith/guard.h"

#include <string.h>

#define X(name) extern const struct kith_guard kith_guard_##name;
#include "guards.def"
#undef X

const struct kith_guard *const kith_guards[] = {
#define X(name) &kith_guard_##name,
#include "guards.def"
#undef X
    NULL};

const struct kith_guard *kith_guard_find(const char *name)
{
    for (size_t i = 0; kith_guards[i] != NULL; i++) {
        if (strcmp(kith_guards[i]->name, name) == 0)
            return kith_guards[i];
    }
    return NULL;
}
