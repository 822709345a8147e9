/* SGD with momentum, weight decay and clipping by the global norm:
 *
 *   g <- g min(1, clip / |g|)      where clip > 0
 *   g <- g + decay x
 *   v <- momentum v + g
 *   x <- x - rate v                nesterov: x <- x - rate (g + momentum v)
 *
 * Polyak, "Some methods of speeding up the convergence of iteration methods",
 * USSR Computational Mathematics 1964; Nesterov's form after Sutskever et al.,
 * ICML 2013; clipping: Pascanu et al., ICML 2013. */
#include "terms.h"

static bool sgd_step(const struct kith_optimiser_step *step)
{
    const struct kith_optimiser_config *config = step->config;
    const size_t decayed = step->layout->decayed;
    const size_t rest = step->layout->trained - decayed;
    (void)kith_optimiser_clip(step);
    const bool weights =
        step->backend->sgd(&(struct kith_sgd){.n = decayed,
                                              .rate = step->rate,
                                              .momentum = config->momentum,
                                              .decay = config->weight_decay,
                                              .nesterov = config->nesterov,
                                              .gradient = step->gradient,
                                              .velocity = step->state[0],
                                              .x = step->x});
    const bool vectors = step->backend->sgd(
        &(struct kith_sgd){.n = rest,
                           .rate = step->rate,
                           .momentum = config->momentum,
                           .nesterov = config->nesterov,
                           .gradient = kith_at(step, step->gradient, decayed),
                           .velocity = kith_at(step, step->state[0], decayed),
                           .x = kith_at(step, step->x, decayed)});
    return weights && vectors;
}

extern const struct kith_optimiser kith_optimiser_sgd;
const struct kith_optimiser kith_optimiser_sgd = {
    .name = "sgd",
    .paper = "Polyak, USSR Computational Mathematics 1964",
    .summary = "v <- momentum v + g + decay x; x <- x - rate v",
    .keys = KITH_OPTIMISER_READS(MOMENTUM) | KITH_OPTIMISER_READS(NESTEROV),
    .state_vectors = 1,
    .step = sgd_step,
};
