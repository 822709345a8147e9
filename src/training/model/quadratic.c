/* One quadratic per peer, for the theory tests:
 *
 *   f_i(x) = |x - b_i|^2 / 2      gradient x - b_i      b_i ~ spread * N-ish
 *
 * b_i from stream TARGET of the peer; every peer starts at 0. The minimum of
 * the mean is the mean of the b_i, and all curvatures are 1. */
#include "vector.h"

/* Drawn anew at every call: one Philox word pair per coordinate, and no
 * state between calls. */
static void draw_target(const struct kith_model_config *config,
                        const struct kith_backend *backend,
                        const struct kith_batch *batch, char *target)
{
    struct kith_rng rng;
    kith_rng_init(&rng, batch->seed, KITH_STREAM_TARGET, batch->entity);
    double chunk[64];
    for (size_t at = 0; at < config->dim; at += 64) {
        const size_t left = config->dim - at, count = left < 64 ? left : 64;
        for (size_t i = 0; i < count; i++)
            chunk[i] = config->spread * kith_vector_draw(&rng);
        backend->write(count, chunk, target + at * backend->element_bytes);
    }
}

static double quadratic_loss(const struct kith_model_config *config,
                             const struct kith_backend *backend, const void *x,
                             const struct kith_batch *batch, void *gradient)
{
    draw_target(config, backend, batch, gradient);
    const double squared = backend->distance_squared(config->dim, x, gradient);
    backend->scale(config->dim, -1, gradient);
    backend->add(config->dim, 1, x, gradient);
    return squared / 2;
}

extern const struct kith_model kith_model_quadratic;
const struct kith_model kith_model_quadratic = {
    .name = "quadratic",
    .paper = "Lian et al., NeurIPS 2017 (bias of decentralised SGD)",
    .summary = "f_i(x) = |x - b_i|^2 / 2, a target b_i per peer",
    .keys = KITH_MODEL_READS(DIM) | KITH_MODEL_READS(SPREAD),
    .check = kith_vector_check,
    .dim = kith_vector_dim,
    .loss = quadratic_loss,
};
