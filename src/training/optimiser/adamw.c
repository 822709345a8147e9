/* AdamW: moments of the gradient, their bias corrected, decay beside them; the
 * equations stand at kith_ops.adamw.
 *
 * Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019;
 * Kingma and Ba, ICLR 2015. */
#include "terms.h"

bool kith_adamw_range(const struct kith_optimiser_step *step, size_t from,
                      size_t to, double decay)
{
    const struct kith_optimiser_config *config = step->config;
    if (from == to)
        return true;
    return step->backend->ops->adamw(
        &(struct kith_adamw){.n = to - from,
                             .rate = step->rate,
                             .beta1 = config->beta1,
                             .beta2 = config->beta2,
                             .epsilon = config->epsilon,
                             .decay = decay,
                             .t = step->step + 1,
                             .g = kith_at(step, step->gradient, from),
                             .m = kith_at(step, step->state[0], from),
                             .v = kith_at(step, step->state[1], from),
                             .x = kith_at(step, step->x, from)});
}

static bool adamw_step(const struct kith_optimiser_step *step)
{
    const struct kith_layout *layout = step->layout;
    (void)kith_optimiser_clip(step);
    const bool weights =
        kith_adamw_range(step, 0, layout->decayed, step->config->weight_decay);
    const bool vectors =
        kith_adamw_range(step, layout->decayed, layout->trained, 0);
    return weights && vectors;
}

extern const struct kith_optimiser kith_optimiser_adamw;
const struct kith_optimiser kith_optimiser_adamw = {
    .name = "adamw",
    .paper = "Loshchilov and Hutter, ICLR 2019",
    .summary = "x <- x - rate (m / (sqrt(v) + epsilon) + decay x), moments "
               "corrected for their bias",
    .keys = KITH_OPTIMISER_READS(BETA1) | KITH_OPTIMISER_READS(BETA2) |
            KITH_OPTIMISER_READS(EPSILON),
    .state_vectors = 2,
    .is_elementwise = true,
    .step = adamw_step,
};
