/* A central run from its options to its summary; sim_run() comes here where the
 * experiment has `central:`. */
#include "sim/central_run.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "sim/central/central_state.h"

const struct central_exchange *const sim_central_exchanges[] = {
    [KITH_CENTRAL_NAIVE] = &sim_central_naive,
    [KITH_CENTRAL_TREE] = &sim_central_tree,
    [KITH_CENTRAL_SCATTER] = &sim_central_scatter,
    [KITH_CENTRAL_DOUBLING] = &sim_central_doubling,
    [KITH_CENTRAL_RING] = &sim_central_ring,
};

static const struct central_method *
gradient_method(const struct kith_central *c)
{
    switch (c->trigger) {
    case KITH_CENTRAL_SYNC:
        return &sim_central_sync;
    case KITH_CENTRAL_ASYNC:
    case KITH_CENTRAL_SSP:
    case KITH_CENTRAL_ESSP:
    case KITH_CENTRAL_VALUE:
    case KITH_CENTRAL_BACKUP:
    case KITH_CENTRAL_QUORUM:
        return &sim_central_server;
    case KITH_CENTRAL_TRIGGER_COUNT:
        break;
    }
    return NULL;
}

const struct central_method *sim_central_method_of(const struct kith_central *c)
{
    switch (c->method) {
    case KITH_CENTRAL_GRADIENT:
        return gradient_method(c);
    case KITH_CENTRAL_SPARKNET:
        return &sim_central_sync;
    case KITH_CENTRAL_EASGD:
        return &sim_central_easgd;
    case KITH_CENTRAL_TREEEASGD:
        return &sim_central_treeeasgd;
    case KITH_CENTRAL_MPCA:
        return &sim_central_mpca;
    case KITH_CENTRAL_VERTICAL:
        return &sim_central_vertical;
    case KITH_CENTRAL_METHOD_COUNT:
        break;
    }
    return NULL;
}

uint32_t
sim_central_collective_machines(const struct kith_experiment *experiment)
{
    const struct kith_central *config = &experiment->central;
    switch (config->exchange) {
    case KITH_CENTRAL_NAIVE:
        return config->on_workers ? 0 : config->servers + config->proxies;
    case KITH_CENTRAL_TREE:
    case KITH_CENTRAL_SCATTER:
        return config->on_workers ? 0 : 1;
    case KITH_CENTRAL_DOUBLING:
    case KITH_CENTRAL_RING:
    case KITH_CENTRAL_EXCHANGE_COUNT:
        break;
    }
    return 0;
}

static enum kith_err check_options(const struct sim_options *options,
                                   char *error)
{
    const struct kith_experiment *experiment = options->experiment;
    if (experiment->compute.step_ns <= 0) {
        snprintf(error, SIM_ERROR_BYTES,
                 "the simulator needs the cost of a training step: add "
                 "`compute: {step: 5ms}`, or measure it with --calibrate");
        return KITH_EINVAL;
    }
    if (experiment->model->input != KITH_INPUT_NONE && !options->dataset) {
        snprintf(error, SIM_ERROR_BYTES, "model %s needs a data set",
                 experiment->model->name);
        return KITH_EINVAL;
    }
    return KITH_OK;
}

static enum kith_err run_open(struct central *run)
{
    const struct kith_central *config = run->config;
    run->shape = (struct central_shape){.workers = run->worker_count,
                                        .servers = config->servers,
                                        .on_workers = config->on_workers,
                                        .proxies = config->proxies};
    run->node_count =
        run->worker_count + run->method->machines(run->experiment);
    enum kith_err err = sim_central_engine_open(run);
    if (err == KITH_OK) {
        err = sim_central_desks_open(run);
    }
    if (err == KITH_OK && run->method->open) {
        err = run->method->open(run);
    }
    return err;
}

static void run_close(struct central *run)
{
    if (run->method->close) {
        run->method->close(run);
    }
    sim_central_engine_close(run);
    sim_central_desks_close(run);
}

enum kith_err sim_central_run(const struct sim_options *options,
                              struct kith_summary *summary,
                              struct sim_report *report, char *error)
{
    return sim_central_probe(options, summary, report, NULL, error);
}

static void read_models(const struct central *run,
                        struct sim_central_models *models)
{
    models->dim = run->dim;
    for (uint32_t i = 0; run->server && i < run->worker_count; i++) {
        kith_worker_read(run->workers[i].desk, models->workers + i * run->dim);
    }
    if (run->server) {
        kith_worker_read(run->server, models->shared);
    }
}

enum kith_err sim_central_probe(const struct sim_options *options,
                                struct kith_summary *summary,
                                struct sim_report *report,
                                struct sim_central_models *models, char *error)
{
    struct sim_report unwanted;
    report = report ? report : &unwanted;
    *report = (struct sim_report){0};
    *summary = (struct kith_summary){.world = "sim"};
    error[0] = '\0';
    enum kith_err err = check_options(options, error);
    if (err != KITH_OK) {
        return err;
    }
    const struct kith_experiment *experiment = options->experiment;
    struct central run = {
        .options = *options,
        .experiment = experiment,
        .config = &experiment->central,
        .method = sim_central_method_of(&experiment->central),
        .exchange = sim_central_exchanges[experiment->central.exchange],
        .worker_count = experiment->peers,
        .steps = kith_experiment_steps(
            experiment, options->dataset ? options->dataset->train.count : 0),
        .trace_hash = KITH_HASH_START,
        .error = error,
        .wall_start_s = sim_wall(),
    };
    kith_backend_threads(1);
    kith_checks_start(&run.checks);
    kith_values_clear(&run.values);
    err = run_open(&run);
    if (err == KITH_OK) {
        sim_central_loop(&run);
        sim_central_summarise(&run, summary, report);
        summary->completed = run.completed && run.err == KITH_OK;
        if (models) {
            read_models(&run, models);
        }
    } else if (error[0] == '\0') {
        snprintf(error, SIM_ERROR_BYTES, "cannot set up %u workers: %s",
                 run.worker_count, kith_err_text(err));
    }
    run_close(&run);
    return err != KITH_OK ? err : run.err;
}
