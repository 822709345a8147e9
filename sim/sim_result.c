/* What a run leaves behind: rows while it goes on, checks, a summary. The same
 * for every protocol, which says whose model is scored and what was counted.
 *
 *   averaged   the model that all share; without one the mean of the peers',
 *              with running statistics of its own
 *   consensus  root of the mean squared distance of the peers' models to their
 *              mean */
#include "sim/sim_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kith/assert.h"
#include "sim/world.h"

/* With `evaluate` a time every peer's own model is scored for so many peers;
 * larger runs do it once, at the end. */
#define SCORED_PEERS 16u
/* At the end every peer's, of so many that live; of more a sample's. */
#define SCORED_ALL 256u
#define SCORED_SAMPLE 64u
#define SHOW_S 0.2
/* SIM_ROWS_SAMPLED: of about so many peers; what AUTO keeps of all. */
#define KEPT_PEERS 64u
#define KEPT_ALL 10000u

struct sim_results {
    struct kith_checks checks;
    struct kith_values values;
    double correlation_lowest; /* NaN: never evaluated */
    struct kith_row sum;       /* of all, at the last evaluation */
    uint64_t bytes_most;       /* sent by one machine */
    double wall_start_s, wall_shown_s;
};

static double wall(void)
{
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) != TIME_UTC)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the database has of peers. Whoever reads it is told. */
static void keep(struct sim_world *world)
{
    const uint32_t peers = world->peer_count;
    enum sim_rows rows = world->options.rows;
    char text[24];
    if (!sim_is_stored(world))
        return;
    if (rows == SIM_ROWS_AUTO)
        rows = peers > KEPT_ALL ? SIM_ROWS_SAMPLED : SIM_ROWS_ALL;
    world->kept = rows == SIM_ROWS_NONE ? 0
                  : rows == SIM_ROWS_ALL
                      ? 1
                      : (peers + KEPT_PEERS - 1) / KEPT_PEERS;
    if (world->kept == 1 || !world->options.store)
        return;
    (void)snprintf(text, sizeof text, "%u",
                   world->kept == 0 ? 0 : (peers - 1) / world->kept + 1);
    (void)kith_rundb_summary(world->options.store, "rows.peers", text);
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
    keep(world);
    if (world->options.store)
        kith_rundb_start_writer(world->options.store);
    return KITH_OK;
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
        .target_ns = sim_saves_target_ns(world),
    };
    world->options.progress(&progress, world->options.arg);
}

struct kith_worker *sim_worker(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    return world->protocol->worker(world, peer);
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
static void put_peer(struct sim_world *world, const struct sim_scored *scored)
{
    const kith_id id = scored->peer;
    KITH_ASSERT(id < world->peer_count);
    if (!sim_is_kept(world, id))
        return;
    struct kith_row row = row_of(world, id);
    row.loss =
        row.step > 0 ? world->protocol->take_loss(world, id) : (double)NAN;
    row.test_loss = scored->score.loss;
    row.accuracy = scored->score.accuracy;
    row.consensus_distance = sqrt(scored->squared);
    row.bytes_sent = sim_bytes_sent(world, id);
    (void)kith_rundb_row(world->options.store, &row); /* sticks */
}

static void put_unscored(struct sim_world *world, kith_id id)
{
    const struct sim_scored none = {
        .peer = id, .squared = NAN, .score = {NAN, NAN}};
    put_peer(world, &none);
}

/* Nobody has a model: rows alone. */
static void score_none(struct sim_world *world, bool last)
{
    const bool rows = last || world->protocol->always_counts;
    KITH_ASSERT(isnan(world->results->values.consensus_distance));
    for (kith_id id = 0; id < world->peer_count && world->dim == 0; id++)
        if (rows && sim_alive(world, id))
            put_unscored(world, id);
}

/* Peers' own models against the test set. Of a sample the mean is within the
 * error of all peers' in 95 of 100 cases: 1.96 s / sqrt(n), times sqrt(1 - n/N)
 * for those that were not drawn. */
static void add_scores(struct kith_values *values,
                       const struct sim_scored *scored, uint32_t count,
                       uint32_t live)
{
    KITH_ASSERT(count <= live);
    double n = 0, accuracy = 0, loss = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kith_score *score = &scored[i].score;
        if (!scored[i].own)
            continue;
        n++;
        accuracy += score->accuracy;
        loss += score->loss;
        values->accuracy_worst = fmin(values->accuracy_worst, score->accuracy);
        values->loss_worst = fmax(values->loss_worst, score->loss);
    }
    values->scored = isnan(accuracy / n) ? 0 : n; /* a model may have none */
    values->accuracy_mean = accuracy / n;
    values->loss_mean = loss / n;
    for (uint32_t i = 0; i < count; i++)
        if (scored[i].own)
            squares += pow(scored[i].score.accuracy - values->accuracy_mean, 2);
    values->accuracy_error =
        n < live ? 1.96 * sqrt(squares / (n - 1) / n * (1 - n / live)) : 0;
}

static void score_peers(struct sim_world *world, const struct sim_look *look,
                        uint32_t live)
{
    struct kith_values *values = &world->results->values;
    uint32_t count = 0;
    const struct sim_scored *scored = sim_scores_peers(world, look, &count);
    values->consensus_distance = 0;
    for (uint32_t i = 0; i < count; i++) {
        values->finite = values->finite > 0 && isfinite(scored[i].squared);
        values->consensus_distance += scored[i].squared;
        put_peer(world, &scored[i]);
    }
    if (look->own > 0)
        add_scores(values, scored, count, live);
    values->consensus_distance = sqrt(values->consensus_distance / count);
    /* A shared model is not the mean that the measure is about. */
    values->correlation =
        sim_worker(world, KITH_NOBODY)
            ? (double)NAN
            : sim_scores_correlation(world, values->consensus_distance, live);
}

/* The averaged model is what the run is judged by. */
static void score_all(struct sim_world *world, const struct sim_look *look,
                      bool last)
{
    KITH_ASSERT(world->peer_count > 0);
    struct kith_values *values = &world->results->values;
    kith_values_clear(values);
    const uint32_t live = world->dim > 0 ? sim_scores_average(world) : 0;
    if (live == 0) {
        score_none(world, last);
        return;
    }
    const struct kith_score averaged = sim_scores_averaged(world, look->part);
    values->accuracy = averaged.accuracy;
    values->loss = averaged.loss;
    values->finite = !world->nonfinite;
    score_peers(world, look, live);
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
    sum->loss = sum->test_loss = values->loss;
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
static void evaluate(struct sim_world *world, const struct sim_look *look,
                     bool last)
{
    KITH_ASSERT(sim_failure(world) == KITH_OK || sim_ended(world));
    sim_work_join_all(world);
    score_all(world, look, last);
    put_sum(world);
    if (world->options.evaluated)
        world->options.evaluated(&world->results->sum, world->options.arg);
}

static void note_correlation(struct sim_results *results)
{
    results->correlation_lowest =
        fmin(results->correlation_lowest, results->values.correlation);
}

/* `always` checks are looked at wherever values are new; `finally` ones at the
 * end alone. */
void sim_evaluate(struct sim_world *world)
{
    KITH_ASSERT(world->experiment->evaluations != KITH_EVALUATE_END);
    const struct sim_look look = {.peers = world->peer_count,
                                  .own = world->peer_count <= SCORED_PEERS &&
                                                 !world->options.evaluated
                                             ? world->peer_count
                                             : 0};
    evaluate(world, &look, false);
    note_correlation(world->results);
    world->results->values.live = sim_watch_live(world);
    (void)kith_checks_always(&world->results->checks, world->experiment,
                             &world->results->values, sim_time(world));
}

/* Rows alone: no check is asked of a part of the test set, or of a sample of
 * the peers. What a caller's score costs is not known: of the average alone. */
void sim_result_point(struct sim_world *world, uint32_t peers)
{
    KITH_ASSERT(peers > 0 && peers <= world->peer_count);
    const struct sim_look look = {.peers = peers,
                                  .own = world->options.trainer ? 0 : peers,
                                  .part = true};
    evaluate(world, &look, false);
}

/* What was counted, and the losses of training. */
void sim_result_rows(struct sim_world *world, uint32_t peers)
{
    KITH_ASSERT(peers > 0 && peers <= world->peer_count);
    sim_work_join_all(world);
    kith_values_clear(&world->results->values);
    for (uint64_t i = 0; i < peers; i++) {
        const kith_id id = sim_sampled(world, i, peers);
        if (sim_alive(world, id))
            put_unscored(world, id);
    }
    put_sum(world);
}

/* ---- the end */

/* A model's score takes as long as hundreds of steps: those of a large run are
 * a sample's, but where all are asked for. */
static uint32_t scored_at_end(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_ASSERT(experiment->check_count <= KITH_CHECKS_MAX);
    if (world->options.evaluated)
        return 0;
    uint32_t live = 0;
    for (kith_id id = 0; id < world->peer_count; id++)
        live += sim_alive(world, id);
    bool all =
        live <= SCORED_ALL || experiment->evaluations == KITH_EVALUATE_FULL;
    for (uint32_t i = 0; i < experiment->check_count; i++)
        all = all || kith_quantity_find(experiment->checks[i].quantity)->of_all;
    return all ? world->peer_count : SCORED_SAMPLE;
}

/* Verdicts go into the store here; the summary itself is the caller's to
 * finish, who knows the path. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary)
{
    KITH_ASSERT(!summary->has_trace_hash);
    struct sim_results *results = world->results;
    struct kith_rundb *store = world->options.store;
    const struct sim_look all = {.peers = world->peer_count,
                                 .own = scored_at_end(world)};
    evaluate(world, &all, true);
    if (world->zone_traffic)
        sim_zone_traffic_write(world);
    note_correlation(results);
    sim_ledger_finish(world, &results->values);
    const bool dead = sim_watch_finish(world, &results->values);
    summary->trace_hash = sim_trace_hash(world);
    if (world->ranks)
        sim_ranks_compare(world, summary->trace_hash, "another run");
    summary->has_trace_hash = true;
    summary->virtual_s = (double)sim_time(world) * 1e-9;
    summary->wall_s = wall() - results->wall_start_s;
    summary->events = sim_events(world);
    kith_summary_values(summary, &results->values);
    kith_summary_count(summary, &results->sum);
    summary->correlation.lowest = results->correlation_lowest;
    sim_points_summary(world, summary);
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
