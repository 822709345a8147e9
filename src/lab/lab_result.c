/* The end of a lab run: the survivors' saves are averaged and evaluated, the
 * checks get their last word, and the summary is written down.
 *
 *   averaged     accuracy of the mean of all survivors' models
 *   mean, worst  over the survivors' own models */
#include <math.h>
#include <time.h>

#include "kith/evaluation.h"
#include "kith/worker.h"
#include "src/lab/launcher.h"

double kith_lab_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double known(double value)
{
    return isfinite(value) ? value : 0;
}

/* Of the peers that said how they ended. */
static void add_speeds(struct lab *lab, struct kith_summary *summary)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct kith_speed *speed = &lab->peers[i].final.speed;
        kith_speed_add_peer(&summary->speed, speed);
        count += speed->measured;
    }
    kith_speed_mean(&summary->speed, count);
}

/* As the simulator's time: until the last exchange in doubt has ended, too. */
static kith_ns wall_ns(const struct lab *lab)
{
    const kith_ns share_ns = lab->ended_ns - lab->start_ns;
    return lab->marked_ns > share_ns ? lab->marked_ns : share_ns;
}

/* Time in training steps until the share was done, else the end; a share of
 * each peer's, then their mean. */
static double utilisation(const struct lab *lab)
{
    const kith_ns end = lab->ended_ns - lab->start_ns;
    double sum = 0;
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct lab_peer *peer = &lab->peers[i];
        const kith_ns span = peer->finished_ns > 0 ? peer->finished_ns : end;
        if (span > 0)
            sum += fmin(1, known(peer->last.training_s) * 1e9 / (double)span);
    }
    return sum / lab->peer_count;
}

/* Of the peer whose curve has the fewest points. */
static void add_curves(const struct lab *lab, struct kith_summary *summary)
{
    struct kith_curve least = {.done = UINT32_MAX};
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct lab_final *final = &lab->peers[i].final;
        if (final->points >= least.done || !final->saved)
            continue;
        least.done = final->points;
        least.left_out = final->left_out;
        least.plan.rows = final->rows;
    }
    if (least.done < UINT32_MAX)
        kith_summary_curve(summary, &least);
}

/* Sums of the last rows. The launcher's own time, spent on rows and the
 * database, belongs to the run: it is booked as other. */
static void add_up(struct lab *lab, struct kith_summary *summary)
{
    struct kith_row sum = {.received = 0};
    summary->bytes_per_peer_max = 0;
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct kith_row *row = &lab->peers[i].last;
        kith_row_add_peer(&sum, row);
        if (row->bytes_sent > summary->bytes_per_peer_max)
            summary->bytes_per_peer_max = row->bytes_sent;
    }
    kith_summary_count(summary, &sum);
    summary->cpu.train_s = sum.cpu_train_s;
    summary->cpu.aead_s = sum.cpu_aead_s;
    summary->cpu.socket_s = sum.cpu_socket_s;
    summary->cpu.other_s = sum.cpu_other_s;
    if (lab->start_ns != 0) {
        summary->cpu.other_s += kith_lab_cpu_s() - lab->cpu_start_s;
        summary->wall_s = (double)wall_ns(lab) / 1e9;
        summary->utilisation = utilisation(lab);
    }
    add_speeds(lab, summary);
    add_curves(lab, summary);
    summary->faults = lab->faults;
    summary->pieces = lab->pieces;
    summary->completed = lab->signals == 0 && lab->start_ns != 0;
}

static void left_out(void *user, kith_id peer, const char *why)
{
    kith_lab_say(user, "peer %u is not in the average: %s", (unsigned)peer,
                 why);
}

static void put_row(struct lab *lab, kith_id peer, uint64_t step,
                    const struct kith_score *score, double distance)
{
    struct kith_row row = kith_row_unknown(KITH_NOBODY);
    if (peer != KITH_NOBODY)
        row = lab->peers[peer].last;
    else
        kith_lab_count_all(lab, step, &row);
    row.speed.measured = false; /* nothing was trained for this row */
    row.time_ns = wall_ns(lab);
    row.step = step;
    row.loss = row.test_loss = score->loss;
    row.accuracy = score->accuracy;
    row.consensus_distance = distance;
    (void)kith_rundb_row(lab->options->store, &row);
}

static enum kith_err score(struct lab *lab, const double *z,
                           struct kith_score *out)
{
    const struct kith_dataset *dataset = lab->options->dataset;
    return kith_evaluate(&lab->experiment, lab->experiment.backend,
                         dataset == NULL ? NULL : &dataset->test, z, out);
}

/* Peers one by one, so that a Ctrl-C, or a second one, need not wait for all of
 * them. What is known then is of those before it. */
static void score_peers(struct lab *lab, const struct lab_average *average)
{
    struct kith_values *values = &lab->values;
    const uint32_t signals = lab->signals;
    double accuracy = 0, loss = 0;
    uint32_t scored = 0;
    values->accuracy_worst = INFINITY;
    values->loss_worst = -INFINITY;
    for (uint32_t i = 0; i < average->count; i++) {
        kith_lab_read_signals(lab);
        if (lab->signals > signals)
            break;
        const struct lab_model *model = &average->models[i];
        struct kith_score own = lab->peers[model->peer].reported;
        if (!kith_lab_is_program(&lab->experiment) &&
            score(lab, model->z, &own) != KITH_OK) {
            kith_lab_fail(lab, KITH_ENOMEM, "out of memory for evaluation");
            return;
        }
        put_row(lab, model->peer, model->step, &own, model->distance);
        if (lab->options->record) /* a replay makes no program's values */
            (void)kith_rundb_model(
                lab->options->store, model->peer, model->step, &own,
                kith_lab_is_program(&lab->experiment) ? NULL : model->z,
                average->dim);
        accuracy += own.accuracy;
        loss += own.loss;
        scored++;
        values->accuracy_worst = fmin(values->accuracy_worst, own.accuracy);
        values->loss_worst = fmax(values->loss_worst, own.loss);
        for (size_t k = 0; k < average->dim && !lab->nonfinite; k++)
            lab->nonfinite = !isfinite(model->z[k]);
    }
    values->scored = scored;
    values->accuracy_error = 0;
    values->accuracy_mean = accuracy / scored;
    values->loss_mean = loss / scored;
    /* Not measured: fmin and fmax passed it over. */
    if (!isfinite(values->accuracy_worst))
        values->accuracy_worst = NAN;
    if (values->loss_worst == -INFINITY)
        values->loss_worst = NAN;
}

static enum kith_err score_average(struct lab *lab, struct lab_average *average,
                                   struct kith_score *out)
{
    if (!kith_lab_is_program(&lab->experiment))
        return kith_lab_average_score(average, &lab->experiment,
                                      lab->options->dataset, out);
    *out = kith_lab_program_measure(lab, average);
    return KITH_OK;
}

static void evaluate(struct lab *lab, struct kith_summary *summary)
{
    uint8_t wanted[KITH_LAB_PEERS_MAX] = {0};
    kith_values_clear(&lab->values);
    for (uint32_t i = 0; i < lab->peer_count; i++)
        wanted[i] = lab->peers[i].state == LAB_PEER_LEFT &&
                    lab->peers[i].saved &&
                    !(lab->peers[i].faults & LAB_FAULT_PAUSED);
    struct lab_average average;
    if (kith_lab_average_open(&average, &lab->experiment, &lab->cluster, wanted,
                              lab, left_out) != KITH_OK) {
        kith_lab_fail(lab, KITH_ENOMEM,
                      "out of memory for the average of %u models",
                      (unsigned)lab->peer_count);
        return;
    }
    struct kith_score all;
    if (average.count == 0)
        kith_lab_say(lab, "no peer left a complete save: nothing to evaluate");
    else if (score_average(lab, &average, &all) != KITH_OK)
        kith_lab_fail(lab, KITH_ENOMEM, "out of memory for evaluation");
    else {
        lab->values.accuracy = all.accuracy;
        lab->values.loss = all.loss;
        lab->values.consensus_distance = average.consensus_distance;
        lab->values.correlation = average.correlation;
        summary->correlation.lowest =
            fmin(lab->correlation_lowest, average.correlation);
        const uint64_t step = kith_lab_average_step(&average);
        put_row(lab, KITH_NOBODY, step, &all, average.consensus_distance);
        if (lab->options->record)
            (void)kith_rundb_model(lab->options->store, KITH_NOBODY, step, &all,
                                   NULL, average.dim);
        score_peers(lab, &average);
    }
    kith_lab_average_close(&average);
}

static void judge(struct lab *lab, struct kith_summary *summary)
{
    kith_lab_live_finish(lab);
    kith_lab_values(lab);
    kith_summary_values(summary, &lab->values);
    summary->violations =
        kith_checks_finish(&lab->checks, lab->options->experiment, &lab->values,
                           lab->ended_ns - lab->start_ns);
    summary->checks = lab->checks;
    (void)kith_rundb_verdicts(lab->options->store, lab->options->experiment,
                              &lab->checks);
}

void kith_lab_result(struct lab *lab, struct kith_summary *summary)
{
    *summary = kith_summary_unknown("lab");
    add_up(lab, summary);
    if (lab->err == KITH_OK && lab->start_ns != 0) {
        evaluate(lab, summary);
        kith_lab_read_signals(lab);
        judge(lab, summary);
    }
    /* A run that failed is written down too, as far as it can be. */
    summary->completed =
        summary->completed && lab->signals == 0 && lab->err == KITH_OK;
    kith_lab_stored(lab, kith_rundb_finish(lab->options->store,
                                           lab->options->experiment, summary));
}
