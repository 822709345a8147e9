/* QG-Adam: D-PSGD with Adam's moments of what all peers did together.
 *
 *   u = (beta1 m + g) / (sqrt(beta2 v + (1 - beta2) g^2) + 1e-8)
 *   x+ = sum_j W_ij (x_j - eta u_j);   d = (x - x+) / |x - x+|
 *   m+ = beta1 m + (1 - beta1) d;      v+ = beta2 v + (1 - beta2) d^2
 *
 * beta1 = `momentum`, beta2 = `decay`; coordinate by coordinate. d has length 1
 * over all of them, so v is small beside g^2 and u about 1 / sqrt(1 - beta2)
 * for each: choose a small learning rate. Leave train.momentum at 0.
 *
 * Source: Lin et al., "Quasi-Global Momentum", ICML 2021, and its code.
 * Test: unit/test_rules_outer.c (T8.1). */
#include "quasi_global.h"

#include <math.h>

enum { SECOND = QUASI_GLOBAL_VECTORS, VECTORS };

static void direction(struct kith_algebra *algebra)
{
    algebra->backend->adam_direction(&(struct kith_adam){
        .n = algebra->trained,
        .beta1 = algebra->coefficients[KITH_GOSSIP_MOMENTUM],
        .beta2 = algebra->coefficients[KITH_GOSSIP_DECAY],
        .epsilon = 1e-8,
        .first = algebra->vectors[QUASI_GLOBAL_BUFFER],
        .second = algebra->vectors[SECOND],
        .gradient = algebra->gradient});
}

static double finish(struct kith_algebra *algebra)
{
    const double beta1 = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double beta2 = algebra->coefficients[KITH_GOSSIP_DECAY];
    const void *const before = algebra->vectors[QUASI_GLOBAL_BEFORE];
    const double length = sqrt(algebra->backend->distance_squared(
        algebra->trained, before, algebra->live));
    if (!(length > 0))
        return 0;
    const struct kith_term d = {(1 - beta1) / length, before, algebra->live};
    const struct kith_term square = {sqrt(1 - beta2) / length, before,
                                     algebra->live};
    const struct kith_update updates[] = {
        kith_one_term(algebra->vectors[QUASI_GLOBAL_BUFFER], beta1, &d, NULL),
        {.y = algebra->vectors[SECOND],
         .own = beta2,
         .count = 1,
         .terms = &square,
         .squared = true}};
    algebra->backend->combine(algebra->trained, 2, updates);
    return 0;
}

const struct kith_algorithm kith_algorithm_qg_adam = {
    .name = "qg-adam",
    .paper = "Lin et al., ICML 2021",
    .summary = "averaging with all neighbours, Adam's moments of what all did "
               "together",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_CONSERVES_SUM | KITH_TAKES_GUARD,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(DECAY),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9, [KITH_GOSSIP_DECAY] = 0.99},
    .vectors = VECTORS,
    .start = kith_algorithm_start,
    .before_step = kith_algorithm_before_step,
    .direction = direction,
    .merge = kith_algorithm_mix,
    .finish = finish,
};
