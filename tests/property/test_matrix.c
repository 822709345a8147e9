/* Goal: every algorithm x topology x compressor or wire is either refused with
 * words that name it and say what is needed, or runs: through faults no value
 * turns non-finite and everybody ends, sums are kept as declared, exchange by
 * exchange; without faults sums and weights are kept, too.
 * Method: loop over the registries; the refusals are all looked at, of the rest
 * a seeded sample runs in the simulator, with 4 to 9 peers in float64.
 *
 *   test_matrix               a sample of 200; KITH_SEED=N draws another
 *   test_matrix --all         everything
 *   test_matrix --case ALGORITHM TOPOLOGY COMPRESSOR WIRE SEED
 *                             one of them, and what it does */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/topology.h"
#include "tests/support/probe.h"

enum { SAMPLE = 200, PEERS_MAX = 9, TEXT = 512 };

struct cell {
    const struct kith_algorithm *algorithm;
    const struct kith_topology_kind *topology;
    const struct kith_compressor *compressor;
    const struct kith_format *format;
    uint64_t seed;
};

/* Weights of all peers, as last seen. */
struct weights {
    uint32_t peers;
    double of[PEERS_MAX];
};

static bool verbose, everything;
static uint32_t failures;
static struct cell only;
static char edges_path[] = "/tmp/kith-matrix-XXXXXX";

/* A ring of all and a chord, or a cycle one way. */
static void write_edges(bool directed, unsigned peers)
{
    FILE *out = fopen(edges_path, "w");
    assert_non_null(out);
    for (unsigned i = 0; i < peers; i++)
        (void)fprintf(out, "%u %u\n", i, (i + 1) % peers);
    if (!directed)
        (void)fprintf(out, "0 2\n");
    assert_int_equal(fclose(out), 0);
}

/* What fault to add, by a draw; steps take 5 ms, 40 of them. */
static void draw_faults(struct kith_rng *rng, unsigned peers, char *text)
{
    const unsigned crashed = kith_rng_below(rng, peers);
    const unsigned a = kith_rng_below(rng, peers);
    const unsigned b = (a + 1 + kith_rng_below(rng, peers - 1)) % peers;
    const unsigned crash = 20 + kith_rng_below(rng, 80);
    const unsigned cut = 20 + kith_rng_below(rng, 100);
    int at = snprintf(text, TEXT,
                      "save: 30ms\nfaults:\n"
                      "  - {at: %ums, crash: \"peer(%u)\"%s}\n"
                      "  - {at: %ums, for: 40ms, partition: \"peer(%u) <-> "
                      "peer(%u)\"}\n",
                      crash, crashed,
                      kith_rng_below(rng, 4) == 0 ? "" : ", restart: 30ms", cut,
                      a, b);
    if (kith_rng_below(rng, 2) == 0)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "  - {at: %ums, for: 30ms, pause: \"peer(%u)\"}\n",
                       30 + kith_rng_below(rng, 80), b);
    if (kith_rng_below(rng, 2) == 0)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "  - {at: %ums, for: 50ms, slow: \"peer(%u)\", by: 4}\n",
                       10 + kith_rng_below(rng, 80), a);
    assert_true(at < TEXT);
}

static bool shares_gradients(const struct cell *cell)
{
    return (cell->algorithm->flags & KITH_SHARES_GRADIENTS) != 0;
}

/* Where faults leave a push-sum weight next to nothing, training at x / w blows
 * x up: no training there. Without a gradient there is none to share. */
static bool trains(const struct cell *cell, bool faults)
{
    return (faults && cell->algorithm->factor == NULL) ||
           shares_gradients(cell);
}

/* One bucket, or a few, of which the first layers' may go first. */
static void draw_buckets(const struct cell *cell, char *text)
{
    struct kith_rng rng;
    kith_rng_init(&rng, cell->seed, KITH_STREAM_TEST, 2);
    const unsigned buckets = 1 + kith_rng_below(&rng, 4);
    if (cell->algorithm->keys & KITH_GOSSIP_READS(BUCKETS))
        (void)snprintf(text, TEXT, ", buckets: %u, urgent: %u", buckets,
                       1 + kith_rng_below(&rng, buckets));
}

static void write_yaml(const struct cell *cell, unsigned peers, bool faults,
                       char text[4 * TEXT])
{
    struct kith_rng rng;
    char more[TEXT] = "", path[TEXT] = "", buckets[TEXT] = "";
    kith_rng_init(&rng, cell->seed, KITH_STREAM_TEST, faults);
    if (strncmp(cell->topology->name, "file", 4) == 0) {
        write_edges(cell->topology->directed, peers);
        (void)snprintf(path, sizeof path, ", path: %s", edges_path);
    }
    const unsigned drawn = 1 + kith_rng_below(&rng, 3);
    const unsigned every = shares_gradients(cell) ? 1 : drawn;
    draw_buckets(cell, buckets);
    if (faults)
        draw_faults(&rng, peers, more);
    const int length = snprintf(
        text, (size_t)4 * TEXT,
        "name: matrix\nseed: %" PRIu64 "\npeers: %u\nstop: {steps: %d}\n"
        "model: {kind: %s, dim: 5}\n"
        "train: {backend: naive64, learning_rate: 0.05, momentum: %s}\n"
        "gossip: {algorithm: %s, topology: %s, compressor: %s, wire: %s, "
        "every: %u%s%s}\n"
        "network: {latency: 300us, jitter: 100us, rate: 10Mbit, loss: %s}\n"
        "compute: {step: 5ms, merge: 50us}\n%s",
        cell->seed, peers, faults ? 40 : 24,
        trains(cell, faults) ? "quadratic" : "consensus",
        kith_rng_below(&rng, 2) == 0 ? "0" : "0.5", cell->algorithm->name,
        cell->topology->name, cell->compressor->name, cell->format->name, every,
        path, buckets, faults ? "0.01" : "0", more);
    assert_true(length > 0 && length < 4 * TEXT);
}

static void complain(const struct cell *cell, const char *text,
                     const char *what)
{
    if (failures++ < 3)
        (void)fprintf(stderr, "%s\n", text);
    (void)fprintf(
        stderr, "%s\nrepeat with: test_matrix --case %s %s %s %s %" PRIu64 "\n",
        what, cell->algorithm->name, cell->topology->name,
        cell->compressor->name, cell->format->name, cell->seed);
}

/* Words name what cannot be and say what can. */
static bool explains(const struct cell *cell, const char *error)
{
    const bool named = strstr(error, cell->algorithm->name) != NULL ||
                       strstr(error, cell->topology->name) != NULL ||
                       strstr(error, cell->compressor->name) != NULL ||
                       strstr(error, cell->format->name) != NULL;
    return named &&
           (strstr(error, "needs") != NULL ||
            strstr(error, "allowed") != NULL || strstr(error, "give ") != NULL);
}

/* How many peers the cell may have; 0: it is refused. */
static unsigned allowed_peers(const struct cell *cell)
{
    struct kith_rng rng;
    char text[4 * TEXT], error[KITH_EXPERIMENT_ERROR_BYTES];
    kith_rng_init(&rng, cell->seed, KITH_STREAM_SPLIT, 0);
    unsigned peers = 4 + kith_rng_below(&rng, PEERS_MAX - 3);
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        struct kith_experiment experiment;
        write_yaml(cell, peers, true, text);
        if (kith_experiment_parse("matrix", text, strlen(text), NULL, 0,
                                  &experiment, error) == KITH_OK) {
            kith_experiment_close(&experiment);
            return peers;
        }
        if (strstr(error, "power of two") == NULL)
            break;
        peers = 8;
    }
    if (verbose)
        printf("%s\n%s\n", text, error);
    if (!explains(cell, error))
        complain(cell, text, error);
    return 0;
}

static void note_weights(const struct sim_world *world, kith_id peer, void *arg)
{
    struct weights *weights = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    if (worker != NULL)
        weights->of[peer] = kith_worker_scalars(worker)[0];
}

/* A round of one-way edges keeps the sum as a whole, and where nothing lapses:
 * no edge has an opposite. */
static bool is_one_way(const struct cell *cell)
{
    return cell->algorithm->pattern == KITH_PATTERN_ROUND &&
           cell->topology->directed &&
           !(cell->algorithm->flags & KITH_SPLITS_MASS);
}

/* false: it did not even run. */
static bool run(const struct cell *cell, bool faults, const char *text,
                struct probe *probe)
{
    static const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
    probe->options = &options;
    if (probe_run(probe, "%s", text) != KITH_OK) {
        complain(cell, text, probe->error);
        return false;
    }
    const struct sim_balance *balance = &probe->report.balance;
    char what[TEXT];
    (void)snprintf(what, sizeof what,
                   "completed %d, stalled %d; off by %g, %" PRIu64
                   " pairs, %" PRIu64 " mismatched, %" PRIu64
                   " unsettled, %" PRIu64 " torn; live %.17g initial %.17g",
                   probe->summary.completed, probe->report.stalled,
                   balance->error_max, balance->pairs, balance->mismatched,
                   balance->unsettled, balance->torn, balance->live,
                   balance->initial);
    if (verbose)
        printf("%s\n%s\n", text, what);
    bool right = probe->summary.completed && !probe->report.stalled;
    for (size_t i = 0; i < probe->peers * probe->dim; i++)
        right = right && isfinite(probe->z[i]);
    if (cell->algorithm->flags & KITH_CONSERVES_SUM &&
        !(faults && is_one_way(cell)))
        right = right && balance->error_max <= 1e-12 &&
                balance->mismatched == 0 && balance->unsettled == 0;
    if (!right)
        complain(cell, text, what);
    return true;
}

/* Everything else may go wrong. */
static void run_faults(const struct cell *cell, unsigned peers)
{
    char text[4 * TEXT];
    struct probe probe = {.period = 0};
    write_yaml(cell, peers, true, text);
    if (run(cell, true, text, &probe))
        probe_close(&probe);
}

/* Nothing goes wrong: sums of x, weights and weighted sums are what they were.
 */
static void run_calm(const struct cell *cell, unsigned peers)
{
    const struct kith_algorithm *algorithm = cell->algorithm;
    struct weights weights = {.peers = peers};
    struct probe probe = {.meddle = note_weights, .arg = &weights};
    char text[4 * TEXT], what[TEXT];
    double weight = 0, after = 0;
    write_yaml(cell, peers, false, text);
    if (!run(cell, false, text, &probe))
        return;
    const double start = algorithm->scalars_start[0];
    /* Mailboxes hold mass that the next round takes. */
    const bool weighs = start > 0 && !cell->topology->collective &&
                        (algorithm->pattern != KITH_PATTERN_ROUND ||
                         algorithm->wait != KITH_WAIT_NO);
    for (unsigned i = 0; i < peers; i++) {
        const double share = weighs ? weights.of[i] / start : 1;
        weight += share / peers;
        for (size_t k = 0; k < probe.dim; k++)
            after += share * probe.z[i * probe.dim + k];
    }
    const double before = probe.report.balance.initial;
    (void)snprintf(what, sizeof what,
                   "weight %.17g, sum before %.17g, after %.17g", weight,
                   before, after);
    if (verbose)
        printf("%s\n", what);
    if (fabs(weight - 1) > 1e-12)
        complain(cell, text, what);
    if ((algorithm->flags & KITH_CONSERVES_SUM || weighs) &&
        fabs(after - before) > 1e-12 * fmax(1, fabs(before)))
        complain(cell, text, what);
    probe_close(&probe);
}

static void run_cell(const struct cell *cell)
{
    const unsigned peers = allowed_peers(cell);
    if (peers == 0)
        return;
    run_faults(cell, peers);
    run_calm(cell, peers);
}

/* Every compressor as it is, then every wire without one; false: no more. */
static bool codec_at(unsigned index, struct cell *cell)
{
    unsigned c = 0;
    cell->format = kith_formats[0];
    while (kith_compressors[c] != NULL && c < index)
        c++;
    cell->compressor = kith_compressors[c];
    if (cell->compressor != NULL)
        return true;
    cell->compressor = kith_compressor_find("none");
    cell->format = kith_formats[index - c + 1];
    return cell->format != NULL;
}

/* Every cell in turn; the accepted ones into cells (max), returns how many. */
static uint32_t accepted(uint64_t seed, struct cell *cells, uint32_t max,
                         uint32_t *refused)
{
    uint32_t count = 0;
    *refused = 0;
    for (unsigned a = 0; kith_algorithms[a] != NULL; a++)
        for (unsigned t = 0; kith_topology_kinds[t] != NULL; t++) {
            struct cell cell = {kith_algorithms[a], kith_topology_kinds[t],
                                NULL, NULL, seed};
            for (unsigned k = 0; codec_at(k, &cell); k++) {
                if (allowed_peers(&cell) == 0) {
                    (*refused)++;
                    continue;
                }
                assert_true(count < max);
                cells[count++] = cell;
            }
        }
    return count;
}

static void test_matrix(void **state)
{
    (void)state;
    static struct cell cells[8192];
    static uint32_t order[8192];
    const char *given = getenv("KITH_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint32_t refused;
    if (only.algorithm != NULL) {
        run_cell(&only);
        assert_int_equal(failures, 0);
        return;
    }
    const uint32_t count = accepted(seed, cells, 8192, &refused);
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 1);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    kith_rng_shuffle(&rng, order, count);
    const uint32_t runs = everything || count < SAMPLE ? count : SAMPLE;
    for (uint32_t i = 0; i < runs; i++) {
        struct cell *cell = &cells[order[i]];
        cell->seed = seed + i;
        run_cell(cell);
    }
    printf("  %" PRIu32 " refused by name, %" PRIu32 " make sense, %" PRIu32
           " of them ran\n",
           refused, count, runs);
    assert_true(runs >= SAMPLE);
    assert_int_equal(failures, 0);
}

static bool read_case(char **words)
{
    only.algorithm = kith_algorithm_find(words[0]);
    only.topology = kith_topology_find(words[1]);
    only.compressor = kith_compressor_find(words[2]);
    only.format = kith_format_find(words[3]);
    only.seed = strtoull(words[4], NULL, 10);
    verbose = true;
    return only.algorithm != NULL && only.topology != NULL &&
           only.compressor != NULL && only.format != NULL;
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrix)};
    everything = count == 2 && strcmp(words[1], "--all") == 0;
    const bool one = count == 7 && strcmp(words[1], "--case") == 0;
    if ((count > 1 && !everything && !one) || (one && !read_case(words + 2))) {
        (void)fprintf(stderr, "usage: test_matrix [--all | --case ALGORITHM "
                              "TOPOLOGY COMPRESSOR WIRE SEED]\n");
        return 2;
    }
    const int file = mkstemp(edges_path);
    if (file < 0 || close(file) != 0) {
        perror(edges_path);
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(edges_path);
    return failed;
}
