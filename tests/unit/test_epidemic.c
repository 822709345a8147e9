/* Goal: rounds that are drawn contract disagreement as predicted (T2), and what
 * their kinds say of it is that; refusals name the key.
 * Method: Monte-Carlo over the schedule itself from random starts of mean 0,
 * against closed forms. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/graph.h"

enum { LARGEST = 96, TRIALS = 4000 };

/* sum x^2, about the mean of the start, which is 0. */
static double squares_of(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

struct measured {
    double left, error, drift; /* of Gamma; 3 standard errors; n E mean^2 */
};

static struct measured measure(const struct kith_topology *topology,
                               uint64_t stride)
{
    struct measured found = {0, 0, 0};
    const uint32_t n = topology->peers;
    struct kith_rng rng;
    double squares = 0;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, n);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        double x[LARGEST], next[LARGEST], mean = 0, after = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = kith_rng_double(&rng);
            mean += x[i] / n;
        }
        for (uint32_t i = 0; i < n; i++)
            x[i] -= mean;
        const double before = squares_of(x, n);
        graph_mix(topology, trial * stride, x, next);
        for (uint32_t i = 0; i < n; i++)
            after += x[i] / n;
        const double ratio = squares_of(x, n) / before;
        found.left += ratio / TRIALS;
        squares += ratio * ratio / TRIALS;
        found.drift += n * after * after / before / TRIALS;
    }
    found.error = 3 * sqrt((squares - found.left * found.left) / TRIALS);
    return found;
}

static void check(const char *name, uint32_t n, uint32_t degree,
                  double expected, double drift)
{
    struct graph graph;
    char text[64];
    graph_must(name, n, 5, &(struct kith_topology_options){.degree = degree},
               &graph);
    const struct measured found = measure(&graph.topology, 1);
    snprintf(text, sizeof text, "T2 %s n=%u s=%u", name, n, degree);
    graph_check(text, expected,
                graph.topology.kind->contraction(&graph.topology).mean, 1e-6);
    graph_check("   Monte-Carlo", expected, found.left, found.error + 1e-6);
    graph_check("   drift of the mean", drift, found.drift,
                drift == 0 ? 1e-12 : 0.1 * drift);
    graph_close(&graph);
}

static void test_local(void **state)
{
    (void)state;
    check("random-out", 96, 7, .132239, .00016);
    check("random-out", 32, 4, .214736, .0011);
    check("random-out", 16, 3, .257284, .0029);
}

static void test_oracle(void **state)
{
    (void)state;
    check("regular-rounds", 96, 7, .115789, 0);
    check("regular-rounds", 32, 4, .174194, 0);
    check("regular-rounds", 16, 4, .146667, 0);
}

/* 8 groups of 4; the first round of each of many arrangements. */
static void test_groups(void **state)
{
    struct graph graph;
    (void)state;
    graph_must("grid-groups", 32, 5,
               &(struct kith_topology_options){.degree = 3}, &graph);
    const struct measured found = measure(&graph.topology, 3);
    graph_check("T2 8 random groups of 4: (r - 1) / (n - 1)", .22581,
                found.left, found.error + 1e-5);
    graph_check("   drift of the mean", 0, found.drift, 1e-12);
    graph_close(&graph);
}

/* A full grid, box or cube, agrees after as many rounds as it has dimensions,
 * wherever a cycle begins to count from a fresh arrangement. */
static void test_grids(void **state)
{
    static const struct {
        uint32_t peers, degree, rounds;
    } grids[] = {{16, 3, 2}, {64, 3, 3}, {32, 3, 3}, {27, 2, 3},
                 {8, 1, 3},  {12, 3, 2}, {9, 8, 1}};
    (void)state;
    for (unsigned g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        struct graph graph;
        double x[LARGEST], next[LARGEST];
        char text[64];
        graph_must("grid-groups", grids[g].peers, 5,
                   &(struct kith_topology_options){.degree = grids[g].degree},
                   &graph);
        for (uint32_t i = 0; i < grids[g].peers; i++)
            x[i] = i;
        for (uint32_t r = 0; r < grids[g].rounds; r++)
            graph_mix(&graph.topology, 7 * grids[g].rounds + r, x, next);
        snprintf(text, sizeof text, "moshpit n=%u, groups of %u, %u rounds",
                 grids[g].peers, grids[g].degree + 1, grids[g].rounds);
        graph_check(text, 0, graph_spread(x, grids[g].peers), 1e-20);
        graph_close(&graph);
    }
}

static void refuse(const char *name, uint32_t n, uint32_t degree,
                   const char *words)
{
    struct graph graph;
    const struct kith_topology_options options = {.degree = degree};
    if (graph_open(name, n, 5, &options, &graph) != KITH_EINVAL ||
        strstr(graph.error, words) == NULL)
        fail_msg("%s, %u peers, degree %u: %s", name, n, degree, graph.error);
}

static void test_refusals(void **state)
{
    struct graph graph;
    (void)state;
    refuse("random-out", 8, 8, "degree: found 8 with 8 peers");
    refuse("random-out", 96, 17, "up to 16");
    refuse("regular-rounds", 9, 3, "degree: found 3 with 9 peers");
    refuse("grid-groups", 8, 8, "degree: found 8 with 8 peers");
    const struct kith_topology_options directed = {
        .graph = kith_topology_find("exponential")};
    assert_int_equal(graph_open("global-rounds", 8, 5, &directed, &graph),
                     KITH_EINVAL);
    assert_non_null(strstr(graph.error, "graph: found exponential"));
    assert_int_equal(graph_open("global-rounds", 80, 5, NULL, &graph),
                     KITH_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),    cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_groups),   cmocka_unit_test(test_grids),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
