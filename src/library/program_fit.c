/* See program_fit.h. Test: integration/test_python.sh, unit/test_simulate.c */
#include "program_fit.h"

#include <inttypes.h>
#include <stdio.h>

#include "kith/worker.h"

#define REFUSE(...)                                                            \
    (void)snprintf(error, KITH_EXPERIMENT_ERROR_BYTES, __VA_ARGS__), false

bool kith_program_fit(struct kith_experiment *experiment, const char *path,
                      size_t dim, bool on_device, char *error)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_backend *backend = experiment->backend;
    const uint32_t said = experiment->model_config.dim;
    const char *misses = kith_outside_misses(algorithm);
    if (said != 0 && said != dim)
        return REFUSE("model.dim: %.300s says %" PRIu32
                      ", the vectors have %zu values",
                      path, said, dim);
    if (misses != NULL)
        return REFUSE("gossip.algorithm: %s does not work with a training "
                      "loop of yours: %s; take another, as adpsgd",
                      algorithm->name, misses);
    if (backend->element_bytes != sizeof(float) ||
        on_device != (backend->host != backend))
        return REFUSE("train.backend: found %s; allowed: %s", backend->name,
                      on_device ? "cuda, for vectors in a device's memory"
                                : "cpu, for vectors in the host's memory");
    const char *const missing = on_device ? backend->missing() : NULL;
    if (missing != NULL)
        return REFUSE("train.backend: no vectors in a device's memory here: "
                      "%.700s",
                      missing);
    experiment->model_config.dim = (uint32_t)dim;
    return true;
}
