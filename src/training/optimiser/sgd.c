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

bool kith_sgd_range(const struct kith_optimiser_step *step, size_t from,
                    size_t to, double decay)
{
    return step->backend->sgd(
        &(struct kith_sgd){.n = to - from,
                           .rate = step->rate,
                           .momentum = step->config->momentum,
                           .decay = decay,
                           .nesterov = step->config->nesterov,
                           .gradient = kith_at(step, step->gradient, from),
                           .velocity = kith_at(step, step->state[0], from),
                           .x = kith_at(step, step->x, from)});
}

static bool sgd_step(const struct kith_optimiser_step *step)
{
    const struct kith_layout *layout = step->layout;
    (void)kith_optimiser_clip(step);
    const bool weights =
        kith_sgd_range(step, 0, layout->decayed, step->config->weight_decay);
    const bool vectors =
        kith_sgd_range(step, layout->decayed, layout->trained, 0);
    return weights && vectors;
}

extern const struct kith_optimiser kith_optimiser_sgd;
const struct kith_optimiser kith_optimiser_sgd = {
    .name = "sgd",
    .paper = "Polyak, USSR Computational Mathematics 1964",
    .summary = "v <- momentum v + g + decay x; x <- x - rate v",
    .keys = KITH_OPTIMISER_READS(MOMENTUM) | KITH_OPTIMISER_READS(NESTEROV),
    .state_vectors = 1,
    .is_elementwise = true,
    .step = sgd_step,
};
