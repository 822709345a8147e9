/* A worker without an experiment file: what test_worker and test_save share. */
#ifndef KITH_TESTS_WORKER_FIXTURE_H
#define KITH_TESTS_WORKER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/evaluation.h"
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

/* An mlp that learns the bundled digits within 20 epochs. */
static inline struct kith_experiment fixture_learner(const char *algorithm,
                                                     uint32_t peers)
{
    static const uint32_t layers[] = {64, 32, 10};
    struct kith_experiment experiment =
        fixture_experiment("mlp", algorithm, peers);
    fixture_layers(&experiment, layers, 3);
    experiment.backend = kith_backend_find("cpu");
    experiment.train.config.momentum = 0.9;
    experiment.train.config.learning_rate = 0.05;
    experiment.train.schedule.kind = KITH_SCHEDULE_LINEAR;
    experiment.data.split.kind = KITH_SPLIT_IID;
    return experiment;
}

/* Examples of bytes, flat, from memory. */
static inline struct kith_examples
fixture_examples(const uint8_t *images, const int32_t *labels, size_t count,
                 size_t features, uint32_t classes)
{
    return (struct kith_examples){.input = KITH_INPUT_IMAGES,
                                  .element = KITH_ELEMENT_U8,
                                  .values = images,
                                  .labels = labels,
                                  .count = count,
                                  .features = features,
                                  .shape = {1, 1, (uint32_t)features},
                                  .classes = classes,
                                  .deviation = {1, 1, 1, 1}};
}

/* The bundled digits; tests run in the build folder, its `srcdir` elsewhere. */
static inline enum kith_err fixture_digits(struct kith_dataset *set,
                                           char *error)
{
    char path[512];
    const char *source = getenv("srcdir");
    (void)snprintf(path, sizeof path, "%s/examples/data/digits",
                   source != NULL ? source : ".");
    struct kith_data_config config = {.kind = kith_dataset_kind_find("idx")};
    (void)snprintf(config.path, sizeof config.path, "%s", path);
    return kith_dataset_open(&config, set, error);
}

#endif
