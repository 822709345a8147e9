/* Which elements a dropout keeps: four per Philox block, so that any thread
 * can begin anywhere and the way back finds the same mask.
 *
 *   word i % 4 of Philox(key, counter = {i / 4, tail}) >= threshold: kept
 *
 * key and tail are drawn from (seed, entity, place), then from the step.
 * Test: unit/test_ops.c, the same mask forth and back and from any start. */
#ifndef KITH_DROPOUT_H
#define KITH_DROPOUT_H

#include <stdint.h>

#include "kith/ops.h"
#include "kith/rng.h"

/* The CUDA module computes masks on the device. */
#ifndef KITH_MASK_FUNCTION
#define KITH_MASK_FUNCTION static inline
#endif

struct kith_mask {
    uint32_t key[2], tail[2];
    uint64_t threshold; /* rate * 2^32 */
};

KITH_MASK_FUNCTION struct kith_mask kith_mask_of(const struct kith_dropout *op)
{
    const uint32_t seed[2] = {(uint32_t)op->seed, (uint32_t)(op->seed >> 32)};
    const uint32_t who[4] = {op->place, (uint32_t)op->entity,
                             (uint32_t)(op->entity >> 32), KITH_STREAM_DROPOUT};
    uint32_t peer[4], drawn[4];
    kith_philox(seed, who, peer);
    const uint32_t when[4] = {(uint32_t)op->step, (uint32_t)(op->step >> 32),
                              peer[2], peer[3]};
    kith_philox(peer, when, drawn);
    const struct kith_mask mask = {{drawn[0], drawn[1]},
                                   {drawn[2], drawn[3]},
                                   (uint64_t)(op->rate * 4294967296.0)};
    return mask;
}

/* The words of elements 4 block to 4 block + 3. */
KITH_MASK_FUNCTION void kith_mask_block(const struct kith_mask *mask,
                                        uint64_t block, uint32_t word[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32),
                                 mask->tail[0], mask->tail[1]};
    kith_philox(mask->key, counter, word);
}

#endif
