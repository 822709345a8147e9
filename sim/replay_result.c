/* What a replay says at its end: its final models beside the lab's, value by
 * value and by what they score. Sums in the order of src/lab/average.c. */
#include "sim/replay_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

/* Relative to the larger of the two, so that it does not matter which is the
 * lab's. */
void sim_replay_compare(struct sim_agreement *agreement, double expected,
                        double found)
{
    KITH_ASSERT(agreement->differ <= agreement->compared);
    agreement->compared++;
    if (expected == found || (isnan(expected) && isnan(found)))
        return;
    agreement->differ++;
    const double gap =
        fabs(expected - found) / fmax(fabs(expected), fabs(found));
    /* One is not finite: nothing is further apart. */
    agreement->relative_max =
        fmax(agreement->relative_max, isfinite(gap) ? gap : 1);
}

/* Accuracy is what a reader compares: two models may differ in bits and score
 * alike. */
static void add_gap(struct sim_replay_report *report,
                    const struct sim_replay_model *model)
{
    KITH_ASSERT(report->model_count <= report->peers);
    const double lab = model->lab.accuracy, replay = model->replay.accuracy;
    const double gap = isnan(lab) && isnan(replay) ? 0 : fabs(lab - replay);
    /* One has none: nothing is further apart. */
    report->accuracy_gap = fmax(report->accuracy_gap, isfinite(gap) ? gap : 1);
}

/* On the host's backend, as the lab's launcher does. */
static bool score(struct sim_replay *replay, const double *z,
                  struct kith_score *score)
{
    KITH_ASSERT(replay->err == KITH_OK);
    const struct kith_dataset *dataset = replay->options->dataset;
    const enum kith_err err =
        kith_evaluate(&replay->experiment, replay->experiment.backend,
                      dataset ? &dataset->test : NULL, z, score);
    if (err != KITH_OK)
        sim_replay_fail(replay, err, "cannot evaluate a final model: %s",
                        kith_err_text(err));
    return err == KITH_OK;
}

/* Values in float64, in the model's own order. */
static void compare(struct sim_replay *replay, struct sim_replay_model *model,
                    const double *z)
{
    KITH_ASSERT(model->kept);
    struct sim_replay_report *report = replay->report;
    for (size_t i = 0; i < replay->dim; i++)
        sim_replay_compare(&model->values, replay->scratch[i], z[i]);
    report->relative_max =
        fmax(report->relative_max, model->values.relative_max);
}

/* A model is comparable where the lab kept it: its step must be the replay's,
 * or the journal is not of this run. */
void sim_replay_result_model(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    KITH_ASSERT(replay->report->model_count < replay->peers);
    struct sim_replay_report *report = replay->report;
    const struct sim_replay_peer *state = &replay->peer_states[peer];
    struct kith_journal_model lab;
    struct kith_node_counters counters;
    const enum kith_err err =
        kith_journal_model(replay->journal, peer, replay->dim, &lab,
                           replay->scratch, replay->error);
    if (err == KITH_ENOENT) /* no complete save: not in the average */
        return;
    if (err != KITH_OK) {
        replay->err = err;
        return;
    }
    kith_node_counters(state->node, &counters);
    if (lab.step != counters.steps) {
        sim_replay_diverge(replay, peer,
                           "expected a final model of step %" PRIu64
                           ", found step %" PRIu64,
                           lab.step, counters.steps);
        return;
    }
    double *z = replay->models + replay->dim * peer;
    struct sim_replay_model *model = &report->models[report->model_count];
    *model = (struct sim_replay_model){
        .peer = peer, .step = lab.step, .kept = lab.kept, .lab = lab.score};
    if (report->decisions) {
        model->replay = (struct kith_score){(double)NAN, (double)NAN};
        report->model_count++;
        return;
    }
    kith_worker_read(state->worker, z);
    model->same = kith_journal_digest(z, replay->dim) == lab.digest;
    if (lab.kept)
        compare(replay, model, z);
    if (!score(replay, z, &model->replay))
        return;
    add_gap(report, model);
    report->model_count++;
}

/* Peers end in any order; their average is added up by rank. */
static int by_rank(const void *a, const void *b)
{
    const struct sim_replay_model *x = a, *y = b;
    return (x->peer > y->peer) - (x->peer < y->peer);
}

/* In rank order, as the lab: sums of floats depend on it. */
static void average(struct sim_replay *replay)
{
    KITH_ASSERT(replay->report->model_count > 0);
    const struct sim_replay_report *report = replay->report;
    qsort(report->models, report->model_count, sizeof *report->models, by_rank);
    memset(replay->scratch, 0, replay->dim * sizeof *replay->scratch);
    for (uint32_t i = 0; i < report->model_count; i++)
        for (size_t k = 0; k < replay->dim; k++)
            replay->scratch[k] +=
                replay->models[report->models[i].peer * replay->dim + k];
    const double share = 1.0 / (double)report->model_count;
    for (size_t k = 0; k < replay->dim; k++)
        replay->scratch[k] *= share;
}

/* The average's running statistics are estimated anew, as the lab's were:
 * nobody's activations are those of an average. */
void sim_replay_result_average(struct sim_replay *replay)
{
    KITH_ASSERT(replay->report->model_count <= replay->peers);
    struct sim_replay_report *report = replay->report;
    const struct kith_dataset *dataset = replay->options->dataset;
    struct kith_journal_model lab;
    enum kith_err err = kith_journal_model(
        replay->journal, KITH_NOBODY, replay->dim, &lab, NULL, replay->error);
    if (err == KITH_ENOENT || report->model_count == 0)
        return;
    if (err != KITH_OK) {
        replay->err = err;
        return;
    }
    average(replay);
    report->average = (struct sim_replay_model){
        .peer = KITH_NOBODY, .step = lab.step, .lab = lab.score};
    err = kith_estimate(&replay->experiment, replay->experiment.backend,
                        dataset ? &dataset->train : NULL, KITH_ESTIMATE_BATCHES,
                        replay->scratch);
    if (err != KITH_OK) {
        sim_replay_fail(replay, err, "cannot evaluate the average: %s",
                        kith_err_text(err));
        return;
    }
    if (!score(replay, replay->scratch, &report->average.replay))
        return;
    report->averaged = true;
    add_gap(report, &report->average);
}
