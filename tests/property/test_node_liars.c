/* Goal: peers that lie about the round they are in send nobody ahead of what is
 * plausible, and no edge between honest peers dies of it; where some fall
 * behind without a lie, they come back. Method: of eight peers one or two, next
 * to each other or not, say in every message that they are far ahead, as far as
 * could be believed, or a little further than they are; each pair of honest
 * peers merges at least 35 % as often as without them (where the graph changes:
 * all pairs), and nobody counts more than five rounds a step. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/node_network.h"

enum { PEERS = 8, STEPS = 240 };

static struct net net; /* large: not for the stack */
static kith_id liars[2];

static bool lies(kith_id peer)
{
    return peer == liars[0] || peer == liars[1];
}

static uint64_t far(const struct net *at, kith_id from, uint64_t step)
{
    (void)at;
    return lies(from) ? UINT64_C(1) << 61 : step;
}

/* Past the next stretch, more with every message, as far as believed. */
static uint64_t fast(const struct net *at, kith_id from, uint64_t step)
{
    return lies(from) ? (uint64_t)(3 * at->now_ns / (8 * KITH_MS)) + 64 : step;
}

static uint64_t creeping(const struct net *at, kith_id from, uint64_t step)
{
    (void)at;
    return lies(from) ? step + 2 : step;
}

static uint64_t stretching(const struct net *at, kith_id from, uint64_t step)
{
    (void)at;
    return lies(from) ? step / 8 * 8 + 8 : step;
}

typedef uint64_t (*claim)(const struct net *, kith_id, uint64_t);

static void run(const char *algorithm, const char *topology, claim lie)
{
    net_open(&net, algorithm, topology, PEERS, STEPS, 1, 1);
    net.claim = lie;
    net_run(&net, 7200 * KITH_S);
    for (kith_id i = 0; i < PEERS; i++)
        assert_true(lies(i) || kith_node_finished(net.peers[i].node));
}

static uint64_t rounds_of(kith_id peer)
{
    struct kith_node_counters counters;
    kith_node_counters(net.peers[peer].node, &counters);
    return counters.rounds;
}

static void check(const char *algorithm, const char *topology, claim lie,
                  uint64_t honest[PEERS][NET_PEERS_MAX])
{
    uint64_t least = 100, most = 0, merged = 0, all = 0;
    run(algorithm, topology, lie);
    for (kith_id i = 0; i < PEERS; i++) {
        if (lies(i))
            continue;
        most = rounds_of(i) > most ? rounds_of(i) : most;
        for (kith_id j = 0; j < PEERS; j++) {
            if (lies(j) || honest[i][j] == 0)
                continue;
            merged += net.merged[i][j];
            all += honest[i][j];
            const uint64_t share = 100 * net.merged[i][j] / honest[i][j];
            least = share < least ? share : least;
        }
    }
    /* Which pairs meet in the rounds that are left out is chance. */
    if (!net.topology.kind->is_static)
        least = 100 * merged / all;
    const uint64_t plausible = 5 * STEPS;
    printf("  %-10s %-20s: rounds up to %llu of %llu, merges %llu %%\n",
           algorithm, topology, (unsigned long long)most,
           (unsigned long long)plausible, (unsigned long long)least);
    assert_true(most <= plausible);
    assert_true(least >= 35);
    net_close(&net);
}

static void sweep(const char *algorithm, const char *topology)
{
    static const claim claims[] = {far, fast, creeping, stretching};
    static const kith_id sets[][2] = {{3, 3}, {3, 4}, {0, 5}};
    uint64_t honest[PEERS][NET_PEERS_MAX];
    run(algorithm, topology, NULL);
    memcpy(honest, net.merged, sizeof honest);
    net_close(&net);
    for (size_t c = 0; c < 4; c++)
        for (size_t s = 0; s < 3; s++) {
            memcpy(liars, sets[s], sizeof liars);
            check(algorithm, topology, claims[c], honest);
        }
}

static void test_mutual(void **state)
{
    (void)state;
    sweep("dpsgd", "ring");
    sweep("dpsgd-atc", "complete");
    sweep("dpsgd", "random-matching");
}

static void test_cast(void **state)
{
    (void)state;
    sweep("sgp-sync", "ring");
    sweep("dpsgd-atc", "exponential");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutual),
        cmocka_unit_test(test_cast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
