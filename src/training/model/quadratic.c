/* One quadratic per peer, for the theory tests:
 *
 *   f_i(x) = |x - b_i|^2 / 2      gradient x - b_i      b_i ~ spread * N-ish
 *   x_i(0) = start u + apart v_i                    u, v_i ~ N-ish, 0 unless
 *                                                   the file says otherwise
 *
 * b_i from stream TARGET of the peer, v_i from stream WEIGHTS, u from that of
 * nobody. The minimum of the mean is the mean of the b_i, and all curvatures
 * are 1. */
#include "vector.h"

#include <string.h>

enum { CHUNK = 64 };

static void draw(struct kith_rng *rng, double deviation, size_t count,
                 double *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = deviation * kith_vector_draw(rng);
}

static struct kith_rng targets_of(uint64_t seed, uint64_t entity)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TARGET, entity);
    return rng;
}

/* Drawn anew at every call: one Philox word pair per coordinate, and no
 * state between calls. */
static void draw_target(const struct kith_model_config *config,
                        const struct kith_backend *backend,
                        const struct kith_batch *batch, char *target)
{
    struct kith_rng rng = targets_of(batch->seed, batch->entity);
    double chunk[CHUNK];
    for (size_t at = 0; at < config->dim; at += CHUNK) {
        const size_t left = config->dim - at;
        const size_t count = left < CHUNK ? left : CHUNK;
        draw(&rng, config->spread, count, chunk);
        backend->write(count, chunk, target + at * backend->element_bytes);
    }
}

static void quadratic_target(const struct kith_model_config *config,
                             uint64_t seed, uint64_t entity, double *b)
{
    struct kith_rng rng = targets_of(seed, entity);
    draw(&rng, config->spread, config->dim, b);
}

static void quadratic_start(const struct kith_model_config *config,
                            uint64_t seed, uint64_t entity, double *x)
{
    const struct {
        uint64_t entity;
        double deviation;
    } parts[] = {{UINT64_MAX, config->start}, {entity, config->apart}};
    memset(x, 0, config->dim * sizeof *x);
    for (unsigned part = 0; part < 2; part++) {
        struct kith_rng rng;
        if (parts[part].deviation == 0)
            continue;
        kith_rng_init(&rng, seed, KITH_STREAM_WEIGHTS, parts[part].entity);
        for (uint32_t i = 0; i < config->dim; i++)
            x[i] += parts[part].deviation * kith_vector_draw(&rng);
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
    .keys = KITH_MODEL_READS(DIM) | KITH_MODEL_READS(SPREAD) |
            KITH_MODEL_READS(START) | KITH_MODEL_READS(APART),
    .check = kith_vector_check,
    .dim = kith_vector_dim,
    .start = quadratic_start,
    .target = quadratic_target,
    .loss = quadratic_loss,
};
