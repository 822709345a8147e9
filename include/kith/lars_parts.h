/* LARS' norms in parts: work that every replica repeats on equal numbers is
 * divided (parallel tensor operator).
 *
 *   lambda_l = trust |w_l| / (|g_l| + decay |w_l|)      l = 1 ... L
 *   worker p of P: its layers' rates alone, then all rates go to all
 *   time: t -> t / P + an exchange of L float32
 *
 * It holds where all have the same w and g, to the bit: within a site, after an
 * exchange of gradients. Of another site's rates, and of algorithms under which
 * replicas differ, nothing is taken.
 *
 * A layer is a weight tensor, a view of [0, decayed) of the layout. A part is
 * layers in a row; lambda is that of lars.c, bit for bit, as float32, which is
 * what a backend of float32 scales by. As a round of a run:
 * src/training/worker/norms.c.
 *
 * Source  Shi et al., "Towards Scalable Distributed Training of Deep Learning
 *         on Public Cloud Clusters", MLSys 2021 (PTO).
 * Test    unit/test_lars_parts.c (T4.6). */
#ifndef KITH_LARS_PARTS_H
#define KITH_LARS_PARTS_H

#include <stdint.h>

#include "kith/algorithm.h"
#include "kith/optimiser.h"

/* Members of a site have a bit each. */
#define KITH_LARS_WORKERS_MAX 64u
#define KITH_LARS_ERROR_BYTES 192

/* Layers [first, end), `elements` values in all. */
struct kith_lars_part {
    uint32_t first, end;
    size_t elements;
};

/* L */
uint32_t kith_lars_layers(const struct kith_layout *layout);
/* The layers whose middle lies in the worker's P-th of all values: together
 * with its neighbours' every layer once, and at most the largest layer's values
 * away from a P-th. worker < workers. */
struct kith_lars_part kith_lars_part(const struct kith_layout *layout,
                                     uint32_t workers, uint32_t worker);

/* NULL: rates may be divided; else what has to be, for "lars in parts needs
 * ...". sites: of those that train together. */
const char *kith_lars_parts_want(const struct kith_algorithm *algorithm,
                                 uint32_t sites);

/* One worker's view of a step: begin, own part, what others sent, the rest. */
struct kith_lars_gather {
    const struct kith_optimiser_step *step; /* clipped, before it is taken */
    uint32_t site, workers, worker;
    float *rates;  /* (L), the caller's; then step->rates */
    uint64_t have; /* parts that are here, a bit for each worker */
};
/* What a worker sends: rates (end - first) of its part. */
struct kith_lars_message {
    uint32_t site, worker;
    uint64_t step;
    uint32_t count;
    const float *rates;
};

/* rates <- a worker's part, by the norms of its layers; returns how many.
 *
 * Cost    a pass over the part's weights and gradients. */
uint32_t kith_lars_gather_compute(struct kith_lars_gather *gather,
                                  uint32_t worker);
/* The own part, to send; it has been computed. */
struct kith_lars_message
kith_lars_gather_own(const struct kith_lars_gather *gather);
/* rates <- what another sent, all of it or nothing.
 *
 * Returns KITH_OK, or with a line in `error` (KITH_LARS_ERROR_BYTES)
 *   KITH_EMISMATCH   of another site, or another step
 *   KITH_EINVAL      of nobody here, or as many rates as its part has not
 *   KITH_EEXIST      this part is here already
 *   KITH_ENONFINITE  a rate is negative, not finite, or above what weight decay
 *                    allows, trust / decay or 1 */
KITH_MUST_CHECK enum kith_err
kith_lars_gather_take(struct kith_lars_gather *gather,
                      const struct kith_lars_message *message, char *error);
/* Computes what did not come: the same bits. Returns layers so computed. */
uint32_t kith_lars_gather_finish(struct kith_lars_gather *gather);

#endif
