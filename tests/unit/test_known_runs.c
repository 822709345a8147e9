/* Goal: what the protocol decides and what the algorithms compute stay as they
 * are: each algorithm in fair and in foul weather, and draws of a search.
 * Method: short runs against tests/golden/known.txt: the trace hash, one of
 * what nodes count and the bytes sent, and to 1e-9 the models and what the
 * books of conservation lack. Kernels are the naive ones, in float64 or, where
 * an algorithm packs its numbers itself, in float32: all compilers and
 * processors agree.
 *
 * The list may be written anew (KITH_GOLDEN=update tests/unit/test_known_runs)
 * where a commit means to change a protocol, an algorithm or what a search
 * draws, and says so. Under a change that means none of these a difference is
 * its fault. A new case is a line of the list without its results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/hash.h"
#include "kith/sim.h"
#include "kith/swarm.h"

enum { LINE_BYTES = 256, TEXT_BYTES = 4096, PEERS_MAX = 64 };
/* A draw's faults are over by then, mostly; what follows is its healing. */
static const kith_ns draw_ns = 14 * KITH_S;

static const struct weather {
    const char *name, *text;
    enum sim_ledger_kind ledger;
} weathers[] = {
    {"fair",
     "stop: {steps: 90}\n"
     "network: {latency: 1ms, jitter: 300us}\n"
     "compute: {step: 10ms, merge: 100us}\n",
     SIM_LEDGER_SUM},
    {"lossy", /* the slow one is alone in the end */
     "stop: {steps: 60}\n"
     "network: {latency: 2ms, jitter: 1ms, rate: 2Mbit, loss: 0.05}\n"
     "compute: {step: 10ms, spread: exponential,\n"
     "          slow: [{peers: \"n(1)\", by: 4}]}\n",
     SIM_LEDGER_NONE},
    {"far",
     "stop: {steps: 150}\n"
     "network: {latency: 40ms, jitter: 30ms}\n"
     "compute: {step: 10ms}\n",
     SIM_LEDGER_NONE},
    {"cut",
     "stop: {time: 1500ms}\n"
     "network: {latency: 2ms, rate: 2Mbit}\n"
     "compute: {step: 10ms}\n"
     "faults:\n"
     "  - {at: 60ms, for: 30ms, pause: \"n(2)\"}\n"
     "  - {at: 100ms, for: 600ms,\n"
     "     partition: \"peer(0..2) <-> peer(3..6)\"}\n"
     "  - {at: 800ms, for: 300ms, partition: \"peer(1) -> all\"}\n"
     "  - {at: 1100ms, for: 350ms, partition: \"all -> peer(6)\"}\n",
     SIM_LEDGER_NONE},
    {"crash",
     "stop: {time: 1500ms}\n"
     "network: {latency: 2ms, loss: 0.01}\n"
     "compute: {step: 10ms}\n"
     "save: 50ms\n"
     "faults:\n"
     "  - {at: 60ms, crash: \"peer(2)\", restart: 100ms}\n"
     "  - {at: 90ms, crash: \"peer(4)\"}\n"
     "  - {at: 220ms, crash: \"peer(5)\", restart: 700ms}\n",
     SIM_LEDGER_NONE},
    {"restart",
     "stop: {time: 1500ms}\n"
     "network: {latency: 2ms}\n"
     "compute: {step: 10ms}\n"
     "save: 50ms\n"
     "faults:\n"
     "  - {at: 60ms, crash: \"peer(2)\", restart: 100ms}\n"
     "  - {at: 300ms, for: 400ms, pause: \"peer(0..1)\"}\n"
     "  - {at: 320ms, crash: \"peer(5)\", restart: 500ms}\n",
     SIM_LEDGER_SUM},
    {"huge",
     "stop: {steps: 90}\n"
     "network: {latency: 3ms, jitter: 1ms}\n"
     "compute: {step: 10ms}\n"
     "save: 50ms\n"
     "faults:\n"
     "  - {at: 50ms, for: 60ms, huge: \"peer(3)\", by: 3e38}\n"
     "  - {at: 300ms, for: 30ms, huge: \"peer(6)\", by: 1e19}\n",
     SIM_LEDGER_NONE},
};
enum { WEATHERS = sizeof weathers / sizeof *weathers };

/* ---- a run */

struct outcome {
    uint64_t trace, counts; /* hashes: of decisions, of what nodes count */
    double loss, worst, distance; /* NaN: the model has none */
    double books; /* what the ledger lacks of all sums, where it was kept */
};

/* What each peer's node has counted so far. */
static void observe(const struct sim_world *world, kith_id peer, void *arg)
{
    struct kith_node_counters *counters = arg;
    if (peer != KITH_NOBODY && sim_alive(world, peer))
        kith_node_counters(sim_node(world, peer), &counters[peer]);
}

static void simulate(const struct kith_experiment *experiment,
                     const char *dishonest, enum sim_ledger_kind ledger,
                     struct outcome *found)
{
    struct sim_report report;
    static struct kith_node_counters counters[PEERS_MAX];
    memset(counters, 0, sizeof counters);
    char error[SIM_ERROR_BYTES];
    uint8_t claims[PEERS_MAX];
    struct kith_summary summary;
    assert_in_range(experiment->peers, 1, PEERS_MAX);
    struct kith_dataset dataset;
    const bool has_data = experiment->model->input != KITH_INPUT_NONE;
    if (has_data &&
        kith_dataset_open(&experiment->data.config, &dataset, error) != KITH_OK)
        fail_msg("%s", error);
    assert_true(sim_claims_parse(dishonest, experiment->peers, claims));
    const struct sim_options options = {
        .experiment = experiment,
        .dataset = has_data ? &dataset : NULL,
        .wire = experiment->network.wire,
        .watch = true,
        .ledger = ledger,
        .claims = dishonest[0] == '\0' ? NULL : claims,
        .observe = observe,
        .arg = counters,
    };
    if (sim_run(&options, &summary, &report, error) != KITH_OK)
        fail_msg("%s", error);
    if (has_data)
        kith_dataset_close(&dataset);
    *found = (struct outcome){
        .trace = summary.trace_hash,
        .counts =
            kith_hash_bytes(summary.bytes_sent, counters, sizeof counters),
        .loss = summary.loss.averaged,
        .worst = summary.loss.worst,
        .distance = summary.consensus_distance,
        .books = report.balance.error_max,
    };
}

static struct outcome run(const char *text, const char *dishonest,
                          enum sim_ledger_kind ledger)
{
    static const char *const backends[] = {"train.backend=naive64",
                                           "train.backend=naive32"};
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    struct outcome found;
    enum kith_err err = KITH_EINVAL;
    for (size_t i = 0; err != KITH_OK && i < 2; i++)
        err = kith_experiment_parse("known", text, strlen(text), &backends[i],
                                    1, &experiment, error);
    if (err != KITH_OK)
        fail_msg("%s\n%s", error, text);
    simulate(&experiment, dishonest, ledger, &found);
    kith_experiment_close(&experiment);
    return found;
}

/* "3000 update-sets, every: 2": before the method may stand the dimension of
 * quadratics, or that of layers; what follows it. */
static const char *model_of(const char *line, char model[TEXT_BYTES])
{
    char *after;
    const unsigned long dim = strtoul(line, &after, 10);
    if (strncmp(line, "mlp ", 4) == 0) {
        (void)snprintf(model, TEXT_BYTES,
                       "model: {kind: mlp, layers: [12, 9, 7, 5]}\n"
                       "data: {kind: gaussian, rows: 64, split: iid}\n"
                       "train: {learning_rate: 0.01, momentum: 0.9, "
                       "batch: 4}\n");
        return line + 4;
    }
    (void)snprintf(model, TEXT_BYTES,
                   "model: {kind: quadratic, dim: %lu}\n"
                   "train: {learning_rate: 0.05}\n",
                   after == line ? 96 : dim);
    return after + strspn(after, " ");
}

static struct outcome run_gossip(const char *line,
                                 const struct weather *weather)
{
    char model[TEXT_BYTES], text[TEXT_BYTES];
    const char *gossip = model_of(line, model);
    const int length = snprintf(text, sizeof text,
                                "name: known\nseed: 7\npeers: 8\n%s"
                                "gossip: {algorithm: %s}\n%s",
                                model, gossip, weather->text);
    assert_in_range(length, 1, sizeof text - 1);
    return run(text, "", weather->ledger);
}

static struct outcome run_draw(uint64_t seed, uint64_t number)
{
    char text[KITH_DRAW_TEXT_BYTES];
    struct kith_experiment experiment;
    struct kith_draw draw;
    kith_draw(seed, number, KITH_WORLD_SIM, &draw, &experiment);
    kith_experiment_close(&experiment);
    if (draw.end_ns > draw_ns)
        draw.end_ns = draw_ns;
    (void)kith_draw_text(&draw, text);
    return run(text, draw.dishonest, SIM_LEDGER_NONE);
}

/* ---- the list: a line of a case, then an indented one for each run of it */

struct list {
    FILE *known, *now; /* now: NULL where nothing is written */
    char line[LINE_BYTES], named[LINE_BYTES];
    bool is_ahead; /* `line` is still to be looked at */
};

static bool next_line(struct list *list)
{
    if (!list->is_ahead && fgets(list->line, LINE_BYTES, list->known) == NULL)
        return false;
    list->line[strcspn(list->line, "\n")] = '\0';
    list->is_ahead = false;
    return true;
}

/* "": there is none. */
static const char *next_result(struct list *list)
{
    if (!next_line(list))
        return "";
    list->is_ahead = list->line[0] != ' ';
    return list->is_ahead ? "" : list->line;
}

static bool near(double a, double b)
{
    if (!isfinite(a) || !isfinite(b))
        return isnan(a) ? isnan(b) : a == b;
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-12;
}

static bool is_alike(const struct outcome *a, const struct outcome *b)
{
    return a->trace == b->trace && a->counts == b->counts &&
           near(a->loss, b->loss) && near(a->worst, b->worst) &&
           near(a->distance, b->distance) && near(a->books, b->books);
}

static void write_result(char *text, const char *name,
                         const struct outcome *found)
{
    (void)snprintf(text, LINE_BYTES,
                   "  %-7s %016" PRIx64 " %016" PRIx64
                   " %.12g %.12g %.12g %.12g",
                   name, found->trace, found->counts, found->loss, found->worst,
                   found->distance, found->books);
}

static void check(struct list *list, const char *name,
                  const struct outcome *found)
{
    char now[LINE_BYTES], known_name[LINE_BYTES];
    struct outcome known;
    write_result(now, name, found);
    const char *line = next_result(list);
    if (list->now != NULL) {
        (void)fprintf(list->now, "%s\n", now);
        return;
    }
    if (sscanf(line, "%255s %" SCNx64 " %" SCNx64 " %lg %lg %lg %lg",
               known_name, &known.trace, &known.counts, &known.loss,
               &known.worst, &known.distance, &known.books) != 7 ||
        strcmp(known_name, name) != 0 || !is_alike(&known, found))
        fail_msg("%s\n  known: %s\n  now:   %s\nIf the commit means that, it "
                 "says so, and: KITH_GOLDEN=update tests/unit/test_known_runs",
                 list->named, line, now);
}

static void check_case(struct list *list)
{
    uint64_t seed, first, last;
    if (sscanf(list->named, "draw %" SCNu64 " %" SCNu64 "..%" SCNu64, &seed,
               &first, &last) != 3) {
        for (size_t i = 0; i < WEATHERS; i++) {
            const struct outcome found = run_gossip(list->named, &weathers[i]);
            check(list, weathers[i].name, &found);
        }
        return;
    }
    for (uint64_t number = first; number <= last; number++) {
        char name[24];
        const struct outcome found = run_draw(seed, number);
        (void)snprintf(name, sizeof name, "%" PRIu64, number);
        check(list, name, &found);
    }
}

/* Those of the registry that a line begins with, by their place in it. */
static void meet(const char *line, bool *met)
{
    char model[TEXT_BYTES];
    const char *gossip = model_of(line, model);
    for (size_t i = 0; kith_algorithms[i] != NULL; i++) {
        const size_t length = strlen(kith_algorithms[i]->name);
        met[i] |= strncmp(gossip, kith_algorithms[i]->name, length) == 0 &&
                  (gossip[length] == '\0' || gossip[length] == ',');
    }
}

static void skip_case(struct list *list)
{
    while (next_result(list)[0] != '\0')
        continue;
}

static void read_list(struct list *list)
{
    bool met[256] = {false};
    const char *only = list->now == NULL ? getenv("KITH_KNOWN") : NULL;
    while (next_line(list)) {
        assert_true(list->line[0] != ' ');
        memcpy(list->named, list->line, sizeof list->named);
        if (list->now != NULL)
            (void)fprintf(list->now, "%s\n", list->named);
        if (list->named[0] == '#' || list->named[0] == '\0')
            continue;
        meet(list->named, met);
        if (only == NULL || strstr(list->named, only) != NULL)
            check_case(list);
        else
            skip_case(list);
    }
    for (size_t i = 0; kith_algorithms[i] != NULL; i++) {
        assert_in_range(i, 0, sizeof met - 1);
        if (!met[i])
            fail_msg("no known run of %s", kith_algorithms[i]->name);
    }
}

static void test_known(void **state)
{
    (void)state;
    char path[TEXT_BYTES];
    const char *top = getenv("srcdir"), *update = getenv("KITH_GOLDEN");
    const bool writes = update != NULL && strcmp(update, "update") == 0;
    (void)snprintf(path, sizeof path, "%s/tests/golden/known.txt",
                   top != NULL ? top : ".");
    struct list list = {.known = fopen(path, "r"),
                        .now = writes ? fopen("known.new", "w") : NULL};
    assert_non_null(list.known);
    assert_true(!writes || list.now != NULL);

    read_list(&list);

    assert_int_equal(fclose(list.known), 0);
    if (!writes)
        return;
    char command[2 * TEXT_BYTES];
    assert_int_equal(fclose(list.now), 0);
    (void)snprintf(command, sizeof command, "mv known.new '%s'", path);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
