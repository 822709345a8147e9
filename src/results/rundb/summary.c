/* The summary of a run: into the database, as JSON, and as a table.
 *
 * One list of (key, value) pairs feeds all of them, so that the three never
 * disagree. Keys and nesting are docs/operations.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/rundb.h"
#include "rundb_store.h"

/* ---- keys and values: one flat object, "name" or "object.name" */

/* A member of the summary under its own name. */
#define REAL(name) kith_json_set_real(pairs, #name, summary->name)
#define COUNT(name) kith_json_set_whole(pairs, #name, summary->name)

/* The columns of a speed, and behind mfu the peak that it is a share of. */
static void add_speed(json_t *pairs, const struct kith_experiment *experiment,
                      const struct kith_speed *speed)
{
    const struct kith_row row = {.speed = *speed};
    const double peak = experiment->compute.peak;
    for (unsigned i = 0; i < kith_series_column_count; i++) {
        const struct kith_series_column *column = &kith_series_columns[i];
        const void *value = (const char *)&row + column->offset;
        char key[64];
        if (column->place != KITH_SERIES_speed)
            continue;
        (void)snprintf(key, sizeof key, "speed.%s", column->name);
        if (!speed->measured)
            kith_json_set_text(pairs, key, NULL);
        else if (column->kind >= KITH_SERIES_REAL)
            kith_json_set_real(pairs, key, *(const double *)value);
        else
            kith_json_set_whole(pairs, key,
                                *(const uint64_t *)value > 0
                                    ? *(const uint64_t *)value
                                    : UINT64_MAX);
        if (strcmp(column->name, "mfu") == 0)
            kith_json_set_real(pairs, "speed.peak_flop_per_s",
                               speed->measured && peak > 0 ? peak
                                                           : (double)NAN);
    }
}

/* Where arithmetic was done; a simulation's threads are not the arithmetic's.
 */
static void add_compute(json_t *pairs, const struct kith_experiment *experiment)
{
    const uint32_t threads = experiment->compute.threads;
    kith_json_set_text(pairs, "compute.products", experiment->compute.products);
    kith_json_set_whole(pairs, "compute.threads",
                        threads > 0 ? threads : UINT64_MAX);
}

/* Of all peers; null where data did not come in pieces. */
static void add_pieces(json_t *pairs, const struct kith_piece_totals *pieces)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        {"pieces.count", pieces->count},     {"pieces.origin", pieces->origin},
        {"pieces.peers", pieces->peers},     {"pieces.disk", pieces->disk},
        {"pieces.refused", pieces->refused}, {"pieces.unkept", pieces->unkept}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        kith_json_set_whole(pairs, rows[i].key,
                            pieces->count > 0 ? rows[i].value : UINT64_MAX);
}

static json_t *collect(const struct kith_experiment *experiment,
                       const struct kith_summary *summary)
{
    json_t *pairs = json_object();
    char hash[20];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, summary->trace_hash);
    kith_json_set_text(pairs, "experiment", experiment->name);
    kith_json_set_text(pairs, "world", summary->world);
    kith_json_set_whole(pairs, "peers", experiment->peers);
    kith_json_set_whole(pairs, "seed", experiment->seed);
    kith_json_set_text(pairs, "build", kith_build());
    kith_json_set_text(pairs, "trace_hash",
                       summary->has_trace_hash ? hash : NULL);
    REAL(virtual_s);
    REAL(wall_s);
    COUNT(events);
    COUNT(steps);
    COUNT(samples);
    REAL(accuracy.averaged);
    REAL(accuracy.mean);
    REAL(accuracy.worst);
    kith_json_set_whole(pairs, "accuracy.peers", summary->scored.peers);
    kith_json_set_real(pairs, "accuracy.mean_error",
                       summary->scored.peers > 0
                           ? summary->scored.accuracy_error
                           : (double)NAN);
    REAL(loss.averaged);
    REAL(loss.mean);
    REAL(loss.worst);
    REAL(consensus_distance);
    REAL(correlation.last);
    REAL(correlation.lowest);
    COUNT(exchanges.done);
    COUNT(exchanges.failed);
    COUNT(exchanges.refused);
    kith_json_set_whole(pairs, "bytes.sent", summary->bytes_sent);
    kith_json_set_whole(pairs, "bytes.per_peer_max",
                        summary->bytes_per_peer_max);
    REAL(staleness.mean);
    REAL(staleness.max);
    REAL(utilisation);
    REAL(channel.in_flight_mean);
    REAL(channel.in_flight_max);
    REAL(channel.idle_s);
    REAL(channel.idle_share);
    REAL(channel.passes);
    COUNT(curve.points);
    COUNT(curve.left_out);
    COUNT(curve.rows);
    kith_json_set_real(pairs, "time_to_target_s",
                       experiment->target_loss > 0 ? summary->time_to_target_s
                                                   : (double)NAN);
    add_speed(pairs, experiment, &summary->speed);
    add_compute(pairs, experiment);
    add_pieces(pairs, &summary->pieces);
    kith_json_set_whole(pairs, "faults", summary->faults);
    kith_json_set_whole(pairs, "violations", summary->violations);
    return pairs;
}

static bool is_world(const struct kith_summary *summary, const char *world)
{
    return strcmp(summary->world, world) == 0;
}

/* A model that learns and has no loss at its end has diverged. A peer has one
 * model, perhaps no test set to measure its loss on, and never the average. */
static enum kith_run_state state_of(const struct kith_experiment *experiment,
                                    const struct kith_summary *summary)
{
    if (summary->alone)
        return KITH_RUN_FAILED;
    if (!summary->completed)
        return KITH_RUN_INTERRUPTED;
    const bool peer = is_world(summary, "peer");
    return kith_model_learns(experiment->model) &&
                   (peer ? summary->diverged
                         : !isfinite(summary->loss.averaged))
               ? KITH_RUN_DIVERGED
               : KITH_RUN_DONE;
}

static enum kith_err finish_run(struct kith_rundb *store,
                                const struct kith_experiment *experiment,
                                struct kith_summary *summary)
{
    const uint32_t nodes =
        summary->nodes > 0 ? summary->nodes : experiment->peers;
    const bool peer = is_world(summary, "peer");
    struct kith_results results = {
        .target_loss =
            experiment->target_loss > 0 ? experiment->target_loss : (double)NAN,
        .steps = summary->steps,
        .bytes_mean = summary->bytes_sent == UINT64_MAX
                          ? (double)NAN
                          : (double)summary->bytes_sent / nodes,
        .bytes_max = summary->bytes_per_peer_max,
        .staleness_mean = summary->staleness.mean,
        .staleness_max = summary->staleness.max,
        .consensus_distance = summary->consensus_distance,
        .utilisation = summary->utilisation,
        .loss = peer ? summary->loss.mean : summary->loss.averaged,
        .accuracy = peer ? summary->accuracy.mean : summary->accuracy.averaged,
        .violations = summary->violations,
        .virtual_s = summary->virtual_s,
        .wall_s = summary->wall_s};
    const enum kith_err err =
        kith_rundb_finish_run(store, state_of(experiment, summary), &results);
    summary->time_to_target_s = results.time_to_target_s;
    return err;
}

enum kith_err kith_rundb_finish(struct kith_rundb *store,
                                const struct kith_experiment *experiment,
                                struct kith_summary *summary)
{
    enum kith_err err = finish_run(store, experiment, summary);
    json_t *pairs = collect(experiment, summary), *value;
    const char *key;
    COUNT(exchanges.attempts);
    COUNT(exchanges.skipped);
    COUNT(exchanges.torn);
    REAL(cpu.train_s);
    REAL(cpu.aead_s);
    REAL(cpu.socket_s);
    REAL(cpu.other_s);
    COUNT(completed);
    json_object_foreach(pairs, key, value)
    {
        char number[KITH_JSON_NUMBER_BYTES];
        const char *text = json_is_string(value) ? json_string_value(value)
                           : json_is_number(value)
                               ? kith_json_number(value, 9, number)
                               : NULL;
        if (err == KITH_OK)
            err = kith_rundb_summary(store, key, text);
    }
    json_decref(pairs);
    return err;
}

void kith_summary_json(FILE *out, const struct kith_experiment *experiment,
                       const struct kith_summary *summary, const char *path)
{
    json_t *pairs = collect(experiment, summary), *value;
    json_t *document = json_object();
    const char *key;
    kith_json_set_text(pairs, "database", path);
    json_object_foreach(pairs, key, value)
    {
        char object[64];
        const char *dot = strchr(key, '.');
        json_t *into = document;
        if (dot != NULL) {
            (void)snprintf(object, sizeof object, "%.*s", (int)(dot - key),
                           key);
            into = json_object_get(document, object);
            if (into == NULL) {
                into = json_object();
                (void)json_object_set_new(document, object, into);
            }
        }
        (void)json_object_set(into, dot != NULL ? dot + 1 : key, value);
    }
    json_decref(pairs);
    kith_json_write(out, document, 9);
}

struct kith_summary kith_summary_unknown(const char *world)
{
    const uint64_t none = UINT64_MAX;
    return (struct kith_summary){
        .world = world,
        .virtual_s = NAN,
        .events = none,
        .accuracy = {NAN, NAN, NAN},
        .loss = {NAN, NAN, NAN},
        .consensus_distance = NAN,
        .correlation = {NAN, NAN},
        .exchanges = {none, none, none, none, none, none},
        .bytes_sent = none,
        .bytes_per_peer_max = none,
        .staleness = {NAN, NAN},
        .utilisation = NAN,
        .channel = {NAN, NAN, NAN, NAN, NAN},
        .cpu = {NAN, NAN, NAN, NAN},
    };
}

static double share_of(double part, double all)
{
    return all > 0 ? part / all : (double)NAN;
}

void kith_summary_count(struct kith_summary *summary,
                        const struct kith_row *sum)
{
    const double done = sum->done < UINT64_MAX ? (double)sum->done : 0;
    const bool sent = sum->sending_s > 0, met = sum->exchange_s > 0;
    summary->channel.in_flight_mean =
        share_of(sum->in_flight_byte_s, sum->sending_s);
    summary->channel.in_flight_max = sent ? sum->in_flight_most : (double)NAN;
    summary->channel.idle_s = met ? sum->idle_s : (double)NAN;
    summary->channel.idle_share = share_of(sum->idle_s, sum->exchange_s);
    summary->channel.passes =
        sum->passes > 0 ? share_of(sum->passes, done) : (double)NAN;

    summary->steps = sum->step;
    summary->samples = sum->samples;
    summary->exchanges.attempts = sum->attempts;
    summary->exchanges.done = sum->done;
    summary->exchanges.failed = sum->failed;
    summary->exchanges.refused = sum->refused;
    summary->exchanges.skipped = sum->skipped;
    summary->exchanges.torn = sum->torn;
    summary->bytes_sent = sum->bytes_sent;
    const bool received = sum->received > 0;
    summary->staleness.mean = received ? sum->staleness : (double)NAN;
    summary->staleness.max = received ? sum->staleness_max : (double)NAN;
}

void kith_values_count(struct kith_values *values, const struct kith_row *sum)
{
    values->attempts = (double)sum->attempts;
    values->done = (double)sum->done;
    values->failed = (double)sum->failed;
    values->refused = (double)sum->refused;
    values->skipped = (double)sum->skipped;
    values->torn = (double)sum->torn;
}

void kith_summary_values(struct kith_summary *summary,
                         const struct kith_values *values)
{
    summary->accuracy.averaged = values->accuracy;
    summary->accuracy.mean = values->accuracy_mean;
    summary->accuracy.worst = values->accuracy_worst;
    summary->scored.peers = values->scored > 0 ? (uint32_t)values->scored : 0;
    summary->scored.accuracy_error = values->accuracy_error;
    summary->loss.averaged = values->loss;
    summary->loss.mean = values->loss_mean;
    summary->loss.worst = values->loss_worst;
    summary->consensus_distance = values->consensus_distance;
    summary->correlation.last = values->correlation;
}

void kith_summary_curve(struct kith_summary *summary,
                        const struct kith_curve *curve)
{
    if (curve->done + curve->left_out == 0)
        return;
    summary->curve.points = curve->done + 1;
    summary->curve.left_out = curve->left_out;
    summary->curve.rows = curve->plan.rows;
}

/* ---- for people */

static void print_percent(const char *what, double value)
{
    if (isfinite(value))
        printf("  %-22s %6.2f %%\n", what, 100 * value);
}

/* Of a sample: how far off its mean may be. */
static void print_own(const struct kith_summary *summary)
{
    const double error = 100 * summary->scored.accuracy_error;
    if (error > 0 && isfinite(summary->accuracy.mean))
        printf("  %-22s %6.2f %% +- %.2f, of %" PRIu32 " peers\n",
               "accuracy, mean peer", 100 * summary->accuracy.mean, error,
               summary->scored.peers);
    else
        print_percent("accuracy, mean peer", summary->accuracy.mean);
    print_percent("accuracy, worst peer", summary->accuracy.worst);
}

static void print_staleness(const struct kith_summary *summary)
{
    if (isfinite(summary->staleness.mean))
        printf("  %-22s %.3g steps on average, %.0f at most\n", "staleness",
               summary->staleness.mean, summary->staleness.max);
}

static void print_real(const char *what, double value, const char *unit)
{
    if (isfinite(value))
        printf("  %-22s %.4g%s\n", what, value, unit);
}

/* Three digits and a unit that suits them. */
static void bytes_text(uint64_t bytes, char text[16])
{
    static const char units[] = "kMGTPE";
    double value = (double)bytes / 1e3;
    unsigned unit = 0;
    for (; value >= 999.5 && units[unit + 1] != '\0'; unit++)
        value /= 1e3;
    (void)snprintf(text, 16, "%.3g %cB", value, units[unit]);
}

static void print_exchanges(const struct kith_summary *summary)
{
    if (summary->exchanges.done == UINT64_MAX)
        return;
    printf("  %-22s %" PRIu64 " done, %" PRIu64 " attempts\n", "exchanges",
           summary->exchanges.done, summary->exchanges.attempts);
    if (summary->exchanges.refused + summary->exchanges.skipped > 0)
        printf("  %-22s %" PRIu64 " answers of a busy peer, %" PRIu64
               " turns skipped: as usual\n",
               "put off", summary->exchanges.refused,
               summary->exchanges.skipped);
    if (summary->exchanges.failed + summary->exchanges.torn > 0)
        printf("  %-22s %" PRIu64 " given up, training went on; %" PRIu64
               " torn (one end merged)\n",
               "failed", summary->exchanges.failed, summary->exchanges.torn);
    char all[16], most[16];
    bytes_text(summary->bytes_sent, all);
    bytes_text(summary->bytes_per_peer_max, most);
    printf("  %-22s %s in all, %s at most from one peer\n", "bytes sent", all,
           most);
}

static void print_channel(const struct kith_summary *summary)
{
    char mean[16], most[16];
    if (isfinite(summary->channel.in_flight_mean)) {
        bytes_text((uint64_t)summary->channel.in_flight_mean, mean);
        bytes_text((uint64_t)summary->channel.in_flight_max, most);
        printf("  %-22s %s on average while there are any, %s at most\n",
               "bytes in flight", mean, most);
    }
    if (isfinite(summary->channel.idle_share))
        printf("  %-22s %.4g s, %.2f %% of the exchanges' time\n",
               "idle channel", summary->channel.idle_s,
               100 * summary->channel.idle_share);
    print_real("passes", summary->channel.passes,
               " over models and messages, at both ends");
}

static void print_pieces(const struct kith_piece_totals *pieces)
{
    if (pieces->count == 0)
        return;
    printf("  %-22s %" PRIu64 ": %" PRIu64 " origin, %" PRIu64
           " peers, %" PRIu64 " disk, %" PRIu64 " refused\n",
           "pieces of the data", pieces->count, pieces->origin, pieces->peers,
           pieces->disk, pieces->refused);
}

/* CPU time by what it was spent on, over all peers. */
static void print_cpu(const struct kith_summary *summary)
{
    const double total = summary->cpu.train_s + summary->cpu.aead_s +
                         summary->cpu.socket_s + summary->cpu.other_s;
    if (!isfinite(total) || total <= 0)
        return;
    printf("  %-22s %.1f s\n  %-22s train %.1f %%, AEAD %.1f %%, socket "
           "%.1f %%, other %.1f %%\n",
           "CPU time", total, "", 100 * summary->cpu.train_s / total,
           100 * summary->cpu.aead_s / total,
           100 * summary->cpu.socket_s / total,
           100 * summary->cpu.other_s / total);
}

static void print_speed(const struct kith_speed *speed)
{
    char text[KITH_SPEED_TEXT_BYTES];
    kith_speed_text(speed, text);
    /* Nothing was trained: a run that had been done went on. */
    if (text[0] == '\0' || !(speed->samples_per_s > 0))
        return;
    printf("  %-22s %s\n", "speed", text);
    if (speed->memory_bytes > 0)
        printf("  %-22s %.4g MB at most\n", "memory",
               (double)speed->memory_bytes / 1e6);
    print_real("waiting for data", speed->data_wait_s, " s");
    print_percent("exchange overlap", speed->exchange_overlap);
}

/* kith train and kith peer have one model, whatever peers the file has. */
static void print_quality(const struct kith_experiment *experiment,
                          const struct kith_summary *summary)
{
    const bool train = is_world(summary, "train");
    const bool alone = train || is_world(summary, "peer");
    printf("\n%s (%s): ", experiment->name, summary->world);
    if (train)
        printf("one process");
    if (!train || experiment->peers > 1)
        printf("%s%" PRIu32 " peer%s",
               train   ? " in place of "
               : alone ? "one of "
                       : "",
               experiment->peers, experiment->peers == 1 ? "" : "s");
    printf(", seed %" PRIu64 "%s\n", experiment->seed,
           summary->completed ? "" : ", NOT COMPLETED");
    puts("result");
    if (alone) {
        print_percent("accuracy", summary->accuracy.mean);
        print_real("loss", summary->loss.mean, "");
        return;
    }
    print_percent("accuracy, averaged", summary->accuracy.averaged);
    print_own(summary);
    print_real("loss, averaged", summary->loss.averaged, "");
}

static void print_checks(const struct kith_experiment *experiment,
                         const struct kith_summary *summary)
{
    const struct kith_checks *checks = &summary->checks;
    if (experiment->check_count == 0)
        return;
    if (is_world(summary, "peer")) {
        printf("  %-22s %" PRIu32 ", not checked by one peer alone\n",
               "assertions", experiment->check_count);
        return;
    }
    printf("  %-22s %" PRIu32 " checked, %" PRIu32 " broken\n", "assertions",
           experiment->check_count, summary->violations);
    for (uint32_t i = 0; i < experiment->check_count; i++) {
        if (checks->results[i].verdict != KITH_VERDICT_BROKEN)
            continue;
        printf("  %-22s %s: ", "broken", experiment->checks[i].text);
        if (isnan(checks->results[i].value))
            printf("never measured\n");
        else
            printf("%.4g at %.4g s\n", checks->results[i].value,
                   (double)checks->results[i].at_ns * 1e-9);
    }
}

/* A curve with fewer points than it should have says so. */
static void print_curve(const struct kith_summary *summary)
{
    if (summary->curve.left_out > 0)
        printf("  %-22s %" PRIu32 ", %" PRIu32 " fewer than usual, which would "
               "have\n  %-22s cost over %.0f %% of the run; see `evaluate`\n",
               "evaluations", summary->curve.points, summary->curve.left_out,
               "", 100 * KITH_CURVE_SHARE);
}

void kith_summary_print(const struct kith_experiment *experiment,
                        const struct kith_summary *summary, const char *path)
{
    print_quality(experiment, summary);
    print_real("consensus distance", summary->consensus_distance, "");
    print_real("correlation, lowest", summary->correlation.lowest, "");
    if (experiment->target_loss > 0)
        print_real("time to target loss", summary->time_to_target_s, " s");
    print_curve(summary);
    print_checks(experiment, summary);

    puts("work");
    printf("  %-22s %" PRIu64 " (%" PRIu64 " samples)\n", "steps",
           summary->steps, summary->samples);
    print_percent("utilisation", summary->utilisation);
    print_pieces(&summary->pieces);
    print_cpu(summary);
    print_speed(&summary->speed);

    if (summary->exchanges.done != UINT64_MAX)
        puts("exchanges");
    print_exchanges(summary);
    print_staleness(summary);
    print_channel(summary);

    puts("run");
    print_real("virtual time", summary->virtual_s, " s");
    print_real("wall time", summary->wall_s, " s");
    if (summary->has_trace_hash)
        printf("  %-22s %016" PRIx64 "\n", "trace hash", summary->trace_hash);
    if (summary->faults > 0)
        printf("  %-22s %" PRIu32 "\n", "faults injected", summary->faults);
    if (path != NULL)
        printf("  %-22s %s\n", "run database", path);
}
