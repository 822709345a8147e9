/* One quadratic per peer, for the theory tests:
 *
 *   f_i(x) = |x - b_i|^2 / 2      gradient x - b_i      b_i ~ spread * N-ish
 *
 * b_i from stream TARGET of the peer; every peer starts at 0. The minimum of
 * the mean is the mean of the b_i, and all curvatures are 1. */
#include "vector.h"

static void quadratic_start(const struct kith_model_config *config,
                            uint64_t seed, uint64_t entity, double *x)
{
    (void)seed;
    (void)entity;
    for (uint32_t i = 0; i < config->dim; i++)
        x[i] = 0;
}

/* The target, on the backend. */
static size_t quadratic_scratch(const struct kith_model_config *config,
                                const struct kith_backend *backend, size_t rows)
{
    (void)rows;
    return config->dim * backend->element_bytes;
}

/* Drawn anew at every call: one Philox word pair per coordinate, and the
 * scratch keeps no state between calls. */
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
                             const struct kith_batch *batch, void *gradient,
                             uint32_t *correct, void *scratch)
{
    draw_target(config, backend, batch, scratch);
    if (correct != NULL)
        *correct = 0;
    if (gradient != NULL) {
        backend->copy(config->dim, gradient, x);
        backend->add(config->dim, -1, scratch, gradient);
    }
    return backend->distance_squared(config->dim, x, scratch) / 2;
}

extern const struct kith_model kith_model_quadratic;
const struct kith_model kith_model_quadratic = {
    .name = "quadratic",
    .paper = "Lian et al., NeurIPS 2017 (bias of decentralised SGD)",
    .summary = "f_i(x) = |x - b_i|^2 / 2, a target b_i per peer",
    .check = kith_vector_check,
    .dim = kith_vector_dim,
    .shape = kith_vector_shape,
    .views = kith_vector_views,
    .start = quadratic_start,
    .scratch = quadratic_scratch,
    .loss = quadratic_loss,
};
