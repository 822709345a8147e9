/* Counter-based random numbers: Philox4x32-10 with named streams per entity.
 *
 *   word k of a stream = Philox(key = seed, counter = {k / 4, entity, stream})
 *
 * A draw depends on (seed, stream, entity, index) alone, so removing one fault
 * or one peer shifts no other draw: that is what makes runs shrinkable.
 *
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 *         SC 2011.
 * Test:   unit/test_rng.c (the paper's known-answer vectors). */
#ifndef KITH_RNG_H
#define KITH_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/types.h"

KITH_BEGIN_DECLS

/* X(name): append only; the number is part of every trace hash. */
#define KITH_STREAMS(X)                                                        \
    X(PARTNER)                                                                 \
    X(BATCH)                                                                   \
    X(WEIGHTS)                                                                 \
    X(SPLIT)                                                                   \
    X(LINK)                                                                    \
    X(FAULT)                                                                   \
    X(COMPUTE)                                                                 \
    X(TRIGGER)                                                                 \
    X(KEYS)                                                                    \
    X(DROP)                                                                    \
    X(TEST)                                                                    \
    X(TOPOLOGY)                                                                \
    X(TARGET)                                                                  \
    X(DROPOUT)                                                                 \
    X(AUGMENT)                                                                 \
    X(WINDOW)                                                                  \
    X(SYNTHETIC)                                                               \
    X(SAMPLE)                                                                  \
    X(COMPRESS)                                                                \
    X(MASK)                                                                    \
    X(LOSS)                                                                    \
    X(SWARM)                                                                   \
    X(GUARD)                                                                   \
    X(LIE)                                                                     \
    X(SKETCH)                                                                  \
    X(TEST_PART)                                                               \
    X(HOST)                                                                    \
    X(SPEED)

enum kith_stream {
#define KITH_X(name) KITH_STREAM_##name,
    KITH_STREAMS(KITH_X)
#undef KITH_X
        KITH_STREAM_COUNT
};

struct kith_rng {
    uint64_t seed;    /* Philox key */
    uint64_t entity;  /* peer, or (i << 32 | j) for a link i -> j */
    uint32_t stream;  /* enum kith_stream */
    uint32_t block;   /* next block of four words */
    uint32_t word[4]; /* the current block */
    uint32_t used;    /* words of it already given out, 4 = none left */
};

void kith_rng_init(struct kith_rng *rng, uint64_t seed, enum kith_stream stream,
                   uint64_t entity);
uint32_t kith_rng_u32(struct kith_rng *rng);
uint64_t kith_rng_u64(struct kith_rng *rng);
/* Uniform in [0, n), n > 0, without bias (Lemire's rejection). */
uint32_t kith_rng_below(struct kith_rng *rng, uint32_t n);
/* values (count) <- the next `count` of those, many blocks at a time. */
void kith_rng_below_each(struct kith_rng *rng, uint32_t n, uint32_t *values,
                         size_t count);
/* Blocks of the stream, `stride` apart from the next one on, side by side for
 * whatever vectors the compiler has: word[k][i] <- word k of the i-th. */
#define KITH_RNG_LANES 32
void kith_rng_blocks(const struct kith_rng *rng, uint32_t stride,
                     uint32_t word[4][KITH_RNG_LANES]);
/* Uniform in [0, 1): 53 random bits. Exact in any build. */
double kith_rng_double(struct kith_rng *rng);
/* A span with mean mean_ns, exponential, from a table in base (not libm). */
kith_ns kith_rng_exponential(struct kith_rng *rng, kith_ns mean_ns);
void kith_rng_fill(struct kith_rng *rng, void *bytes, size_t size);
/* Fisher-Yates over count 32-bit values. */
void kith_rng_shuffle(struct kith_rng *rng, uint32_t *values, uint32_t count);
/* The raw block function, for the known-answer test. */
void kith_philox(const uint32_t key[2], const uint32_t counter[4],
                 uint32_t word[4]);

KITH_END_DECLS

#endif
