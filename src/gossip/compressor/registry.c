/* The table of compressors, generated from compressors.def. */
#include "kith/compressor.h"

#include <string.h>

#define X(name) extern const struct kith_compressor kith_compressor_##name;
#include "compressors.def"
#undef X

const struct kith_compressor *const kith_compressors[] = {
#define X(name) &kith_compressor_##name,
#include "compressors.def"
#undef X
    NULL};

const struct kith_compressor *kith_compressor_find(const char *name)
{
    for (size_t i = 0; kith_compressors[i] != NULL; i++) {
        if (strcmp(kith_compressors[i]->name, name) == 0)
            return kith_compressors[i];
    }
    return NULL;
}
