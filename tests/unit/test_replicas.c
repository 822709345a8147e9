/* Goal: choco and beer merge all of a message or nothing, whichever side's is
 * malformed, and no value that is not finite gets in: without a compressor by
 * the gate on what comes, with one by reading before merging.
 * Method: one edge, hooks called by hand, vectors compared bit by bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/experiment.h"
#include "src/gossip/algorithm/replicas.h"

enum { DIM = 96, VECTORS = 16, OWN = 4, COPIES = 8 };

struct side {
    struct kith_experiment experiment;
    struct kith_compression compression;
    struct kith_algebra algebra;
    struct kith_work_edge edge;
    float memory[VECTORS][2 * DIM], scratch[COPIES * DIM];
    void *vectors[KITH_ALGORITHM_VECTORS_MAX], *edges[KITH_EDGE_VECTORS_MAX];
    double scalars[KITH_SCALARS_MAX], edge_scalars[KITH_EDGE_SCALARS];
};

static void set_up(struct side *side, const char *name, const char *compressor)
{
    char text[256], error[KITH_EXPERIMENT_ERROR_BYTES];
    memset(side, 0, sizeof *side);
    const int size = snprintf(text, sizeof text,
                              "name: replicas\npeers: 2\nstop: {steps: 10}\n"
                              "model: {kind: consensus, dim: 96}\n"
                              "gossip: {algorithm: %s, topology: complete, "
                              "compressor: %s}\ncompute: {step: 1ms}\n",
                              name, compressor);
    if (kith_experiment_parse("replicas", text, (size_t)size, NULL, 0,
                              &side->experiment, error) != KITH_OK)
        fail_msg("%s", error);
    side->compression = kith_experiment_compression(&side->experiment, DIM);
    for (unsigned v = 0; v < VECTORS; v++)
        for (unsigned k = 0; k < 2 * DIM; k++)
            side->memory[v][k] = (float)sin(v + 0.37 * k);
    for (unsigned i = 0; i < OWN; i++)
        side->vectors[i] = side->memory[3 + i];
    for (unsigned i = 0; i < KITH_EDGE_VECTORS_MAX; i++)
        side->edges[i] = side->memory[COPIES + i];
    side->edge = (struct kith_work_edge){.peer = 1, .weight = 0.5};
    side->algebra = (struct kith_algebra){
        .backend = kith_backend_find("naive32"),
        .dim = DIM,
        .trained = DIM,
        .peers = 2,
        .every = 1,
        .coefficients = side->experiment.gossip.coefficients,
        .graph = &side->experiment.gossip.graph,
        .compression = &side->compression,
        .live = side->memory[0],
        .sent = side->memory[1],
        .received = side->memory[2],
        .scratch = side->scratch,
        .scalars = side->scalars,
        .vectors = side->vectors,
        .edges = side->edges,
        .edge_scalars = side->edge_scalars,
        .edge_count = 1,
        .edge_vectors = side->experiment.gossip.algorithm->edge_vectors};
}

static const struct kith_algorithm *algorithm_of(const struct side *side)
{
    return side->experiment.gossip.algorithm;
}

/* What was made comes back as the other's. */
static void exchange(struct side *side)
{
    algorithm_of(side)->make(&side->algebra, &side->edge);
    memcpy(side->memory[2], side->memory[1], sizeof side->memory[2]);
}

static const char *const names[] = {"choco", "beer"};

static void test_all_or_nothing(void **state)
{
    (void)state;
    static struct side side;
    static float before[VECTORS][2 * DIM];
    for (unsigned i = 0; i < 4; i++) {
        const unsigned malformed = 1 + i % 2; /* what was sent, or received */
        set_up(&side, names[i / 2], "top-k");
        exchange(&side);
        /* The message's last bytes, so that what stands before is well. */
        const size_t bytes = algorithm_of(&side)->payload(&side.algebra);
        memset((char *)side.memory[malformed] + bytes - 4, 0xff, 4);
        memcpy(before, side.memory, sizeof before);
        algorithm_of(&side)->merge(&side.algebra, &side.edge);
        assert_true(side.edge.refused);
        assert_memory_equal(before, side.memory, sizeof before);
        assert_true(side.edge_scalars[0] == 0);

        side.edge.refused = false;
        exchange(&side);
        algorithm_of(&side)->merge(&side.algebra, &side.edge);
        assert_false(side.edge.refused);
        assert_true(side.edge_scalars[0] == 1);
        kith_experiment_close(&side.experiment);
    }
}

/* Both are finite, and their difference is not. */
static void test_nothing_leaves_that_is_not_finite(void **state)
{
    (void)state;
    static struct side side;
    for (unsigned i = 0; i < 2; i++) {
        set_up(&side, names[i], "none");
        side.memory[0][5] = 3e38f;
        side.memory[COPIES][5] = -3e38f;
        algorithm_of(&side)->make(&side.algebra, &side.edge);
        for (unsigned k = 0; k < DIM; k++)
            assert_true(side.memory[1][k] == 0);
        kith_experiment_close(&side.experiment);
    }
}

/* Who checks what comes: the gate wherever messages are numbers. */
static void test_gate(void **state)
{
    (void)state;
    static const struct {
        const char *name, *compressor;
        bool opaque;
    } cases[] = {{"choco", "none", false},
                 {"choco", "top-k", true},
                 {"beer", "none", false},
                 {"beer", "sign", true},
                 {"dpsgd", "none", false}};
    static struct side side;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up(&side, cases[i].name, cases[i].compressor);
        assert_true(kith_experiment_opaque(&side.experiment) ==
                    cases[i].opaque);
        kith_experiment_close(&side.experiment);
    }
}

/* Edges whose ends begin alike count from one number, and from another where a
 * single value differs, wherever it stands; the copies are what they begin
 * with, and what else an edge has is left alone. */
static void test_edges_count_from_what_they_begin_with(void **state)
{
    (void)state;
    enum { LARGE = 10000, PLACES = 5, EDGES = 2, EACH = 3 };
    static const size_t places[PLACES] = {0, 63, 4095, 4096, LARGE - 1};
    static double v[LARGE], own[EDGES * EACH][LARGE];
    void *edges[EDGES * EACH];
    double numbers[EDGES * KITH_EDGE_SCALARS] = {0}, found[PLACES + 1];
    for (unsigned i = 0; i < EDGES * EACH; i++)
        edges[i] = own[i];
    struct kith_algebra algebra = {.backend = kith_backend_find("naive64"),
                                   .dim = LARGE,
                                   .edges = edges,
                                   .edge_scalars = numbers,
                                   .edge_count = EDGES,
                                   .edge_vectors = EACH};
    for (unsigned i = 0; i < LARGE; i++)
        v[i] = sin(i);
    for (unsigned k = 0; k <= PLACES; k++) {
        if (k > 0)
            v[places[k - 1]] += 1;
        kith_replica_start(&algebra, 2, v);
        found[k] = numbers[0];
        assert_true(numbers[KITH_EDGE_SCALARS] == found[k]);
        for (unsigned other = 0; other < k; other++)
            assert_true(found[other] != found[k]);
    }
    for (unsigned k = 0; k < PLACES; k++)
        v[places[k]] = sin((double)places[k]);
    kith_replica_start(&algebra, 2, v);
    assert_true(numbers[0] == found[0]);
    for (unsigned i = 0; i < EDGES * EACH; i++)
        if (i % EACH < 2)
            assert_memory_equal(own[i], v, sizeof v);
        else
            assert_true(own[i][0] == 0 && own[i][LARGE - 1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_or_nothing),
        cmocka_unit_test(test_nothing_leaves_that_is_not_finite),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_edges_count_from_what_they_begin_with)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
