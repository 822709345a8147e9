/* The loop of `kith train`: TRAIN items on one worker that owns all rows, until
 * its share is done, its time is up, evaluations get no better or somebody says
 * stop. What is written down at any step suffices to go on from there as if
 * nothing had happened. */
#include "kith/baseline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "baseline_saves.h"
#include "kith/assert.h"
#include "kith/text.h"

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
    struct kith_evaluator *evaluator;
    struct kith_standing standing;
    double *z; /* (dim) */
    uint64_t steps;
    kith_ns start_ns; /* of the run, as if never interrupted */
    kith_ns began_ns, evaluating_ns;
    kith_ns ended_ns; /* of training; 0: not yet */
    struct kith_meter rows, steps_shown, whole;
    struct kith_speed shown; /* on the progress line, */
    kith_ns shown_ns;        /* since then */
    kith_ns evaluate_due_ns; /* KITH_NEVER: not by time */
    struct kith_curve curve;
    struct baseline_saves saves;
    bool finite, data_lost;
};

static void say(const struct baseline *run, const char *line)
{
    if (run->config->line != NULL)
        run->config->line(run->config->arg, line);
}

/* ---- speed */

/* How old a rate on the progress line gets. */
#define SHOWN_NS (500 * KITH_MS)

/* Since the start or resume, evaluations left out; what the last row and the
 * summary say ends at one time, whatever came between them. */
static double trained_s(const struct baseline *run, kith_ns now_ns)
{
    const kith_ns until_ns = run->ended_ns > 0 ? run->ended_ns : now_ns;
    return (double)(until_ns - run->began_ns - run->evaluating_ns) / KITH_S;
}

static void look(struct baseline *run, kith_ns now_ns, struct kith_meter *meter,
                 struct kith_speed *speed)
{
    struct kith_data_counts counts = {.origin = 0};
    uint64_t waited_ns;
    kith_worker_data(run->worker, &counts, &waited_ns);
    kith_meter_look(meter, run->standing.step * run->alone.train.batch,
                    trained_s(run, now_ns), speed);
    speed->data_wait_s = (double)waited_ns / KITH_S;
}

/* A run that goes on knows the peak from its checkpoint. */
static void start_meters(struct baseline *run)
{
    struct kith_standing *standing = &run->standing;
    if (standing->peak <= 0)
        standing->peak = run->alone.compute.peak;
    kith_meter_start(&run->rows, run->alone.model, &run->alone.model_config,
                     standing->peak, standing->step * run->alone.train.batch,
                     0);
    run->steps_shown = run->whole = run->rows;
    run->shown_ns = run->began_ns;
}

static void show(struct baseline *run, double loss)
{
    const struct kith_baseline_config *config = run->config;
    const kith_ns now = kith_host_now();
    if (config->progress == NULL)
        return;
    if (now - run->shown_ns >= SHOWN_NS) {
        look(run, now, &run->steps_shown, &run->shown);
        run->shown_ns = now;
    }
    config->progress(config->arg, run->standing.step, run->steps, loss,
                     &run->shown);
}

/* ---- checkpoints */

/* As what is saved is to say. */
static const struct kith_standing *stands(struct baseline *run)
{
    run->standing.elapsed_ns = kith_host_now() - run->start_ns;
    return &run->standing;
}

/* A device or a file of the data set; the last good state is the checkpoint. */
static enum kith_err lost(struct baseline *run, const char *why, char *error)
{
    char kept[96] = "no checkpoint was asked for";
    kith_baseline_saves_settle(&run->saves);
    if (run->config->save != NULL)
        (void)snprintf(kept, sizeof kept,
                       "the last checkpoint, of step %llu, is untouched",
                       (unsigned long long)run->saves.kept_step);
    (void)snprintf(error, KITH_RESUME_ERROR_BYTES,
                   "training on %s, step %llu: %s; %s",
                   run->alone.backend->name,
                   (unsigned long long)run->standing.step, why, kept);
    const struct kith_backend *backend = run->alone.backend;
    run->data_lost = backend->failed == NULL || backend->failed() == NULL;
    return run->data_lost ? KITH_EPARSE : KITH_EDEVICE;
}

static enum kith_err final_save(struct baseline *run, char *error)
{
    char why[KITH_DATA_ERROR_BYTES];
    if (run->config->save == NULL || !run->finite)
        return KITH_OK;
    const enum kith_err err =
        kith_baseline_saves_now(&run->saves, stands(run), why);
    if (kith_worker_failed(run->worker) != NULL)
        return lost(run, kith_worker_failed(run->worker), error);
    if (err != KITH_OK)
        (void)snprintf(error, KITH_RESUME_ERROR_BYTES,
                       "%s; the checkpoint before it is untouched: make room "
                       "and go on from there with --resume",
                       why);
    return err;
}

static void save_best(struct baseline *run)
{
    if (run->finite)
        kith_baseline_saves_best(&run->saves, stands(run));
}

/* ---- evaluations */

static bool is_better(const struct baseline *run, double measured)
{
    const double best = run->standing.best;
    if (!isfinite(measured))
        return false;
    if (!isfinite(best))
        return true;
    return run->alone.best == KITH_BEST_ACCURACY ? measured > best
                                                 : measured < best;
}

static void judge(struct baseline *run, const struct kith_score *score)
{
    struct kith_standing *standing = &run->standing;
    const double measured =
        run->alone.best == KITH_BEST_ACCURACY ? score->accuracy : score->loss;
    if (!is_better(run, measured)) {
        standing->stale++;
        return;
    }
    standing->best = measured;
    standing->best_step = standing->step;
    standing->stale = 0;
    save_best(run);
}

/* On all of the test set, or on the curve's part. */
static enum kith_err measure(struct baseline *run, bool part,
                             struct kith_score *score, char *error)
{
    char why[KITH_DATA_ERROR_BYTES] = "";
    kith_worker_read(run->worker, run->z);
    const enum kith_err err =
        part ? kith_evaluator_score_part(run->evaluator, run->z, score, why)
             : kith_evaluator_score(run->evaluator, run->z, score, why);
    if (kith_worker_failed(run->worker) != NULL)
        return lost(run, kith_worker_failed(run->worker), error);
    return err == KITH_OK ? err : lost(run, why, error);
}

/* On the way a row is of the curve's part, or counts alone; the last one is of
 * all of the test set. An evaluation that an interruption causes is a row that
 * decides nothing. */
enum moment { NOT_NOW, COUNTED, ON_THE_WAY, AT_THE_END, INTERRUPTED };

/* The next row's are of the batches after this one. */
static void forget_losses(struct baseline *run)
{
    run->standing.loss_sum = 0;
    run->standing.loss_count = 0;
}

/* The best model is found on the same rows at every evaluation. */
static enum kith_err judge_if(struct baseline *run, enum moment moment,
                              const struct kith_score *score, char *error)
{
    struct kith_score part = *score;
    enum kith_err err = KITH_OK;
    if (moment == INTERRUPTED)
        return err;
    forget_losses(run);
    if (moment == AT_THE_END && run->curve.plan.rows > 0)
        err = measure(run, true, &part, error);
    judge(run, &part);
    return err;
}

static enum kith_err score(struct baseline *run, enum moment moment,
                           struct kith_baseline_row *row, char *error)
{
    const kith_ns before_ns = kith_host_now();
    enum kith_err err = measure(run, row->part, &row->score, error);
    if (moment == ON_THE_WAY) /* A save of the best is no evaluation. */
        kith_curve_took(&run->curve, kith_host_now() - before_ns);
    if (err == KITH_OK)
        err = judge_if(run, moment, &row->score, error);
    run->evaluating_ns += kith_host_now() - before_ns;
    return err;
}

static enum kith_err put_row(struct baseline *run, enum moment moment,
                             struct kith_baseline_row *row, char *error)
{
    const struct kith_baseline_config *config = run->config;
    struct kith_standing *standing = &run->standing;
    const kith_ns now_ns = kith_host_now();
    const double count = (double)standing->loss_count;
    *row = (struct kith_baseline_row){
        .time_ns = now_ns - run->start_ns,
        .step = standing->step,
        .samples = standing->step * run->alone.train.batch,
        .train_loss = count > 0   ? standing->loss_sum / count
                      : row->part ? row->train_loss
                                  : 0,
        .score = {NAN, NAN},
        .part = moment == COUNTED ||
                (moment == ON_THE_WAY && run->curve.plan.rows > 0)};
    look(run, now_ns, &run->rows, &row->speed);
    enum kith_err err = KITH_OK;
    if (moment != COUNTED)
        err = score(run, moment, row, error);
    if (moment == COUNTED)
        forget_losses(run);
    if (err == KITH_OK && config->row != NULL)
        config->row(config->arg, row);
    return err;
}

static struct kith_progress progress_of(const struct baseline *run)
{
    return (struct kith_progress){
        .steps = (double)run->standing.step,
        .steps_total = run->steps == UINT64_MAX ? 0 : (double)run->steps,
        .time_ns = kith_host_now() - run->start_ns,
        .time_total_ns = run->alone.stop.time_ns};
}

static enum moment look_at_curve(struct baseline *run)
{
    const struct kith_progress progress = progress_of(run);
    if (run->standing.step >= run->steps)
        return NOT_NOW;
    switch (kith_curve_look(&run->curve, &progress,
                            kith_host_now() - run->began_ns)) {
    case KITH_CURVE_NOTHING:
        break;
    case KITH_CURVE_ROW:
        return COUNTED;
    case KITH_CURVE_POINT:
        return ON_THE_WAY;
    }
    return NOT_NOW;
}

static enum moment what_is_due(struct baseline *run)
{
    const struct kith_baseline_config *config = run->config;
    const uint64_t step = run->standing.step;
    if (config->evaluate_steps > 0)
        return step % config->evaluate_steps == 0 && step < run->steps
                   ? ON_THE_WAY
                   : NOT_NOW;
    if (config->evaluate_ns == 0)
        return look_at_curve(run);
    const kith_ns now = kith_host_now();
    if (now < run->evaluate_due_ns)
        return NOT_NOW;
    run->evaluate_due_ns +=
        ((now - run->evaluate_due_ns) / config->evaluate_ns + 1) *
        config->evaluate_ns;
    return ON_THE_WAY;
}

/* ---- the loop */

static bool is_early(const struct baseline *run)
{
    const uint32_t patience = run->alone.stop.patience;
    return patience > 0 && run->standing.stale >= patience;
}

static bool is_over(const struct baseline *run)
{
    const kith_ns limit_ns = run->alone.stop.time_ns;
    return !run->finite || run->standing.step >= run->steps || is_early(run) ||
           (limit_ns > 0 && kith_host_now() - run->start_ns >= limit_ns);
}

static bool is_told(const struct baseline *run)
{
    return run->config->stop != NULL && *run->config->stop != 0;
}

/* At most one a step: there are few. */
static void say_notice(const struct baseline *run)
{
    char line[512];
    const char *notice = kith_worker_notice(run->worker);
    if (notice == NULL)
        return;
    (void)snprintf(line, sizeof line, "a slow way on %s: %s",
                   run->alone.backend->name, notice);
    say(run, line);
}

static enum kith_err train_step(struct baseline *run, char *error)
{
    struct kith_standing *standing = &run->standing;
    struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = standing->step};
    struct kith_work_result done;
    kith_worker_run(run->worker, &work, &done);
    if (kith_worker_failed(run->worker) != NULL)
        return lost(run, kith_worker_failed(run->worker), error);
    say_notice(run);
    run->finite = done.finite;
    standing->loss_sum += done.loss;
    standing->loss_count++;
    standing->step++;
    show(run, done.loss);
    return KITH_OK;
}

/* What stands at the end, of a row that was put before. */
static enum kith_err measure_again(struct baseline *run,
                                   struct kith_baseline_row *last, char *error)
{
    last->step = run->standing.step;
    last->samples = last->step * run->alone.train.batch;
    last->time_ns = run->standing.elapsed_ns;
    return measure(run, false, &last->score, error);
}

/* The last row and checkpoint. A run that was told to stop saves first and as
 * it stands, so that what goes on from there is none the wiser; a row of the
 * curve at this very step is the run's, and stays its only one. One that had
 * ended before only measures again. */
static enum kith_err finish(struct baseline *run, bool over,
                            struct kith_baseline_row *last, char *error)
{
    const struct kith_standing *standing = &run->standing;
    const bool is_put = standing->step > 0 && standing->loss_count == 0;
    const bool is_last = is_put && last->step == standing->step;
    enum kith_err err = over ? KITH_OK : final_save(run, error);
    if (err != KITH_OK)
        return err;
    if (!over && !is_put)
        return put_row(run, INTERRUPTED, last, error);
    if (over && (!is_put || last->part))
        err = put_row(run, AT_THE_END, last, error);
    else if (!is_last || last->part)
        err = measure_again(run, last, error);
    return err == KITH_OK && over ? final_save(run, error) : err;
}

static enum kith_err train(struct baseline *run,
                           struct kith_baseline_result *result, char *error)
{
    enum kith_err err = KITH_OK;
    while (err == KITH_OK && !is_over(run) && !is_told(run)) {
        err = train_step(run, error);
        const enum moment moment = err == KITH_OK ? what_is_due(run) : NOT_NOW;
        if (moment != NOT_NOW)
            err = put_row(run, moment, &result->last, error);
        if (err == KITH_OK && run->finite)
            kith_baseline_saves_look(&run->saves, stands(run));
    }
    const bool over = is_over(run);
    run->ended_ns = kith_host_now();
    result->train_s = trained_s(run, run->ended_ns);
    look(run, run->ended_ns, &run->whole, &result->speed);
    if (err == KITH_OK)
        err = finish(run, over, &result->last, error);
    result->wall_s = (double)(kith_host_now() - run->start_ns) / KITH_S;
    result->finite = run->finite;
    result->early = is_early(run);
    result->completed = run->finite && over;
    result->standing = run->standing;
    result->curve = run->curve;
    return err;
}

/* From the checkpoint, or from the beginning, which is a checkpoint, too. */
static enum kith_err begin(struct baseline *run, char *error)
{
    const struct kith_baseline_config *config = run->config;
    enum kith_err err = KITH_OK;
    if (config->save != NULL && config->resume) {
        err =
            kith_save_resume(run->worker, config->save, &run->standing, error);
        if (err != KITH_OK)
            return err;
        if (error[0] != '\0')
            say(run, error);
        error[0] = '\0';
        if (config->resumed != NULL)
            config->resumed(config->arg, &run->standing);
    }
    run->began_ns = kith_host_now();
    run->start_ns = run->began_ns - run->standing.elapsed_ns;
    start_meters(run);
    if (config->save != NULL && !config->resume)
        err = kith_baseline_saves_now(&run->saves, stands(run), error);
    kith_baseline_saves_start(&run->saves, run->began_ns, run->standing.step);
    run->evaluate_due_ns = KITH_NEVER;
    if (config->evaluate_steps == 0 && config->evaluate_ns > 0)
        run->evaluate_due_ns =
            run->start_ns +
            (run->standing.elapsed_ns / config->evaluate_ns + 1) *
                config->evaluate_ns;
    return err;
}

static void cut_down(struct baseline *run)
{
    const struct kith_baseline_config *config = run->config;
    run->alone = *config->experiment;
    run->alone.peers = 1;
    run->alone.gossip.algorithm = kith_algorithm_find("local");
    run->alone.data.split = (struct kith_split){.kind = KITH_SPLIT_IID};
    if (config->batch > 0)
        run->alone.train.batch = config->batch;
}

enum kith_err kith_baseline_run(const struct kith_baseline_config *config,
                                struct kith_baseline_result *result,
                                char *error)
{
    *result = (struct kith_baseline_result){.completed = false};
    const struct kith_examples *examples =
        config->dataset == NULL ? NULL : &config->dataset->train;
    struct baseline run = {.config = config,
                           .finite = true,
                           .curve = kith_curve_start(&config->curve),
                           .standing = {.best = NAN}};
    /* Its checkpoints are named by the experiment as it is. */
    KITH_ASSERT(config->batch == 0 || config->save == NULL);
    cut_down(&run);
    run.steps = kith_baseline_steps(config->experiment,
                                    examples == NULL ? 0 : examples->count,
                                    config->batch);
    const struct kith_worker_config worker = {
        .task = kith_experiment_task(&run.alone, config->experiment),
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
    }
    if (err == KITH_OK)
        err = kith_evaluator_open(
            &run.alone, run.alone.backend,
            config->dataset == NULL ? NULL : &config->dataset->test,
            &run.evaluator, error);
    if (err == KITH_OK)
        err = kith_evaluator_part(run.evaluator, run.curve.plan.rows, error);
    if (err == KITH_OK && config->init != NULL && !config->resume)
        err = kith_worker_init(run.worker, config->init, config->names, error);
    if (err == KITH_OK && config->save != NULL)
        err = kith_baseline_saves_open(&run.saves, config, run.worker,
                                       run.alone.save_period_ns, error);
    if (err == KITH_OK)
        err = begin(&run, error);
    if (err == KITH_OK)
        err = train(&run, result, error);
    result->data_lost = run.data_lost;
    kith_baseline_saves_close(&run.saves);
    kith_evaluator_close(run.evaluator);
    free(run.z);
    kith_worker_close(run.worker);
    return err;
}
