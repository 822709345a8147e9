/* Goal: whatever the network does, averaging never changes the total silently.
 * Method: random links break and random peers stall for up to 20 s while all
 * train and exchange; at the end every exchange is balanced or marked torn, and
 * the sum of all models is the start plus what training added plus the
 * unbalanced halves. A failing case prints its seed: KITH_SEED=N repeats it
 * alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node_network.h"

static struct net net; /* large: not for the stack */

static void chaos(const char *algorithm, const char *topology, uint32_t peers,
                  uint32_t every, uint64_t seed, uint32_t breaks)
{
    net_open(&net, algorithm, topology, peers, 60, every, seed);
    net.trace = getenv("KITH_TRACE") != NULL;
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_FAULT, 0);
    for (uint32_t i = 0; i < breaks; i++) {
        net_run(&net, net.now_ns + 3 * KITH_MS);
        const kith_id a = kith_rng_below(&rng, peers);
        const kith_id b = kith_rng_below(&rng, peers);
        if (a != b && kith_rng_below(&rng, 4) != 0)
            net_break(&net, a, b);
        else if (kith_rng_below(&rng, 4) == 0)
            net.peers[a].paused_until_ns =
                net.now_ns + (kith_ns)kith_rng_below(&rng, 20) * KITH_S;
    }
    net_run(&net, 3600 * KITH_S);

    uint32_t silent = 0;
    const double rest = net_unbalanced(&net, &silent);
    const double error = net_sum(&net) - net_expected(&net) - rest;
    const bool right = silent == 0 && fabs(error) < 1e-9 && net_quiet(&net);
    if (!right)
        fprintf(stderr,
                "%s on %s: error %g, unbalanced %g, silent %u, quiet %d; "
                "repeat with KITH_SEED=%llu KITH_TRACE=1\n",
                algorithm, topology, error, rest, silent, net_quiet(&net),
                (unsigned long long)seed);
    assert_true(right);
    net_close(&net);
}

static void sweep(const char *algorithm, const char *topology, uint32_t peers,
                  uint32_t every, uint32_t breaks)
{
    const char *only = getenv("KITH_SEED");
    const uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    const uint64_t last = only != NULL ? first : 40;
    uint64_t done = 0, torn = 0, undone = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        chaos(algorithm, topology, peers, every, seed, breaks);
        done += net.marks[KITH_MARK_DONE] + net.marks[KITH_MARK_ROUND];
        torn += net.marks[KITH_MARK_TORN];
        undone += net.marks[KITH_MARK_UNDONE];
    }
    printf("%s on %s: %llu done, %llu undone, %llu torn\n", algorithm, topology,
           (unsigned long long)done, (unsigned long long)undone,
           (unsigned long long)torn);
    assert_true(done > 0);
}

static void test_swap(void **state)
{
    (void)state;
    sweep("adpsgd", "random", 6, 2, 60);
    sweep("adpsgd", "ring", 5, 1, 60);
}

static void test_push(void **state)
{
    (void)state;
    sweep("sgp", "one-peer-exponential", 8, 2, 60);
}

static void test_round(void **state)
{
    (void)state;
    sweep("dpsgd", "ring", 6, 1, 30);
    sweep("dpsgd", "complete", 5, 2, 30);
}

/* Without faults nothing fails, everything is balanced, models come closer. */
static void test_calm(void **state)
{
    (void)state;
    chaos("adpsgd", "random", 8, 2, 1, 0);
    assert_true(net.marks[KITH_MARK_DONE] > 8 * 30 * 9 / 10);
    assert_int_equal(net.marks[KITH_MARK_UNDONE], 0);
    assert_int_equal(net.marks[KITH_MARK_TORN], 0);
    assert_int_equal(net.marks[KITH_MARK_SUSPECT], 0);
    chaos("dpsgd", "complete", 8, 1, 1, 0);
    assert_int_equal(net.marks[KITH_MARK_FAILED], 0);
    assert_int_equal(net.marks[KITH_MARK_ROUND], 8 * 60);
    chaos("sgp", "one-peer-exponential", 8, 2, 1, 0);
    assert_int_equal(net.marks[KITH_MARK_UNDONE], 0);
    chaos("local", "random", 4, 1, 1, 0);
    assert_int_equal(net.marks[KITH_MARK_OPENED], 0);
    chaos("adpsgd", "random", 1, 1, 1, 0);
    assert_int_equal(net.marks[KITH_MARK_OPENED], 0);
    chaos("adpsgd", "random", 3, 1, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calm),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
