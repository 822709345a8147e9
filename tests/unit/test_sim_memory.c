/* Goal: peers of a simulation whose x and snapshots stand in vectors of a pool
 * learn, to the bit, what peers learn that have theirs to themselves, whatever
 * happens to them; and the pool holds no more than what is kept or under way.
 * Method: random experiments, each also with real sessions, where every message
 * and every snapshot has memory of its own; a failure prints the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/rng.h"
#include "tests/support/simulate.h"

enum { PEERS = 8, EXPERIMENTS = 120 };

static const char *pick(struct kith_rng *rng, const char *const *words,
                        uint32_t count)
{
    return words[kith_rng_below(rng, count)];
}
#define PICK(rng, words) pick(rng, words, sizeof(words) / sizeof(words)[0])

static void write_experiment(struct kith_rng *rng, uint32_t index, char *yaml,
                             size_t size)
{
    static const char *const gossip[] = {
        "adpsgd, topology: random",   "adpsgd, topology: ring",
        "acid, topology: ring",       "elastic, topology: random",
        "dpsgd, topology: torus",     "dpsgd-atc, topology: exponential",
        "adpsgd, topology: complete", "qg-dsgdm-n, topology: ring",
        "swarm, topology: random",    "clipped, topology: ring",
        "dpsgd, topology: ring",      "matcha, topology: complete",
    };
    static const char *const wires[] = {"float32", "float32", "bfloat16",
                                        "int8"};
    static const char *const guards[] = {"none", "clip"};
    static const char *const faults[] = {
        "",
        "  - {at: 60ms, crash: \"n(2)\", restart: \"uniform(20ms, 90ms)\"}\n",
        "  - {at: 40ms, for: 60ms, partition: \"peer(0..2) -> peer(3..6)\"}\n",
        "  - {at: 30ms, for: 50ms, pause: \"n(1)\"}\n",
        "  - {at: 50ms, for: 40ms, huge: \"peer(3)\", by: 1e19}\n",
        "  - {at: 30ms, hostile: \"peer(5)\", kind: flip}\n",
        "  - {at: 70ms, for: 50ms, slow: \"frac(0.3)\", by: 3}\n",
    };
    /* Peers of a quadratic begin apart, those of a network with one vector. */
    static const char *const networks[] = {
        "model: {kind: mlp, layers: [64, 4, 10]}\n"
        "data: {kind: gaussian, rows: 400}\n",
        "model: {kind: logistic, layers: [64, 10]}\n"
        "data: {kind: gaussian, rows: 400}\n",
    };
    const char *const first = PICK(rng, faults), *const second =
                                                     PICK(rng, faults);
    char model[128];
    /* Some are so long that other threads look at them. */
    (void)snprintf(model, sizeof model,
                   "model: {kind: quadratic, dim: %" PRIu32 "}\n",
                   (index % 4 == 0 ? 9000 : 10) + kith_rng_below(rng, 300));
    (void)snprintf(
        yaml, size,
        "name: memory\nseed: %" PRIu32 "\npeers: %d\nstop: {steps: 40}\n"
        "%s"
        "train: {learning_rate: 0.05, momentum: 0.9}\n"
        "gossip: {algorithm: %s, every: %" PRIu32 ", wire: %s, guard: %s}\n"
        "network: {latency: %" PRIu32 "ms, jitter: 200us%s}\n"
        "compute: {step: 4ms, merge: %" PRIu32 "us}\nsave: 25ms\n%s%s%s",
        index, PEERS, kith_rng_below(rng, 2) == 0 ? model : PICK(rng, networks),
        PICK(rng, gossip), 1 + kith_rng_below(rng, 3), PICK(rng, wires),
        PICK(rng, guards), kith_rng_below(rng, 6),
        kith_rng_below(rng, 2) == 0 ? "" : ", rate: 100Mbit",
        100 * kith_rng_below(rng, 3),
        first[0] != 0 || second[0] != 0 ? "faults:\n" : "", first,
        first != second ? second : "");
}

/* Not every method has every guard, wire and fault. */
static bool is_accepted(const char *yaml)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    const bool accepted =
        kith_experiment_parse("test", yaml, strlen(yaml), NULL, 0, &experiment,
                              error) == KITH_OK;
    if (accepted)
        kith_experiment_close(&experiment);
    return accepted;
}

static bool is_same(const struct simulated *a, const struct simulated *b)
{
    return a->summary.trace_hash == b->summary.trace_hash &&
           a->summary.bytes_sent == b->summary.bytes_sent &&
           memcmp(&a->summary.loss.averaged, &b->summary.loss.averaged,
                  sizeof(double)) == 0 &&
           memcmp(&a->summary.loss.worst, &b->summary.loss.worst,
                  sizeof(double)) == 0 &&
           memcmp(&a->summary.consensus_distance,
                  &b->summary.consensus_distance, sizeof(double)) == 0;
}

static void test_same(void **state)
{
    (void)state;
    static const struct sim_options ways[] = {
        {.wire = KITH_WIRE_FULL},
        {.threads = 3},
        {.threads = 2, .queue = SIM_QUEUE_HEAP},
    };
    struct kith_rng rng;
    kith_rng_init(&rng, 19, KITH_STREAM_TEST, 0);
    unsigned ran = 0;
    for (uint32_t i = 0; i < EXPERIMENTS; i++) {
        char yaml[2048];
        write_experiment(&rng, i, yaml, sizeof yaml);
        if (!is_accepted(yaml))
            continue;
        ran++;
        const struct simulated lent = simulate(yaml, NULL);
        for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
            const struct simulated other = simulate(yaml, &ways[k]);
            if (!is_same(&lent, &other))
                fail_msg("way %zu differs:\n%s", k, yaml);
        }
    }
    print_message("%u of %d experiments\n", ran, EXPERIMENTS);
    assert_true(ran >= EXPERIMENTS / 2);
}

/* Steps that all take the same time, so that all exchange at once: x, what of
 * it was sent before the step, where a snapshot leaves with the merge that
 * moves x on, that one, and the last good model. */
static void test_few(void **state)
{
    (void)state;
    static const struct {
        const char *gossip, *network;
        double most; /* a peer */
    } cases[] = {
        {"adpsgd, topology: random, exchanges: 1", "0ms", 2.7},
        {"adpsgd, topology: random", "0ms", 2.7},
        {"adpsgd, topology: random", "1ms", 3.4},
        {"dpsgd, topology: ring", "0ms", 4.1},
        {"local, topology: ring", "0ms", 0}, /* nothing is ever sent */
    };
    enum { MANY = 200 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "name: few\nseed: 1\npeers: %d\nstop: {steps: 30}\n"
                       "model: {kind: quadratic, dim: 1000}\n"
                       "train: {learning_rate: 0.05, momentum: 0.9}\n"
                       "gossip: {algorithm: %s, every: 1}\n"
                       "network: {latency: %s}\ncompute: {step: 4ms}\n",
                       MANY, cases[i].gossip, cases[i].network);
        const struct simulated run = simulate(yaml, NULL);
        const double each = (double)run.report.vectors / MANY;
        print_message("%s, %s: %.2f vectors a peer\n", cases[i].gossip,
                      cases[i].network, each);
        assert_true(each <= cases[i].most);
    }
}

/* Vectors so large that other threads make their pages ahead. */
static void test_pages(void **state)
{
    (void)state;
    static const char yaml[] =
        "name: pages\nseed: 5\npeers: 64\nstop: {steps: 6}\n"
        "model: {kind: mlp, layers: [64, 800, 10]}\n"
        "data: {kind: gaussian, rows: 800}\ntrain: {batch: 2}\n"
        "gossip: {algorithm: adpsgd, topology: random, every: 1}\n"
        "network: {latency: 1ms}\ncompute: {step: 4ms}\n";
    const struct simulated one = simulate(yaml, NULL);
    for (unsigned threads = 2; threads <= 4; threads++) {
        const struct sim_options options = {.threads = threads};
        const struct simulated several = simulate(yaml, &options);
        assert_true(is_same(&one, &several));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
