/* Goal: a peer's own line out and in, latency and speed are what arrives and
 * when its steps end, in a queue and shared; classes take the peers that their
 * words say; drawn speeds follow their laws. What is wrong is refused with its
 * line. Nothing depends on queue, threads or wire.
 * Method: arrivals by hand in a trace, each against the same path of one rate;
 * quantiles by their closed forms; random experiments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment_base.h"
#include "kith/fault.h"
#include "kith/rng.h"
#include "tests/support/traced.h"

/* ---- lines, by hand */

#define STEP (2 * KITH_S)

/* Rounds of dpsgd after each step: each peer has a model for each other one, 40
 * kB. */
static void rounds(unsigned peers, const char *network)
{
    char yaml[1024];
    (void)snprintf(yaml, sizeof yaml,
                   "name: lines\nseed: 1\npeers: %u\nstop: {steps: 3}\n"
                   "model: {kind: consensus, dim: 10000}\n"
                   "compute: {step: 2s}\n"
                   "gossip: {algorithm: dpsgd, topology: complete}\n%s",
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

/* How long a model takes on an idle path of this rate, without latency. */
static kith_ns time_at(const char *rate)
{
    char network[64];
    (void)snprintf(network, sizeof network, "network: {rate: %s}\n", rate);
    rounds(2, network);
    assert_int_equal(comes(0, 1), comes(1, 0));
    return comes(0, 1);
}

/* One message at a time: the slower of two lines is what it takes. */
static void test_idle_path(void **state)
{
    (void)state;
    static const char *const networks[] = {
        "up: 1Mbit, down: 8Mbit",       "up: 8Mbit, down: 1Mbit",
        "rate: 1Mbit, down: unlimited", "up: unlimited, down: 1Mbit",
        "rate: 8Mbit, up: 1Mbit",
    };
    const kith_ns slow_ns = time_at("1Mbit");
    for (size_t i = 0; i < COUNT(networks); i++)
        for (unsigned fair = 0; fair < 2; fair++) {
            char network[128];
            (void)snprintf(network, sizeof network,
                           "network: {%s, sharing: %s}\n", networks[i],
                           fair ? "fair" : "queue");
            rounds(2, network);
            if (comes(0, 1) != slow_ns || comes(1, 0) != slow_ns)
                fail_msg("%s: %lld and %lld, not %lld ns", network,
                         (long long)comes(0, 1), (long long)comes(1, 0),
                         (long long)slow_ns);
        }
}

/* Peer 0 sends slowly and peer 1 receives slowly; peers 2 and 3 do neither. */
static void test_classes_of_lines(void **state)
{
    (void)state;
    const kith_ns slow_ns = time_at("1Mbit"), fast_ns = time_at("1Gbit");
    for (unsigned fair = 0; fair < 2; fair++) {
        char network[256];
        (void)snprintf(network, sizeof network,
                       "network: {rate: 1Gbit, sharing: %s}\n"
                       "classes: [{peers: peer(0), up: 1Mbit}, "
                       "{peers: peer(1), down: 1Mbit}]\n",
                       fair ? "fair" : "queue");
        rounds(4, network);
        /* Of three on one slow line the last is there after three times. */
        for (unsigned to = 2; to < 4; to++) {
            assert_in_range(comes(0, to), fair ? 2 * slow_ns : slow_ns,
                            3 * slow_ns + 4 * fast_ns);
            assert_in_range(comes(5 - to, to), fast_ns, 4 * fast_ns);
        }
        const kith_ns into_ns =
            comes(2, 1) > comes(3, 1) ? comes(2, 1) : comes(3, 1);
        assert_in_range(into_ns, 2 * slow_ns, 3 * slow_ns + 4 * fast_ns);
    }
}

/* Many slow lines into one that is wide enough for all: none waits for another.
 */
static void test_wide_line_in(void **state)
{
    (void)state;
    const kith_ns slow_ns = time_at("1Mbit");
    for (unsigned fair = 0; fair < 2; fair++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "name: wide\nseed: 1\npeers: 5\nstop: {steps: 3}\n"
                       "model: {kind: consensus, dim: 10000}\n"
                       "compute: {step: 2s}\n"
                       "gossip: {algorithm: dpsgd, topology: star}\n"
                       "network: {up: 1Mbit, down: 4Mbit, sharing: %s}\n",
                       fair ? "fair" : "queue");
        traced(yaml);
        for (unsigned from = 1; from < 5; from++)
            assert_in_range(comes(from, 0), slow_ns, slow_ns + 10);
    }
}

/* Each end has half of a link's latency. */
static void test_latency(void **state)
{
    (void)state;
    static const kith_ns own[] = {20 * KITH_MS, 20 * KITH_MS, 7 * KITH_MS,
                                  3 * KITH_MS};
    static const char *const more[] = {"", ", wire: full", ", loss: 1.0e-12",
                                       ", rate: 1000Tbit"};
    for (size_t i = 0; i < COUNT(more); i++) {
        char network[256];
        (void)snprintf(network, sizeof network,
                       "network: {latency: 20ms%s}\n"
                       "classes:\n  - {peers: peer(2), latency: 7ms}\n"
                       "  - {peers: peer(3), latency: 3ms}\n",
                       more[i]);
        rounds(4, network);
        for (unsigned from = 0; from < 4; from++)
            for (unsigned to = 0; to < 4; to++)
                if (from != to)
                    assert_in_range(comes(from, to), (own[from] + own[to]) / 2,
                                    (own[from] + own[to]) / 2 +
                                        (i > 1 ? 2 * KITH_US : 0));
    }
    struct kith_experiment experiment;
    must_parse("classes=[{peers: 50%, latency: 3ms}]", &experiment);
    assert_int_equal(experiment.network.link.latency_ns, 200 * KITH_US);
    assert_int_equal(kith_experiment_slowest_link(&experiment).latency_ns,
                     3 * KITH_MS);
    assert_true(fabs(kith_experiment_mean_latency(&experiment) - 1.6e-3) <
                1e-9);
    kith_experiment_close(&experiment);
}

/* Stages have a line for themselves: the slower one of both ends. */
static void test_central(void **state)
{
    (void)state;
    double seconds[2];
    for (unsigned own = 0; own < 2; own++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "name: ring\nseed: 1\npeers: 4\nstop: {steps: 2}\n"
                       "model: {kind: none}\ncompute: {step: 1s}\n"
                       "central: {trigger: sync, exchange: ring, payload: "
                       "1000000}\n%s\n",
                       own ? "network: {rate: 1Gbit}\n"
                             "classes: [{peers: peer(1), up: 1Mbit}]"
                           : "network: {rate: 1Mbit}");
        seconds[own] = traced(yaml).summary.virtual_s;
    }
    /* 2 (n - 1) messages of a quarter each, one after another, in both steps.
     */
    assert_true(fabs(seconds[0] - (2 + 2 * 6 * 2.0)) < 1e-6);
    assert_true(seconds[1] > 2 + 2 * 5 * 2.0 && seconds[1] <= seconds[0]);
}

/* ---- speeds */

static kith_ns stepped(unsigned peer)
{
    char words[64];
    (void)snprintf(words, sizeof words, " %u  step value 1", peer);
    return when(words);
}

static void test_steps(void **state)
{
    (void)state;
    traced("name: steps\nseed: 1\npeers: 3\nstop: {steps: 3}\n"
           "model: {kind: consensus, dim: 10}\ncompute: {step: 100ms}\n"
           "gossip: {algorithm: adpsgd, topology: random}\n"
           "classes:\n  - {peers: peer(1), speed: 4}\n"
           "  - {peers: peer(2), speed: 0.5}\n");
    static const kith_ns expected[] = {100 * KITH_MS, 25 * KITH_MS,
                                       200 * KITH_MS};
    struct kith_experiment experiment;
    must_parse("compute={step: 7ns, speeds: pareto(1)}", &experiment);
    for (unsigned peer = 0; peer < 8; peer++) {
        const double pace = experiment.network.classes.pace[peer];
        assert_true(pace >= 1 && pace <= experiment.network.classes.pace_most);
        assert_int_equal(kith_experiment_step_ns(&experiment, peer),
                         (kith_ns)(7 * pace));
    }
    assert_int_equal(kith_experiment_step_ns(&experiment, 8), 7);
    kith_experiment_close(&experiment);
    must_parse("classes=[{peers: all, speed: 1000}]", &experiment);
    experiment.compute.step_ns = 1;
    assert_int_equal(kith_experiment_step_ns(&experiment, 0), 1);
    kith_experiment_close(&experiment);
    for (unsigned peer = 0; peer < 3; peer++)
        assert_int_equal(stepped(peer), expected[peer]);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of 20,000 draws, quantiles within 4 standard errors: sqrt(q (1 - q) / n) of
 * the share. */
static void test_laws(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    static double draws[DRAWS];
    static const struct {
        const char *text;
        double share, quantile;
    } laws[] = {
        {"lognormal(0.5)", 0.5, 1},
        {"lognormal(0.5)", 0.158655254, 0.60653066}, /* e^-S: z = -1 */
        {"lognormal(1)", 0.977249868, 7.3890561},    /* z = 2 */
        {"pareto(2)", 0.75, 2},
        {"pareto(2)", 0.99, 10},
        {"pareto(0.5)", 0.9, 100},
    };
    for (size_t i = 0; i < COUNT(laws); i++) {
        struct kith_speeds speeds;
        assert_int_equal(kith_speeds_parse(laws[i].text, &speeds), KITH_OK);
        double below = 0;
        for (kith_id peer = 0; peer < DRAWS; peer++) {
            draws[peer] = kith_speeds_draw(&speeds, 5, peer);
            below += draws[peer] < laws[i].quantile;
        }
        const double q = laws[i].share;
        if (fabs(below / DRAWS - q) > 4 * sqrt(q * (1 - q) / DRAWS))
            fail_msg("%s: %g of the draws are below %g, not %g", laws[i].text,
                     below / DRAWS, laws[i].quantile, q);
    }
    qsort(draws, DRAWS, sizeof *draws, ascending);
    assert_true(draws[0] >= 1 && draws[DRAWS - 1] == KITH_PACE_DRAWN_MAX);
    struct kith_speeds speeds;
    assert_int_equal(kith_speeds_parse("equal", &speeds), KITH_OK);
    assert_true(kith_speeds_draw(&speeds, 5, 3) == 1);
}

/* ---- who is in which */

static uint32_t members(const struct kith_classes *classes, uint8_t class)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < classes->peers; i++)
        count += classes->of[i] == class;
    return count;
}

static void test_members(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    must_parse("classes=[{peers: 50%, up: 1Mbit}, {peers: n(2), speed: 2}, "
               "{peers: all, down: 2Mbit}]",
               &experiment);
    const struct kith_classes *classes = &experiment.network.classes;
    assert_int_equal(members(classes, 1), 4);
    assert_int_equal(members(classes, 2), 2);
    assert_int_equal(members(classes, 3), 2);
    assert_int_equal(classes->list[0].up_bits, 1000000);
    assert_int_equal(classes->list[0].down_bits, 10000000000);
    assert_int_equal(kith_classes_rate_least(classes), 1000000);
    /* A server of a central method is in none. */
    assert_ptr_equal(kith_class_of(classes, 8), &classes->usual);
    kith_experiment_close(&experiment);
    must_parse("classes=[{peers: peer(2..3)}, {peers: all - peer(0..4)}]",
               &experiment);
    static const uint8_t expected[] = {0, 0, 1, 1, 0, 2, 2, 2};
    assert_memory_equal(experiment.network.classes.of, expected, 8);
    assert_null(experiment.network.classes.pace);
    kith_experiment_close(&experiment);
    must_parse(NULL, &experiment);
    assert_null(experiment.network.classes.of);
    assert_int_equal(experiment.network.classes.usual.up_bits, 10000000000);
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    /* As network.rate and compute.step: no part of the hash. */
    must_parse("classes=[{peers: 30%, speed: 3}]", &experiment);
    assert_int_equal(kith_experiment_hash(&experiment), hash);
    kith_experiment_close(&experiment);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words;
    } wrong[] = {
        {"classes=[]", "classes: found an empty list; allowed"},
        {"classes=[3]", "classes[0]: found \"3\"; allowed: a mapping"},
        {"classes=[{speed: 2}]", "classes[0]: peers: not given"},
        {"classes=[{peers: 5}]", "classes[0]: peers: found \"5\"; allowed"},
        {"classes=[{peers: 120%}]", "peers: found \"120%\"; allowed"},
        {"classes=[{peers: peer(8)}]", "peers 0 to 7"},
        {"classes=[{peers: 60%}, {peers: 60%}]",
         "classes[1]: peers: found \"60%\", which is 5 peers; allowed: up to "
         "3"},
        {"classes=[{peers: peer(1)}, {peers: peer(0..3)}]",
         "classes[1]: peers: found peer 1, which is in a class already"},
        {"classes=[{peers: all, speed: 0}]", "classes[0].speed: found \"0\""},
        {"classes=[{peers: all, speed: nan}]", "classes[0].speed"},
        {"classes=[{peers: all, speed: 1001}]", "classes[0].speed"},
        {"classes=[{peers: all, up: 10}]", "classes[0].up: found \"10\""},
        {"classes=[{peers: all, down: 1bit}]", "classes[0].down"},
        {"classes=[{peers: all, latency: 61s}]", "classes[0].latency"},
        {"classes=[{peers: all, latency: [1]}]", "classes[0].latency"},
        {"classes=[{peers: all, spede: 2}]", "did you mean \"speed\""},
        {"classes=[{peers: [1]}]", "classes[0].peers"},
        {"network.up=5", "network.up: found \"5\"; allowed: unlimited, or"},
        {"network.down=-1Mbit", "network.down"},
        {"compute.speeds=lognormal(0)", "compute.speeds"},
        {"compute.speeds=lognormal(4)", "compute.speeds"},
        {"compute.speeds=pareto(0.4)", "compute.speeds"},
        {"compute.speeds=pareto(nan)", "compute.speeds"},
        {"compute.speeds=pareto()", "compute.speeds"},
        {"compute.speeds=pareto(2", "compute.speeds"},
        {"compute.speeds=zipf(2)", "allowed: equal, lognormal(S)"},
        {"compute.spread=lognormal(1)", "compute.speeds"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct kith_experiment experiment;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        assert_int_not_equal(parse(base, wrong[i].set, &experiment, error),
                             KITH_OK);
        if (strstr(error, wrong[i].words) == NULL)
            fail_msg("%s: \"%s\" is not in \"%s\"", wrong[i].set,
                     wrong[i].words, error);
    }
    /* A step longer than time goes. */
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    must_parse("compute={step: 1h, speeds: pareto(0.5)}", &experiment);
    experiment.network.classes.pace[0] = 1e6;
    assert_true(kith_experiment_step_ns(&experiment, 0) > 3599 * KITH_S);
    kith_experiment_close(&experiment);
    (void)error;
}

/* ---- the same however it is simulated */

static void draw_experiment(unsigned seed, char *yaml, size_t size)
{
    static const char *const algorithms[] = {"adpsgd", "dpsgd", "diloco",
                                             "gosgd", "choco"};
    static const char *const speeds[] = {"equal", "lognormal(0.7)",
                                         "pareto(1.5)"};
    struct kith_rng rng;
    kith_rng_init(&rng, seed, 0, 0);
    (void)snprintf(
        yaml, size,
        "name: random\nseed: %u\npeers: %u\nstop: {steps: 60}\n"
        "model: {kind: quadratic, dim: %u}\n"
        "gossip: {algorithm: %s, every: %u, topology: %s}\n"
        "compute: {step: 1ms, speeds: %s}\n"
        "network: {latency: %uus, jitter: %uus, up: %ukbit, down: %ukbit, "
        "loss: %s, sharing: %s}\n"
        "classes:\n  - {peers: 40%%, up: %ukbit, latency: %uus}\n"
        "  - {peers: n(1), down: unlimited, speed: 3}\n"
        "faults:\n  - {at: 10ms, crash: n(1), restart: 15ms}\n"
        "  - {at: 20ms, pause: n(1), for: 9ms}\n"
        "  - {at: %uus, partition: \"peer(0) -> peer(1)\", for: %ums}\n",
        seed, 3 + kith_rng_below(&rng, 12), 1 + kith_rng_below(&rng, 500),
        algorithms[kith_rng_below(&rng, 5)], 1 + kith_rng_below(&rng, 4),
        kith_rng_below(&rng, 2) ? "ring" : "complete",
        speeds[kith_rng_below(&rng, 3)],
        kith_rng_below(&rng, 2) * kith_rng_below(&rng, 500),
        kith_rng_below(&rng, 2) * kith_rng_below(&rng, 200),
        500 + kith_rng_below(&rng, 20000), 500 + kith_rng_below(&rng, 20000),
        kith_rng_below(&rng, 3) ? "0" : "0.02",
        kith_rng_below(&rng, 2) ? "queue" : "fair",
        500 + kith_rng_below(&rng, 20000), kith_rng_below(&rng, 1000),
        kith_rng_below(&rng, 40000), 1 + kith_rng_below(&rng, 10));
}

static uint64_t hash_of(const char *yaml, enum sim_queue_kind queue,
                        unsigned threads, enum kith_wire_mode wire)
{
    const struct sim_options options = {
        .queue = queue, .threads = threads, .wire = wire};
    return simulate(yaml, &options).summary.trace_hash;
}

static void test_random_experiments(void **state)
{
    (void)state;
    const char *given = getenv("KITH_SEED");
    const unsigned first = given ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (unsigned seed = first; seed < first + (given ? 1 : 60); seed++) {
        char yaml[2048];
        draw_experiment(seed, yaml, sizeof yaml);
        const uint64_t hash =
            hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_SIZED);
        if (hash != hash_of(yaml, SIM_QUEUE_HEAP, 1, KITH_WIRE_SIZED) ||
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 2, KITH_WIRE_SIZED))
            fail_msg("KITH_SEED=%u: queues or threads differ\n%s", seed, yaml);
        if (seed % 2 == 0 &&
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_FULL))
            fail_msg("KITH_SEED=%u: wires differ\n%s", seed, yaml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_path),
        cmocka_unit_test(test_classes_of_lines),
        cmocka_unit_test(test_wide_line_in),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_central),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_random_experiments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
