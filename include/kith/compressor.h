/* A compressor: what travels in place of a dense vector.
 *
 *   C(v) = decode(encode(v)),    E|v - C(v)|^2 <= (1 - w) |v|^2
 *
 * Its size on the wire depends on the configuration and the dimension alone,
 * so that every message of a run has the same. C(v) is the same, bit for bit,
 * for whoever decodes it. Numbers travel as the backend has them (4 or 8
 * bytes, little-endian), as they do without a compressor.
 *
 * A vector is cut into blocks, each encoded by itself; a plug-in knows one
 * block. It owns no heap, clock, file or writable global. One file, one line in
 * src/gossip/compressor/compressors.def.
 * Test: unit/test_compressors.c, unit/test_compressor_quality.c (T10),
 * fuzz/fuzz_compressor.c */
#ifndef KITH_COMPRESSOR_H
#define KITH_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"
#include "kith/err.h"
#include "kith/rng.h"

/* Keys of `gossip:` that only some compressors read. X(NAME, key) */
#define KITH_COMPRESSOR_KEYS(X)                                                \
    X(DENSITY, "density")                                                      \
    X(LEVELS, "levels")                                                        \
    X(BLOCK, "block")                                                          \
    X(UNBIASED, "unbiased")
enum kith_compressor_key {
#define KITH_X(name, key) KITH_COMPRESSOR_KEY_##name,
    KITH_COMPRESSOR_KEYS(KITH_X)
#undef KITH_X
        KITH_COMPRESSOR_KEY_COUNT
};
#define KITH_COMPRESSOR_READS(name) (1u << KITH_COMPRESSOR_KEY_##name)

/* A level and its sign fit 16 bits. */
#define KITH_COMPRESSOR_LEVELS_MAX 32767u
#define KITH_COMPRESSOR_BLOCK_MAX (1u << 30)

struct kith_compressor_config {
    double density;  /* share of values kept, in (0, 1] */
    uint32_t levels; /* above 0, in [1, KITH_COMPRESSOR_LEVELS_MAX] */
    uint32_t block;  /* values of a block; 0: the compressor's own */
    bool unbiased;   /* E C(v) = v, in place of the contraction */
};
/* What stands in place of keys that are not given. */
static inline struct kith_compressor_config kith_compressor_defaults(void)
{
    const struct kith_compressor_config config = {0.01, 15, 0, false};
    return config;
}

struct kith_compressor;

/* What both ends agree on. Copied freely; owns nothing. */
struct kith_compression {
    const struct kith_compressor *compressor;
    struct kith_compressor_config config;
    const struct kith_backend *backend;
    size_t dim;       /* in [1, KITH_PARAMETERS_MAX] */
    uint32_t *places; /* (kith_compression_places) in shared memory; holds
                         nothing between two calls */
};

/* Every entry but the last three is required and sees one block of n >= 1
 * values. `rng` is the vector's: seeded from its key, handed from block to
 * block. */
struct kith_compressor {
    const char *name, *paper, *summary;
    unsigned keys;  /* KITH_COMPRESSOR_READS(...) | ... */
    uint32_t block; /* where config.block is 0; 0: the whole vector */
    bool keyed;     /* C(v) depends on the key as well */
    bool unbiased;  /* E C(v) = v whatever `unbiased:` says */
    bool raw;       /* the wire is v, as the backend has it */
    bool feedback;  /* leaves out so much that error feedback is needed */

    /* On the wire, exactly. */
    size_t (*bytes)(const struct kith_compression *how, size_t n);
    /* A w that holds for any v, in expectation over keys; at most 1, 0 where
     * nothing is promised. */
    double (*contraction)(const struct kith_compression *how, size_t n);
    /* v (n) finite, read; wire (bytes) written whole. false: a number on the
     * wire would not be finite. */
    bool (*encode)(const struct kith_compression *how, size_t n, const void *v,
                   struct kith_rng *rng, uint8_t *wire);
    /* The wire is a peer's: whatever it says, nothing is read or written
     * outside, and false is returned where encode could not have written it.
     * Values of out (n) that are not finite are found by the caller. */
    bool (*decode)(const struct kith_compression *how, size_t n,
                   const uint8_t *wire, struct kith_rng *rng, void *out);

    /* The same of a whole vector on a device, by how->backend->compressed; the
     * wire is shared memory. NULL: no device does it, and rules refuse it
     * there. */
    bool (*pack)(const struct kith_compression *how, const void *v,
                 struct kith_rng *rng, void *wire);
    bool (*unpack)(const struct kith_compression *how, const void *wire,
                   struct kith_rng *rng, void *out);
    /* How many places they tell the device of; NULL: none. */
    size_t (*places)(const struct kith_compression *how);
};

/* NULL-terminated, in the order of compressors.def. */
extern const struct kith_compressor *const kith_compressors[];
const struct kith_compressor *kith_compressor_find(const char *name);

/* May vectors of this backend be given to the calls below? A raw wire is the
 * backend's own. */
bool kith_compression_runs(const struct kith_compressor *compressor,
                           const struct kith_backend *backend);
/* Of `places`: 0 on a host. */
size_t kith_compression_places(const struct kith_compression *how);

/* Bytes of one compressed vector: the same for every v and key. */
size_t kith_compression_bytes(const struct kith_compression *how);
/* The worst case over all v: for a top-k of a real gradient, far too low. */
double kith_compression_contraction(const struct kith_compression *how);
bool kith_compression_unbiased(const struct kith_compression *how);
/* Does an algorithm that sends u itself (not the difference to what the other
 * side has of it) need kith_compress_feedback? */
bool kith_compression_needs_feedback(const struct kith_compression *how);

/* wire <- encode(v).
 *
 *   v     (dim) on how->backend; read, not kept
 *   key   the same on both sides and another one for each vector: derived from
 *         seed, round and sender (or edge)
 *   wire  (kith_compression_bytes) any alignment
 *
 * Returns false, and nothing of use on the wire, where v holds a value that is
 * not finite or a block's norm is beyond the element type. On a device the wire
 * is shared memory, of which `settled` says when it is there.
 *
 * Cost  no allocation, 10 KiB of stack; some passes over v. */
KITH_MUST_CHECK bool kith_compress(const struct kith_compression *how,
                                   const void *v, uint64_t key, void *wire);
/* out <- decode(wire) = C(v).
 *
 *   wire  (kith_compression_bytes) from a peer: any bytes
 *   out   (dim) on how->backend
 *
 * Returns false where the wire is not what kith_compress writes: an index
 * outside, doubled or out of order, a level above the highest, bits set that
 * carry nothing, a value that is not finite. What is in `out` then is of no
 * use. */
KITH_MUST_CHECK bool kith_decompress(const struct kith_compression *how,
                                     const void *wire, uint64_t key, void *out);
/* Where the k largest by size of v are, nearly: the selection of ms-top-k by
 * itself, for algorithms whose messages are their own.
 *
 *   v       (n) finite, on a host's backend
 *   kept    k, in [0, n]
 *   key     which of those of a size are kept, where not all are
 *   places  (k) ascending
 *
 * Returns k.
 *
 * Cost    O(n), as src/gossip/compressor/ms_top_k.h says without scratch.
 * Source  Shi et al., "Towards Scalable Distributed Training of Deep Learning
 *         on Public Cloud Clusters", MLSys 2021, MSTopK.
 * Test    unit/test_ms_top_k.c, unit/test_two_level.c */
size_t kith_ms_top_k(const struct kith_backend *backend, size_t n,
                     const void *v, size_t kept, uint64_t key,
                     uint32_t *places);
/* wire <- 0 */
void kith_compression_erase(const struct kith_compression *how, void *wire);
/* Error feedback, on a host: what was left out is sent later.
 *
 *   v = u + decay e;  c = C(v);  e <- v - c
 *
 *   decay  in [0, 1]; 1: plain. 0.95 helps where e grows old
 *   u      (dim) on how->backend; read
 *   error  (dim) e, at first 0
 *   wire   (kith_compression_bytes)
 *   sent   (dim) c, what the other side decodes
 *
 * With decay 1 the sum of all c and the last e is the sum of all u, to the
 * rounding of u + e and v - c: exact where those are.
 *
 * Returns false where u is not finite, and leaves e alone, or where v cannot be
 * sent, and e starts again from 0.
 *
 * Source  Seide et al., "1-Bit Stochastic Gradient Descent and its Application
 *         to Data-Parallel Distributed Training of Speech DNNs", Interspeech
 *         2014; Karimireddy et al., "Error Feedback Fixes SignSGD and other
 *         Gradient Compression Schemes", ICML 2019, algorithm 2. */
KITH_MUST_CHECK bool kith_compress_feedback(const struct kith_compression *how,
                                            double decay, const void *u,
                                            void *error, uint64_t key,
                                            void *wire, void *sent);

#endif
