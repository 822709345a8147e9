/* Quasi-global momentum: the buffer follows what all peers do together.
 *
 *   v+ = mu v + (1 - mu) (x - x+) / H        x, x+ before and after a round
 *
 * v = eta times the papers' buffer: the same at a constant rate, without a
 * division, and safe under warm-up and restarts. mu = `decay`.
 *
 * Source: Lin et al., "Quasi-Global Momentum", ICML 2021. */
#ifndef KITH_GOSSIP_ALGORITHM_QUASI_GLOBAL_H
#define KITH_GOSSIP_ALGORITHM_QUASI_GLOBAL_H

#include "updates.h"

enum { QUASI_GLOBAL_BEFORE, QUASI_GLOBAL_BUFFER, QUASI_GLOBAL_VECTORS };

/* x <- x - factor v */
void kith_quasi_global_step(struct kith_algebra *algebra, double factor);
double kith_quasi_global_finish(struct kith_algebra *algebra);
/* A record of this family; what is its own follows. */
#define QUASI_GLOBAL                                                           \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_CONSERVES_SUM | KITH_TAKES_GUARD,                            \
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(DECAY),            \
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9, [KITH_GOSSIP_DECAY] = 0.9},      \
    .vectors = QUASI_GLOBAL_VECTORS, .start = kith_algorithm_start,            \
    .before_step = kith_algorithm_before_step, .merge = kith_algorithm_mix,    \
    .finish = kith_quasi_global_finish

#endif
