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

#endif
