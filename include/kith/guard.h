/* A guard: what stands between a received model and the merge, after the gate
 * "finite, right shape, fresh" that is always on.
 *
 *   x <- x + w c (received - sent)     c the exchange's weight, w in [0, 1]
 *
 * The worker measures, the guard answers w; 0 is a rejection. What it withholds
 * of the exchange, (1 - w) c (received - sent), is booked
 * (kith_worker_withheld). A guard knows identities and what was received
 * before; all of it is forgotten at a restart. Rules that need every model of a
 * round see them through `judge`, before the first is merged.
 *
 * One file, one line in src/gossip/guard/guards.def; no heap, no clock.
 * Test: unit/test_guard_clip.c, unit/test_guard_runs.c. */
#ifndef KITH_GUARD_H
#define KITH_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/types.h"

/* Coordinates of a model that a guard looks at one by one: private and random,
 * in runs; all of them where there are no more. */
#define KITH_GUARD_COORDINATES 4096u

/* One received model. */
struct kith_guard_model {
    kith_id peer;
    double distance; /* |received - sent|; INFINITY where that is none */
    double movement; /* mean of own movement between two merges; 0: none yet */
    const double *v; /* (coordinates) of received - sent; NULL: not asked */
    size_t coordinates;
};

struct kith_guard {
    const char *name, *paper, *summary; /* required */

    /* Bytes of what it keeps, 8-aligned, zeroed; NULL: nothing. */
    size_t (*bytes)(size_t coordinates);
    /* Does it still need `movement`? NULL: never. */
    bool (*needs_movement)(const void *state);
    bool looks; /* at coordinates: `v` */
    /* How much of this model is let in, in [0, 1]. Required but for `none`. */
    double (*weigh)(void *state, const struct kith_guard_model *model);
};

/* NULL-terminated, in the order of guards.def. */
extern const struct kith_guard *const kith_guards[];
const struct kith_guard *kith_guard_find(const char *name);

#endif
