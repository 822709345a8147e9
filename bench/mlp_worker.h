/* A worker of adpsgd with an mlp of 784, width, width and 10 that has taken one
 * step: what benches of MERGE run items on. Include bench.h first. */
#ifndef KITH_BENCH_MLP_WORKER_H
#define KITH_BENCH_MLP_WORKER_H

#include <stdlib.h>
#include <string.h>

#include "kith/format.h"
#include "kith/worker.h"

static inline struct kith_worker *open_worker(const struct kith_guard *guard,
                                              const struct kith_format *format,
                                              uint32_t width)
{
    static struct kith_model_config model;
    static struct kith_split split = {.kind = KITH_SPLIT_IID};
    static struct kith_training training = {.batch = 1};
    static const uint8_t pixels[784];
    static const int32_t labels[1];
    static struct kith_examples examples = {.element = KITH_ELEMENT_U8,
                                            .input = KITH_INPUT_IMAGES,
                                            .values = pixels,
                                            .labels = labels,
                                            .count = 1,
                                            .features = 784,
                                            .classes = 10,
                                            .shape = {1, 1, 784},
                                            .deviation = {1, 1, 1, 1}};
    const uint32_t layers[] = {784, width, width, 10};
    char error[KITH_DATA_ERROR_BYTES];
    memcpy(model.layers, layers, sizeof layers);
    model.layer_count = 4;
    training.optimiser = kith_optimiser_find("sgd");
    training.config.learning_rate = 1e-4;
    const struct kith_worker_config config = {
        .task = {.seed = 1,
                 .peers = 1,
                 .model = kith_model_find("mlp"),
                 .model_config = &model,
                 .training = &training,
                 .split = &split,
                 .algorithm = kith_algorithm_find("adpsgd"),
                 .guard = guard,
                 .format = format,
                 .every = 1},
        .backend = kith_backend_find("cpu"),
        .train = &examples,
        .steps = 1u << 30,
        .peers = 1};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    struct kith_work train = {.kind = KITH_WORK_TRAIN};
    struct kith_work_result result;
    kith_worker_run(worker, &train, &result);
    if (!result.finite)
        abort();
    return worker;
}

#endif
