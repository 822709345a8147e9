/* An experiment of a few lines in the simulator: see probe.h. */
#include "tests/support/probe.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

static void sample(struct probe *probe, const struct sim_world *world,
                   struct kith_worker *worker, kith_id peer)
{
    struct kith_node_counters counters;
    kith_node_counters(sim_node(world, peer), &counters);
    if (probe->period == 0)
        return;
    if (!probe->seen[peer]) {
        kith_worker_read(worker, probe->history + peer * probe->dim);
        probe->seen[peer] = true;
    }
    if (counters.steps == 0 || counters.steps % probe->period != 0)
        return;
    const uint64_t at = counters.steps / probe->period;
    if (at < probe->samples)
        kith_worker_read(worker, probe->history +
                                     (at * probe->peers + peer) * probe->dim);
}

static void observe(const struct sim_world *world, kith_id peer, void *arg)
{
    struct probe *probe = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    if (probe->meddle != NULL)
        probe->meddle(world, peer, probe->arg);
    if (worker == NULL)
        return;
    sample(probe, world, worker, peer);
    if (kith_node_finished(sim_node(world, peer)))
        kith_worker_read(worker, probe->z + peer * probe->dim);
}

static void open_probe(struct probe *probe,
                       const struct kith_experiment *experiment)
{
    probe->peers = experiment->peers;
    probe->dim =
        kith_model_size_of(experiment->model, &experiment->model_config).dim;
    probe->samples =
        probe->period == 0
            ? 0
            : (uint32_t)(experiment->stop.steps / probe->period + 1);
    const size_t each = (size_t)probe->peers * probe->dim;
    probe->z = calloc(each + 1, sizeof *probe->z);
    probe->history = calloc(probe->samples * each + 1, sizeof *probe->history);
    probe->seen = calloc(probe->peers, sizeof *probe->seen);
    KITH_ASSERT(probe->z != NULL && probe->history != NULL &&
                probe->seen != NULL);
}

_Static_assert(KITH_DATA_ERROR_BYTES <= SIM_ERROR_BYTES, "either fits");

static enum kith_err run(struct probe *probe, const char *format, va_list list)
{
    char text[4096], words[SIM_ERROR_BYTES] = "";
    const int length = vsnprintf(text, sizeof text, format, list);
    KITH_ASSERT(length > 0 && (size_t)length < sizeof text);
    struct kith_experiment experiment;
    enum kith_err err = kith_experiment_parse(
        "probe", text, (size_t)length, NULL, 0, &experiment, probe->error);
    if (err != KITH_OK)
        return err;
    open_probe(probe, &experiment);
    struct sim_options options = {.experiment = NULL};
    if (probe->options != NULL)
        options = *probe->options;
    options.experiment = &experiment;
    options.observe = observe;
    options.arg = probe;
    struct kith_dataset dataset;
    const bool reads = experiment.model->input != KITH_INPUT_NONE;
    if (reads)
        err = kith_dataset_open(&experiment.data.config, &dataset, words);
    options.dataset = reads ? &dataset : NULL;
    if (err == KITH_OK) {
        err = sim_run(&options, &probe->summary, &probe->report, words);
        if (reads)
            kith_dataset_close(&dataset);
    }
    kith_experiment_close(&experiment);
    if (err == KITH_OK)
        return KITH_OK;
    (void)snprintf(probe->error, sizeof probe->error, "%.1000s", words);
    probe_close(probe);
    return err;
}

enum kith_err probe_run(struct probe *probe, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const enum kith_err err = run(probe, format, list);
    va_end(list);
    return err;
}

void probe_must(struct probe *probe, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const enum kith_err err = run(probe, format, list);
    va_end(list);
    if (err != KITH_OK)
        fail_msg("%s", probe->error);
}

void probe_close(struct probe *probe)
{
    free(probe->z);
    free(probe->history);
    free(probe->seen);
    probe->z = probe->history = NULL;
    probe->seen = NULL;
}

void probe_mean(const double *x, uint32_t peers, size_t dim, double *mean)
{
    memset(mean, 0, dim * sizeof *mean);
    for (uint32_t i = 0; i < peers; i++)
        for (size_t k = 0; k < dim; k++)
            mean[k] += x[i * dim + k] / peers;
}

double probe_spread(const double *x, uint32_t peers, size_t dim)
{
    double spread = 0;
    for (size_t k = 0; k < dim; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < peers; i++)
            mean += x[i * dim + k] / peers;
        for (uint32_t i = 0; i < peers; i++)
            spread += (x[i * dim + k] - mean) * (x[i * dim + k] - mean);
    }
    return spread;
}

double probe_distance(const double *a, const double *b, size_t count)
{
    double most = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(a[i]) || isnan(b[i]))
            return NAN; /* fmax would pass over it */
        most = fmax(most, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
    }
    return largest > 0 ? most / largest : most;
}
