/* What a run leaves behind: rows while it goes on, checks, a summary. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Every peer's own model is evaluated at every point in time for so many
 * peers; larger runs do it once, at the end. */
#define SCORED_PEERS 16u
#define SHOW_S 0.2

double sim_wall(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC) {
        return 0;
    }
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t steps_total(const struct sim_world *world)
{
    const uint64_t own = world->config.steps;
    return own == UINT64_MAX ? 0 : own * world->peer_count;
}

void sim_progress(struct sim_world *world)
{
    if (!world->options.progress) {
        return;
    }
    const double now_s = sim_wall();
    if (now_s - world->wall_shown_s < SHOW_S) {
        return;
    }
    world->wall_shown_s = now_s;
    const struct sim_progress progress = {
        .now_ns = world->now_ns,
        .events = world->events,
        .messages = world->messages,
        .steps_done = world->steps_done,
        .steps_total = steps_total(world),
        .wall_s = now_s - world->wall_start_s,
    };
    world->options.progress(&progress, world->options.arg);
}

/* What one evaluation found. */
struct scores {
    struct kith_score averaged;
    double accuracy_mean, accuracy_worst, loss_mean, loss_worst;
    double consensus_distance; /* root of the mean squared distance */
    double correlation;
    uint32_t live;
    bool finite;
};

/* world->mean <- mean of z over live peers. */
static uint32_t average(struct sim_world *world)
{
    uint32_t live = 0;
    for (size_t k = 0; k < world->dim; k++) {
        world->mean[k] = 0;
    }
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (!sim_alive(world, id)) {
            continue;
        }
        live++;
        kith_worker_read(world->desks[id].worker, world->z);
        for (size_t k = 0; k < world->dim; k++) {
            world->mean[k] += world->z[k];
        }
    }
    for (size_t k = 0; k < world->dim; k++) {
        world->mean[k] /= live;
    }
    return live;
}

static double distance_squared(const struct sim_world *world)
{
    double sum = 0;
    for (size_t k = 0; k < world->dim; k++) {
        const double apart = world->z[k] - world->mean[k];
        sum += apart * apart;
    }
    return sum;
}

static struct kith_score score(struct sim_world *world, const double *z)
{
    struct kith_score result = {NAN, NAN};
    char error[KITH_DATA_ERROR_BYTES];
    const enum kith_err err =
        kith_evaluator_score(world->evaluator, z, &result, error);
    if (err != KITH_OK) {
        sim_fail(world, err, "%s", error);
    }
    return result;
}

/* The mean with running statistics of its own; world->z is overwritten. */
static struct kith_score score_mean(struct sim_world *world)
{
    const struct kith_dataset *dataset = world->options.dataset;
    memcpy(world->z, world->mean, world->dim * sizeof *world->z);
    const enum kith_err err = kith_estimate(
        world->experiment, world->experiment->backend,
        dataset ? &dataset->train : NULL, KITH_ESTIMATE_BATCHES, world->z);
    if (err != KITH_OK) {
        sim_fail(world, err, "cannot estimate the running statistics: %s",
                 kith_err_text(err));
    }
    return score(world, world->z);
}

static void put_row(struct sim_world *world, const struct kith_row *row)
{
    if (world->options.store) {
        (void)kith_rundb_row(world->options.store, row); /* sticks */
    }
}

/* What the counters say; the rest is not known yet. */
static struct kith_row row_of(const struct sim_world *world, kith_id peer,
                              const struct kith_node_counters *counters)
{
    struct kith_row row = kith_row_unknown(peer);
    row.time_ns = world->now_ns;
    row.step = counters->steps;
    row.samples = counters->steps * world->experiment->train.batch;
    row.waiting_s = (double)counters->waited_ns * 1e-9;
    row.attempts = counters->attempts;
    row.done = counters->done;
    row.failed = counters->failed;
    row.refused = counters->refused;
    row.skipped = counters->skipped;
    row.torn = counters->torn;
    return row;
}

static void put_peer(struct sim_world *world, kith_id id, double accuracy,
                     double distance)
{
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, id), &counters);
    const struct sim_peer *peer = &world->peers[id];
    const struct sim_desk *desk = world->desks ? &world->desks[id] : NULL;
    const bool trained =
        desk && counters.steps > 0 && desk->work.kind == KITH_WORK_TRAIN;
    struct kith_row row = row_of(world, id, &counters);
    row.loss = trained ? desk->result.loss : NAN;
    row.accuracy = accuracy;
    row.consensus_distance = distance;
    row.bytes_sent = peer->bytes_sent;
    row.bytes_received = world->bytes_received ? world->bytes_received[id] : 0;
    sim_tally_row(world, id, &row);
    put_row(world, &row);
}

void sim_count(const struct sim_world *world, kith_id peer,
               struct kith_node_counters *sum)
{
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, peer), &counters);
    sum->steps += counters.steps;
    sum->attempts += counters.attempts;
    sum->skipped += counters.skipped;
    sum->refused += counters.refused;
    sum->done += counters.done;
    sum->failed += counters.failed;
    sum->torn += counters.torn;
    sum->waited_ns += counters.waited_ns;
}

/* Sums over all peers, crashed incarnations included. */
static void count_all(const struct sim_world *world,
                      struct kith_node_counters *sum, uint64_t *bytes_sent,
                      uint64_t *bytes_received, uint64_t *bytes_most)
{
    *sum = world->gone;
    *bytes_sent = *bytes_received = *bytes_most = 0;
    for (kith_id id = 0; id < world->peer_count; id++) {
        const struct sim_peer *peer = &world->peers[id];
        *bytes_sent += peer->bytes_sent;
        *bytes_received +=
            world->bytes_received ? world->bytes_received[id] : 0;
        if (peer->bytes_sent > *bytes_most) {
            *bytes_most = peer->bytes_sent;
        }
        if (!sim_alive(world, id)) {
            continue;
        }
        sim_count(world, id, sum);
    }
}

static void put_averaged(struct sim_world *world, const struct scores *scores)
{
    struct kith_node_counters sum;
    uint64_t sent, received, most;
    count_all(world, &sum, &sent, &received, &most);
    struct kith_row row = row_of(world, KITH_NOBODY, &sum);
    row.loss = scores->averaged.loss;
    row.accuracy = scores->averaged.accuracy;
    row.consensus_distance = scores->consensus_distance;
    row.bytes_sent = sent;
    row.bytes_received = received;
    sim_tally_row(world, KITH_NOBODY, &row);
    put_row(world, &row);
    if (world->options.store) {
        (void)kith_rundb_flush(world->options.store);
    }
}

/* One peer's own model against the test set and against the mean. */
static void score_peer(struct sim_world *world, kith_id id, bool own,
                       struct scores *scores)
{
    struct kith_score result = {NAN, NAN};
    kith_worker_read(world->desks[id].worker, world->z);
    const double squared = distance_squared(world);
    scores->finite = scores->finite && isfinite(squared);
    scores->consensus_distance += squared;
    if (own) {
        result = score(world, world->z);
        scores->accuracy_mean += result.accuracy;
        scores->loss_mean += result.loss;
        scores->accuracy_worst = fmin(scores->accuracy_worst, result.accuracy);
        scores->loss_worst = fmax(scores->loss_worst, result.loss);
    }
    put_peer(world, id, result.accuracy, sqrt(squared));
}

static void score_all(struct sim_world *world, bool last, struct scores *scores)
{
    *scores = (struct scores){.averaged = {NAN, NAN},
                              .accuracy_worst = NAN,
                              .loss_worst = NAN,
                              .finite = true};
    scores->live = world->desks ? average(world) : 0;
    if (scores->live == 0) {
        scores->accuracy_mean = scores->loss_mean = NAN;
        scores->consensus_distance = scores->correlation = NAN;
        for (kith_id id = 0; id < world->peer_count && !world->desks; id++) {
            if (last && world->options.store && sim_alive(world, id)) {
                put_peer(world, id, NAN, NAN);
            }
        }
        return;
    }
    scores->averaged = score_mean(world);
    const bool own = last || world->peer_count <= SCORED_PEERS;
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (sim_alive(world, id)) {
            score_peer(world, id, own, scores);
        }
    }
    const double live = scores->live;
    scores->accuracy_mean = own ? scores->accuracy_mean / live : NAN;
    scores->loss_mean = own ? scores->loss_mean / live : NAN;
    scores->consensus_distance = sqrt(scores->consensus_distance / live);
    scores->correlation = kith_correlation(
        world->mean, world->dim, scores->consensus_distance, scores->live);
}

static void note_values(struct sim_world *world, const struct scores *scores)
{
    struct kith_values *values = &world->values;
    struct kith_node_counters sum;
    uint64_t sent, received, most;
    count_all(world, &sum, &sent, &received, &most);
    values->finite =
        scores->live > 0 ? scores->finite && !world->nonfinite : NAN;
    values->accuracy = scores->averaged.accuracy;
    values->accuracy_mean = scores->accuracy_mean;
    values->accuracy_worst = scores->accuracy_worst;
    values->loss = scores->averaged.loss;
    values->loss_mean = scores->loss_mean;
    values->loss_worst = scores->loss_worst;
    values->consensus_distance = scores->consensus_distance;
    values->correlation = scores->correlation;
    values->attempts = (double)sum.attempts;
    values->done = (double)sum.done;
    values->failed = (double)sum.failed;
    values->refused = (double)sum.refused;
    values->skipped = (double)sum.skipped;
    values->torn = (double)sum.torn;
    const double lived_s =
        (double)world->now_ns * 1e-9 * (double)world->peer_count;
    values->waiting_share =
        lived_s > 0 ? (double)sum.waited_ns * 1e-9 / lived_s : 0;
}

static void evaluate(struct sim_world *world, bool last, struct scores *scores)
{
    sim_work_join_all(world);
    score_all(world, last, scores);
    put_averaged(world, scores);
    note_values(world, scores);
    world->correlation_lowest =
        fmin(world->correlation_lowest, scores->correlation);
}

void sim_evaluate(struct sim_world *world)
{
    struct scores scores;
    evaluate(world, false, &scores);
    (void)kith_checks_always(&world->checks, world->experiment, &world->values,
                             world->now_ns);
}

static void report_rest(const struct sim_world *world,
                        struct sim_report *report)
{
    if (world->ledger) {
        sim_balance(world, &report->balance);
    }
    sim_work_counts(world, report->items);
    report->messages = world->messages;
    report->handshakes = world->handshakes;
    report->bulk_bytes = world->bulk_bytes;
}

/* Verdicts go into the store here; the summary itself is the caller's to
 * finish, who knows the path. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary,
                   struct sim_report *report)
{
    struct scores scores;
    evaluate(world, true, &scores);
    sim_ledger_finish(world);
    struct kith_node_counters sum;
    uint64_t received;
    count_all(world, &sum, &summary->bytes_sent, &received,
              &summary->bytes_per_peer_max);
    summary->trace_hash = world->trace_hash;
    summary->has_trace_hash = true;
    summary->virtual_s = (double)world->now_ns * 1e-9;
    summary->wall_s = sim_wall() - world->wall_start_s;
    summary->events = world->events;
    summary->steps = sum.steps;
    summary->samples = sum.steps * world->experiment->train.batch;
    summary->accuracy.averaged = scores.averaged.accuracy;
    summary->accuracy.mean = scores.accuracy_mean;
    summary->accuracy.worst = scores.accuracy_worst;
    summary->loss.averaged = scores.averaged.loss;
    summary->loss.mean = scores.loss_mean;
    summary->loss.worst = scores.loss_worst;
    summary->consensus_distance = scores.consensus_distance;
    summary->correlation.last = scores.correlation;
    summary->correlation.lowest = world->correlation_lowest;
    summary->exchanges.attempts = sum.attempts;
    summary->exchanges.done = sum.done;
    summary->exchanges.failed = sum.failed;
    summary->exchanges.refused = sum.refused;
    summary->exchanges.skipped = sum.skipped;
    summary->exchanges.torn = sum.torn;
    summary->cpu.train_s = summary->cpu.aead_s = NAN;
    summary->cpu.socket_s = summary->cpu.other_s = NAN;
    sim_tally_summarise(world, summary);
    summary->faults = world->faults;
    summary->violations = kith_checks_finish(&world->checks, world->experiment,
                                             &world->values, world->now_ns);
    summary->checks = world->checks;
    report_rest(world, report);
    struct kith_rundb *store = world->options.store;
    if (store) {
        const enum kith_err err =
            kith_rundb_verdicts(store, world->experiment, &world->checks);
        if (err != KITH_OK) {
            sim_fail(world, err, "%s", kith_rundb_error(store));
        }
    }
}
