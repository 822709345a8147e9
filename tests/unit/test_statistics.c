/* Goal: what is gossiped beside the weights, running statistics, is averaged
 * plainly, whatever an algorithm does with the weights before them.
 * Method: two peers that begin alike and move apart, hooks called by hand in
 * float64; after as many rounds as it takes for a word to arrive, statistics
 * are the mean of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/topology.h"

/* The first values are weights. */
enum { PEERS = 2, TRAINED = 3, DIM = 5, ROUNDS_MAX = 2 };

struct peer {
    double x[DIM], sent[2 * DIM], received[2 * DIM];
    double own[KITH_ALGORITHM_VECTORS_MAX][DIM];
    void *vectors[KITH_ALGORITHM_VECTORS_MAX];
    const void *inbox;
    struct kith_work_edge edge;
    struct kith_algebra algebra;
};

static void open_peer(struct peer *peer, const struct kith_algorithm *algorithm,
                      const struct kith_topology *graph, kith_id self)
{
    memset(peer, 0, sizeof *peer);
    for (unsigned i = 0; i < KITH_ALGORITHM_VECTORS_MAX; i++)
        peer->vectors[i] = peer->own[i];
    for (unsigned i = 0; i < DIM; i++)
        peer->x[i] = 1 + i;
    peer->inbox = peer->received;
    peer->edge = (struct kith_work_edge){.peer = 1 - self, .weight = 0.5};
    peer->algebra =
        (struct kith_algebra){.backend = kith_backend_find("naive64"),
                              .dim = DIM,
                              .trained = TRAINED,
                              .peers = PEERS,
                              .self = self,
                              .every = 1,
                              .coefficients = algorithm->initial,
                              .graph = graph,
                              .live = peer->x,
                              .sent = peer->sent,
                              .received = peer->received,
                              .vectors = peer->vectors,
                              .edge_count = 1,
                              .merged = &peer->edge,
                              .inboxes = &peer->inbox,
                              .merged_count = 1};
    if (algorithm->start != NULL)
        algorithm->start(&peer->algebra);
}

static void run_round(struct peer peers[PEERS],
                      const struct kith_algorithm *algorithm)
{
    for (kith_id p = 0; p < PEERS; p++)
        if (algorithm->make != NULL)
            algorithm->make(&peers[p].algebra, &peers[p].edge);
        else
            memcpy(peers[p].sent, peers[p].x, sizeof peers[p].x);
    for (kith_id p = 0; p < PEERS; p++) {
        memcpy(peers[p].received, peers[1 - p].sent, sizeof peers[p].received);
        algorithm->merge(&peers[p].algebra, &peers[p].edge);
        if (algorithm->finish != NULL)
            (void)algorithm->finish(&peers[p].algebra);
        peers[p].algebra.round++;
    }
}

static void check(const char *name, unsigned rounds)
{
    const struct kith_algorithm *algorithm = kith_algorithm_find(name);
    struct kith_topology graph;
    struct peer peers[PEERS];
    double mean[DIM];
    assert_int_equal(
        kith_topology_open(kith_topology_find("complete"), PEERS, &graph),
        KITH_OK);
    for (kith_id p = 0; p < PEERS; p++)
        open_peer(&peers[p], algorithm, &graph, p);
    for (unsigned i = 0; i < DIM; i++) {
        peers[0].x[i] += 0.5 + i;
        peers[1].x[i] -= 3 * i + 0.25;
        mean[i] = (peers[0].x[i] + peers[1].x[i]) / 2;
    }
    for (unsigned round = 0; round < rounds; round++)
        run_round(peers, algorithm);
    for (kith_id p = 0; p < PEERS; p++)
        for (unsigned i = TRAINED; i < DIM; i++)
            if (fabs(peers[p].x[i] - mean[i]) > 1e-12)
                fail_msg("%s, peer %u, value %u: %g, not %g", name, p, i,
                         peers[p].x[i], mean[i]);
}

static void test_statistics_are_averaged(void **state)
{
    (void)state;
    check("dpsgd-atc", 1);
    check("local-sgd", 1);
    check("diloco", 1);
    check("slowmo", 1);
    check("gasloc", 1);
    check("noloco", 1);
    check("qg-dsgdm", 1);
    check("qg-adam", 1);
    check("eager", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics_are_averaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
