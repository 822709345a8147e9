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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_between),
        cmocka_unit_test(test_uplinks),
        cmocka_unit_test(test_own_lines),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_zone_of),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_random_experiments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
