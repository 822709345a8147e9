/* Goal: a message of gs-sgd is held to what a table, values and a list are
 * before any of it is used; the momentum of what was sent is masked.
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

enum { PHI, RESIDUAL, LIST, BORN, TABLE, MOMENTUM, VECTORS }; /* gs_sgd.c */
/* k = 2, a table of 3 rows of 4, 4 candidates. */
enum { SMALL = 16, CELLS = 12, CANDIDATES = 4, ROUND_TRIP = 8 };

/* A peer of three by hand: 0, the root, or 1, its child of the first round. */
struct hand {
    struct kith_topology graph;
    double coefficients[KITH_GOSSIP_KEY_COUNT], scalars[1], numbers[2];
    double x[SMALL], gradient[SMALL], own[VECTORS][SMALL];
    void *vectors[VECTORS];
    _Alignas(16) unsigned char scratch[4096];
    unsigned char sent[256], received[256];
    struct kith_algebra algebra;
    struct kith_work_edge edge;
};

static const struct kith_algorithm *gs_sgd(void)
{
    return kith_algorithm_find("gs-sgd");
}

static void open_hand(struct hand *hand, kith_id self)
{
    memset(hand, 0, sizeof *hand);
    assert_int_equal(
        kith_topology_open(kith_topology_find("collective-tree-twice"), 3,
                           &hand->graph),
        KITH_OK);
    memcpy(hand->coefficients, gs_sgd()->initial, sizeof hand->coefficients);
    hand->coefficients[KITH_GOSSIP_SHARE] = 0.125;
    hand->coefficients[KITH_GOSSIP_ROWS] = 3;
    hand->coefficients[KITH_GOSSIP_COLUMNS] = 2;
    hand->coefficients[KITH_GOSSIP_CANDIDATES] = 2;
    hand->coefficients[KITH_GOSSIP_TRUNCATE] = 2;
    hand->coefficients[KITH_GOSSIP_MOMENTUM] = 0.5;
    for (unsigned v = 0; v < VECTORS; v++)
        hand->vectors[v] = hand->own[v];
    hand->algebra =
        (struct kith_algebra){.backend = kith_backend_find("naive64"),
                              .dim = SMALL,
                              .trained = SMALL,
                              .peers = 3,
                              .self = self,
                              .seed = 7,
                              .coefficients = hand->coefficients,
                              .graph = &hand->graph,
                              .live = hand->x,
                              .scalars = hand->scalars,
                              .vectors = hand->vectors,
                              .scratch = hand->scratch,
                              .edge_scalars = hand->numbers,
                              .gradient = hand->gradient,
                              .sent = hand->sent,
                              .received = hand->received};
    assert_true(gs_sgd()->scratch_bytes(&hand->algebra) <=
                sizeof hand->scratch);
    assert_true(gs_sgd()->payload(&hand->algebra) == 8 + CELLS * 8);
    assert_true(gs_sgd()->slice(&hand->algebra) == 4 + 2 * 8 + 2 * 4 + 1 + 16);
    for (unsigned i = 0; i < SMALL; i++) {
        hand->x[i] = -1.0 - i;
        hand->own[MOMENTUM][i] = 100;
    }
}

/* A round as the worker runs it, with what stands in `received`. */
static void run_round(struct hand *hand, uint64_t round, double models)
{
    hand->algebra.round = round;
    gs_sgd()->make(&hand->algebra, &hand->edge);
    hand->edge.scalars_received[0] = models;
    hand->edge.refused = false;
    if (models >= 0)
        gs_sgd()->merge(&hand->algebra, &hand->edge);
    (void)gs_sgd()->finish(&hand->algebra);
}

/* 0 and its child 1 through the first three ways: rounds 0, 1 up, 2, 3 down, 4,
 * 5 up; 2 is dead. What the child sends and hears at 0, 3, 4 is in `sent`. */
static void run_ways(struct hand *root, struct hand *child, uint64_t rounds)
{
    open_hand(root, 0);
    open_hand(child, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        const bool goes_up = round == 0 || round == 4, goes_down = round == 3;
        run_round(child, round, -1);
        if (goes_up)
            memcpy(root->received, child->sent, sizeof root->received);
        const double models = child->edge.scalars_sent[0];
        run_round(root, round, goes_up ? models : -1);
        if (!goes_down)
            continue;
        memcpy(child->received, root->sent, sizeof child->received);
        child->edge.scalars_received[0] = root->edge.scalars_sent[0];
        gs_sgd()->merge(&child->algebra, &child->edge);
        assert_false(child->edge.refused);
    }
}

/* ---- refusals */

struct spoilt {
    const char *what;
    uint64_t round; /* 0: a table up, 3: down; 4: values */
    double models;
    unsigned at; /* of the message */
    bool is_value;
    double value;
    bool refused, same;
};

static void test_refuses(void **state)
{
    static const struct spoilt cases[] = {
        {"a table up, as it should be", 0, 1, 250, false, 0, false, false},
        {"a table down, as it should be", 3, 2, 250, false, 0, false, false},
        {"values, as they should be", 4, 1, 250, false, 0, false, false},
        {"another fingerprint", 0, 1, 0, false, 0, true, true},
        {"another one, down", 3, 2, 7, false, 0, true, true},
        {"a cell that is none", 0, 1, 8, true, (double)NAN, true, true},
        {"one without end", 0, 1, 96, true, (double)INFINITY, true, true},
        {"one beyond the bound", 0, 1, 16, true, -1.1e30, true, true},
        {"the last, down, beyond two", 3, 2, 96, true, 2.1e30, true, true},
        {"a child that speaks for two", 0, 2, 250, false, 0, true, true},
        {"a child of nobody", 0, 0, 250, false, 0, false, true},
        {"the root, for more than all", 3, 4, 250, false, 0, true, true},
        {"nothing heard", 3, 0, 0, false, 0, false, true},
        {"values of other candidates", 4, 1, 0, false, 0, false, true},
        {"a value that is none", 4, 1, 32, true, (double)NAN, true, true},
        {"one beyond the bound", 4, 1, 8, true, 1.1e30, true, true},
        {"values of two", 4, 2, 250, false, 0, true, true},
        {"values of nobody", 4, 0, 250, false, 0, false, true}};
    static struct hand root, child, before;
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        const struct spoilt *spoilt = &cases[n];
        struct hand *const who = spoilt->round == 3 ? &child : &root;
        struct hand *const from = spoilt->round == 3 ? &root : &child;
        run_ways(&root, &child, spoilt->round);
        who->algebra.round = from->algebra.round = spoilt->round;
        gs_sgd()->make(&who->algebra, &who->edge);
        gs_sgd()->make(&from->algebra, &from->edge);
        memcpy(who->received, from->sent, sizeof who->received);
        if (spoilt->is_value)
            memcpy(who->received + spoilt->at, &spoilt->value, 8);
        else
            who->received[spoilt->at] ^= 1;
        who->edge.scalars_received[0] = spoilt->models;
        before = *who;
        gs_sgd()->merge(&who->algebra, &who->edge);
        const bool same = memcmp(who->x, before.x, sizeof who->x) == 0 &&
                          memcmp(who->own, before.own, sizeof who->own) == 0 &&
                          who->scalars[0] == before.scalars[0];
        printf("  %s: %s and %s, expected %s and %s\n", spoilt->what,
               who->edge.refused ? "refused" : "taken",
               same ? "unchanged" : "changed",
               spoilt->refused ? "refused" : "taken",
               spoilt->same ? "unchanged" : "changed");
        assert_true(who->edge.refused == spoilt->refused);
        assert_true(same == spoilt->same);
    }
}

/* ---- figures */

/* v of both is 1 .. 16, its largest 13 to 16, sketched without a collision that
 * would hide them; G is twice 15 and 16. They leave e and u, and phi falls by
 * half of G but for its first block, 0 and 1, which is the root's. */
static void test_masks(void **state)
{
    static struct hand root, child;
    (void)state;
    run_ways(&root, &child, 6);
    for (uint64_t round = 6; round < ROUND_TRIP; round++) {
        run_round(&child, round, -1);
        run_round(&root, round, -1);
    }
    memcpy(child.received, root.sent, sizeof child.received);
    child.edge.scalars_received[0] = root.edge.scalars_sent[0];
    gs_sgd()->merge(&child.algebra, &child.edge);
    assert_true(root.edge.scalars_sent[0] == 2 && !child.edge.refused);
    for (unsigned i = 0; i < SMALL; i++) {
        const bool is_sent = i >= 14;
        const double residual = is_sent ? 0 : 1.0 + i, phi = -(1.0 + i);
        printf("  %u: e %g, expected %g; u %g, expected %g; phi %g, expected "
               "%g\n",
               i, child.own[RESIDUAL][i], residual, child.own[MOMENTUM][i],
               is_sent ? 0.0 : 100.0, child.own[PHI][i], is_sent ? phi : 0);
        for (unsigned p = 0; p < 2; p++) {
            const struct hand *const who = p == 0 ? &root : &child;
            assert_true(who->own[RESIDUAL][i] == residual);
            assert_true(who->own[MOMENTUM][i] == (is_sent ? 0 : 100));
            assert_true(who->own[PHI][i] == (is_sent ? phi : 0));
            assert_true(who->x[i] == who->own[PHI][i]);
        }
    }
}

/* u <- rho u + g, which the optimiser gets. */
static void test_momentum(void **state)
{
    static struct hand hand;
    (void)state;
    open_hand(&hand, 0);
    for (unsigned i = 0; i < SMALL; i++)
        hand.gradient[i] = i;
    gs_sgd()->direction(&hand.algebra);
    for (unsigned i = 0; i < SMALL; i++) {
        assert_true(hand.own[MOMENTUM][i] == 50.0 + i);
        assert_true(hand.gradient[i] == 50.0 + i);
    }
    printf("  u of 100 and g of 3, rho = 0.5: expected 53, measured %g\n",
           hand.gradient[3]);
}

/* Who was away while S came down has no candidates and says nothing, and in the
 * next cycle all that it had to say. */
static void test_unheard(void **state)
{
    static struct hand hand;
    (void)state;
    open_hand(&hand, 1);
    for (uint64_t round = 0; round < ROUND_TRIP; round++) {
        run_round(&hand, round, -1);
        if (round >= 2)
            assert_true(hand.edge.scalars_sent[0] == 0);
    }
    run_round(&hand, ROUND_TRIP, -1);
    assert_true(hand.edge.scalars_sent[0] == 1);
    for (unsigned i = 0; i < SMALL; i++)
        assert_true(hand.own[RESIDUAL][i] == 0 && hand.x[i] == -1.0 - i);
    /* From the middle of a cycle that it has not begun. */
    open_hand(&hand, 1);
    hand.scalars[0] = 1;
    run_round(&hand, 4, -1);
    printf("  a child that comes into the middle of a cycle speaks for %g, "
           "expected 0\n",
           hand.edge.scalars_sent[0]);
    assert_true(hand.edge.scalars_sent[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_unheard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
