/* Central runs from a few lines of YAML; see central_run.h. */
#include "tests/support/central_run.h"

#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct setting {
    char yaml[4096];
    char error[KITH_EXPERIMENT_ERROR_BYTES > SIM_ERROR_BYTES
                   ? KITH_EXPERIMENT_ERROR_BYTES
                   : SIM_ERROR_BYTES];
    struct kith_experiment experiment;
    struct kith_dataset dataset;
    bool has_dataset;
};

static void setting_open(struct setting *setting, const char *format,
                         va_list list)
{
    memset(setting, 0, sizeof *setting);
    (void)vsnprintf(setting->yaml, sizeof setting->yaml, format, list);
    if (kith_experiment_parse("test", setting->yaml, strlen(setting->yaml),
                              NULL, 0, &setting->experiment,
                              setting->error) != KITH_OK)
        fail_msg("%s", setting->error);
    setting->has_dataset = setting->experiment.model->input != KITH_INPUT_NONE;
    if (setting->has_dataset &&
        kith_dataset_open(&setting->experiment.data.config, &setting->dataset,
                          setting->error) != KITH_OK)
        fail_msg("%s", setting->error);
}

static void setting_close(struct setting *setting)
{
    if (setting->has_dataset)
        kith_dataset_close(&setting->dataset);
    kith_experiment_close(&setting->experiment);
}

/* Each event ends with the models as they are; the last ones stay. */
static void keep_models(const struct sim_world *world, kith_id peer, void *arg)
{
    struct centralised *run = arg;
    struct kith_worker *worker = sim_worker(world, 0);
    run->dim = worker ? kith_worker_dim(worker) : 0;
    if (worker && peer < CENTRAL_WORKERS_MAX &&
        (worker = sim_worker(world, peer)))
        kith_worker_read(worker, run->workers + peer * run->dim);
    if ((worker = sim_worker(world, KITH_NOBODY)))
        kith_worker_read(worker, run->shared);
}

static void run_setting(struct setting *setting, struct centralised *run)
{
    const struct sim_options options = {
        .experiment = &setting->experiment,
        .dataset = setting->has_dataset ? &setting->dataset : NULL,
        .observe = keep_models,
        .arg = run};
    if (sim_run(&options, &run->summary, &run->report, setting->error) !=
        KITH_OK)
        fail_msg("%s", setting->error);
    assert_true(run->summary.completed);
    setting_close(setting);
}

void centralise(struct centralised *run, const char *format, ...)
{
    static struct setting setting;
    va_list list;
    va_start(list, format);
    setting_open(&setting, format, list);
    va_end(list);
    assert_true(setting.experiment.peers <= CENTRAL_WORKERS_MAX ||
                !kith_model_learns(setting.experiment.model));
    run_setting(&setting, run);
}

void gossip_along(struct centralised *run, const char *format, ...)
{
    static struct setting setting;
    va_list list;
    va_start(list, format);
    setting_open(&setting, format, list);
    va_end(list);
    run_setting(&setting, run);
}

double relative(size_t n, const double *a, const double *b)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        apart += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return sqrt(apart / size);
}

bool agrees(const char *what, double expected, double measured,
            double tolerance)
{
    const double error = fabs(measured - expected) / fabs(expected);
    printf("%-44s expected %-12.7g measured %-12.7g apart %.1e\n", what,
           expected, measured, error);
    return error <= tolerance;
}
