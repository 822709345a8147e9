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

/* x before the round, where a model was adopted between two of them. */
void kith_quasi_global_start(struct kith_algebra *algebra);
void kith_quasi_global_before(struct kith_algebra *algebra);
/* x <- x - factor v */
void kith_quasi_global_step(struct kith_algebra *algebra, double factor);
double kith_quasi_global_finish(struct kith_algebra *algebra,
                                const struct kith_work_edge *edges,
                                uint32_t edge_count);

#endif
