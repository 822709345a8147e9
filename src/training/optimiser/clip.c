/* Clipping by the global norm: g <- g min(1, clip / |g|).
 * Pascanu et al., "On the difficulty of training recurrent neural networks",
 * ICML 2013. */
#include <math.h>

#include "kith/optimiser.h"

double kith_optimiser_clip(const struct kith_optimiser_step *step)
{
    const size_t n = step->layout->trained;
    const double most = step->config->clip;
    if (!(most > 0))
        return 0;
    if (step->backend->clip != NULL)
        return step->backend->clip(n, most, step->gradient);
    const double norm =
        sqrt(step->backend->distance_squared(n, step->gradient, NULL));
    if (norm > most)
        step->backend->scale(n, most / norm, step->gradient);
    return norm;
}
