/* Goal: schedules and random rounds do what their papers say: exact after the
 * listed rounds, expected contractions, proper matchings; lists of edges are
 * read as written. Method: closed forms, the papers' procedures written out,
 * and Monte-Carlo within 3 standard errors. Each prints expected and measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "src/gossip/topology/topology_kinds.h"
#include "tests/support/graph.h"

#define LARGEST 128
static const double PI = 3.14159265358979323846;

/* Every unit vector becomes the mean; the product of the rounds is J. */
static double left_after(const struct kith_topology *topology, uint64_t rounds)
{
    static double x[LARGEST], next[LARGEST];
    double worst = 0;
    for (uint32_t i = 0; i < topology->peers; i++) {
        memset(x, 0, sizeof x);
        x[i] = 1;
        for (uint64_t round = 0; round < rounds; round++)
            graph_mix(topology, round, x, next);
        for (uint32_t j = 0; j < topology->peers; j++)
            worst = fmax(worst, fabs(x[j] - 1.0 / topology->peers));
    }
    return worst;
}

static void test_base(void **state)
{
    (void)state;
    static const struct {
        uint32_t k, n, length;
    } listed[] = {{1, 5, 5},    {1, 6, 4},  {1, 7, 5},   {1, 10, 6},
                  {1, 12, 5},   {1, 20, 7}, {1, 24, 6},  {1, 25, 9},
                  {1, 33, 11},  {1, 48, 7}, {1, 50, 10}, {1, 64, 6},
                  {1, 100, 11}, {2, 5, 3},  {2, 7, 4},   {2, 10, 4},
                  {2, 12, 3},   {2, 20, 5}, {2, 25, 6},  {2, 50, 7},
                  {2, 100, 8},  {3, 12, 2}, {3, 24, 3},  {3, 25, 5},
                  {3, 48, 3},   {3, 64, 3}, {3, 100, 6}};
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        const struct kith_topology_options options = {.degree = listed[i].k};
        struct graph graph;
        char what[64];
        graph_must("base", listed[i].n, 5, &options, &graph);
        snprintf(what, sizeof what, "T5 base-%u n=%u rounds", listed[i].k + 1,
                 listed[i].n);
        graph_check(what, listed[i].length,
                    (double)kith_topology_period(&graph.topology), 0);
        graph_close(&graph);
    }
    for (uint32_t k = 1; k <= 3; k++) {
        double worst = 0;
        for (uint32_t n = 2; n <= 100; n++) {
            const struct kith_topology_options options = {.degree = k};
            struct graph graph;
            graph_must("base", n, 5, &options, &graph);
            const uint64_t period = kith_topology_period(&graph.topology);
            worst = fmax(worst, left_after(&graph.topology, period));
            for (uint64_t round = 0; round < period; round++)
                for (kith_id i = 0; i < n; i++) {
                    kith_id out[KITH_DEGREE_MAX];
                    assert_true(kith_topology_neighbours(
                                    &graph.topology, i, round, out, NULL) <= k);
                }
            graph_close(&graph);
        }
        printf("  T5 base-%u, n = 2..100: at most %u neighbours\n", k + 1, k);
        graph_check("T5   what is left after the listed rounds", 0, worst,
                    1e-12);
    }
    struct graph graph;
    graph_must("base", 97, 5, &(struct kith_topology_options){.degree = 2},
               &graph);
    graph_check("T5 base-3 n=97: rho of a cycle", 0, graph_rho(&graph.topology),
                1e-12);
    graph_close(&graph);
}

/* E Gamma'/Gamma by rounds of the schedule itself, from a random start. */
static void check_contraction(const char *what, const char *name, uint32_t n,
                              const struct kith_topology_options *options,
                              double expected)
{
    enum { TRIALS = 20000 };
    struct graph graph;
    struct kith_rng rng;
    char text[64];
    double sum = 0, squares = 0;
    graph_must(name, n, 5, options, &graph);
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, n);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        double x[LARGEST], next[LARGEST];
        for (uint32_t i = 0; i < n; i++)
            x[i] = kith_rng_double(&rng) - .5;
        const double before = graph_spread(x, n);
        graph_mix(&graph.topology, trial, x, next);
        const double ratio = graph_spread(x, n) / before;
        sum += ratio / TRIALS;
        squares += ratio * ratio / TRIALS;
    }
    const struct kith_topology_contraction left =
        graph.topology.kind->contraction(&graph.topology);
    snprintf(text, sizeof text, "T2 %s n=%u", what, n);
    graph_check(text, expected, left.mean, 1e-5);
    graph_check("T2   Monte-Carlo", left.mean, sum,
                3 * sqrt((squares - sum * sum) / TRIALS));
    graph_close(&graph);
}

static double pairs_left(uint32_t n)
{
    return (n - 2.0) / (2 * (n - 1.0));
}

static void test_contractions(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 8, 16, 32};
    for (int i = 0; i < 4; i++)
        check_contraction("random matching", "random-matching", sizes[i], NULL,
                          pairs_left(sizes[i]));
    check_contraction("random matching, odd", "random-matching", 9, NULL, .5);
    graph_check("T2 random matching as printed", .48387, pairs_left(32), 1e-5);
    check_contraction("OD-EquiDyn eta 1", "od-equidyn", 16,
                      &(struct kith_topology_options){.eta = 1}, .875);
    check_contraction("OD-EquiDyn eta .53", "od-equidyn", 16,
                      &(struct kith_topology_options){.eta = .53}, .46669);
    check_contraction("OD-EquiDyn best", "od-equidyn", 16, NULL, .46667);
    for (uint32_t n = 5; n <= 16; n += 11) {
        struct graph graph;
        graph_must("ou-equidyn", n, 5, NULL, &graph);
        check_contraction(
            "OU-EquiDyn", "ou-equidyn", n, NULL,
            graph.topology.kind->contraction(&graph.topology).mean);
    }
    struct graph graph;
    graph_must("random", 16, 5, NULL, &graph);
    graph_check("T2 one random pair n=16", .93333,
                graph.topology.kind->contraction(&graph.topology).mean, 1e-5);
}

/* Fresh s-regular graphs, everybody the mean of its own and what it gets. */
static void check_oracle(uint32_t n, uint32_t s, double expected)
{
    enum { TRIALS = 4000 };
    const struct kith_topology_options options = {
        .degree = s, .weights = KITH_WEIGHTS_UNIFORM};
    char what[64];
    struct kith_rng rng;
    double sum = 0, squares = 0;
    kith_rng_init(&rng, 4, KITH_STREAM_TEST, n);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct graph graph;
        double x[LARGEST], next[LARGEST];
        graph_must("random-regular", n, trial, &options, &graph);
        for (uint32_t i = 0; i < n; i++)
            x[i] = kith_rng_double(&rng) - .5;
        const double before = graph_spread(x, n);
        graph_mix(&graph.topology, 0, x, next);
        const double ratio = graph_spread(x, n) / before;
        sum += ratio / TRIALS;
        squares += ratio * ratio / TRIALS;
        graph_close(&graph);
    }
    snprintf(what, sizeof what, "T2 EL-Oracle n=%u s=%u", n, s);
    graph_check(what, expected, sum, 3 * sqrt((squares - sum * sum) / TRIALS));
}

static void test_oracle(void **state)
{
    (void)state;
    check_oracle(32, 4, .174194);
    check_oracle(16, 4, .146667);
    check_oracle(96, 7, .115789);
}

/* The scan as the paper has it, against its closed form. */
static void check_scan(uint32_t n, uint32_t p, uint32_t s,
                       const struct kith_topology *topology, uint64_t round)
{
    kith_id partner[LARGEST];
    memset(partner, 0xff, sizeof partner);
    for (uint32_t u = 0; u < n; u++) {
        const uint32_t i = (s + u) % n, j = (i + p) % n;
        if (partner[i] == KITH_NOBODY && partner[j] == KITH_NOBODY) {
            partner[i] = j;
            partner[j] = i;
        }
    }
    for (kith_id i = 0; i < n; i++) {
        kith_id out[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_neighbours(topology, i, round, out, NULL);
        assert_int_equal(count, partner[i] == KITH_NOBODY ? 0 : 1);
        assert_true(count == 0 || out[0] == partner[i]);
    }
}

static void test_scan(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 40; n++) {
        struct graph graph;
        graph_must("ou-equidyn", n, n, NULL, &graph);
        for (uint64_t round = 0; round < 200; round++) {
            struct kith_rng rng = kith_topology_stream(&graph.topology, round);
            const uint32_t p = 1 + kith_rng_below(&rng, n - 1);
            check_scan(n, p, kith_rng_below(&rng, n), &graph.topology, round);
        }
    }
}

/* Above 256 peers the permutation is a network: still a matching, and every
 * partner as likely, at the odd sizes too. */
static void check_network(uint32_t n)
{
    enum { ROUNDS = 30000 };
    struct graph graph;
    static uint32_t counts[512];
    kith_id out[KITH_DEGREE_MAX], back[KITH_DEGREE_MAX];
    memset(counts, 0, sizeof counts);
    graph_must("random-matching", n, 5, NULL, &graph);
    for (uint64_t round = 0; round < 20; round++) {
        uint32_t alone = 0;
        for (kith_id i = 0; i < n; i++) {
            if (kith_topology_neighbours(&graph.topology, i, round, out,
                                         NULL) == 0) {
                alone++;
                continue;
            }
            assert_int_equal(kith_topology_neighbours(&graph.topology, out[0],
                                                      round, back, NULL),
                             1);
            assert_int_equal(back[0], i);
        }
        assert_int_equal(alone, n % 2);
    }
    for (uint64_t round = 0; round < ROUNDS; round++)
        if (kith_topology_neighbours(&graph.topology, 7, round, out, NULL) > 0)
            counts[out[0]]++;
        else
            counts[7]++;
    double chi = 0;
    const double cells = n % 2 == 1 ? n : n - 1.0;
    for (uint32_t i = 0; i < n; i++)
        if (i != 7 || n % 2 == 1)
            chi += pow(counts[i] - ROUNDS / cells, 2) * cells / ROUNDS;
    char what[64];
    snprintf(what, sizeof what, "random-matching-%u: chi-square of partners",
             n);
    graph_check(what, cells - 1, chi, 4 * sqrt(2 * (cells - 1)));
}

static void test_matching_network(void **state)
{
    (void)state;
    check_network(258);
    check_network(300);
    check_network(511);
}

/* A round of matcha is a union of matchings of the graph; all edges come up;
 * the expected contraction is what a round leaves. */
static void check_matcha(const char *graph_name, uint32_t n, double budget)
{
    const struct kith_topology_options options = {
        .graph = kith_topology_find(graph_name), .budget = budget};
    struct graph graph;
    char what[64];
    graph_must("matcha", n, 5, &options, &graph);
    double edges = 0, met = 0;
    for (kith_id i = 0; i < n; i++) {
        kith_id ids[KITH_DEGREE_MAX], out[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_links(&graph.topology, i, ids, KITH_DEGREE_MAX);
        edges += count;
        for (uint64_t round = 0; round < 400; round++)
            met +=
                kith_topology_neighbours(&graph.topology, i, round, out, NULL) /
                400.0;
    }
    snprintf(what, sizeof what, "matcha on %s-%u: share of edges", graph_name,
             n);
    /* Matchings are of unequal size, and better ones get more. */
    graph_check(what, budget, met / edges, .15);
    const struct kith_topology_contraction left =
        graph.topology.kind->contraction(&graph.topology);
    assert_true(left.worst < 1 && left.mean <= left.worst);
    check_contraction("MATCHA", "matcha", n, &options, left.mean);
    graph_close(&graph);
}

static void test_matcha(void **state)
{
    (void)state;
    check_matcha("ring", 16, .5);
    check_matcha("ring", 15, .5);
    check_matcha("random-regular", 32, .3);
    check_matcha("barabasi-albert", 24, .5);
    check_matcha("complete", 9, .25);

    /* The whole budget is the best constant weight. */
    const struct kith_topology_options all = {
        .graph = kith_topology_find("ring"), .budget = 1};
    struct graph graph;
    graph_must("matcha", 16, 5, &all, &graph);
    const double low = 2 - 2 * cos(2 * PI / 16), high = 4;
    graph_check("matcha on ring-16, budget 1: worst",
                pow((high - low) / (high + low), 2),
                graph.topology.kind->contraction(&graph.topology).worst, 1e-9);
    graph_close(&graph);

    /* Two cliques and a bridge: the bridge gets more than its share. */
    struct kith_topology_edge edges[31];
    uint32_t count = 0;
    for (kith_id side = 0; side < 10; side += 5)
        for (kith_id i = 0; i < 5; i++)
            for (kith_id j = i + 1; j < 5; j++)
                edges[count++] =
                    (struct kith_topology_edge){side + i, side + j, 0};
    edges[count++] = (struct kith_topology_edge){4, 5, 0};
    const struct kith_topology_options dumbbell = {
        .graph = kith_topology_find("file"),
        .edges = edges,
        .edge_count = count,
        .budget = .4};
    graph_must("matcha", 10, 5, &dumbbell, &graph);
    double bridge = 0;
    for (uint64_t round = 0; round < 2000; round++) {
        kith_id out[KITH_DEGREE_MAX];
        const uint32_t found =
            kith_topology_neighbours(&graph.topology, 4, round, out, NULL);
        for (uint32_t k = 0; k < found; k++)
            bridge += (out[k] == 5) / 2000.0;
    }
    printf("  matcha on a dumbbell, budget .4: the bridge is active %.3f\n",
           bridge);
    assert_true(bridge > .9);
    graph_close(&graph);
}

/* Any graph: at most one colour more than its degree, no two of a peer alike.
 */
static void test_colouring(void **state)
{
    (void)state;
    static kith_id at[64 * 65];
    static const char *const names[] = {"ring", "complete", "random-regular",
                                        "erdos-renyi", "barabasi-albert"};
    for (int g = 0; g < 5; g++)
        for (uint32_t n = 2; n <= 64; n++) {
            struct graph graph;
            uint32_t most = 0, found = 0, edges = 0;
            graph_must(names[g], n, n, NULL, &graph);
            for (kith_id i = 0; i < n; i++) {
                const uint32_t degree =
                    kith_topology_degree(&graph.topology, i);
                most = degree > most ? degree : most;
                edges += degree;
            }
            const uint32_t used =
                kith_colour_edges(&graph.topology, most + 1, at);
            assert_true(used <= most + 1);
            for (kith_id i = 0; i < n; i++)
                for (uint32_t c = 0; c < used; c++) {
                    const kith_id j = at[i * (most + 1) + c];
                    found += j != KITH_NOBODY;
                    assert_true(j == KITH_NOBODY ||
                                at[j * (most + 1) + c] == i);
                }
            assert_int_equal(found, edges);
            graph_close(&graph);
        }
}

/* Weights of a list are W's own; without them the rule stands. */
static void test_lists(void **state)
{
    (void)state;
    static const struct kith_topology_edge chain[] = {{0, 1, .25}, {1, 2, .5}};
    static const struct kith_topology_edge arcs[] = {
        {0, 1, 0}, {0, 2, 0}, {1, 2, 0}, {2, 0, 0}};
    static const struct kith_topology_edge lost[] = {{0, 1, 0}, {2, 0, 0}};
    struct graph graph;
    kith_id ids[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    struct kith_topology_options options = {.edges = chain, .edge_count = 2};
    graph_must("file", 3, 5, &options, &graph);
    assert_int_equal(kith_topology_sources(&graph.topology, 1, 9, ids, weights),
                     2);
    assert_true(weights[0] == .25 && weights[1] == .5);
    assert_true(graph.topology.doubly);
    graph_close(&graph);

    options = (struct kith_topology_options){.edges = arcs, .edge_count = 4};
    graph_must("file-directed", 3, 5, &options, &graph);
    assert_false(graph.topology.doubly);
    assert_int_equal(
        kith_topology_neighbours(&graph.topology, 0, 0, ids, weights), 2);
    assert_true(weights[0] == 1 / 3.0); /* shares of what it has */
    assert_int_equal(kith_topology_sources(&graph.topology, 2, 0, ids, weights),
                     2);
    assert_true(ids[1] == 1 && weights[1] == 1 / 3.0);
    assert_int_equal(kith_topology_sources(&graph.topology, 0, 0, ids, weights),
                     1);
    assert_true(ids[0] == 2 && weights[0] == .5);
    graph_close(&graph);

    options = (struct kith_topology_options){.edges = lost, .edge_count = 2};
    assert_int_equal(graph_open("file-directed", 3, 5, &options, &graph),
                     KITH_EINVAL);
    assert_non_null(strstr(graph.error, "no way from peer 0 to peer 2"));
    options.edge_count = 1;
    assert_int_equal(graph_open("file", 3, 5, &options, &graph), KITH_EINVAL);
    assert_non_null(strstr(graph.error, "peer 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),
        cmocka_unit_test(test_contractions),
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_matching_network),
        cmocka_unit_test(test_matcha),
        cmocka_unit_test(test_colouring),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
