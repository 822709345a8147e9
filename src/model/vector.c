/* See vector.h. */
#include "vector.h"

#include "kith/limits.h"

enum kith_err kith_vector_check(const struct kith_model_config *config)
{
    return config->dim > 0 && config->dim <= KITH_PARAMETERS_MAX ? KITH_OK
                                                                 : KITH_EINVAL;
}

size_t kith_vector_dim(const struct kith_model_config *config)
{
    return config->dim;
}

void kith_vector_shape(const struct kith_model_config *config, size_t *features,
                       size_t *classes)
{
    (void)config;
    *features = 0;
    *classes = 0;
}

uint32_t kith_vector_views(const struct kith_model_config *config,
                           struct kith_model_view *views, uint32_t capacity)
{
    if (capacity == 0)
        return 0;
    views[0] = (struct kith_model_view){
        .name = "x", .offset = 0, .rows = config->dim, .columns = 1};
    return 1;
}

size_t kith_vector_scratch_none(const struct kith_model_config *config,
                                const struct kith_backend *backend, size_t rows)
{
    (void)config;
    (void)backend;
    (void)rows;
    return 0;
}

double kith_vector_draw(struct kith_rng *rng)
{
    const uint64_t bits = kith_rng_u64(rng);
    double sum = 0;
    for (unsigned part = 0; part < 4; part++)
        sum += (double)((bits >> (16 * part)) & 0xffff);
    /* Each part has mean (2^16 - 1) / 2 and variance (2^32 - 1) / 12. */
    const double root3 = 1.7320508075688772;
    return (sum - 2 * 65535.0) / 65536.0 * root3;
}
