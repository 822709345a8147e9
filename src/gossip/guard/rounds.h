/* What guards that see all models of a round do alike. `n` models: count
 * received and our own, the last. */
#ifndef KITH_GOSSIP_GUARD_ROUNDS_H
#define KITH_GOSSIP_GUARD_ROUNDS_H

#include "kith/guard.h"

enum { GUARD_MODELS = KITH_DEGREE_MAX + 1 };

/* A model in the place of all that were received, coordinate by coordinate:
 * rule(state, values, n) of the n values there, which it may change. */
typedef double kith_guard_rule(void *state, double *values, uint32_t n);
void kith_guard_replace(struct kith_guard_round *round, kith_guard_rule *rule,
                        void *state);

/* squared (n, n) <- |model i - model j|^2, at most 1e300. */
void kith_guard_distances(const struct kith_guard_round *round,
                          double *squared);

/* The `cut` least and largest left out, n > 2 cut; sorts the values. */
double kith_guard_trimmed(double *values, uint32_t n, uint32_t cut);
/* b, or as many as n models bear: n > 2 b. */
uint32_t kith_guard_liars(const struct kith_guard_round *round);

#endif
