/* A model that a program of the user's trains: see kith/kith.h. Its parameters
 * are the program's vectors, so that how many there are is known when it opens
 * its peer; here a step changes nothing. */
#include <stdio.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "vector.h"

static enum kith_err program_check(const struct kith_model_config *config,
                                   char *error)
{
    if (config->dim <= KITH_PARAMETERS_MAX) {
        KITH_ASSERT(config->buffers <= config->dim);
        return KITH_OK;
    }
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.dim: found %u; allowed: up to %.0f", config->dim,
                   (double)KITH_PARAMETERS_MAX);
    return KITH_EINVAL;
}

extern const struct kith_model kith_model_program;
const struct kith_model kith_model_program = {
    .name = "program",
    .paper = "-",
    .summary = "vectors that a training loop of yours owns, by libkith",
    .keys = KITH_MODEL_READS(DIM) | KITH_MODEL_READS(RUN),
    .reports = true,
    .check = program_check,
    .dim = kith_vector_dim,
};
