/* Goal: an algorithm that is `elementwise` does the same to vectors part by
 * part as to whole ones: every value and scalar to the bit, sums to rounding.
 * Method: over the registry, each hook of an exchange both ways on equal
 * vectors, longer than two parts and the last one short, on every backend of
 * the host; with and without running statistics at the end of x. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/experiment.h"

enum { DIM = 2500, EDGES = 2, VECTORS = 20 };

struct side {
    struct kith_algebra algebra;
    struct kith_work_edge work[EDGES];
    double memory[VECTORS][2 * DIM];
    void *vectors[KITH_ALGORITHM_VECTORS_MAX];
    void *edges[EDGES * KITH_EDGE_VECTORS_MAX];
    const void *inboxes[EDGES];
    double scalars[KITH_SCALARS_MAX], edge_scalars[EDGES * KITH_EDGE_SCALARS];
};

static void set_up(struct side *side, const struct kith_algorithm *algorithm,
                   const struct kith_experiment *experiment,
                   const struct kith_backend *backend, size_t trained)
{
    memset(side, 0, sizeof *side);
    double values[2 * DIM];
    for (unsigned v = 0; v < VECTORS; v++) {
        for (unsigned k = 0; k < 2 * DIM; k++)
            values[k] = sin(v + 0.37 * k);
        backend->write((size_t)2 * DIM, values, side->memory[v]);
    }
    for (unsigned i = 0; i < KITH_ALGORITHM_VECTORS_MAX; i++)
        side->vectors[i] = side->memory[6 + i];
    for (unsigned i = 0; i < EDGES * KITH_EDGE_VECTORS_MAX; i++)
        side->edges[i] = side->memory[12 + i % 8];
    for (unsigned i = 0; i < EDGES; i++) {
        side->inboxes[i] = side->memory[2 + i];
        side->work[i] = (struct kith_work_edge){.peer = i,
                                                .sent = KITH_SLOT_ROUND_SENT,
                                                .inbox = kith_slot_inbox(i, 0),
                                                .weight = 0.25,
                                                .scalars_received = {1}};
        side->edge_scalars[i * KITH_EDGE_SCALARS] = 0.5;
    }
    memcpy(side->scalars, algorithm->scalars_start, sizeof side->scalars);
    side->algebra =
        (struct kith_algebra){.backend = backend,
                              .dim = DIM,
                              .peers = 3,
                              .self = 1,
                              .coefficients = experiment->gossip.coefficients,
                              .graph = &experiment->gossip.graph,
                              .live = side->memory[0],
                              .scalars = side->scalars,
                              .vectors = side->vectors,
                              .trained = trained,
                              .every = 2,
                              .rate = 0.1,
                              .round = 5,
                              .sent = side->memory[1],
                              .received = side->memory[2],
                              .edges = side->edges,
                              .edge_scalars = side->edge_scalars,
                              .edge_count = EDGES,
                              .edge_vectors = algorithm->edge_vectors,
                              .inboxes = side->inboxes};
}

static void assert_same(const struct side *one, const struct side *other,
                        const char *name, double sum, double parts)
{
    if (memcmp(one->memory, other->memory, sizeof one->memory) != 0 ||
        memcmp(one->scalars, other->scalars, sizeof one->scalars) != 0 ||
        memcmp(one->edge_scalars, other->edge_scalars,
               sizeof one->edge_scalars) != 0 ||
        !(fabs(sum - parts) <= 1e-9 * DIM))
        fail_msg("%s: sums %.17g and %.17g", name, sum, parts);
}

static void check_algorithm(const struct kith_algorithm *algorithm,
                            const struct kith_experiment *experiment,
                            const struct kith_backend *backend, size_t trained)
{
    static struct side one, other;
    struct kith_work_edge *a = &one.work[0], *b = &other.work[0];
    set_up(&one, algorithm, experiment, backend, trained);
    set_up(&other, algorithm, experiment, backend, trained);
    if (algorithm->make != NULL) {
        algorithm->make(&one.algebra, a);
        kith_algorithm_make(algorithm, &other.algebra, b);
        assert_same(&one, &other, algorithm->name, a->delta_sum, b->delta_sum);
        assert_true(a->scalars_sent[0] == b->scalars_sent[0]);
    }
    algorithm->merge(&one.algebra, a);
    kith_algorithm_merge(algorithm, &other.algebra, b);
    assert_same(&one, &other, algorithm->name, a->delta_sum, b->delta_sum);
    if (algorithm->finish != NULL) {
        const double sum = algorithm->finish(&one.algebra, one.work, EDGES);
        const double parts =
            kith_algorithm_finish(algorithm, &other.algebra, other.work, EDGES);
        assert_same(&one, &other, algorithm->name, sum, parts);
    }
}

static void test_parts(void **state)
{
    (void)state;
    unsigned checked = 0;
    for (unsigned i = 0; kith_algorithms[i] != NULL; i++) {
        const struct kith_algorithm *algorithm = kith_algorithms[i];
        if (!algorithm->elementwise)
            continue;
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES];
        const char *topology = ", topology: complete";
        if (algorithm->schedule != NULL)
            topology = "";
        else if (algorithm->tree)
            topology = ", topology: path";
        else if (algorithm->keys & KITH_GOSSIP_READS(MIXING))
            topology = ", topology: complete, mixing: 0.3, strength: 0.5";
        const int size = snprintf(
            text, sizeof text,
            "name: parts\npeers: 3\nstop: {steps: 10}\n"
            "model: {kind: consensus, dim: 4}\ngossip: {algorithm: %s%s}\n"
            "compute: {step: 1ms}\n",
            algorithm->name, topology);
        struct kith_experiment experiment;
        if (kith_experiment_parse("parts", text, (size_t)size, NULL, 0,
                                  &experiment, error) != KITH_OK)
            fail_msg("%s", error);
        for (unsigned b = 0; kith_backends[b] != NULL; b++) {
            const struct kith_backend *backend = kith_backends[b];
            if (backend->missing() != NULL || backend->host != backend)
                continue;
            check_algorithm(algorithm, &experiment, backend, DIM);
            check_algorithm(algorithm, &experiment, backend, DIM - 1500);
        }
        kith_experiment_close(&experiment);
        checked++;
    }
    printf("  %u algorithms\n", checked);
    assert_true(checked > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
