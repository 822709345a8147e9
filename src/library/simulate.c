/* kith_simulate(): a program's own training in virtual time; see kith/kith.h.
 *
 *   file -> experiment, its model's size -> sim_run() with a trainer that calls
 *   the program -> run database, summary
 *
 * What fails first is what is told; the program is asked for no step after it.
 * Test: unit/test_simulate.c */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/kith.h"
#include "kith/rundb.h"
#include "kith/sim.h"
#include "kith/text.h"
#include "program_fit.h"

#define API __attribute__((visibility("default")))
#define SETTINGS_MAX 1024u

struct simulation {
    struct kith_simulation given;
    struct kith_experiment experiment;
    struct kith_rundb *store; /* NULL: none is written */
    char path[KITH_PATH_BYTES_MAX];
    volatile sig_atomic_t stop; /* something failed: no event is taken */
    char error[SIM_ERROR_BYTES];
};

_Static_assert(SIM_ERROR_BYTES >= KITH_EXPERIMENT_ERROR_BYTES &&
                   SIM_ERROR_BYTES >= KITH_RUNDB_ERROR_BYTES,
               "room for whoever fails");

/* The first line stays. false. */
#define FAIL(simulation, ...)                                                  \
    ((simulation)->error[0] == '\0'                                            \
         ? (void)snprintf((simulation)->error, SIM_ERROR_BYTES, __VA_ARGS__)   \
         : (void)0,                                                            \
     (simulation)->stop = 1, false)

/* ---- what the simulator asks of the program */

static float *begin(void *arg, kith_id rank)
{
    struct simulation *simulation = arg;
    const struct kith_simulation *given = &simulation->given;
    if (simulation->stop)
        return NULL;
    float *const values = given->begin(given->user, rank);
    if (values == NULL)
        (void)FAIL(simulation, "peer %" PRIu32 ": begin() failed", rank);
    else if ((uintptr_t)values % 64 != 0)
        (void)FAIL(simulation,
                   "peer %" PRIu32 ": begin() gave a vector at %p; allowed: "
                   "addresses that 64 divides",
                   rank, (void *)values);
    if (simulation->stop && values != NULL)
        given->end(given->user, rank);
    return simulation->stop ? NULL : values;
}

static bool step(void *arg, kith_id rank, uint64_t number, double *loss)
{
    struct simulation *simulation = arg;
    const struct kith_simulation *given = &simulation->given;
    if (simulation->stop)
        return false;
    return given->step(given->user, rank, number, loss) == 0 ||
           FAIL(simulation, "peer %" PRIu32 ": step() failed at step %" PRIu64,
                rank, number);
}

static void end(void *arg, kith_id rank)
{
    struct simulation *simulation = arg;
    simulation->given.end(simulation->given.user, rank);
}

static bool evaluate(const float *values, struct kith_score *score, void *arg)
{
    struct simulation *simulation = arg;
    const struct kith_simulation *given = &simulation->given;
    if (simulation->stop)
        return false;
    return given->evaluate(given->user, values, &score->loss,
                           &score->accuracy) == 0 ||
           FAIL(simulation, "evaluate() failed");
}

static void progress(const struct sim_progress *at, void *arg)
{
    struct simulation *simulation = arg;
    const struct kith_simulation *given = &simulation->given;
    const double share = at->steps_total > 0
                             ? (double)at->steps_done / (double)at->steps_total
                             : (double)NAN;
    if (!simulation->stop &&
        given->progress(given->user, share, (double)at->now_ns * 1e-9,
                        at->wall_s) != 0)
        (void)FAIL(simulation, "progress() ended the run");
}

/* ---- from the file to the run */

static bool take(struct simulation *simulation,
                 const struct kith_simulation *given)
{
    struct kith_simulation *own = &simulation->given;
    if (given == NULL)
        return FAIL(simulation, "no struct kith_simulation was given");
    memcpy(own, given, given->size < sizeof *own ? given->size : sizeof *own);
    if (own->experiment == NULL || own->begin == NULL || own->step == NULL ||
        own->end == NULL)
        return FAIL(simulation, "a simulation needs its size, an experiment, "
                                "begin(), step() and end()");
    if (own->setting_count > SETTINGS_MAX ||
        (own->settings == NULL && own->setting_count > 0))
        return FAIL(simulation,
                    "settings: found %" PRIu32 " of them; allowed: up to %u",
                    own->setting_count, SETTINGS_MAX);
    if (own->buffers > own->count)
        return FAIL(simulation,
                    "buffers: found %" PRIu64
                    "; allowed: up to count, %" PRIu64,
                    own->buffers, own->count);
    if (own->count == 0 || own->count > KITH_PARAMETERS_MAX)
        return FAIL(simulation,
                    "count: found %" PRIu64 " values; allowed: 1 to %.0f",
                    own->count, (double)KITH_PARAMETERS_MAX);
    return true;
}

/* The file with its settings, and with one more, or NULL. */
static bool load(struct simulation *simulation, const char *one_more)
{
    const struct kith_simulation *given = &simulation->given;
    const uint32_t count = given->setting_count;
    char why[KITH_EXPERIMENT_ERROR_BYTES];
    const char **settings = calloc(count + 1, sizeof *settings);
    if (settings == NULL)
        return FAIL(simulation, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        settings[i] = given->settings[i];
    settings[count] = one_more;
    const enum kith_err err = kith_experiment_load(
        given->experiment, settings, count + (one_more != NULL),
        &simulation->experiment, why);
    free(settings);
    return err == KITH_OK || FAIL(simulation, "%s", why);
}

static struct kith_trainer trainer_of(struct simulation *simulation)
{
    return (struct kith_trainer){begin, step, end, simulation};
}

/* What a step takes, as a setting of the experiment. */
static bool calibrate(struct simulation *simulation, char *setting, size_t size)
{
    const struct kith_experiment *experiment = &simulation->experiment;
    const struct kith_trainer trainer = trainer_of(simulation);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .steps = KITH_MEASURED_STEPS,
        .peers = experiment->peers,
        .trainer = &trainer};
    struct kith_worker *worker;
    char why[KITH_DATA_ERROR_BYTES];
    if (kith_worker_open(&config, &worker, why) != KITH_OK)
        return FAIL(simulation, "measuring a step: %s", why);
    const kith_ns step_ns = kith_worker_median_step(worker);
    kith_worker_close(worker);
    (void)snprintf(setting, size, "compute.step=%" PRIu64 "us",
                   ((uint64_t)step_ns + 999) / 1000);
    return !simulation->stop;
}

/* `measured`: what a step takes, as a setting; NULL: not yet, or it is given.
 * Until it is measured a step takes some time. */
static bool open_experiment(struct simulation *simulation, const char *measured)
{
    const struct kith_simulation *given = &simulation->given;
    struct kith_experiment *experiment = &simulation->experiment;
    char why[KITH_EXPERIMENT_ERROR_BYTES], setting[64];
    if (!load(simulation, measured))
        return false;
    const bool measures =
        given->calibrates != 0 && experiment->compute.step_ns == 0;
    if (measures)
        experiment->compute.step_ns = 1;
    if (kith_experiment_check_world(experiment, KITH_WORLD_PROGRAM_SIM, why) !=
        KITH_OK)
        (void)FAIL(simulation, "%.300s: %.700s", given->experiment, why);
    else if (!kith_program_fit(experiment, given->experiment, given->count,
                               false, why))
        (void)FAIL(simulation, "%s", why);
    else if (!measures && experiment->compute.step_ns == 0)
        (void)FAIL(simulation,
                   "compute.step: not given, and virtual time needs what a "
                   "step takes; add `compute: {step: 5ms}` to %.300s, or have "
                   "it measured: calibrate=True (calibrates of struct "
                   "kith_simulation)",
                   given->experiment);
    else if (!measures) {
        experiment->model_config.buffers = (uint32_t)given->buffers;
        return true;
    }
    const bool is_measured =
        !simulation->stop && calibrate(simulation, setting, sizeof setting);
    kith_experiment_close(experiment);
    return is_measured && open_experiment(simulation, setting);
}

static bool open_store(struct simulation *simulation)
{
    const char *folder = simulation->given.folder;
    char why[KITH_RUNDB_ERROR_BYTES];
    if (folder == NULL)
        return true;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return FAIL(simulation, "cannot make the folder %.300s: %s", folder,
                    strerror(errno));
    return kith_rundb_create(folder, "sim", &simulation->experiment,
                             &simulation->store, simulation->path,
                             why) == KITH_OK ||
           FAIL(simulation, "%s", why);
}

static bool run(struct simulation *simulation, struct kith_summary *summary)
{
    const struct kith_simulation *given = &simulation->given;
    const struct kith_trainer trainer = trainer_of(simulation);
    const struct sim_options options = {
        .experiment = &simulation->experiment,
        .wire = simulation->experiment.network.wire,
        .store = simulation->store,
        .progress = given->progress != NULL ? progress : NULL,
        .trainer = &trainer,
        .score = given->evaluate != NULL ? evaluate : NULL,
        .arg = simulation,
        .stop = &simulation->stop};
    char why[SIM_ERROR_BYTES];
    if (sim_run(&options, summary, NULL, why) != KITH_OK)
        return FAIL(simulation, "%s", why);
    if (simulation->stop)
        return false;
    if (simulation->store != NULL)
        (void)kith_rundb_finish(simulation->store, &simulation->experiment,
                                summary); /* sticks: close says so */
    return summary->completed ||
           FAIL(simulation, "the run came to nothing: no event was left, and "
                            "peers had not finished");
}

static bool close_store(struct simulation *simulation)
{
    char why[KITH_RUNDB_ERROR_BYTES];
    return simulation->store == NULL ||
           kith_rundb_close(simulation->store, why) == KITH_OK ||
           FAIL(simulation, "%s", why);
}

static void tell(const struct simulation *simulation,
                 const struct kith_summary *summary, char *json, size_t size)
{
    FILE *out = json == NULL || size == 0 ? NULL : fmemopen(json, size, "w");
    if (out == NULL)
        return;
    kith_summary_json(out, &simulation->experiment, summary,
                      simulation->store != NULL ? simulation->path : NULL);
    (void)fclose(out);
    json[size - 1] = '\0'; /* where it was cut */
}

API int kith_simulate(const struct kith_simulation *given, char *json,
                      size_t json_size, char *error, size_t error_size)
{
    struct simulation simulation = {.error = ""};
    struct kith_summary summary;
    bool ends_well =
        take(&simulation, given) && open_experiment(&simulation, NULL);
    if (ends_well) {
        ends_well = open_store(&simulation) && run(&simulation, &summary);
        ends_well = close_store(&simulation) && ends_well;
        if (ends_well)
            tell(&simulation, &summary, json, json_size);
        kith_experiment_close(&simulation.experiment);
    }
    if (error != NULL && error_size > 0)
        (void)snprintf(error, error_size, "%s", simulation.error);
    return ends_well ? 0 : KITH_FAILED;
}
