/* The registry of algorithms, from algorithms.def. */
#include "kith/algorithm.h"

#include <string.h>

#define X(name) extern const struct kith_algorithm kith_algorithm_##name;
#include "src/gossip/algorithm/algorithms.def"
#undef X

const struct kith_algorithm *const kith_algorithms[] = {
#define X(name) &kith_algorithm_##name,
#include "src/gossip/algorithm/algorithms.def"
#undef X
    NULL,
};

const struct kith_algorithm *kith_algorithm_find(const char *name)
{
    for (size_t i = 0; kith_algorithms[i] != NULL; i++)
        if (strcmp(kith_algorithms[i]->name, name) == 0)
            return kith_algorithms[i];
    return NULL;
}
