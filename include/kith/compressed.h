/* Compressed vectors of a device: whole messages, where a host goes block by
 * block (kith/compressor.h). The bytes are those that a host's encode writes,
 * and what is read of them are its values.
 * Test: unit/test_cuda_compressors.c */
#ifndef KITH_COMPRESSED_H
#define KITH_COMPRESSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A vector in blocks, which lie one after another on the wire. */
struct kith_cut {
    size_t n;     /* values, above 0 */
    size_t block; /* of each block but the last, which may have fewer */
    size_t bytes; /* of a whole block on the wire */
    size_t all;   /* of the message */
};

/* Where the parts of a block lie that keeps some of its values
 * (src/gossip/compressor/sparse.h). */
struct kith_sparse {
    size_t kept;
    unsigned low; /* bits of an index that are written as they are */
    size_t low_at, high_at, bytes;
};

/* Levels of a block's norm (src/gossip/compressor/qsgd.c). */
struct kith_levels {
    uint32_t most;    /* the highest */
    unsigned width;   /* bits of a level; its sign is one more */
    double factor[2]; /* of what is read of a whole block, and of the last */
};

/* Values at places that both ends have drawn. */
struct kith_places {
    size_t kept;
    const uint32_t *at; /* (kept) in shared memory, none twice */
    double factor;      /* of what is sent */
};

/* Where a window of values is to be drawn (src/gossip/compressor/ms_top_k.c):
 * the device says of how many, the host from which on. */
struct kith_windows {
    uint32_t *of; /* (blocks) in shared memory; holds nothing between calls */
    void *context;
    /* of_b <- the first of of_b, block after block; 0: nothing is drawn. */
    void (*draw)(void *context, size_t blocks, uint32_t *of);
};

/* Vectors of float32, `v` and `out`, are not shared; v is finite. The wire is
 * shared, at any address: one that is sent, or received. pack writes all of it,
 * and returns false where a number there would not be finite; unpack returns
 * false where pack could not have written it, and out is of no use then. All
 * have read what they read when they return. */
struct kith_compressed {
    void (*erase)(size_t bytes, void *wire); /* wire <- 0 */
    /* sparse: of a whole block, and of the last. */
    bool (*pack_top_k)(const struct kith_cut *cut,
                       const struct kith_sparse sparse[2], const void *v,
                       void *wire);
    bool (*unpack_top_k)(const struct kith_cut *cut,
                         const struct kith_sparse sparse[2], const void *wire,
                         void *out);
    /* Its messages are unpacked as those of top-k. */
    bool (*pack_ms_top_k)(const struct kith_cut *cut,
                          const struct kith_sparse sparse[2],
                          const struct kith_windows *windows, const void *v,
                          void *wire);
    bool (*pack_random_k)(const struct kith_places *places, const void *v,
                          void *wire);
    bool (*unpack_random_k)(const struct kith_places *places, const void *wire,
                            size_t n, void *out);
    bool (*pack_sign)(const struct kith_cut *cut, const void *v, void *wire);
    bool (*unpack_sign)(const struct kith_cut *cut, const void *wire,
                        void *out);
    bool (*pack_int8)(const struct kith_cut *cut, const void *v, void *wire);
    bool (*unpack_int8)(const struct kith_cut *cut, const void *wire,
                        void *out);
    bool (*pack_qsgd)(const struct kith_cut *cut,
                      const struct kith_levels *levels, uint64_t key,
                      const void *v, void *wire);
    bool (*unpack_qsgd)(const struct kith_cut *cut,
                        const struct kith_levels *levels, const void *wire,
                        void *out);
};

#endif
