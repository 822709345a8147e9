/* Goal: a message of gtop-k is held to what a list is before any of it is used,
 * and one that is taken does what the definition says.
 * Method: a peer of three by hand, messages that are spoilt in one place each,
 * and figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/topology.h"

enum { PHI, RESIDUAL, LIST, BORN, VECTORS }; /* as in gtop_k.c */
enum { SMALL = 8, SMALL_KEPT = 4 };

/* A peer of three by hand: 0, the root, or 1, its child of the first round. */
struct hand {
    struct kith_topology graph;
    double coefficients[KITH_GOSSIP_KEY_COUNT], scalars[1], numbers[2];
    double x[SMALL], own[VECTORS][SMALL];
    void *vectors[VECTORS];
    _Alignas(16) unsigned char scratch[5 * SMALL_KEPT * 16];
    unsigned char sent[256], received[256];
    struct kith_algebra algebra;
    struct kith_work_edge edge;
};

static const struct kith_algorithm *gtop_k(void)
{
    return kith_algorithm_find("gtop-k");
}

static void open_hand(struct hand *hand, kith_id self, uint64_t round)
{
    memset(hand, 0, sizeof *hand);
    assert_int_equal(kith_topology_open(kith_topology_find("collective-tree"),
                                        3, &hand->graph),
                     KITH_OK);
    hand->coefficients[KITH_GOSSIP_SHARE] = 0.5;
    hand->coefficients[KITH_GOSSIP_RATE] = 1;
    for (unsigned v = 0; v < VECTORS; v++)
        hand->vectors[v] = hand->own[v];
    hand->algebra =
        (struct kith_algebra){.backend = kith_backend_find("naive64"),
                              .dim = SMALL,
                              .trained = SMALL,
                              .peers = 3,
                              .self = self,
                              .coefficients = hand->coefficients,
                              .graph = &hand->graph,
                              .live = hand->x,
                              .scalars = hand->scalars,
                              .vectors = hand->vectors,
                              .scratch = hand->scratch,
                              .edge_scalars = hand->numbers,
                              .sent = hand->sent,
                              .received = hand->received};
    for (unsigned i = 0; i < SMALL; i++)
        hand->x[i] = -1.0 - i;
    gtop_k()->make(&hand->algebra, &hand->edge);
    hand->algebra.round = round;
}

/* What stands at a place of the message; 0: count, 4: values, 36: indices,
 * 52: bits, 53: phi. */
struct spoilt {
    const char *what;
    double models;
    uint64_t round;
    unsigned at;
    bool is_value;
    double value;
    uint32_t number;
    bool refused;
};

static void write_good(struct hand *hand)
{
    const uint32_t count = 3, places[] = {1, 4, 7};
    const double values[] = {30, -20, 10}, phi[] = {0.5, 1.5, 2.5, 3.5};
    memset(hand->received, 0, sizeof hand->received);
    memcpy(hand->received, &count, 4);
    memcpy(hand->received + 4, values, sizeof values);
    memcpy(hand->received + 36, places, sizeof places);
    hand->received[52] = 7;
    memcpy(hand->received + 53, phi, sizeof phi);
    memset(hand->received + 85, 0xff, sizeof hand->received - 85);
}

static void test_refuses(void **state)
{
    static const struct spoilt cases[] = {
        {"as it should be, up", 1, 0, 200, false, 0, 0, false},
        {"as it should be, down", 3, 3, 200, false, 0, 0, false},
        {"more than k", 1, 0, 0, false, 0, 5, true},
        {"2^32 - 1 of them", 1, 0, 0, false, 0, UINT32_MAX, true},
        {"an index of d", 1, 0, 44, false, 0, SMALL, true},
        {"an index twice", 1, 0, 40, false, 0, 1, true},
        {"indices that fall", 1, 0, 36, false, 0, 5, true},
        {"a value that is none", 1, 0, 4, true, (double)NAN, 0, true},
        {"one without end", 1, 0, 12, true, (double)-INFINITY, 0, true},
        {"one beyond the bound", 1, 0, 20, true, 1.1e30, 0, true},
        {"a child that speaks for two", 2, 0, 200, false, 0, 0, true},
        {"a child that speaks for none", 0, 0, 200, false, 0, 0, true},
        {"G, an index of d", 3, 3, 44, false, 0, SMALL, true},
        {"G of more than all", 4, 3, 200, false, 0, 0, true},
        {"phi that is none", 3, 3, 53, true, (double)NAN, 0, true},
        {"nothing heard", 0, 3, 0, false, 0, UINT32_MAX, false}};
    static struct hand hand, before;
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        const struct spoilt *spoilt = &cases[n];
        open_hand(&hand, spoilt->round == 0 ? 0 : 1, spoilt->round);
        write_good(&hand);
        if (spoilt->is_value)
            memcpy(hand.received + spoilt->at, &spoilt->value, 8);
        else
            memcpy(hand.received + spoilt->at, &spoilt->number, 4);
        hand.edge.scalars_received[0] = spoilt->models;
        before = hand;
        gtop_k()->merge(&hand.algebra, &hand.edge);
        printf("  %s: %s, expected %s\n", spoilt->what,
               hand.edge.refused ? "refused" : "taken",
               spoilt->refused ? "refused" : "taken");
        assert_true(hand.edge.refused == spoilt->refused);
        const bool same = memcmp(hand.x, before.x, sizeof hand.x) == 0 &&
                          memcmp(hand.own, before.own, sizeof hand.own) == 0 &&
                          hand.scalars[0] == before.scalars[0];
        assert_true(same == (n > 1));
    }
}

/* By hand and in figures: of x = -1 .. -8 the child claims 5 to 8 and G has 1,
 * 4 and 7, with what it sent at 4 and 7. Those leave e, and phi falls by a
 * third of G but for the first of its blocks, 0 to 3, which came as it is. */
static void test_down(void **state)
{
    static struct hand hand;
    (void)state;
    open_hand(&hand, 1, 3);
    write_good(&hand);
    hand.received[52] = 6;
    hand.edge.scalars_received[0] = 3;
    double changed = 0;
    for (unsigned i = 0; i < SMALL; i++)
        changed -= hand.x[i];
    gtop_k()->merge(&hand.algebra, &hand.edge);
    for (unsigned i = 0; i < SMALL; i++) {
        changed += hand.x[i];
        const double residual = i == 4 || i == 7 ? 0 : 1.0 + i;
        const double phi = i < 4    ? 0.5 + i
                           : i == 4 ? 20 / 3.0
                           : i == 7 ? -10 / 3.0
                                    : 0;
        printf("  %u: e %g, expected %g; phi %.9g, expected %.9g\n", i,
               hand.own[RESIDUAL][i], residual, hand.own[PHI][i], phi);
        assert_true(hand.own[RESIDUAL][i] == residual);
        assert_true(fabs(hand.own[PHI][i] - phi) <= 1e-15 * 10);
        assert_true(hand.x[i] == hand.own[PHI][i]);
    }
    /* The books of conservation hear of all that x changed by. */
    assert_true(fabs(hand.edge.delta_sum - changed) <= 1e-13);
}

/* Nothing comes down: the next cycle's list is of all that the last one's was
 * of, with what was learnt since. */
static void test_unheard(void **state)
{
    static struct hand hand;
    (void)state;
    open_hand(&hand, 1, 1);
    for (uint64_t round = 1; round < 4; round++) {
        hand.algebra.round = round;
        (void)gtop_k()->finish(&hand.algebra);
        gtop_k()->make(&hand.algebra, &hand.edge);
    }
    assert_true(hand.edge.scalars_sent[0] == 0);
    hand.x[0] -= 19;
    hand.algebra.round = 4;
    gtop_k()->make(&hand.algebra, &hand.edge);
    for (unsigned i = 0; i < SMALL; i++) {
        const double list = i == 0 ? 20 : i > 4 ? 1.0 + i : 0;
        printf("  %u: list %g, expected %g\n", i, hand.own[LIST][i], list);
        assert_true(hand.own[LIST][i] == list);
        assert_true(hand.own[RESIDUAL][i] == 0 && hand.own[PHI][i] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_down),
        cmocka_unit_test(test_unheard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
