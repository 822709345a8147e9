/* kith train: the baseline, one process that has all the data. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "calibrate.h"
#include "checkpoint_open.h"
#include "cli.h"
#include "kith/baseline.h"
#include "kith/check.h"

struct training {
    struct cli_run *run;
    struct kith_checks checks;
    bool began; /* a step was made */
    bool parts; /* rows on the way are of a part of the test set */
};

static void show_progress(void *arg, uint64_t step, uint64_t steps, double loss,
                          const struct kith_speed *speed)
{
    char text[KITH_SPEED_TEXT_BYTES];
    struct training *training = arg;
    training->began = true;
    kith_speed_text(speed, text);
    const char *comma = text[0] == '\0' ? "" : ", ";
    if (steps == UINT64_MAX)
        kith_cli_progress("step %llu, loss %.4f%s%s", (unsigned long long)step,
                          loss, comma, text);
    else
        kith_cli_progress("step %llu of %llu (%.0f %%), loss %.4f%s%s",
                          (unsigned long long)step, (unsigned long long)steps,
                          100 * (double)step / (double)steps, loss, comma,
                          text);
}

/* The measured values; the rest has no meaning without neighbours. */
static void set_values(const struct kith_baseline_row *row,
                       struct kith_values *values)
{
    kith_values_clear(values);
    values->finite = isfinite(row->score.loss) && isfinite(row->train_loss);
    values->accuracy = values->accuracy_mean = values->accuracy_worst =
        row->score.accuracy;
    values->loss = values->loss_mean = values->loss_worst = row->score.loss;
}

/* The model as peer 0, with its training loss, and as the average. */
static void keep_row(void *arg, const struct kith_baseline_row *baseline)
{
    struct training *training = arg;
    struct kith_values values;
    struct kith_row row = kith_row_unknown(0);
    row.time_ns = baseline->time_ns;
    row.step = baseline->step;
    row.samples = baseline->samples;
    row.loss = baseline->train_loss;
    row.test_loss = baseline->score.loss;
    row.accuracy = baseline->score.accuracy;
    row.speed = baseline->speed;
    /* The store keeps its first error until it is closed. */
    (void)kith_rundb_row(training->run->store, &row);
    if (isnan(baseline->score.loss) && baseline->part)
        return; /* nothing was evaluated */
    row.peer = KITH_NOBODY;
    row.speed.measured = false; /* of the process, told once */
    row.loss = baseline->score.loss;
    (void)kith_rundb_row(training->run->store, &row);
    /* A check is asked of all of the test set. */
    if (baseline->part)
        return;
    set_values(baseline, &values);
    (void)kith_checks_always(&training->checks, &training->run->experiment,
                             &values, baseline->time_ns);
}

static void show_line(void *arg, const char *line)
{
    const struct training *training = arg;
    (void)kith_cli_fail(training->run->arguments, KITH_EXIT_OK, "%s", line);
}

/* Errors stick: closing the database reports them. */
static void commit_rows(void *arg)
{
    const struct training *training = arg;
    (void)kith_rundb_commit(training->run->store);
}

/* What was measured before the interruption counts for the checks, too. */
static void feed_row(void *arg, const struct kith_row *row)
{
    struct training *training = arg;
    const struct kith_baseline_row baseline = {
        .time_ns = row->time_ns,
        .step = row->step,
        .score = {row->loss, row->accuracy}};
    struct kith_values values;
    if (row->peer != KITH_NOBODY || training->parts)
        return;
    set_values(&baseline, &values);
    (void)kith_checks_always(&training->checks, &training->run->experiment,
                             &values, row->time_ns);
}

/* An evaluation at this very step belongs to the run where no batch was counted
 * after it; else an interruption caused it. */
static void go_back(void *arg, const struct kith_standing *standing)
{
    struct training *training = arg;
    struct cli_run *run = training->run;
    const bool evaluated = standing->step > 0 && standing->loss_count == 0;
    (void)kith_cli_fail(run->arguments, KITH_EXIT_OK,
                        "going on from %.300s at step %llu", run->save,
                        (unsigned long long)standing->step);
    /* Errors stick: closing the database reports them. */
    (void)!kith_rundb_go_back(run->store, standing->step + evaluated, training,
                              feed_row);
}

/* Checks of what only neighbours can do are left out: held. */
static uint32_t finish_checks(struct training *training,
                              const struct kith_baseline_row *last)
{
    struct kith_values values;
    const struct kith_experiment *experiment = &training->run->experiment;
    set_values(last, &values);
    uint32_t broken = kith_checks_finish(&training->checks, experiment, &values,
                                         last->time_ns);
    for (uint32_t i = 0; i < experiment->check_count; i++)
        if (training->checks.results[i].verdict == KITH_VERDICT_BROKEN &&
            isnan(training->checks.results[i].value)) {
            training->checks.results[i].verdict = KITH_VERDICT_HELD;
            broken--;
        }
    return broken;
}

static void summarise(struct training *training,
                      const struct kith_baseline_result *result,
                      struct kith_summary *summary)
{
    const struct kith_score *score = &result->last.score;
    *summary = kith_summary_unknown("train");
    summary->wall_s = result->wall_s;
    summary->steps = result->last.step;
    summary->samples = result->last.samples;
    summary->accuracy.averaged = summary->accuracy.mean =
        summary->accuracy.worst = score->accuracy;
    summary->loss.averaged = summary->loss.mean = summary->loss.worst =
        score->loss;
    summary->scored.peers = 1;
    summary->scored.accuracy_error = 0;
    summary->speed = result->speed;
    summary->violations = finish_checks(training, &result->last);
    summary->completed = result->completed;
    summary->checks = training->checks;
    kith_summary_curve(summary, &result->curve);
}

/* Where the model is, and which one was best; for people. */
static void show_saved(const struct cli_run *run, enum kith_best best,
                       const struct kith_baseline_result *result)
{
    const struct kith_standing *standing = &result->standing;
    if (kith_cli_given(run->arguments, CLI_JSON) || run->save[0] == '\0')
        return;
    if (result->early)
        printf("  %-22s no better evaluation in %u, stop.patience\n",
               "stopped early", standing->stale);
    printf("  %-22s %s\n", "trained model", run->save);
    if (isfinite(standing->best))
        printf("  %-22s %s.best, step %llu, %s %.4g\n", "best model", run->save,
               (unsigned long long)standing->best_step,
               best == KITH_BEST_ACCURACY ? "accuracy" : "loss",
               standing->best);
}

/* Every so many steps, every so often, or as the curve says. */
static void set_evaluations(const struct cli_run *run,
                            struct kith_baseline_config *config)
{
    const struct kith_experiment *experiment = &run->experiment;
    const uint64_t steps = kith_baseline_steps(
        experiment, run->has_dataset ? run->dataset.train.count : 0, 0);
    const struct kith_curve_run curve = {
        .experiment = experiment,
        .test = run->has_dataset ? &run->dataset.test : NULL,
        .steps = steps == UINT64_MAX ? 0 : (double)steps,
        .measured = true};
    config->evaluate_steps = experiment->evaluate_steps;
    config->evaluate_ns = experiment->evaluate_ns;
    config->curve = kith_curve_plan(&curve);
}

int kith_cli_train(const struct cli_arguments *arguments)
{
    struct cli_run run;
    struct training training = {.run = &run};
    struct kith_baseline_result result = {0};
    struct kith_summary summary = {0};
    struct kith_names names;
    char error[KITH_RESUME_ERROR_BYTES] = "";
    if (kith_cli_given(arguments, CLI_NAMES) &&
        !kith_cli_given(arguments, CLI_INIT))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--names: what the tensors of --init are called; "
                             "give both");
    int code = kith_cli_calibrate_if(arguments, false);
    if (code == KITH_EXIT_OK)
        code = kith_cli_names_open(&names, arguments);
    if (code != KITH_EXIT_OK)
        return code;
    code = kith_cli_run_open(&run, arguments, KITH_WORLD_TRAIN);
    if (code != KITH_EXIT_OK) {
        kith_names_close(&names);
        return code;
    }
    kith_cli_catch_signals();
    kith_checks_start(&training.checks);
    if (!kith_model_learns(run.experiment.model))
        run.save[0] = '\0'; /* nothing to keep */
    struct kith_baseline_config config = {
        .experiment = &run.experiment,
        .dataset = run.has_dataset ? &run.dataset : NULL,
        .save = run.save[0] == '\0' ? NULL : run.save,
        .init = arguments->values[CLI_INIT],
        .names = names.count > 0 ? &names : NULL,
        .resume = run.resume,
        .stop = &kith_cli_stop,
        .arg = &training,
        .resumed = go_back,
        .saving = commit_rows,
        .line = show_line,
        .progress = show_progress,
        .row = keep_row,
    };
    set_evaluations(&run, &config);
    training.parts = config.curve.rows > 0;
    const enum kith_err err = kith_baseline_run(&config, &result, error);
    kith_names_close(&names);
    if (err == KITH_OK) {
        run.experiment.compute.peak = result.standing.peak;
        summarise(&training, &result, &summary);
        (void)kith_rundb_verdicts(run.store, &run.experiment, &training.checks);
        (void)kith_rundb_finish(run.store, &run.experiment, &summary);
    }
    const enum kith_best best = run.experiment.best;
    code = kith_cli_run_close(&run, err, error, &summary);
    if (err != KITH_OK && !training.began && !run.resume)
        (void)unlink(run.path); /* nothing is in it */
    if (result.data_lost)
        code = KITH_EXIT_DATA;
    if (err == KITH_OK && code != KITH_EXIT_WRITE)
        show_saved(&run, best, &result);
    if (err == KITH_OK ? !result.completed && result.finite : training.began)
        kith_cli_resume_advise(&run);
    return code;
}
