/* What guards that see all models of a round do alike. `n` models: count
 * received and our own, the last. */
#ifndef KITH_GOSSIP_GUARD_ROUNDS_H
#define KITH_GOSSIP_GUARD_ROUNDS_H

#include "kith/guard.h"

enum {
    GUARD_MODELS = KITH_DEGREE_MAX + 1,
    GUARD_CHUNK = 32, /* coordinates that are looked at together */
};

/* So many coordinates of one model. */
typedef double kith_guard_values[GUARD_CHUNK];

/* A model in the place of all that were received, coordinate by coordinate:
 * rule(state, values, n, found) of values (n, GUARD_CHUNK), which it may
 * change. */
typedef void kith_guard_rule(void *state, kith_guard_values *values, uint32_t n,
                             double *found);
void kith_guard_replace(struct kith_guard_round *round, kith_guard_rule *rule,
                        void *state);

/* squared (n, n) <- |model i - model j|^2, at most 1e300. */
void kith_guard_distances(const struct kith_guard_round *round,
                          double *squared);

/* The mean of each coordinate without the `cut` least and largest, n > 2 cut;
 * sorts them. Cost: n log^2 n comparisons of a chunk. */
void kith_guard_trimmed(kith_guard_values *values, uint32_t n, uint32_t cut,
                        double *found);
void kith_guard_sort(double *values, uint32_t n);
/* b, or as many as n models bear: n > 2 b. */
uint32_t kith_guard_liars(const struct kith_guard_round *round);

#endif
