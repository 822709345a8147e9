/* The summary of a run: into the database, as JSON, and as a table.
 *
 * One list of (key, value) pairs feeds all of them, so that the three never
 * disagree. Keys and nesting are docs/operations.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/rundb.h"
#include "kith/text.h"
#include "rundb.h"

#define ENTRIES_MAX 64u
#define ENTRY_BYTES (KITH_PATH_BYTES_MAX + 64)

/* `key` is "name" or "object.name"; `value` is JSON text. */
struct entry {
    char key[40];
    char value[ENTRY_BYTES];
};
struct entries {
    struct entry list[ENTRIES_MAX];
    unsigned count;
};

static char *entry_add(struct entries *entries, const char *key)
{
    struct entry *entry = &entries->list[entries->count++];
    kith_text_copy(entry->key, sizeof entry->key, key);
    return entry->value;
}

static void add_real(struct entries *entries, const char *key, double value)
{
    char *text = entry_add(entries, key);
    if (isfinite(value))
        snprintf(text, ENTRY_BYTES, "%.9g", value);
    else
        kith_text_copy(text, ENTRY_BYTES, "null");
}

static void add_whole(struct entries *entries, const char *key, uint64_t value)
{
    char *text = entry_add(entries, key);
    if (value == UINT64_MAX)
        kith_text_copy(text, ENTRY_BYTES, "null");
    else
        snprintf(text, ENTRY_BYTES, "%" PRIu64, value);
}

/* A JSON string; control characters and bytes past the room are left out. */
static void add_text(struct entries *entries, const char *key,
                     const char *value)
{
    char *text = entry_add(entries, key);
    if (value == NULL) {
        kith_text_copy(text, ENTRY_BYTES, "null");
        return;
    }
    size_t at = 0;
    const size_t room = ENTRY_BYTES - 4;
    text[at++] = '"';
    for (; *value != '\0' && at < room; value++) {
        if ((unsigned char)*value < 0x20)
            continue;
        if (*value == '"' || *value == '\\')
            text[at++] = '\\';
        text[at++] = *value;
    }
    text[at++] = '"';
    text[at] = '\0';
}

static void add_scores(struct entries *entries,
                       const struct kith_summary *summary)
{
    add_real(entries, "accuracy.averaged", summary->accuracy.averaged);
    add_real(entries, "accuracy.mean", summary->accuracy.mean);
    add_real(entries, "accuracy.worst", summary->accuracy.worst);
    add_real(entries, "loss.averaged", summary->loss.averaged);
    add_real(entries, "loss.mean", summary->loss.mean);
    add_real(entries, "loss.worst", summary->loss.worst);
    add_real(entries, "consensus_distance", summary->consensus_distance);
    add_real(entries, "correlation.last", summary->correlation.last);
    add_real(entries, "correlation.lowest", summary->correlation.lowest);
}

/* Exactly the keys of docs/operations.md. */
static void add_speed(struct entries *entries,
                      const struct kith_experiment *experiment,
                      const struct kith_speed *speed)
{
    const bool measured = speed->measured;
    const double peak = experiment->compute.peak;
    add_real(entries, "speed.samples_per_s",
             measured ? speed->samples_per_s : NAN);
    add_real(entries, "speed.tokens_per_s",
             measured ? speed->tokens_per_s : NAN);
    add_real(entries, "speed.flop_per_s", measured ? speed->flop_per_s : NAN);
    add_real(entries, "speed.mfu", measured ? speed->mfu : NAN);
    add_real(entries, "speed.peak_flop_per_s",
             measured && peak > 0 ? peak : NAN);
    add_real(entries, "speed.data_wait_s", measured ? speed->data_wait_s : NAN);
    add_real(entries, "speed.exchange_overlap",
             measured ? speed->exchange_overlap : NAN);
    add_whole(entries, "speed.memory_bytes",
              measured && speed->memory_bytes > 0 ? speed->memory_bytes
                                                  : UINT64_MAX);
}

/* Where arithmetic was done; a simulation's threads are not the arithmetic's.
 */
static void add_compute(struct entries *entries,
                        const struct kith_experiment *experiment)
{
    const uint32_t threads = experiment->compute.threads;
    add_text(entries, "compute.products", experiment->compute.products);
    add_whole(entries, "compute.threads", threads > 0 ? threads : UINT64_MAX);
}

static void collect(const struct kith_experiment *experiment,
                    const struct kith_summary *summary, const char *path,
                    struct entries *entries)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, summary->trace_hash);
    entries->count = 0;
    add_text(entries, "experiment", experiment->name);
    add_text(entries, "world", summary->world);
    add_whole(entries, "peers", experiment->peers);
    add_whole(entries, "seed", experiment->seed);
    add_text(entries, "build", kith_build());
    add_text(entries, "trace_hash", summary->has_trace_hash ? hash : NULL);
    add_real(entries, "virtual_s", summary->virtual_s);
    add_real(entries, "wall_s", summary->wall_s);
    add_whole(entries, "events", summary->events);
    add_whole(entries, "steps", summary->steps);
    add_whole(entries, "samples", summary->samples);
    add_scores(entries, summary);
    add_whole(entries, "exchanges.done", summary->exchanges.done);
    add_whole(entries, "exchanges.failed", summary->exchanges.failed);
    add_whole(entries, "exchanges.refused", summary->exchanges.refused);
    add_whole(entries, "bytes.sent", summary->bytes_sent);
    add_whole(entries, "bytes.per_peer_max", summary->bytes_per_peer_max);
    add_real(entries, "staleness.mean", summary->staleness.mean);
    add_real(entries, "staleness.max", summary->staleness.max);
    add_real(entries, "utilisation", summary->utilisation);
    add_real(entries, "time_to_target_s",
             experiment->target_loss > 0 ? summary->time_to_target_s : NAN);
    add_speed(entries, experiment, &summary->speed);
    add_compute(entries, experiment);
    add_whole(entries, "faults", summary->faults);
    add_whole(entries, "violations", summary->violations);
    add_text(entries, "database", path);
}

/* What the database keeps beyond that. */
static void collect_more(const struct kith_summary *summary,
                         struct entries *entries)
{
    add_whole(entries, "exchanges.attempts", summary->exchanges.attempts);
    add_whole(entries, "exchanges.skipped", summary->exchanges.skipped);
    add_whole(entries, "exchanges.torn", summary->exchanges.torn);
    add_real(entries, "cpu.train_s", summary->cpu.train_s);
    add_real(entries, "cpu.aead_s", summary->cpu.aead_s);
    add_real(entries, "cpu.socket_s", summary->cpu.socket_s);
    add_real(entries, "cpu.other_s", summary->cpu.other_s);
    add_whole(entries, "completed", summary->completed);
}

enum kith_err kith_rundb_finish(struct kith_rundb *store,
                                const struct kith_experiment *experiment,
                                struct kith_summary *summary)
{
    struct entries entries;
    enum kith_err err = kith_rundb_finish_run(store, experiment, summary,
                                              &summary->time_to_target_s);
    collect(experiment, summary, NULL, &entries);
    collect_more(summary, &entries);
    for (unsigned i = 0; i < entries.count && err == KITH_OK; i++) {
        char *value = entries.list[i].value;
        const size_t length = strlen(value);
        if (strcmp(entries.list[i].key, "database") == 0)
            continue; /* the file knows where it is */
        if (strcmp(value, "null") == 0)
            value = NULL;
        else if (value[0] == '"') {
            value[length - 1] = '\0';
            value++;
        }
        err = kith_rundb_summary(store, entries.list[i].key, value);
    }
    return err;
}

void kith_summary_json(const struct kith_experiment *experiment,
                       const struct kith_summary *summary, const char *path)
{
    struct entries entries;
    collect(experiment, summary, path, &entries);
    char open[40] = ""; /* the object being written */
    putchar('{');
    for (unsigned i = 0; i < entries.count; i++) {
        const char *key = entries.list[i].key;
        const size_t object = strcspn(key, ".");
        const bool nested = key[object] == '.';
        const bool same =
            nested && strncmp(open, key, object) == 0 && open[object] == '\0';
        if (open[0] != '\0' && !same) {
            putchar('}');
            open[0] = '\0';
        }
        if (i > 0)
            fputs(", ", stdout);
        if (nested && !same) {
            memcpy(open, key, object);
            open[object] = '\0';
            printf("\"%s\": {", open);
        }
        printf("\"%s\": %s", nested ? key + object + 1 : key,
               entries.list[i].value);
    }
    puts(open[0] != '\0' ? "}}" : "}");
}

static void print_percent(const char *what, double value)
{
    if (isfinite(value))
        printf("  %-22s %6.2f %%\n", what, 100 * value);
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
    printf("  %-22s %" PRIu64 " attempted, %" PRIu64 " done, %" PRIu64
           " failed, %" PRIu64 " refused, %" PRIu64 " skipped, %" PRIu64
           " torn\n",
           "exchanges", summary->exchanges.attempts, summary->exchanges.done,
           summary->exchanges.failed, summary->exchanges.refused,
           summary->exchanges.skipped, summary->exchanges.torn);
    char all[16], most[16];
    bytes_text(summary->bytes_sent, all);
    bytes_text(summary->bytes_per_peer_max, most);
    printf("  %-22s %s in all, %s at most from one peer\n", "bytes sent", all,
           most);
}

/* CPU time by what it was spent on, over all peers. */
static void print_cpu(const struct kith_summary *summary)
{
    const double total = summary->cpu.train_s + summary->cpu.aead_s +
                         summary->cpu.socket_s + summary->cpu.other_s;
    if (!isfinite(total) || total <= 0)
        return;
    printf("  %-22s %.1f s: train %.1f %%, AEAD %.1f %%, socket %.1f %%, "
           "other %.1f %%\n",
           "CPU time", total, 100 * summary->cpu.train_s / total,
           100 * summary->cpu.aead_s / total,
           100 * summary->cpu.socket_s / total,
           100 * summary->cpu.other_s / total);
}

static void print_speed(const struct kith_speed *speed)
{
    char text[KITH_SPEED_TEXT_BYTES];
    kith_speed_text(speed, text);
    if (text[0] == '\0')
        return;
    printf("  %-22s %s\n", "speed", text);
    if (speed->memory_bytes > 0)
        printf("  %-22s %.4g MB at most\n", "memory",
               (double)speed->memory_bytes / 1e6);
    print_real("waiting for data", speed->data_wait_s, " s");
    print_percent("exchange overlap", speed->exchange_overlap);
}

static bool is_world(const struct kith_summary *summary, const char *world)
{
    return strcmp(summary->world, world) == 0;
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
    if (alone) {
        print_percent("accuracy", summary->accuracy.mean);
        print_real("loss", summary->loss.mean, "");
        return;
    }
    print_percent("accuracy, averaged", summary->accuracy.averaged);
    print_percent("accuracy, mean peer", summary->accuracy.mean);
    print_percent("accuracy, worst peer", summary->accuracy.worst);
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

void kith_summary_print(const struct kith_experiment *experiment,
                        const struct kith_summary *summary, const char *path)
{
    print_quality(experiment, summary);
    print_real("consensus distance", summary->consensus_distance, "");
    print_real("correlation, lowest", summary->correlation.lowest, "");
    printf("  %-22s %" PRIu64 " (%" PRIu64 " samples)\n", "steps",
           summary->steps, summary->samples);
    print_exchanges(summary);
    print_staleness(summary);
    print_percent("utilisation", summary->utilisation);
    print_cpu(summary);
    print_speed(&summary->speed);
    if (experiment->target_loss > 0)
        print_real("time to target loss", summary->time_to_target_s, " s");
    print_real("virtual time", summary->virtual_s, " s");
    print_real("wall time", summary->wall_s, " s");
    if (summary->has_trace_hash)
        printf("  %-22s %016" PRIx64 "\n", "trace hash", summary->trace_hash);
    if (summary->faults > 0)
        printf("  %-22s %" PRIu32 "\n", "faults injected", summary->faults);
    print_checks(experiment, summary);
    if (path != NULL)
        printf("  %-22s %s\n", "run database", path);
}
