/* See vector.h. */
#include "vector.h"

#include <stdio.h>

#include "kith/limits.h"

enum kith_err kith_vector_check(const struct kith_model_config *config,
                                char *error)
{
    if (config->dim > 0 && config->dim <= KITH_PARAMETERS_MAX)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.dim: found %u; allowed: 1 to %.0f", config->dim,
                   (double)KITH_PARAMETERS_MAX);
    return KITH_EINVAL;
}

size_t kith_vector_dim(const struct kith_model_config *config)
{
    return config->dim;
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
