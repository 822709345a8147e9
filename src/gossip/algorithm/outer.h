/* Outer steps: what several methods do with the mean of local runs. */
#ifndef KITH_GOSSIP_ALGORITHM_OUTER_H
#define KITH_GOSSIP_ALGORITHM_OUTER_H

#include "updates.h"

/* OUTER_BEFORE is kept by kith_algorithm_start and _before_step. */
enum { OUTER_BEFORE, OUTER_BUFFER, OUTER_VECTORS };

/* `finish`: D = before - x, x the mean of the neighbours;  v <- momentum v + D
 * x <- before - rate v */
double kith_outer_heavy_ball(struct kith_algebra *algebra);
/* x <- before - rate (D + momentum v) */
double kith_outer_nesterov(struct kith_algebra *algebra);

#endif
