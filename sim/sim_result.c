/* What a run leaves behind: rows while it goes on, checks, a summary. The same
 * for every protocol, which says whose model is scored and what was counted.
 *
 *   averaged   the model that all share; without one the mean of the peers',
 *              with running statistics of its own
 *   consensus  root of the mean squared distance of the peers' models to their
 *              mean */
#include "sim/sim_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/assert.h"
#include "sim/world.h"

/* Every peer's own model is evaluated at every point in time for so many
 * peers; larger runs do it once, at the end. */
#define SCORED_PEERS 16u
#define SHOW_S 0.2

struct sim_results {
    struct kith_checks checks;
    struct kith_values values;
    double correlation_lowest; /* NaN: never evaluated */
    bool nonfinite;
    uint64_t steps_done;              /* for the progress line */
    struct kith_evaluator *evaluator; /* NULL without parameters */
    double *mean, *z;                 /* (dim) */
    double wall_start_s, wall_shown_s;
};

static double wall(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC) {
        return 0;
    }
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One evaluator for all peers and all evaluations: what does not fit is known
 * before the run begins. */
static enum kith_err open_evaluator(struct sim_world *world,
                                    struct sim_results *results)
{
    KITH_ASSERT(world->dim > 0);
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_dataset *dataset = world->options.dataset;
    char text[KITH_DATA_ERROR_BYTES] = "";
    results->mean = malloc(world->dim * sizeof *results->mean);
    results->z = malloc(world->dim * sizeof *results->z);
    if (!results->mean || !results->z) {
        return KITH_ENOMEM;
    }
    const enum kith_err err = kith_evaluator_open(
        experiment, experiment->backend, dataset ? &dataset->test : NULL,
        &results->evaluator, text);
    if (err != KITH_OK) {
        sim_fail(world, err, "%s", text);
    }
    return err;
}

/* The database writes its rows behind the run, on a thread of its own: they
 * cost the loop a copy. */
enum kith_err sim_results_open(struct sim_world *world)
{
    KITH_ASSERT(world->results == NULL);
    struct sim_results *results = calloc(1, sizeof *results);
    if (!results) {
        return KITH_ENOMEM;
    }
    world->results = results;
    results->wall_start_s = wall();
    results->correlation_lowest = NAN;
    kith_checks_start(&results->checks);
    kith_values_clear(&results->values);
    if (world->options.store) {
        kith_rundb_start_writer(world->options.store);
    }
    return world->dim > 0 ? open_evaluator(world, results) : KITH_OK;
}

void sim_results_close(struct sim_world *world)
{
    struct sim_results *results = world->results;
    if (results) {
        kith_evaluator_close(results->evaluator);
        free(results->mean);
        free(results->z);
        free(results);
    }
}

void sim_results_step(struct sim_world *world)
{
    KITH_ASSERT(world->steps == UINT64_MAX ||
                world->results->steps_done < UINT64_MAX);
    world->results->steps_done++;
}

void sim_results_nonfinite(struct sim_world *world)
{
    world->results->nonfinite = true;
}

/* Virtual time says nothing about how long one still has to wait: the wall
 * clock decides when a line is due. */
void sim_progress(struct sim_world *world)
{
    KITH_ASSERT(world->results != NULL);
    struct sim_results *results = world->results;
    if (!world->options.progress) {
        return;
    }
    const double now_s = wall();
    if (now_s - results->wall_shown_s < SHOW_S) {
        return;
    }
    results->wall_shown_s = now_s;
    const struct sim_progress progress = {
        .now_ns = sim_time(world),
        .events = sim_events(world),
        .messages = sim_network_messages(world),
        .steps_done = results->steps_done,
        .steps_total =
            world->steps == UINT64_MAX ? 0 : world->steps * world->peer_count,
        .wall_s = now_s - results->wall_start_s,
    };
    world->options.progress(&progress, world->options.arg);
}

/* ---- scores */

/* What one evaluation found. */
struct scores {
    struct kith_score averaged;
    double accuracy_mean, accuracy_worst, loss_mean, loss_worst;
    double consensus_distance; /* root of the mean squared distance */
    double correlation;
    uint32_t live;
    bool finite;
};

struct kith_worker *sim_worker(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    return world->protocol->worker(world, peer);
}

/* results->mean <- mean of z over live peers, of which it returns the count. */
static uint32_t average(struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    struct sim_results *results = world->results;
    uint32_t live = 0;
    memset(results->mean, 0, world->dim * sizeof *results->mean);
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (!sim_alive(world, id)) {
            continue;
        }
        live++;
        kith_worker_read(sim_worker(world, id), results->z);
        for (size_t k = 0; k < world->dim; k++) {
            results->mean[k] += results->z[k];
        }
    }
    KITH_ASSERT(live <= world->peer_count);
    for (size_t k = 0; k < world->dim; k++) {
        results->mean[k] /= live;
    }
    return live;
}

static double distance_squared(const struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    const struct sim_results *results = world->results;
    double sum = 0;
    for (size_t k = 0; k < world->dim; k++) {
        const double apart = results->z[k] - results->mean[k];
        sum += apart * apart;
    }
    return sum;
}

/* Of the model in results->z. */
static struct kith_score score(struct sim_world *world)
{
    KITH_ASSERT(world->results->evaluator != NULL);
    struct kith_score result = {NAN, NAN};
    char error[KITH_DATA_ERROR_BYTES];
    const enum kith_err err = kith_evaluator_score(
        world->results->evaluator, world->results->z, &result, error);
    if (err != KITH_OK) {
        sim_fail(world, err, "%s", error);
    }
    return result;
}

/* Of the shared model, or of the mean; results->z is overwritten. */
static struct kith_score score_averaged(struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    const struct kith_dataset *dataset = world->options.dataset;
    struct sim_results *results = world->results;
    struct kith_worker *shared = sim_worker(world, KITH_NOBODY);
    if (shared) {
        kith_worker_read(shared, results->z);
        return score(world);
    }
    memcpy(results->z, results->mean, world->dim * sizeof *results->z);
    const enum kith_err err = kith_estimate(
        world->experiment, world->experiment->backend,
        dataset ? &dataset->train : NULL, KITH_ESTIMATE_BATCHES, results->z);
    if (err != KITH_OK) {
        sim_fail(world, err, "cannot estimate the running statistics: %s",
                 kith_err_text(err));
    }
    return score(world);
}

/* ---- rows */

/* What was counted of the peer, or of all; the rest is not known yet. */
static struct kith_row row_of(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->peer_count);
    struct kith_row row = kith_row_unknown(peer);
    struct kith_node_counters counters;
    world->protocol->counters(world, peer, &counters);
    row.time_ns = sim_time(world);
    row.step = counters.steps;
    row.samples = counters.steps * world->experiment->train.batch;
    row.waiting_s = (double)counters.waited_ns * 1e-9;
    row.attempts = counters.attempts;
    row.done = counters.done;
    row.failed = counters.failed;
    row.refused = counters.refused;
    row.skipped = counters.skipped;
    row.torn = counters.torn;
    sim_totals_row(world, peer, &row);
    return row;
}

/* Rows are made only where somebody keeps them: counting all of a large run
 * would cost as much as its events. */
static void put_peer(struct sim_world *world, kith_id id, double accuracy,
                     double distance)
{
    KITH_ASSERT(id < world->peer_count);
    if (!world->options.store) {
        return;
    }
    struct kith_row row = row_of(world, id);
    row.loss = row.step > 0 ? world->protocol->loss(world, id) : (double)NAN;
    row.accuracy = accuracy;
    row.consensus_distance = distance;
    row.bytes_sent = sim_bytes_sent(world, id);
    (void)kith_rundb_row(world->options.store, &row); /* sticks */
}

/* The busiest machine is told beside the sum: with a server it is what the run
 * waits for. */
static uint64_t bytes_of_all(const struct sim_world *world, uint64_t *most)
{
    KITH_ASSERT(world->machine_count >= world->peer_count);
    uint64_t sum = 0;
    *most = 0;
    for (kith_id id = 0; id < world->machine_count; id++) {
        const uint64_t bytes = sim_bytes_sent(world, id);
        sum += bytes;
        *most = bytes > *most ? bytes : *most;
    }
    KITH_ASSERT(*most <= sum);
    return sum;
}

static void put_averaged(struct sim_world *world, const struct scores *scores)
{
    KITH_ASSERT(scores->live <= world->peer_count);
    uint64_t most;
    if (!world->options.store) {
        return;
    }
    struct kith_row row = row_of(world, KITH_NOBODY);
    row.loss = scores->averaged.loss;
    row.accuracy = scores->averaged.accuracy;
    row.consensus_distance = scores->consensus_distance;
    row.bytes_sent = bytes_of_all(world, &most);
    (void)kith_rundb_row(world->options.store, &row); /* sticks */
    (void)kith_rundb_flush(world->options.store);
}

/* One peer's own model against the test set and against the mean. */
static void score_peer(struct sim_world *world, kith_id id, bool own,
                       struct scores *scores)
{
    KITH_ASSERT(scores->live > 0);
    struct kith_score result = {NAN, NAN};
    kith_worker_read(sim_worker(world, id), world->results->z);
    const double squared = distance_squared(world);
    scores->finite = scores->finite && isfinite(squared);
    scores->consensus_distance += squared;
    if (own) {
        result = score(world);
        scores->accuracy_mean += result.accuracy;
        scores->loss_mean += result.loss;
        scores->accuracy_worst = fmin(scores->accuracy_worst, result.accuracy);
        scores->loss_worst = fmax(scores->loss_worst, result.loss);
    }
    put_peer(world, id, result.accuracy, sqrt(squared));
}

/* Nobody has a model: rows alone. */
static void score_none(struct sim_world *world, bool last,
                       struct scores *scores)
{
    KITH_ASSERT(scores->live == 0);
    scores->accuracy_mean = scores->loss_mean = NAN;
    scores->consensus_distance = scores->correlation = NAN;
    const bool rows = last || world->protocol->always_counts;
    for (kith_id id = 0; id < world->peer_count && world->dim == 0; id++) {
        if (rows && sim_alive(world, id)) {
            put_peer(world, id, NAN, NAN);
        }
    }
}

/* The averaged model is what the run is judged by; peers' own are scored where
 * there are few of them, or at the end. */
static void score_all(struct sim_world *world, bool last, struct scores *scores)
{
    KITH_ASSERT(world->peer_count > 0);
    *scores = (struct scores){.averaged = {NAN, NAN},
                              .accuracy_worst = NAN,
                              .loss_worst = NAN,
                              .finite = true};
    scores->live = world->dim > 0 ? average(world) : 0;
    if (scores->live == 0) {
        score_none(world, last, scores);
        return;
    }
    scores->averaged = score_averaged(world);
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
    /* A shared model is not the mean that the measure is about. */
    scores->correlation =
        sim_worker(world, KITH_NOBODY)
            ? (double)NAN
            : kith_correlation(world->results->mean, world->dim,
                               scores->consensus_distance, scores->live);
}

/* Checks and the summary read the same numbers: they are worked out once, here.
 * */
static void set_values(struct sim_world *world, const struct scores *scores)
{
    KITH_ASSERT(scores->live <= world->peer_count);
    struct kith_values *values = &world->results->values;
    struct kith_node_counters sum;
    world->protocol->counters(world, KITH_NOBODY, &sum);
    values->finite =
        scores->live > 0 ? scores->finite && !world->results->nonfinite : NAN;
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
        (double)sim_time(world) * 1e-9 * (double)world->peer_count;
    values->waiting_share =
        lived_s > 0 ? (double)sum.waited_ns * 1e-9 / lived_s : 0;
}

/* Items run on threads until their virtual time is over: vectors are read when
 * all have ended. */
static void evaluate(struct sim_world *world, bool last)
{
    KITH_ASSERT(sim_failure(world) == KITH_OK || sim_ended(world));
    struct scores scores;
    sim_work_join_all(world);
    score_all(world, last, &scores);
    put_averaged(world, &scores);
    set_values(world, &scores);
    world->results->correlation_lowest =
        fmin(world->results->correlation_lowest, scores.correlation);
}

/* `always` checks are looked at wherever values are new; `finally` ones at the
 * end alone. */
void sim_evaluate(struct sim_world *world)
{
    KITH_ASSERT(world->experiment->evaluate_ns > 0);
    evaluate(world, false);
    (void)kith_checks_always(&world->results->checks, world->experiment,
                             &world->results->values, sim_time(world));
}

/* ---- the end */

/* The last evaluation's values are the summary's: they are not worked out a
 * second time. */
static void summarise_values(const struct sim_results *results,
                             struct kith_summary *summary)
{
    const struct kith_values *values = &results->values;
    summary->accuracy.averaged = values->accuracy;
    summary->accuracy.mean = values->accuracy_mean;
    summary->accuracy.worst = values->accuracy_worst;
    summary->loss.averaged = values->loss;
    summary->loss.mean = values->loss_mean;
    summary->loss.worst = values->loss_worst;
    summary->consensus_distance = values->consensus_distance;
    summary->correlation.last = values->correlation;
    summary->correlation.lowest = results->correlation_lowest;
}

static void summarise_counters(const struct sim_world *world,
                               struct kith_summary *summary)
{
    KITH_ASSERT(summary->has_trace_hash);
    struct kith_node_counters sum;
    world->protocol->counters(world, KITH_NOBODY, &sum);
    summary->steps = sum.steps;
    summary->samples = sum.steps * world->experiment->train.batch;
    summary->exchanges.attempts = sum.attempts;
    summary->exchanges.done = sum.done;
    summary->exchanges.failed = sum.failed;
    summary->exchanges.refused = sum.refused;
    summary->exchanges.skipped = sum.skipped;
    summary->exchanges.torn = sum.torn;
    summary->bytes_sent = bytes_of_all(world, &summary->bytes_per_peer_max);
    summary->nodes = world->central ? world->machine_count : 0;
}

/* What tests and benches ask for, and no person reads. */
static void report_rest(const struct sim_world *world,
                        struct sim_report *report)
{
    KITH_ASSERT(report->messages == 0);
    if (world->ledger) {
        sim_balance(world, &report->balance);
    }
    sim_work_counts(world, report->items);
    report->messages = sim_network_messages(world);
    report->handshakes = sim_link_handshakes(world);
    report->bulk_bytes = sim_network_bulk_bytes(world);
}

/* Verdicts go into the store here; the summary itself is the caller's to
 * finish, who knows the path. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary,
                   struct sim_report *report)
{
    KITH_ASSERT(!summary->has_trace_hash);
    struct sim_results *results = world->results;
    struct kith_rundb *store = world->options.store;
    evaluate(world, true);
    sim_ledger_finish(world, &results->values);
    summary->trace_hash = sim_trace_hash(world);
    summary->has_trace_hash = true;
    summary->virtual_s = (double)sim_time(world) * 1e-9;
    summary->wall_s = wall() - results->wall_start_s;
    summary->events = sim_events(world);
    summarise_values(results, summary);
    summarise_counters(world, summary);
    summary->cpu.train_s = summary->cpu.aead_s = NAN;
    summary->cpu.socket_s = summary->cpu.other_s = NAN;
    sim_totals_summarise(world, summary);
    summary->faults = sim_fault_count(world);
    summary->violations = kith_checks_finish(
        &results->checks, world->experiment, &results->values, sim_time(world));
    summary->checks = results->checks;
    report_rest(world, report);
    if (store) {
        const enum kith_err err =
            kith_rundb_verdicts(store, world->experiment, &results->checks);
        if (err != KITH_OK) {
            sim_fail(world, err, "%s", kith_rundb_error(store));
        }
    }
}
