/* The loop of `kith train`: TRAIN items on one worker that owns all rows, until
 * its share is done, its time is up or somebody says stop. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "kith/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static kith_ns now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * KITH_S + now.tv_nsec;
}

uint64_t kith_baseline_steps(const struct kith_experiment *experiment,
                             size_t train_rows, uint32_t batch)
{
    struct kith_experiment alone = *experiment;
    alone.peers = 1;
    if (batch > 0)
        alone.train.batch = batch;
    if (experiment->stop.steps == 0 || alone.train.batch == 0)
        return kith_experiment_steps(&alone, train_rows);
    /* In float64: steps is the user's and the product may pass 2^64. */
    const double samples = (double)experiment->stop.steps *
                           (double)experiment->peers *
                           (double)experiment->train.batch;
    const double steps = samples / (double)alone.train.batch;
    return steps < 0x1p63 ? (uint64_t)steps : UINT64_MAX - 1;
}

struct baseline {
    const struct kith_baseline_config *config;
    struct kith_experiment alone; /* one peer, no gossip */
    struct kith_worker *worker;
    double *z; /* (dim) */
    uint64_t steps, step;
    kith_ns start_ns, evaluating_ns;
    double loss_sum; /* of the batches since the last row */
    uint64_t loss_count;
    bool finite;
};

static enum kith_err evaluate(struct baseline *run,
                              struct kith_baseline_row *row, char *error)
{
    const struct kith_baseline_config *config = run->config;
    const kith_ns before_ns = now_ns();
    *row = (struct kith_baseline_row){
        .time_ns = before_ns - run->start_ns,
        .step = run->step,
        .samples = run->step * run->alone.train.batch,
        .train_loss =
            run->loss_count == 0 ? 0 : run->loss_sum / (double)run->loss_count};
    run->loss_sum = 0;
    run->loss_count = 0;
    kith_worker_read(run->worker, run->z);
    const enum kith_err err =
        kith_evaluate(&run->alone, run->alone.backend,
                      config->dataset == NULL ? NULL : &config->dataset->test,
                      run->z, &row->score);
    run->evaluating_ns += now_ns() - before_ns;
    if (err != KITH_OK) {
        (void)snprintf(error, KITH_DATA_ERROR_BYTES, "evaluating the model: %s",
                       err == KITH_EINVAL
                           ? "the test set does not fit the model"
                           : kith_err_text(err));
        return err;
    }
    if (config->row != NULL)
        config->row(config->arg, row);
    return KITH_OK;
}

static bool goes_on(const struct baseline *run)
{
    const struct kith_baseline_config *config = run->config;
    const kith_ns limit_ns = run->alone.stop.time_ns;
    if (!run->finite || run->step >= run->steps)
        return false;
    if (config->stop != NULL && *config->stop != 0)
        return false;
    return limit_ns == 0 || now_ns() - run->start_ns < limit_ns;
}

static enum kith_err train(struct baseline *run,
                           struct kith_baseline_result *result, char *error)
{
    const struct kith_baseline_config *config = run->config;
    enum kith_err err = KITH_OK;
    run->start_ns = now_ns();
    while (err == KITH_OK && goes_on(run)) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = run->step};
        struct kith_work_result done;
        kith_worker_run(run->worker, &work, &done);
        run->finite = done.finite;
        run->loss_sum += done.loss;
        run->loss_count++;
        run->step++;
        if (config->progress != NULL)
            config->progress(config->arg, run->step, run->steps, done.loss);
        if (config->evaluate_steps > 0 &&
            run->step % config->evaluate_steps == 0 && run->step < run->steps)
            err = evaluate(run, &result->last, error);
    }
    /* The last row, whatever ended the run. */
    const kith_ns trained_ns = now_ns() - run->start_ns - run->evaluating_ns;
    if (err == KITH_OK)
        err = evaluate(run, &result->last, error);
    result->train_s = (double)trained_ns / KITH_S;
    result->wall_s = (double)(now_ns() - run->start_ns) / KITH_S;
    result->finite = run->finite;
    result->completed =
        run->finite && (config->stop == NULL || *config->stop == 0);
    return err;
}

enum kith_err kith_baseline_run(const struct kith_baseline_config *config,
                                struct kith_baseline_result *result,
                                char *error)
{
    *result = (struct kith_baseline_result){.completed = false};
    const struct kith_examples *examples =
        config->dataset == NULL ? NULL : &config->dataset->train;
    struct baseline run = {
        .config = config, .alone = *config->experiment, .finite = true};
    run.alone.peers = 1;
    run.alone.gossip.algorithm = kith_algorithm_find("local");
    run.alone.data.split = (struct kith_split){.kind = KITH_SPLIT_IID};
    if (config->batch > 0)
        run.alone.train.batch = config->batch;
    run.steps = kith_baseline_steps(config->experiment,
                                    examples == NULL ? 0 : examples->count,
                                    config->batch);
    const struct kith_worker_config worker = {.experiment = &run.alone,
                                              .backend = run.alone.backend,
                                              .train = examples,
                                              .steps = run.steps,
                                              .peers = 1,
                                              .ahead = true};
    enum kith_err err = kith_worker_open(&worker, &run.worker, error);
    if (err != KITH_OK)
        return err;
    const size_t dim = kith_worker_dim(run.worker);
    run.z = malloc((dim > 0 ? dim : 1) * sizeof *run.z);
    if (run.z == NULL) {
        err = KITH_ENOMEM;
        (void)snprintf(error, KITH_DATA_ERROR_BYTES,
                       "no memory to evaluate %zu parameters", dim);
    } else {
        err = train(&run, result, error);
    }
    free(run.z);
    kith_worker_close(run.worker);
    return err;
}
