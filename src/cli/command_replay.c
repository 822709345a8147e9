/* kith sim --replay RUN.db: a recorded lab run once more, in one process.
 *
 * The experiment, its seed and its data are those of the record: nothing can be
 * put in their place. Status 0 where every final model agrees to 1e-5 of each
 * value and 0.3 points of accuracy, 1 where one does not or the run diverged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "kith/json.h"
#include "kith/lab.h"
#include "kith/replay.h"

#define RELATIVE_MOST 1e-5
#define ACCURACY_MOST 0.003

static void show_progress(uint64_t events, kith_ns time_ns, void *arg)
{
    (void)arg;
    kith_cli_progress("%8.2f s of the lab's, events %" PRIu64,
                      (double)time_ns / 1e9, events);
}

/* ---- printing */

static json_t *json_both(double lab, double replay)
{
    return json_pack("{s:o, s:o}", "lab", kith_json_real(lab), "replay",
                     kith_json_real(replay));
}

static json_t *json_scores(const struct sim_replay_model *model)
{
    return json_pack("{s:o, s:o}", "accuracy",
                     json_both(model->lab.accuracy, model->replay.accuracy),
                     "loss", json_both(model->lab.loss, model->replay.loss));
}

static json_t *json_agreement(const struct sim_agreement *agreement)
{
    return json_pack("{s:I, s:I, s:o}", "compared",
                     (json_int_t)agreement->compared, "differ",
                     (json_int_t)agreement->differ, "relative_max",
                     kith_json_real(agreement->relative_max));
}

static json_t *json_models(const struct sim_replay_report *report)
{
    json_t *models = json_array();
    for (uint32_t i = 0; i < report->model_count; i++) {
        const struct sim_replay_model *model = &report->models[i];
        json_t *one =
            json_pack("{s:I, s:I, s:b, s:b}", "peer", (json_int_t)model->peer,
                      "step", (json_int_t)model->step, "same_bytes",
                      model->same, "kept", model->kept);
        (void)json_object_update_new(one, json_agreement(&model->values));
        (void)json_object_update_new(one, json_scores(model));
        (void)json_array_append_new(models, one);
    }
    return models;
}

static void print_json(const struct kith_experiment *experiment,
                       const struct sim_replay_report *report, const char *path,
                       bool agrees)
{
    kith_json_print(
        json_pack(
            "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, "
            "s:o, s:o, s:b, s:b, s:o}",
            "experiment", kith_json_text(experiment->name), "algorithm",
            experiment->gossip.algorithm->name, "seed",
            (json_int_t)experiment->seed, "peers", (json_int_t)report->peers,
            "restarts", (json_int_t)report->restarts, "events",
            (json_int_t)report->events, "messages",
            (json_int_t)report->messages, "lost", (json_int_t)report->lost,
            "items", (json_int_t)report->items, "steps",
            (json_int_t)report->steps, "losses",
            json_agreement(&report->losses), "models", json_models(report),
            "averaged",
            report->averaged ? json_scores(&report->average) : json_null(),
            "relative_max", kith_json_real(report->relative_max),
            "accuracy_gap", kith_json_real(report->accuracy_gap), "decisions",
            report->decisions, "agrees", agrees, "database",
            kith_json_text(path)),
        17);
}

static void print_model(const char *name, const struct sim_replay_model *model)
{
    char values[80] = "";
    if (model->same)
        snprintf(values, sizeof values, "same bytes");
    else if (model->kept)
        snprintf(values, sizeof values,
                 "%" PRIu64 " of %" PRIu64 " values differ, by %.2g at most",
                 model->values.differ, model->values.compared,
                 model->values.relative_max);
    else if (model->peer != KITH_NOBODY)
        snprintf(values, sizeof values, "other bytes, too many to be kept");
    printf("%-9s step %-8" PRIu64
           " accuracy lab %7.3f %%  replay %7.3f %%  %s\n",
           name, model->step, 100 * model->lab.accuracy,
           100 * model->replay.accuracy, values);
}

static void print_text(const struct kith_experiment *experiment,
                       const struct sim_replay_report *report, const char *path,
                       bool agrees)
{
    printf("%s: %s, %" PRIu32 " peers, %" PRIu32 " restarts, %" PRIu64
           " events, %" PRIu64 " steps, %" PRIu64 " messages (%" PRIu64
           " lost)\n",
           path, experiment->gossip.algorithm->name, report->peers,
           report->restarts, report->events, report->steps, report->messages,
           report->lost);
    if (report->decisions) {
        printf("decisions agree with all that was recorded, to the steps of "
               "%" PRIu32 " final models; not checked: values, which a program "
               "makes (model.run)\n",
               report->model_count);
        return;
    }
    printf("losses    %" PRIu64 " of %" PRIu64 " differ, by %.2g at most\n",
           report->losses.differ, report->losses.compared,
           report->losses.relative_max);
    for (uint32_t i = 0; i < report->model_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "peer %" PRIu32, report->models[i].peer);
        print_model(name, &report->models[i]);
    }
    if (report->averaged)
        print_model("average", &report->average);
    if (report->model_count == 0)
        puts("nothing to compare: the record has no final model, for the run "
             "was cut short; it was carried out as far as it goes");
    else
        printf("replay %s: values within %.2g (allowed %.0e), accuracy within "
               "%.3f points (allowed %.1f)\n",
               agrees ? "agrees" : "does not agree", report->relative_max,
               RELATIVE_MOST, 100 * report->accuracy_gap, 100 * ACCURACY_MOST);
}

/* Nothing to compare is no agreement. A model that was too large to be kept has
 * its digest. */
static bool does_agree(const struct sim_replay_report *report)
{
    if (report->decisions)
        return true;
    bool agrees = report->model_count > 0 &&
                  report->relative_max <= RELATIVE_MOST &&
                  report->losses.relative_max <= RELATIVE_MOST &&
                  report->accuracy_gap <= ACCURACY_MOST;
    for (uint32_t i = 0; i < report->model_count; i++)
        agrees = agrees && (report->models[i].same || report->models[i].kept);
    return agrees;
}

/* ---- the run */

static int check_arguments(const struct cli_arguments *arguments)
{
    for (unsigned option = 0; option < CLI_OPTION_COUNT; option++)
        if (arguments->values[option] != NULL && option != CLI_REPLAY &&
            option != CLI_JSON)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "found %s beside --replay, which takes the "
                                 "experiment as it was recorded and no other "
                                 "option but --json: leave it out",
                                 kith_cli_option_text(option).name);
    if (arguments->word_count > 0)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "found the experiment %.200s beside --replay; a "
                             "run database keeps its own: leave it out",
                             arguments->words[0]);
    return KITH_EXIT_OK;
}

struct replayed {
    struct kith_experiment experiment;
    struct kith_dataset dataset;
    bool has_dataset;
};

static int open_inputs(const struct cli_arguments *arguments, const char *path,
                       struct replayed *run)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES], *source;
    enum kith_err err = kith_rundb_experiment(path, &source, error);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    err = kith_experiment_parse(path, source, strlen(source), NULL, 0,
                                &run->experiment, error);
    free(source);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    int code = KITH_EXIT_OK;
    if (kith_experiment_check_world(&run->experiment, KITH_WORLD_LAB, error) !=
        KITH_OK)
        code = kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%.300s: %s",
                             path, error);
    if (code == KITH_EXIT_OK)
        code =
            kith_cli_compute_open(arguments, &run->experiment, CLI_COMPUTE_ONE);
    if (code == KITH_EXIT_OK)
        code = kith_cli_dataset_open(arguments, &run->experiment, &run->dataset,
                                     &run->has_dataset);
    return code;
}

static int tell(const struct cli_arguments *arguments,
                const struct replayed *run,
                const struct sim_replay_report *report, const char *path)
{
    const bool agrees = does_agree(report);
    (kith_cli_given(arguments, CLI_JSON) ? print_json : print_text)(
        &run->experiment, report, path, agrees);
    return kith_cli_flush(arguments, agrees ? KITH_EXIT_OK : KITH_EXIT_FAILED);
}

static int code_of(enum kith_err err, bool diverged)
{
    if (err == KITH_EAGAIN)
        return KITH_EXIT_INTERRUPTED;
    return diverged ? KITH_EXIT_FAILED : kith_cli_exit_of(err);
}

static int replay(const struct cli_arguments *arguments, const char *path,
                  const struct replayed *run)
{
    struct sim_replay_report report;
    char error[SIM_REPLAY_ERROR_BYTES], note[KITH_JOURNAL_ERROR_BYTES];
    struct kith_lab_folder folder;
    memset(&folder, 0, sizeof folder);
    enum kith_err err = kith_lab_folder_open(&folder, NULL, error);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    const struct sim_replay_options options = {
        .path = path,
        .experiment = &run->experiment,
        .dataset = run->has_dataset ? &run->dataset : NULL,
        .saves = folder.path,
        .progress = show_progress,
        .stop = &kith_cli_stop};
    err = sim_replay(&options, &report, note, error);
    kith_lab_folder_close(&folder);
    kith_cli_progress_end();
    if (note[0] != '\0')
        (void)kith_cli_fail(arguments, KITH_EXIT_OK, "%s", note);
    const int code =
        err == KITH_OK ? tell(arguments, run, &report, path)
                       : kith_cli_fail(arguments, code_of(err, report.diverged),
                                       "%s", error);
    sim_replay_report_close(&report);
    return code;
}

int kith_cli_replay(const struct cli_arguments *arguments)
{
    const char *path = arguments->values[CLI_REPLAY];
    struct replayed run = {.has_dataset = false};
    int code = check_arguments(arguments);
    if (code != KITH_EXIT_OK)
        return code;
    struct cli_arguments own = *arguments;
    own.words[own.word_count++] = path; /* whose data it is, in messages */
    code = open_inputs(&own, path, &run);
    if (code == KITH_EXIT_OK) {
        kith_cli_catch_signals();
        code = replay(&own, path, &run);
    }
    kith_dataset_close(&run.dataset);
    kith_experiment_close(&run.experiment);
    return code;
}
