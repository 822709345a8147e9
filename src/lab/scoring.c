/* Evaluations of the averaged model while a run is under way: a process of its
 * own averages the saves as they are, evaluates that, sends one SCORE. */
#include <math.h>
#include <signal.h>

#include "src/lab/launcher.h"

static void take_score(void *user, const struct lab_record *record)
{
    struct lab *lab = user;
    if (record->kind != LAB_RECORD_SCORE)
        return;
    const struct lab_score *score = &record->as.score;
    lab->scored = (struct kith_score){score->loss, score->accuracy};
    if (lab->stopping)
        return;
    lab->accuracy = score->accuracy;
    struct kith_row row = kith_row_unknown(KITH_NOBODY);
    row.time_ns = kith_host_now() - lab->start_ns;
    row.step = score->step;
    row.loss = row.test_loss = score->loss;
    row.accuracy = score->accuracy;
    row.consensus_distance = score->consensus_distance;
    kith_lab_count_all(lab, score->step, &row);
    (void)kith_rundb_row(lab->options->store, &row);
    lab->values.accuracy = score->accuracy;
    lab->values.loss = score->loss;
    lab->values.consensus_distance = score->consensus_distance;
    lab->values.correlation = score->correlation;
    lab->correlation_lowest = fmin(lab->correlation_lowest, score->correlation);
    kith_lab_check_values(lab, row.time_ns);
    kith_lab_check_patience(lab, score->loss, score->accuracy);
}

/* An evaluation that fails costs one point of the curve. */
void kith_lab_score_read(struct lab *lab)
{
    const enum kith_err err =
        kith_lab_process_read(&lab->score, lab, take_score);
    if (err != KITH_OK && err != KITH_EAGAIN)
        kith_lab_process_signal(&lab->score, SIGKILL);
}

void kith_lab_score_check(struct lab *lab, kith_ns now_ns)
{
    if (lab->scoring && (lab->score.rows_fd < 0 || lab->score.is_group) &&
        kith_lab_process_reap(&lab->score)) {
        kith_lab_score_read(lab);
        kith_lab_process_end(&lab->score);
        lab->scoring = false;
    }
    if (lab->score_ns == 0 || now_ns < lab->score_ns || lab->stopping)
        return;
    const kith_ns period = lab->experiment.evaluate_ns;
    lab->score_ns += ((now_ns - lab->score_ns) / period + 1) * period;
    if (!lab->scoring)
        kith_lab_score_start(lab, NULL);
}

void kith_lab_score_start(struct lab *lab, struct lab_average *average)
{
    const bool is_program = kith_lab_is_program(&lab->experiment);
    lab->score_child = (struct lab_child){.experiment = &lab->experiment,
                                          .dataset = lab->options->dataset,
                                          .cluster = &lab->cluster,
                                          .listen_fd = -1,
                                          .output = lab->options->output,
                                          .average = average};
    const struct lab_job job = {.name = "kith evaluate",
                                .keep_fd = -1,
                                .is_group = is_program,
                                .user = &lab->score_child,
                                .run = is_program ? kith_lab_program_score
                                                  : kith_lab_child_score};
    lab->scoring = kith_lab_process_start(&lab->score, &job) == KITH_OK;
}
