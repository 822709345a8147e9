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

/* Records of those two. */
#define OUTER_STEP                                                             \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_TAKES_GUARD,                                                 \
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE),             \
    .vectors = OUTER_VECTORS, .start = kith_algorithm_start,                   \
    .before_step = kith_algorithm_before_step, .merge = kith_algorithm_mix

/* Records of outer steps that draw neighbours together as well, by vectors and
 * functions of their own. */
#define OUTER_CONSENSUS                                                        \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_TAKES_GUARD,                                                 \
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE) |            \
            KITH_GOSSIP_READS(CONSENSUS),                                      \
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.5,                                  \
                [KITH_GOSSIP_RATE] = 0.7,                                      \
                [KITH_GOSSIP_CONSENSUS] = 0.7},                                \
    .vectors = VECTORS, .make = make, .merge = merge, .finish = finish

#endif
