/* The file that the tests of experiments start from, and one --set beside it.
 * Include after what cmocka needs. */
#ifndef KITH_TESTS_EXPERIMENT_BASE_H
#define KITH_TESTS_EXPERIMENT_BASE_H

#include <string.h>

#include <cmocka.h>

#include "kith/experiment.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char base[] =
    "name: base\n"
    "seed: 9\n"
    "peers: 8\n"
    "stop: {epochs: 5}\n"
    "model: {kind: mlp, layers: [784, 256, 10]}\n"
    "data: {path: /data, split: \"dirichlet(0.1)\"}\n"
    "train: {learning_rate: 0.05, momentum: 0.9, schedule: linear}\n"
    "gossip: {every: 2}\n"
    "network: {latency: 200us, rate: 10Gbit}\n"
    "compute: {step: 5ms, slow: [{peers: \"peer(3)\", by: 10}]}\n"
    "faults:\n"
    "  - {at: 2s, crash: \"frac(0.25)\", restart: 3s}\n"
    "assert:\n"
    "  - \"always finite(model)\"\n"
    "  - \"finally accuracy >= 0.85\"\n";

static inline enum kith_err parse(const char *text, const char *set,
                                  struct kith_experiment *experiment,
                                  char *error)
{
    return kith_experiment_parse("base.yaml", text, strlen(text), &set,
                                 set == NULL ? 0 : 1, experiment, error);
}

static inline void must_parse(const char *set,
                              struct kith_experiment *experiment)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(base, set, experiment, error) != KITH_OK)
        fail_msg("%s", error);
}

#endif
