/* An algorithm on a tiny model in the simulator: see trial.h. */
#include "tests/support/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/evaluation.h"
#include "kith/worker.h"

static void observe(const struct sim_world *world, kith_id peer, void *arg)
{
    struct trial *trial = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    if (worker == NULL || kith_worker_dim(worker) > TRIAL_DIM)
        return;
    kith_worker_read(worker, trial->z[peer]);
}

static const char * or (const char *text, const char *otherwise)
{
    return text == NULL ? otherwise : text;
}

enum kith_err trial_run(struct trial *trial)
{
    char text[4096], words[SIM_ERROR_BYTES] = "";
    KITH_ASSERT(trial->peers <= TRIAL_PEERS_MAX);
    const int length =
        snprintf(text, sizeof text,
                 "name: trial\nseed: %llu\npeers: %u\nstop: {steps: %u}\n"
                 "model: %s\n"
                 "train: {backend: naive64, learning_rate: %.17g%s%s}\n"
                 "gossip: {%s}\n"
                 "network: {latency: 1us}\ncompute: {step: 1ms}\n%s\n",
                 (unsigned long long)trial->seed, trial->peers, trial->steps,
                 or (trial->model, "{kind: quadratic, dim: 4}"),
                 trial->rate > 0 ? trial->rate : 0.05,
                 trial->train == NULL ? "" : ", ", or (trial->train, ""),
                 or (trial->gossip, "algorithm: local"), or (trial->rest, ""));
    KITH_ASSERT(length > 0 && (size_t)length < sizeof text);
    struct kith_experiment experiment;
    enum kith_err err = kith_experiment_parse(
        "trial", text, (size_t)length, NULL, 0, &experiment, trial->error);
    if (err != KITH_OK)
        return err;
    const struct sim_options options = {
        .experiment = &experiment, .observe = observe, .arg = trial};
    err = sim_run(&options, &trial->summary, &trial->report, words);
    if (err != KITH_OK)
        (void)snprintf(trial->error, sizeof trial->error, "%s", words);
    kith_experiment_close(&experiment);
    return err;
}

void trial_targets(unsigned peers, uint64_t seed,
                   double b[TRIAL_PEERS_MAX][TRIAL_DIM])
{
    struct trial trial = {.peers = peers, .steps = 1, .rate = 1, .seed = seed};
    const enum kith_err err = trial_run(&trial);
    KITH_ASSERT(err == KITH_OK);
    memcpy(b, trial.z, sizeof trial.z);
}

double trial_distance(const struct trial *trial,
                      double x[TRIAL_PEERS_MAX][TRIAL_DIM])
{
    double most = 0, largest = 0;
    for (unsigned i = 0; i < trial->peers; i++) {
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            most = fmax(most, fabs(trial->z[i][k] - x[i][k]));
            largest = fmax(largest, fabs(x[i][k]));
        }
    }
    return largest > 0 ? most / largest : most;
}
