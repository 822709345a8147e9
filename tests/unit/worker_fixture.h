/* A worker without an experiment file: what test_worker and test_save share. */
#ifndef KITH_TESTS_WORKER_FIXTURE_H
#define KITH_TESTS_WORKER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/worker.h"

static inline struct kith_experiment
fixture_experiment(const char *model, const char *algorithm, uint32_t peers)
{
    struct kith_experiment experiment = {.seed = 7, .peers = peers};
    (void)snprintf(experiment.name, sizeof experiment.name, "fixture");
    experiment.model = kith_model_find(model);
    experiment.model_config.dim = 37;
    experiment.model_config.spread = 2;
    experiment.gossip.algorithm = kith_algorithm_find(algorithm);
    experiment.gossip.topology = kith_topology_find("random");
    experiment.gossip.every = 1;
    experiment.backend = kith_backend_find("naive64");
    experiment.train.optimiser = kith_optimiser_find("sgd");
    experiment.train.config.learning_rate = 0.1;
    experiment.train.batch = 16;
    return experiment;
}

static inline void fixture_layers(struct kith_experiment *experiment,
                                  const uint32_t *layers, uint32_t count)
{
    memcpy(experiment->model_config.layers, layers, count * sizeof *layers);
    experiment->model_config.layer_count = count;
}

/* The bundled digits; tests run in the build folder, its `srcdir` elsewhere. */
static inline enum kith_err fixture_digits(struct kith_dataset *set,
                                           char *error)
{
    char path[512];
    const char *source = getenv("srcdir");
    (void)snprintf(path, sizeof path, "%s/examples/data/digits",
                   source != NULL ? source : ".");
    return kith_dataset_open_idx(path, set, error);
}

#endif
