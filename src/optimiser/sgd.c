/* SGD with momentum, weight decay and clipping by the global norm:
 *
 *   g <- g min(1, clip / |g|)      where clip > 0
 *   g <- g + decay x
 *   v <- momentum v + g
 *   x <- x - rate v
 *
 * Polyak, "Some methods of speeding up the convergence of iteration methods",
 * USSR Computational Mathematics 1964; clipping: Pascanu et al., ICML 2013. */
#include <math.h>

#include "kith/optimiser.h"

static bool sgd_step(const struct kith_optimiser_config *config,
                     const struct kith_backend *backend, size_t n, double rate,
                     void *gradient, void *const *state, void *x)
{
    if (config->clip > 0) {
        const double norm = sqrt(backend->distance_squared(n, gradient, NULL));
        if (norm > config->clip)
            backend->scale(n, config->clip / norm, gradient);
    }
    return backend->sgd(n, rate, config->momentum, config->weight_decay,
                        gradient, state[0], x);
}

extern const struct kith_optimiser kith_optimiser_sgd;
const struct kith_optimiser kith_optimiser_sgd = {
    .name = "sgd",
    .paper = "Polyak, USSR Computational Mathematics 1964",
    .summary = "v <- momentum v + g + decay x; x <- x - rate v",
    .state_vectors = 1,
    .step = sgd_step,
};
