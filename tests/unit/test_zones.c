/* Goal: what crosses the line between two zones, or a zone's line out or in,
 * shares it at max-min fair rates, and what stays within a zone knows nothing
 * of it. Zones are the ranks, or the regions, that the file says; what is wrong
 * is refused with its line. Nothing depends on queue, threads or wire.
 * Method: closed forms, k flows over one line have rate / k each, against one
 * flow alone, in a trace; random experiments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment_base.h"
#include "kith/rng.h"
#include "tests/support/traced.h"

#define STEP (10 * KITH_S)

/* Rounds of dpsgd: each peer has a model for each other one, 40 kB. */
static void rounds(unsigned peers, const char *network)
{
    char yaml[1024];
    (void)snprintf(yaml, sizeof yaml,
                   "name: zones\nseed: 1\npeers: %u\nstop: {steps: 3}\n"
                   "model: {kind: consensus, dim: 10000}\n"
                   "compute: {step: 10s}\n"
                   "gossip: {algorithm: dpsgd, topology: complete}\n"
                   "network: {sharing: fair, %s\n",
                   peers, network);
    traced(yaml);
}

static kith_ns comes(unsigned from, unsigned to)
{
    char words[64];
    (void)snprintf(words, sizeof words, " %u  < model from %u ", to, from);
    const kith_ns at_ns = when_from(2 * STEP, words);
    assert_true(at_ns > 0);
    return at_ns - 2 * STEP;
}

/* A model alone at 1 Mbit/s. */
static kith_ns alone(void)
{
    rounds(2, "rate: 1Mbit}");
    const kith_ns time_ns = comes(0, 1);
    assert_in_range(time_ns, 320 * KITH_MS, 325 * KITH_MS);
    return time_ns;
}

static void assert_near(kith_ns found_ns, double wanted_ns)
{
    if (found_ns < (kith_ns)wanted_ns - 2 || found_ns > (kith_ns)wanted_ns + 4)
        fail_msg("%lld ns, not %.1f", (long long)found_ns, wanted_ns);
}

/* k flows over one line: rate / k each. Within a zone nothing limits them. */
static void test_line_between(void **state)
{
    (void)state;
    const double one_ns = (double)alone();
    for (unsigned k = 1; k < 5; k++) {
        char network[64];
        (void)snprintf(network, sizeof network,
                       "zones: [%u, 1], zone_rate: 1Mbit}", k);
        rounds(k + 1, network);
        for (unsigned from = 0; from < k; from++) {
            assert_near(comes(from, k), k * one_ns);
            assert_near(comes(k, from), k * one_ns);
            for (unsigned to = 0; to < k; to++)
                if (from != to)
                    assert_int_equal(comes(from, to), 0);
        }
    }
    /* Each two have a line of their own. */
    rounds(6, "zones: 3, zone_rate: 1Mbit}");
    for (unsigned from = 0; from < 6; from++)
        for (unsigned to = 0; to < 6; to++)
            if (from != to)
                assert_near(comes(from, to),
                            from / 2 == to / 2 ? 0 : 4 * one_ns);
}

/* Two other zones share a line out, and a line in. */
static void test_uplinks(void **state)
{
    (void)state;
    const double one_ns = (double)alone();
    rounds(3, "zones: 3, zone_uplink: 1Mbit}");
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            if (from != to)
                assert_near(comes(from, to), 2 * one_ns);
    /* Zone 0 has two of four peers: 2 x 2 flows out; the others' lines have
     * 3 each, of which those of zone 0 leave more. */
    rounds(4, "zones: [2, 1, 1], zone_uplink: 1Mbit}");
    assert_near(comes(0, 2), 4 * one_ns);
    assert_near(comes(1, 3), 4 * one_ns);
    assert_near(comes(2, 3), 2 * one_ns);
    assert_near(comes(2, 0), 4 * one_ns);
    assert_int_equal(comes(0, 1), 0);
}

/* Peer 0 sends at a quarter of the rate to two: the line between zones has
 * seven eighths left. */
static void test_own_lines(void **state)
{
    (void)state;
    const double one_ns = (double)alone();
    rounds(3, "zones: [2, 1], zone_rate: 1Mbit}\n"
              "classes: [{peers: peer(0), up: 250kbit}]");
    assert_near(comes(0, 2), 8 * one_ns);
    assert_near(comes(0, 1), 8 * one_ns);
    /* What is left to peer 1, and back: two flows. */
    assert_near(comes(1, 2), one_ns * 8 / 7);
    assert_near(comes(2, 0), 2 * one_ns);
}

/* Regions are zones: i mod R. */
static void test_regions(void **state)
{
    (void)state;
    char path[] = "/tmp/kith-zones-XXXXXX", network[128];
    const double one_ns = (double)alone();
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char matrix[] = "ms,a,b\na,2,40\nb,40,2\n";
    assert_int_equal(write(fd, matrix, sizeof matrix - 1), sizeof matrix - 1);
    assert_int_equal(close(fd), 0);
    (void)snprintf(network, sizeof network, "matrix: %s, zone_rate: 1Mbit}",
                   path);
    rounds(4, network);
    assert_near(comes(0, 1), 4 * one_ns + 20 * KITH_MS);
    assert_near(comes(0, 2), KITH_MS);
    assert_near(comes(3, 2), 4 * one_ns + 20 * KITH_MS);
    assert_int_equal(unlink(path), 0);
}

/* ---- a rate for each two */

static char rates_path[64], matrix_path[64];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Rounds with zones of these rates. */
static void rates(unsigned peers, const char *zones, const char *text)
{
    char network[256];
    write_file(rates_path, text);
    (void)snprintf(network, sizeof network, "%s, zone_rates: %s}", zones,
                   rates_path);
    rounds(peers, network);
}

/* Rates of 8 / way[i][j] Mbit/s, two peers in each zone: four flows over each
 * line, none within a zone. */
static void test_rates(void **state)
{
    (void)state;
    const double one_ns = (double)alone();
    static const unsigned way[3][3] = {{0, 4, 8}, {16, 0, 2}, {1, 32, 0}};
    static const char *const files[] = {
        "to,a,b,c\na,,2,1\nb,0.5,0,4\nc,8,0.25,\n",
        /* Rows in any order, numbers as people write them. */
        "# Mbit/s\nto, a, b, c\nc, 8.0, 25e-2, 0.0\na, 0, 2, 1\nb, .5, , 4\n",
        "{\"data\": {\"a\": {\"b\": 2, \"c\": 1},\n"
        "\"b\": {\"a\": 0.5, \"b\": 0, \"c\": 4},\n"
        "\"c\": {\"b\": 0.25, \"a\": 8}}}"};
    for (size_t k = 0; k < COUNT(files); k++) {
        rates(6, "zones: 3", files[k]);
        for (unsigned from = 0; from < 6; from++)
            for (unsigned to = 0; to < 6; to++)
                if (from != to)
                    assert_near(comes(from, to),
                                4 * one_ns * way[from / 2][to / 2] / 8);
    }
    /* Within a zone, too: two flows there, one each way, share 2 Mbit/s, and
     * beside them four cross at 8 and at 4. */
    rates(4, "zones: [2, 2]", "to,a,b\na,2,8\nb,4,\n");
    assert_near(comes(0, 1), one_ns);
    assert_near(comes(1, 0), one_ns);
    assert_near(comes(0, 2), one_ns / 2);
    assert_near(comes(2, 1), one_ns);
    assert_int_equal(comes(2, 3), 0);
}

/* Regions of a matrix, in another order. */
static void test_rates_of_regions(void **state)
{
    (void)state;
    char network[160];
    const double one_ns = (double)alone();
    write_file(matrix_path, "ms,a,b,c\na,2,40,60\nb,40,2,60\nc,60,60,2\n");
    (void)snprintf(network, sizeof network, "matrix: %s", matrix_path);
    rates(3, network, "to,c,a,b\na,4,,1\nb,2,0.5,\nc,,0.25,8\n");
    assert_near(comes(0, 1), one_ns + 20 * KITH_MS);
    assert_near(comes(0, 2), one_ns / 4 + 30 * KITH_MS);
    assert_near(comes(1, 0), 2 * one_ns + 20 * KITH_MS);
    assert_near(comes(1, 2), one_ns / 2 + 30 * KITH_MS);
    assert_near(comes(2, 0), 4 * one_ns + 30 * KITH_MS);
    assert_near(comes(2, 1), one_ns / 8 + 30 * KITH_MS);
    /* Hosts of coordinates have numbers alone: the file's order is theirs. */
    write_file(matrix_path, "0 0 0 h 0\n1 40 0 h 0\n");
    (void)snprintf(network, sizeof network, "coordinates: %s", matrix_path);
    rates(2, network, "to,x,y\nx,,2\ny,4,\n");
    assert_near(comes(0, 1), one_ns / 2 + 20 * KITH_MS);
    assert_near(comes(1, 0), one_ns / 4 + 20 * KITH_MS);
}

/* What a run keeps of the file: its path, absolute, and a hash of the rates,
 * which are no part of the experiment's, as zone_rate is none. */
static void test_rates_kept(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char set[256];
    uint64_t hashes[2], rates_hashes[2];
    for (unsigned i = 0; i < 2; i++) {
        write_file(rates_path,
                   i == 0 ? "to,a,b\na,,2\nb,4,\n" : "to,a,b\na,,2\nb,4.5,\n");
        (void)snprintf(set, sizeof set,
                       "network={zones: 2, sharing: fair, zone_rates: %s}",
                       rates_path);
        must_parse(set, &experiment);
        assert_non_null(strstr(experiment.source, rates_path));
        const struct kith_zones *zones = &experiment.network.zones;
        assert_int_equal(kith_zones_rate(zones, 0, 1), 2000000);
        assert_int_equal(kith_zones_rate(zones, 1, 0),
                         i == 0 ? 4000000 : 4500000);
        assert_int_equal(kith_zones_rate(zones, 1, 1), 0);
        hashes[i] = kith_experiment_hash(&experiment);
        rates_hashes[i] = zones->hash;
        char error[KITH_EXPERIMENT_ERROR_BYTES];
        assert_int_equal(
            kith_experiment_check_world(&experiment, KITH_WORLD_LAB, error),
            KITH_EINVAL);
        assert_non_null(strstr(error, "network.zone_rates needs virtual time"));
        kith_experiment_close(&experiment);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(rates_hashes[0] != rates_hashes[1]);
}

static void refused(const char *network, const char *words)
{
    struct kith_experiment experiment;
    char set[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    (void)snprintf(set, sizeof set, "network={%s, zone_rates: %s}", network,
                   rates_path);
    if (parse(base, set, &experiment, error) == KITH_OK)
        fail_msg("not refused: %s", set);
    if (strstr(error, "network.zone_") == NULL || strstr(error, words) == NULL)
        fail_msg("%s: no \"%s\" in: %s", set, words, error);
}

static void test_rates_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"", "found nothing; allowed: JSON as {\"data\": {FROM: {TO: Mbit/s"},
        {"to,a\na,\n", "found 1 regions; allowed: the 2 of network.zones"},
        {"to,a,b,c\na,,1,1\nb,1,,1\nc,1,1,\n", "found 3 regions"},
        {"to,a,b\na,,\nb,1,\n", ":2: found \"\" from a to b; allowed: a rate"},
        {"to,a,b\na,,0\nb,1,\n", ":2: found \"0\" from a to b; allowed: a rate "
                                 "in Mbit/s, from 0.001 to 1e9"},
        {"to,a,b\na,,-1\nb,1,\n", "found \"-1\" from a to b"},
        {"to,a,b\na,-1,1\nb,1,\n", "found \"-1\" from a to a"},
        {"to,a,b\na,nan,1\nb,1,\n", "found \"nan\" from a to a"},
        {"to,a,b\na,,nan\nb,1,\n", "found \"nan\" from a to b"},
        {"to,a,b\na,,inf\nb,1,\n", "found \"inf\""},
        {"to,a,b\na,,1Mbit\nb,1,\n", "found \"1Mbit\""},
        {"to,a,b\na,,0.0009\nb,1,\n", "found \"0.0009\""},
        {"to,a,b\na,0.0009,1\nb,1,\n", "found \"0.0009\" from a to a"},
        {"to,a,b\na,,1000000001\nb,1,\n", "found \"1000000001\""},
        {"to,a,b\na,,1\n", "found no rate from b to a"},
        {"to,a,b\na,,1\nb,1\n", ":3: found 1 rates from b; allowed: 2"},
        {"to,a,b\na,,1,2\nb,1,\n", ":2: found more than 2 rates from a"},
        {"to,a,a\na,,1\n", "found the region a twice"},
        {"to,a,b\na,,1\na,,1\n", "found a second row of a"},
        {"to,a,b\na,,1\nc,1,\n", "found a row of c"},
        {"{\"data\": {\"a\": {\"b\": 1}, \"b\": {}}}",
         "found no rate from b to a"},
        {"{\"data\": {\"a\": {\"b\": 1}, \"b\": {\"a\": 1, \"c\": 2}}}",
         "found c in b"},
    };
    static const char fine[] = "to,a,b\na,,1\nb,1,\n";
    char network[160];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_file(rates_path, wrong[i].text);
        refused("zones: 2, sharing: fair", wrong[i].words);
    }
    FILE *file = fopen(rates_path, "w");
    assert_non_null(file);
    for (unsigned i = 0; i < KITH_ZONES_MAX + 1; i++)
        assert_true(fprintf(file, ",r%u", i) > 0);
    assert_int_equal(fclose(file), 0);
    refused("zones: 2, sharing: fair", "257 regions; allowed: 1 to 256");
    /* Names of a matrix. */
    write_file(matrix_path, "ms,a,c\na,2,40\nc,40,2\n");
    write_file(rates_path, fine);
    (void)snprintf(network, sizeof network, "matrix: %s, sharing: fair",
                   matrix_path);
    refused(network, "found no region c, which network.matrix has");
    write_file(rates_path, "to,a\na,\n");
    refused(network, "found 1 regions; allowed: the 2 of network.matrix");
    /* As zone_rate. */
    write_file(rates_path, fine);
    refused("sharing: fair", "network.zone_rates: found without zones");
    refused("zones: 2",
            "network.zone_rates: found with network.sharing: queue");
    refused("zones: 2, sharing: fair, zone_rate: 1Mbit",
            "network.zone_rates: found beside network.zone_rate; allowed: one");
    refused("zones: 2, sharing: fair, zone_uplink: 1Mbit",
            "network.zone_uplink: found beside network.zone_rates");
    assert_int_equal(unlink(rates_path), 0);
    refused("zones: 2, sharing: fair", "cannot be opened: No such file");
}

static void test_zone_of(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        uint32_t zone[8];
    } cases[] = {
        {"network.zones=1", {0, 0, 0, 0, 0, 0, 0, 0}},
        {"network.zones=3", {0, 0, 0, 1, 1, 1, 2, 2}},
        {"network.zones=8", {0, 1, 2, 3, 4, 5, 6, 7}},
        {"network.zones=[1, 5, 2]", {0, 1, 1, 1, 1, 1, 2, 2}},
        {"seed=2", {0, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kith_experiment experiment;
        must_parse(cases[i].set, &experiment);
        for (kith_id peer = 0; peer < 8; peer++)
            assert_int_equal(kith_zone_of(&experiment.network.zones, peer),
                             cases[i].zone[peer]);
        kith_experiment_close(&experiment);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words;
    } wrong[] = {
        {"network.zones=0", "network.zones: found \"0\"; allowed: how many, 1 "
                            "to 8"},
        {"network.zones=9", "network.zones: found \"9\""},
        {"network.zones=many", "network.zones: found \"many\""},
        {"network.zones={a: 1}", "network.zones: found"},
        {"network.zones=[]", "network.zones: found an empty list"},
        {"network.zones=[4, 3]", "network.zones: found 7 peers in all; "
                                 "allowed: 8"},
        {"network.zones=[4, 5]", "network.zones: found \"5\""},
        {"network.zones=[4, 0, 4]", "network.zones: found \"0\""},
        {"network.zone_rate=1Mbit", "network.zone_rate: found without zones"},
        {"network={zones: 2, zone_rate: 1Mbit}",
         "network.zone_rate: found with network.sharing: queue"},
        {"network={zones: 2, zone_uplink: 1Mbit}",
         "network.zone_uplink: found with network.sharing: queue"},
        {"network={zones: 2, sharing: fair, zone_rate: 1Mbit, zone_uplink: "
         "1Mbit}",
         "network.zone_uplink: found beside network.zone_rate"},
        {"network={zones: 2, sharing: fair, zone_rate: 1}",
         "network.zone_rate: found \"1\""},
    };
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_not_equal(parse(base, wrong[i].set, &experiment, error),
                             KITH_OK);
        if (strstr(error, wrong[i].words) == NULL)
            fail_msg("%s: \"%s\" is not in \"%s\"", wrong[i].set,
                     wrong[i].words, error);
    }
    /* Real sockets have no lines between zones. */
    must_parse("network={zones: 2, sharing: fair, zone_uplink: 1Mbit}",
               &experiment);
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_SIM, error),
        KITH_OK);
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_LAB, error),
        KITH_EINVAL);
    assert_non_null(strstr(error, "network.zone_uplink needs virtual time"));
    kith_experiment_close(&experiment);
}

/* ---- the same however it is simulated */

static uint64_t hash_of(const char *yaml, enum sim_queue_kind queue,
                        unsigned threads, enum kith_wire_mode wire)
{
    const struct sim_options options = {
        .queue = queue, .threads = threads, .wire = wire};
    return simulate(yaml, &options).summary.trace_hash;
}

/* All pairs alike are zone_rate, to the bit. */
static void test_rates_alike(void **state)
{
    (void)state;
    static const char format[] =
        "name: alike\nseed: 7\npeers: 9\nstop: {steps: 60}\n"
        "model: {kind: quadratic, dim: 300}\n"
        "gossip: {algorithm: %s, topology: complete}\n"
        "compute: {step: 1ms, spread: exponential}\n"
        "network: {latency: 100us, rate: 10Mbit, sharing: fair, zones: 3, "
        "%s: %s}\n"
        "faults:\n  - {at: 10ms, crash: n(1), restart: 15ms}\n";
    static const char *const algorithms[] = {"adpsgd", "dpsgd"};
    write_file(rates_path, "to,a,b,c\na,0,3.5,3.5\nb,3.5,,3.5\nc,3.5,3.5,\n");
    for (unsigned k = 0; k < 8; k++) {
        char yaml[2][1024];
        uint64_t hashes[2];
        (void)snprintf(yaml[0], sizeof yaml[0], format, algorithms[k % 2],
                       "zone_rate", "3500kbit");
        (void)snprintf(yaml[1], sizeof yaml[1], format, algorithms[k % 2],
                       "zone_rates", rates_path);
        for (unsigned i = 0; i < 2; i++)
            hashes[i] =
                hash_of(yaml[i], k & 2 ? SIM_QUEUE_HEAP : SIM_QUEUE_CALENDAR,
                        1 + k % 2, k & 4 ? KITH_WIRE_FULL : KITH_WIRE_SIZED);
        assert_true(hashes[0] == hashes[1]);
    }
}

static void draw_experiment(unsigned seed, char *yaml, size_t size)
{
    static const char *const algorithms[] = {"adpsgd", "dpsgd", "diloco",
                                             "gosgd", "choco"};
    struct kith_rng rng;
    kith_rng_init(&rng, seed, 0, 0);
    (void)snprintf(
        yaml, size,
        "name: random\nseed: %u\npeers: %u\nstop: {steps: 60}\n"
        "model: {kind: quadratic, dim: %u}\n"
        "gossip: {algorithm: %s, every: %u, topology: complete}\n"
        "compute: {step: 1ms, spread: exponential}\n"
        "network: {latency: %uus, rate: %s, loss: %s, sharing: fair, "
        "zones: %u, %s: %ukbit}\n"
        "faults:\n  - {at: 10ms, crash: n(1), restart: 15ms}\n"
        "  - {at: %uus, partition: \"peer(0) -> peer(1)\", for: %ums}\n",
        seed, 4 + kith_rng_below(&rng, 12), 1 + kith_rng_below(&rng, 500),
        algorithms[kith_rng_below(&rng, 5)], 1 + kith_rng_below(&rng, 4),
        kith_rng_below(&rng, 500),
        kith_rng_below(&rng, 2) ? "unlimited" : "10Mbit",
        kith_rng_below(&rng, 3) ? "0" : "0.02", 1 + kith_rng_below(&rng, 4),
        kith_rng_below(&rng, 2) ? "zone_rate" : "zone_uplink",
        500 + kith_rng_below(&rng, 20000), kith_rng_below(&rng, 40000),
        1 + kith_rng_below(&rng, 10));
}

static void test_random_experiments(void **state)
{
    (void)state;
    const char *given = getenv("KITH_SEED");
    const unsigned first = given ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (unsigned seed = first; seed < first + (given ? 1 : 40); seed++) {
        char yaml[2048];
        draw_experiment(seed, yaml, sizeof yaml);
        const uint64_t hash =
            hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_SIZED);
        if (hash != hash_of(yaml, SIM_QUEUE_HEAP, 1, KITH_WIRE_SIZED) ||
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 2, KITH_WIRE_SIZED))
            fail_msg("KITH_SEED=%u: queues or threads differ\n%s", seed, yaml);
        if (seed % 4 == 0 &&
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_FULL))
            fail_msg("KITH_SEED=%u: wires differ\n%s", seed, yaml);
    }
}

static int open_files(void **state)
{
    char *const paths[] = {rates_path, matrix_path};
    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        (void)snprintf(paths[i], sizeof rates_path, "/tmp/kith-zones-XXXXXX");
        const int fd = mkstemp(paths[i]);
        if (fd < 0)
            return -1;
        (void)close(fd);
    }
    return 0;
}

static int close_files(void **state)
{
    (void)state;
    (void)unlink(rates_path);
    (void)unlink(matrix_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_between),
        cmocka_unit_test(test_uplinks),
        cmocka_unit_test(test_own_lines),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_rates_of_regions),
        cmocka_unit_test(test_rates_kept),
        cmocka_unit_test(test_rates_refused),
        cmocka_unit_test(test_rates_alike),
        cmocka_unit_test(test_zone_of),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_random_experiments),
    };
    return cmocka_run_group_tests(tests, open_files, close_files);
}
