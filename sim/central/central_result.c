/* What a central run leaves behind. `averaged` is the shared model, `mean` and
 * `worst` are over the workers' own copies; the consensus distance is the root
 * of their mean squared distance to their mean. */
#include <math.h>
#include <string.h>

#include "sim/central/central_state.h"

/* As in the other engine: more workers are scored at the end alone. */
#define SCORED_WORKERS 16u
#define SHOW_S 0.2

void sim_central_progress(struct central *run)
{
    if (!run->options.progress) {
        return;
    }
    const double now_s = sim_wall();
    if (now_s - run->wall_shown_s < SHOW_S) {
        return;
    }
    run->wall_shown_s = now_s;
    struct sim_progress progress = {
        .now_ns = run->now_ns,
        .events = run->events,
        .messages = run->messages,
        .steps_total =
            run->steps == UINT64_MAX ? 0 : run->steps * run->worker_count,
        .wall_s = now_s - run->wall_start_s,
    };
    for (uint32_t i = 0; i < run->worker_count; i++) {
        progress.steps_done += run->workers[i].steps;
    }
    run->options.progress(&progress, run->options.arg);
}

/* What one evaluation found. */
struct scores {
    struct kith_score averaged;
    double accuracy_mean, accuracy_worst, loss_mean, loss_worst;
    double consensus_distance;
    bool finite;
};

/* Sums over all machines and workers. */
struct totals {
    uint64_t sent, received, most, steps;
    uint64_t stale_sum, stale_max, stale_count;
    double waited_s, busy_s, utilisation;
};

static struct kith_score score(struct central *run, const double *z)
{
    struct kith_score result = {NAN, NAN};
    const struct kith_dataset *dataset = run->options.dataset;
    const enum kith_err err =
        kith_evaluate(run->experiment, run->experiment->backend,
                      dataset ? &dataset->test : NULL, z, &result);
    if (err != KITH_OK) {
        sim_central_fail(run, err, "cannot evaluate a model: %s",
                         kith_err_text(err));
    }
    return result;
}

static void put_row(struct central *run, struct kith_row *row)
{
    row->time_ns = run->now_ns;
    row->samples = row->step * run->experiment->train.batch;
    row->cpu_train_s = row->cpu_aead_s = NAN;
    row->cpu_socket_s = row->cpu_other_s = NAN;
    if (run->options.store) {
        (void)kith_rundb_row(run->options.store, row); /* sticks */
    }
}

static void set_stale(struct kith_row *row, uint64_t sum, uint64_t most,
                      uint64_t count)
{
    row->received = count;
    row->staleness = count > 0 ? (double)sum / (double)count : NAN;
    row->staleness_max = count > 0 ? (double)most : NAN;
}

static void put_worker(struct central *run, uint32_t id, double accuracy,
                       double distance)
{
    const struct central_worker *worker = &run->workers[id];
    struct kith_row row = {
        .peer = id,
        .step = worker->steps,
        .loss = worker->desk && worker->gradient ? worker->loss : NAN,
        .accuracy = accuracy,
        .consensus_distance = distance,
        .bytes_sent = run->nodes[id].bytes_sent,
        .bytes_received = run->nodes[id].bytes_received,
        .waiting_s = (double)worker->waited_ns * 1e-9,
        .training_s = (double)worker->busy_ns * 1e-9,
        .attempts = worker->stale_count,
        .done = worker->stale_count,
    };
    set_stale(&row, worker->stale_sum, worker->stale_max, worker->stale_count);
    put_row(run, &row);
}

static struct totals count_all(const struct central *run)
{
    struct totals sum = {0};
    for (uint32_t i = 0; i < run->node_count; i++) {
        const struct central_node *node = &run->nodes[i];
        sum.sent += node->bytes_sent;
        sum.received += node->bytes_received;
        sum.most = node->bytes_sent > sum.most ? node->bytes_sent : sum.most;
    }
    for (uint32_t i = 0; i < run->worker_count; i++) {
        const struct central_worker *worker = &run->workers[i];
        const kith_ns lived_ns =
            worker->finished_ns > 0 ? worker->finished_ns : run->now_ns;
        sum.steps += worker->steps;
        sum.stale_sum += worker->stale_sum;
        sum.stale_count += worker->stale_count;
        sum.waited_s += (double)worker->waited_ns * 1e-9;
        sum.busy_s += (double)worker->busy_ns * 1e-9;
        sum.stale_max = worker->stale_max > sum.stale_max ? worker->stale_max
                                                          : sum.stale_max;
        /* The step under way is paid in full when it begins. */
        const double share =
            lived_ns > 0 ? (double)worker->busy_ns / (double)lived_ns : 0;
        sum.utilisation += share < 1 ? share : 1;
    }
    sum.utilisation /= run->worker_count;
    return sum;
}

static void put_shared(struct central *run, const struct scores *scores)
{
    const struct totals sum = count_all(run);
    struct kith_row row = {
        .peer = KITH_NOBODY,
        .step = sum.steps,
        .loss = scores->averaged.loss,
        .accuracy = scores->averaged.accuracy,
        .consensus_distance = scores->consensus_distance,
        .bytes_sent = sum.sent,
        .bytes_received = sum.received,
        .waiting_s = sum.waited_s,
        .training_s = sum.busy_s,
        .attempts = run->applied + run->refused,
        .done = run->applied,
        .refused = run->refused,
    };
    set_stale(&row, sum.stale_sum, sum.stale_max, sum.stale_count);
    put_row(run, &row);
    if (run->options.store) {
        (void)kith_rundb_flush(run->options.store);
    }
}

static void read_worker(struct central *run, uint32_t id)
{
    kith_worker_read(
        run->method->one_model ? run->server : run->workers[id].desk, run->z);
}

static void average(struct central *run)
{
    memset(run->mean, 0, run->dim * sizeof *run->mean);
    for (uint32_t i = 0; i < run->worker_count; i++) {
        read_worker(run, i);
        for (size_t k = 0; k < run->dim; k++) {
            run->mean[k] += run->z[k] / run->worker_count;
        }
    }
}

static void score_worker(struct central *run, uint32_t id, bool own,
                         struct scores *scores)
{
    struct kith_score result = {NAN, NAN};
    double squared = 0;
    read_worker(run, id);
    for (size_t k = 0; k < run->dim; k++) {
        const double apart = run->z[k] - run->mean[k];
        squared += apart * apart;
    }
    scores->finite = scores->finite && isfinite(squared);
    scores->consensus_distance += squared / run->worker_count;
    if (own) {
        result = score(run, run->z);
        scores->accuracy_mean += result.accuracy / run->worker_count;
        scores->loss_mean += result.loss / run->worker_count;
        scores->accuracy_worst = fmin(scores->accuracy_worst, result.accuracy);
        scores->loss_worst = fmax(scores->loss_worst, result.loss);
    }
    put_worker(run, id, result.accuracy, sqrt(squared));
}

static void score_all(struct central *run, bool last, struct scores *scores)
{
    const bool own = last || run->worker_count <= SCORED_WORKERS;
    *scores = (struct scores){.averaged = {NAN, NAN},
                              .accuracy_worst = NAN,
                              .loss_worst = NAN,
                              .finite = true};
    if (!run->server) {
        scores->accuracy_mean = scores->loss_mean = NAN;
        scores->consensus_distance = NAN;
        for (uint32_t i = 0; i < run->worker_count; i++) {
            put_worker(run, i, NAN, NAN);
        }
        return;
    }
    average(run);
    for (uint32_t i = 0; i < run->worker_count; i++) {
        score_worker(run, i, own, scores);
    }
    if (!own) {
        scores->accuracy_mean = scores->loss_mean = NAN;
    }
    scores->consensus_distance = sqrt(scores->consensus_distance);
    kith_worker_read(run->server, run->z);
    scores->averaged = score(run, run->z);
}

static void note_values(struct central *run, const struct scores *scores)
{
    struct kith_values *values = &run->values;
    const struct totals sum = count_all(run);
    values->finite = run->server ? scores->finite && !run->nonfinite : NAN;
    values->accuracy = scores->averaged.accuracy;
    values->accuracy_mean = scores->accuracy_mean;
    values->accuracy_worst = scores->accuracy_worst;
    values->loss = scores->averaged.loss;
    values->loss_mean = scores->loss_mean;
    values->loss_worst = scores->loss_worst;
    values->consensus_distance = scores->consensus_distance;
    values->attempts = (double)(run->applied + run->refused);
    values->done = (double)run->applied;
    values->refused = (double)run->refused;
    values->failed = values->skipped = values->torn = 0;
    const double lived_s = (double)run->now_ns * 1e-9 * run->worker_count;
    values->waiting_share = lived_s > 0 ? sum.waited_s / lived_s : 0;
}

static void evaluate(struct central *run, bool last, struct scores *scores)
{
    score_all(run, last, scores);
    put_shared(run, scores);
    note_values(run, scores);
}

void sim_central_evaluate(struct central *run)
{
    struct scores scores;
    evaluate(run, false, &scores);
    (void)kith_checks_always(&run->checks, run->experiment, &run->values,
                             run->now_ns);
}

static void fill(const struct central *run, const struct scores *scores,
                 struct kith_summary *summary)
{
    const struct totals sum = count_all(run);
    summary->trace_hash = run->trace_hash;
    summary->has_trace_hash = true;
    summary->virtual_s = (double)run->now_ns * 1e-9;
    summary->wall_s = sim_wall() - run->wall_start_s;
    summary->events = run->events;
    summary->steps = sum.steps;
    summary->samples = sum.steps * run->experiment->train.batch;
    summary->accuracy.averaged = scores->averaged.accuracy;
    summary->accuracy.mean = scores->accuracy_mean;
    summary->accuracy.worst = scores->accuracy_worst;
    summary->loss.averaged = scores->averaged.loss;
    summary->loss.mean = scores->loss_mean;
    summary->loss.worst = scores->loss_worst;
    summary->consensus_distance = scores->consensus_distance;
    summary->correlation.last = summary->correlation.lowest = NAN;
    summary->exchanges.attempts = run->applied + run->refused;
    summary->exchanges.done = run->applied;
    summary->exchanges.refused = run->refused;
    summary->bytes_sent = sum.sent;
    summary->bytes_per_peer_max = sum.most;
    summary->nodes = run->node_count;
    const double count = (double)sum.stale_count;
    summary->staleness.mean =
        sum.stale_count > 0 ? (double)sum.stale_sum / count : NAN;
    summary->staleness.max = sum.stale_count > 0 ? (double)sum.stale_max : NAN;
    summary->utilisation = sum.utilisation;
    summary->cpu.train_s = summary->cpu.aead_s = NAN;
    summary->cpu.socket_s = summary->cpu.other_s = NAN;
    summary->faults = run->faults;
}

void sim_central_summarise(struct central *run, struct kith_summary *summary,
                           struct sim_report *report)
{
    struct scores scores;
    evaluate(run, true, &scores);
    fill(run, &scores, summary);
    summary->violations = kith_checks_finish(&run->checks, run->experiment,
                                             &run->values, run->now_ns);
    report->messages = run->messages;
    struct kith_rundb *store = run->options.store;
    if (store) {
        const enum kith_err err =
            kith_rundb_verdicts(store, run->experiment, &run->checks);
        if (err != KITH_OK) {
            sim_central_fail(run, err, "%s", kith_rundb_error(store));
        }
    }
}
