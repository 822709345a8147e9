/* The table of kinds of data sets, generated from datasets.def. */
#include "kith/data.h"

#include <string.h>

#define X(name) extern const struct kith_dataset_kind kith_dataset_##name;
#include "datasets.def"
#undef X

const struct kith_dataset_kind *const kith_dataset_kinds[] = {
#define X(name) &kith_dataset_##name,
#include "datasets.def"
#undef X
    NULL};

const struct kith_dataset_kind *kith_dataset_kind_find(const char *name)
{
    for (size_t i = 0; kith_dataset_kinds[i] != NULL; i++) {
        if (strcmp(kith_dataset_kinds[i]->name, name) == 0)
            return kith_dataset_kinds[i];
    }
    return NULL;
}
