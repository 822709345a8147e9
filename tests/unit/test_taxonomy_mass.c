/* Goal: shares are whole numbers, and none is ever made or lost in silence
 * (T8.2 of the taxonomy): 10^5 events, 10 % of all messages lost, doubled or
 * overtaken, peers that crash.
 * Method: GoSGD's nodes over the tests' own network. Every share that was given
 * and not taken is written off by a mark or has a crash at one of its ends;
 * what is live, written off and crashed is what there was and what restarts
 * brought, to the last share. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node_network.h"

enum { PEERS = 8, STEPS = 12000, EVENTS = 100000 };
static const double start = 1099511627776.0; /* 2^40 */

static struct net net; /* large: not for the stack */

struct found {
    double live, off; /* off: given and not taken */
    uint32_t settled, torn, crashed;
    uint32_t silent; /* off, and nobody says why */
    uint32_t doubly; /* taken more often than given */
};

static struct found count_shares(void)
{
    struct found found = {.live = 0};
    for (kith_id i = 0; i < PEERS; i++)
        found.live += net.peers[i].scalars[0];
    for (size_t i = 0; i < NET_BOOKS_MAX; i++) {
        const struct net_share *share = &net.shares[i];
        if (!share->used || (share->given == 0 && share->taken == 0))
            continue;
        found.off += share->given - share->taken;
        found.doubly += share->taken > share->given && !share->crashed;
        if (share->given == share->taken)
            found.settled++;
        else if (share->torn)
            found.torn++;
        else if (share->crashed)
            found.crashed++;
        else
            found.silent++;
    }
    return found;
}

static void mass(double chance, unsigned steps, uint32_t crashes, uint64_t seed)
{
    struct kith_rng rng;
    net_open(&net, "gosgd", "random", PEERS, steps, 1, seed);
    net.loss = net.twice = net.late = chance;
    kith_rng_init(&rng, seed, KITH_STREAM_FAULT, 0);
    for (uint32_t i = 0; i < crashes; i++) {
        net_run(&net, net.now_ns + 300 * KITH_MS);
        net_restart(&net, kith_rng_below(&rng, PEERS));
    }
    net_run(&net, 24 * 3600 * KITH_S);
    const struct found found = count_shares();
    const double expected = (PEERS + crashes) * start;
    printf("  T8.2 %" PRIu64 " events, %" PRIu64 " lost, %" PRIu64
           " doubled, %" PRIu32 " crashes: shares expected %.0f, measured "
           "%.0f; pushes: %" PRIu32 " settled, %" PRIu32 " torn, %" PRIu32
           " crashed, %" PRIu32 " silent\n",
           net.delivered, net.lost, net.doubled, crashes, expected,
           found.live + found.off + net.weight_crashed, found.settled,
           found.torn, found.crashed, found.silent);
    assert_true(net.delivered >= EVENTS);
    assert_true(found.live + found.off + net.weight_crashed == expected);
    assert_int_equal(found.silent, 0);
    assert_int_equal(found.doubly, 0);
    assert_true(found.settled > 500);
    net_close(&net);
}

static void test_t8_2_calm(void **state)
{
    (void)state;
    mass(0, STEPS / 4, 0, 1);
    assert_true(count_shares().off == 0);
}

static void test_t8_2_mass(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        mass(0.1, STEPS, 20, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t8_2_calm),
        cmocka_unit_test(test_t8_2_mass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
