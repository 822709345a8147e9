/* What a run leaves behind: rows while it goes on, checks, a summary. The same
 * for every protocol, which says whose model is scored and what was counted.
 *
 *   averaged   the model that all share; without one the mean of the peers',
 *              with running statistics of its own
 *   consensus  root of the mean squared distance of the peers' models to their
 *              mean */
#include "sim/sim_result.h"

#include <math.h>
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
    double correlation_lowest;        /* NaN: never evaluated */
    struct kith_row sum;              /* of all, at the last evaluation */
    uint64_t bytes_most;              /* sent by one machine */
    struct kith_evaluator *evaluator; /* NULL without parameters */
    double *mean, *z;                 /* (dim) */
    double wall_start_s, wall_shown_s;
};

static double wall(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
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
    results->mean = sim_alloc(world, world->dim, sizeof *results->mean);
    results->z = sim_alloc(world, world->dim, sizeof *results->z);
    if (!results->mean || !results->z)
        return KITH_ENOMEM;
    const enum kith_err err = kith_evaluator_open(
        experiment, experiment->backend, dataset ? &dataset->test : NULL,
        &results->evaluator, text);
    return err == KITH_OK ? err : sim_fail(world, err, "%s", text);
}

/* The database writes its rows behind the run, on a thread of its own: they
 * cost the loop a copy. */
enum kith_err sim_results_open(struct sim_world *world)
{
    KITH_ASSERT(world->results == NULL);
    struct sim_results *results = sim_alloc(world, 1, sizeof *results);
    if (!results)
        return KITH_ENOMEM;
    world->results = results;
    results->wall_start_s = wall();
    results->correlation_lowest = NAN;
    kith_checks_start(&results->checks);
    kith_values_clear(&results->values);
    if (world->options.store)
        kith_rundb_start_writer(world->options.store);
    return world->dim > 0 ? open_evaluator(world, results) : KITH_OK;
}

void sim_results_close(struct sim_world *world)
{
    if (world->results)
        kith_evaluator_close(world->results->evaluator);
}

/* Virtual time says nothing about how long one still has to wait: the wall
 * clock decides when a line is due. */
void sim_progress(struct sim_world *world)
{
    KITH_ASSERT(world->results != NULL);
    struct sim_results *results = world->results;
    if (!world->options.progress)
        return;
    const double now_s = wall();
    if (now_s - results->wall_shown_s < SHOW_S)
        return;
    results->wall_shown_s = now_s;
    const struct sim_progress progress = {
        .now_ns = sim_time(world),
        .events = sim_events(world),
        .messages = world->report.messages,
        .steps_done = world->steps_done,
        .steps_total =
            world->steps == UINT64_MAX ? 0 : world->steps * world->peer_count,
        .wall_s = now_s - results->wall_start_s,
    };
    world->options.progress(&progress, world->options.arg);
}

/* ---- scores */

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
        if (!sim_alive(world, id))
            continue;
        live++;
        kith_worker_read(sim_worker(world, id), results->z);
        for (size_t k = 0; k < world->dim; k++)
            results->mean[k] += results->z[k];
    }
    KITH_ASSERT(live <= world->peer_count);
    for (size_t k = 0; k < world->dim; k++)
        results->mean[k] /= live;
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
    if (err != KITH_OK)
        sim_fail(world, err, "%s", error);
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
    if (!world->options.store)
        return;
    struct kith_row row = row_of(world, id);
    row.loss = row.step > 0 ? world->protocol->loss(world, id) : (double)NAN;
    row.accuracy = accuracy;
    row.consensus_distance = distance;
    row.bytes_sent = sim_bytes_sent(world, id);
    (void)kith_rundb_row(world->options.store, &row); /* sticks */
}

/* One peer's own model against the test set and against the mean. */
static void score_peer(struct sim_world *world, kith_id id, bool own)
{
    KITH_ASSERT(sim_alive(world, id));
    struct kith_values *values = &world->results->values;
    struct kith_score result = {NAN, NAN};
    kith_worker_read(sim_worker(world, id), world->results->z);
    const double squared = distance_squared(world);
    values->finite = values->finite > 0 && isfinite(squared);
    values->consensus_distance += squared;
    if (own) {
        result = score(world);
        values->accuracy_mean += result.accuracy;
        values->loss_mean += result.loss;
        values->accuracy_worst = fmin(values->accuracy_worst, result.accuracy);
        values->loss_worst = fmax(values->loss_worst, result.loss);
    }
    put_peer(world, id, result.accuracy, sqrt(squared));
}

/* Nobody has a model: rows alone. */
static void score_none(struct sim_world *world, bool last)
{
    const bool rows = last || world->protocol->always_counts;
    KITH_ASSERT(isnan(world->results->values.consensus_distance));
    for (kith_id id = 0; id < world->peer_count && world->dim == 0; id++)
        if (rows && sim_alive(world, id))
            put_peer(world, id, NAN, NAN);
}

/* The averaged model is what the run is judged by; peers' own are scored where
 * there are few of them, or at the end. */
static void score_all(struct sim_world *world, bool last)
{
    KITH_ASSERT(world->peer_count > 0);
    struct kith_values *values = &world->results->values;
    kith_values_clear(values);
    const uint32_t live = world->dim > 0 ? average(world) : 0;
    if (live == 0) {
        score_none(world, last);
        return;
    }
    const struct kith_score averaged = score_averaged(world);
    const bool own = last || world->peer_count <= SCORED_PEERS;
    values->accuracy = averaged.accuracy;
    values->loss = averaged.loss;
    values->finite = !world->nonfinite;
    values->accuracy_mean = values->loss_mean = own ? 0 : (double)NAN;
    values->consensus_distance = 0;
    for (kith_id id = 0; id < world->peer_count; id++)
        if (sim_alive(world, id))
            score_peer(world, id, own);
    values->accuracy_mean /= live;
    values->loss_mean /= live;
    values->consensus_distance = sqrt(values->consensus_distance / live);
    /* A shared model is not the mean that the measure is about. */
    values->correlation =
        sim_worker(world, KITH_NOBODY)
            ? (double)NAN
            : kith_correlation(world->results->mean, world->dim,
                               values->consensus_distance, live);
}

/* The row of all, with the busiest machine's bytes beside the sum: with a
 * server it is what the run waits for. Checks and the summary read the same
 * numbers, which are worked out once, here. */
static void put_sum(struct sim_world *world)
{
    KITH_ASSERT(world->machine_count >= world->peer_count);
    struct sim_results *results = world->results;
    struct kith_values *values = &results->values;
    struct kith_row *sum = &results->sum;
    *sum = row_of(world, KITH_NOBODY);
    sum->loss = values->loss;
    sum->accuracy = values->accuracy;
    sum->consensus_distance = values->consensus_distance;
    sum->bytes_sent = results->bytes_most = 0;
    for (kith_id id = 0; id < world->machine_count; id++) {
        const uint64_t bytes = sim_bytes_sent(world, id);
        sum->bytes_sent += bytes;
        if (bytes > results->bytes_most)
            results->bytes_most = bytes;
    }
    if (world->options.store) {
        (void)kith_rundb_row(world->options.store, sum); /* sticks */
        (void)kith_rundb_flush(world->options.store);
    }
    kith_values_count(values, sum);
    const double lived_s =
        (double)sim_time(world) * 1e-9 * (double)world->peer_count;
    values->waiting_share = lived_s > 0 ? sum->waiting_s / lived_s : 0;
}

/* Items run on threads until their virtual time is over: vectors are read when
 * all have ended. */
static void evaluate(struct sim_world *world, bool last)
{
    KITH_ASSERT(sim_failure(world) == KITH_OK || sim_ended(world));
    struct sim_results *results = world->results;
    sim_work_join_all(world);
    score_all(world, last);
    put_sum(world);
    results->correlation_lowest =
        fmin(results->correlation_lowest, results->values.correlation);
}

/* `always` checks are looked at wherever values are new; `finally` ones at the
 * end alone. */
void sim_evaluate(struct sim_world *world)
{
    KITH_ASSERT(world->experiment->evaluate_ns > 0);
    evaluate(world, false);
    world->results->values.live = sim_watch_live(world);
    (void)kith_checks_always(&world->results->checks, world->experiment,
                             &world->results->values, sim_time(world));
}

/* ---- the end */

/* Verdicts go into the store here; the summary itself is the caller's to
 * finish, who knows the path. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary)
{
    KITH_ASSERT(!summary->has_trace_hash);
    struct sim_results *results = world->results;
    struct kith_rundb *store = world->options.store;
    evaluate(world, true);
    sim_ledger_finish(world, &results->values);
    const bool dead = sim_watch_finish(world, &results->values);
    summary->trace_hash = sim_trace_hash(world);
    summary->has_trace_hash = true;
    summary->virtual_s = (double)sim_time(world) * 1e-9;
    summary->wall_s = wall() - results->wall_start_s;
    summary->events = sim_events(world);
    kith_summary_values(summary, &results->values);
    kith_summary_count(summary, &results->sum);
    summary->correlation.lowest = results->correlation_lowest;
    summary->bytes_per_peer_max = results->bytes_most;
    summary->nodes = world->central ? world->machine_count : 0;
    summary->cpu.train_s = summary->cpu.aead_s = NAN;
    summary->cpu.socket_s = summary->cpu.other_s = NAN;
    summary->utilisation = sim_utilisation(world);
    summary->faults = world->faults_done;
    summary->violations = kith_checks_finish(
        &results->checks, world->experiment, &results->values, sim_time(world));
    summary->violations += dead;
    summary->checks = results->checks;
    sim_balance(world, &world->report.balance);
    if (store) {
        const enum kith_err err =
            kith_rundb_verdicts(store, world->experiment, &results->checks);
        if (err != KITH_OK)
            sim_fail(world, err, "%s", kith_rundb_error(store));
    }
}
