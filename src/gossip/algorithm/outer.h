/* Outer steps: what several methods do with the mean of local runs. */
#ifndef KITH_GOSSIP_ALGORITHM_OUTER_H
#define KITH_GOSSIP_ALGORITHM_OUTER_H

#include "updates.h"

enum { OUTER_BEFORE, OUTER_BUFFER, OUTER_VECTORS };

/* theta, where a model was adopted in the midst of the H steps. */
void kith_outer_start(struct kith_algebra *algebra);
void kith_outer_before_step(struct kith_algebra *algebra);
/* D = before - x, x the mean of the neighbours;  v <- momentum v + D
 * x <- before - rate v, or with nesterov before - rate (D + momentum v).
 * Returns what that added to the sum of x. */
double kith_outer_step(struct kith_algebra *algebra, bool nesterov);

#endif
