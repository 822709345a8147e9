/* SlowMo: momentum over the averages of local SGD.
 *
 *   H own steps from x, then the mean xbar with all neighbours
 *   v <- beta v + (x - xbar);    x <- x - alpha v
 *
 * v = gamma times the paper's buffer: the same at a constant rate gamma.
 * beta = `momentum`, alpha = `rate`. On a complete graph all peers stay alike
 * between rounds; on others this is the paper's gossip variant.
 *
 * Source: Wang et al., "SlowMo", ICLR 2020, Alg. 1.
 * Test: unit/test_rules.c. */
#include "outer.h"

const struct kith_algorithm kith_algorithm_slowmo = {
    .name = "slowmo",
    .paper = "Wang et al., ICLR 2020",
    .summary = "local SGD, averaging every H steps, momentum over the averages",
    .differs = "the buffer is gamma times the paper's, and so keeps the "
               "rate of its time where the rate changes; the mean is of "
               "neighbours, the paper's on a complete graph",
    OUTER_STEP,
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.5, [KITH_GOSSIP_RATE] = 1},
    .finish = kith_outer_heavy_ball,
};
