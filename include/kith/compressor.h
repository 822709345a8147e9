/* A compressor: what travels in place of a dense float32 vector.
 * One file, one line in src/compressor/compressors.def. */
#ifndef KITH_COMPRESSOR_H
#define KITH_COMPRESSOR_H

#ifdef __cplusplus
extern "C" {
#endif

struct kith_compressor {
    const char *name, *paper, *summary; /* required */
};

/* NULL-terminated, in the order of compressors.def. */
extern const struct kith_compressor *const kith_compressors[];
const struct kith_compressor *kith_compressor_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
