/* LARS: each weight tensor has a rate of its own, so that every layer moves by
 * the same share of its norm:
 *
 *   lambda = trust |w| / (|g| + decay |w|)     1: |w| or |g| is below 1e-30
 *   v <- momentum v + lambda (g + decay w)
 *   w <- w - rate v
 *
 * Biases, scales and shifts: lambda 1, no decay. Two passes more than SGD, one
 * of them the norms', which a site can divide (lars_parts.c).
 * You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks",
 * 2017. */
#include <math.h>

#include "terms.h"

double kith_lars_rate(const struct kith_optimiser_step *step,
                      const struct kith_model_view *view)
{
    const struct kith_optimiser_config *config = step->config;
    const struct kith_backend *backend = step->backend;
    const void *w = kith_at(step, step->x, view->offset);
    const void *g = kith_at(step, step->gradient, view->offset);
    const double size =
        sqrt(backend->distance_squared(view->elements, w, NULL));
    const double slope =
        sqrt(backend->distance_squared(view->elements, g, NULL));
    /* A factor above that is no float32. */
    if (!(size > 1e-30 && slope > 1e-30))
        return 1;
    return config->trust * size / (slope + config->weight_decay * size);
}

/* g <- lambda (g + decay w) */
static void lars_adapt(const struct kith_optimiser_step *step,
                       const struct kith_model_view *view, double lambda)
{
    const double decay = step->config->weight_decay;
    const void *w = kith_at(step, step->x, view->offset);
    void *g = kith_at(step, step->gradient, view->offset);
    if (decay > 0)
        step->backend->add(view->elements, decay, w, g);
    step->backend->scale(view->elements, lambda, g);
}

static bool lars_step(const struct kith_optimiser_step *step)
{
    const struct kith_layout *layout = step->layout;
    if (step->rates == NULL)
        (void)kith_optimiser_clip(step);
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *const view = &layout->views[i];
        if (view->offset < layout->decayed)
            lars_adapt(step, view,
                       step->rates == NULL ? kith_lars_rate(step, view)
                                           : (double)step->rates[i]);
    }
    return kith_sgd_range(step, 0, layout->trained, 0);
}

extern const struct kith_optimiser kith_optimiser_lars;
const struct kith_optimiser kith_optimiser_lars = {
    .name = "lars",
    .paper = "You et al., arXiv:1708.03888, 2017",
    .summary = "SGD with a rate per tensor, trust |w| / (|g| + decay |w|)",
    .keys = KITH_OPTIMISER_READS(MOMENTUM) | KITH_OPTIMISER_READS(NESTEROV) |
            KITH_OPTIMISER_READS(TRUST),
    .state_vectors = 1,
    .step = lars_step,
};
