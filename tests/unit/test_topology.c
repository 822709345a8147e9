/* Goal: spectra are what theory says: of static graphs and cycles to 1e-12, of
 * random ones on average. Method: closed forms; a dense eigenvalue solver as
 * the slow twin of Lanczos; 200 seeds. Each prints what is expected and
 * measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "src/gossip/topology/permutation.h"
#include "src/gossip/topology/topology_kinds.h"
#include "tests/support/graph.h"

#define LARGEST 128
static const double PI = 3.14159265358979323846;

static double rho_of(const char *name, uint32_t n,
                     const struct kith_topology_options *options)
{
    struct graph graph;
    graph_must(name, n, 5, options, &graph);
    const double rho = graph_rho(&graph.topology);
    graph_close(&graph);
    return rho;
}

static void check_rho(const char *name, uint32_t n,
                      const struct kith_topology_options *options,
                      double expected)
{
    char what[64];
    snprintf(what, sizeof what, "T1 %s-%u rho", name, n);
    graph_check(what, expected, rho_of(name, n, options), 1e-12);
}

/* max over j of |1 + sum_o 2 cos(2 pi j o / n)| / (k + 1). */
static double circulant_rho(uint32_t n, uint32_t k)
{
    double worst = 0;
    for (uint32_t j = 1; j < n; j++) {
        double sum = 1;
        for (uint32_t o = 1; o <= k / 2; o++)
            sum += 2 * cos(2 * PI * j * o / n);
        if (k % 2 == 1)
            sum += cos(PI * j);
        worst = fmax(worst, fabs(sum) / (k + 1));
    }
    return worst;
}

static void test_closed_forms(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 64; n++) {
        check_rho("ring", n, NULL, (1 + 2 * cos(2 * PI / n)) / 3);
        check_rho("path", n, NULL, (1 + 2 * cos(PI / n)) / 3);
        check_rho("star", n, NULL, 1 - 1.0 / n);
        check_rho("complete", n, NULL, 0);
    }
    check_rho("ring", 2000, NULL, (1 + 2 * cos(2 * PI / 2000)) / 3);
    check_rho("torus", 16, NULL, .6);
    check_rho("torus", 64, NULL, (3 + 2 * cos(2 * PI / 8)) / 5);
    check_rho("torus", 15, NULL, (3 + 2 * cos(2 * PI / 5)) / 5);
    check_rho("torus", 96, NULL, (3 + 2 * cos(2 * PI / 12)) / 5);
    for (uint32_t d = 1; d <= 8; d++)
        check_rho("hypercube", 1u << d, NULL, (d - 1.0) / (d + 1.0));
    for (uint32_t n = 9; n <= 40; n++)
        for (uint32_t k = 2; k <= 7; k++)
            if (k % 2 == 0 || n % 2 == 0)
                check_rho("circulant", n,
                          &(struct kith_topology_options){.degree = k},
                          circulant_rho(n, k));
    for (uint32_t n = 4; n <= 64; n += 2) {
        const double tau = ceil(log2(n));
        check_rho("exponential", n, NULL, (tau - 1) / (tau + 1));
    }
    graph_check("T1 exponential-17 rho", .547621,
                rho_of("exponential", 17, NULL), 1e-6);
    graph_check("T1 exponential-33 rho", .607800,
                rho_of("exponential", 33, NULL), 1e-6);
    graph_check("T1 ring-16 rho as printed", .949253, rho_of("ring", 16, NULL),
                1e-6);
    graph_check("T1 path-8 rho as printed", .949253, rho_of("path", 8, NULL),
                1e-6);
    graph_check("T1 torus-8x8 rho as printed", .882843,
                rho_of("torus", 64, NULL), 1e-6);
}

/* Largest |eigenvalue| of W - J by Jacobi's rotations: symmetric W. */
static double dense_rho(const struct kith_topology *topology)
{
    static double a[LARGEST * LARGEST];
    const uint32_t n = topology->peers;
    graph_rows(topology, 0, a);
    for (uint32_t i = 0; i < n * n; i++)
        a[i] -= 1.0 / n;
    for (int sweep = 0; sweep < 30; sweep++)
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t q = p + 1; q < n; q++) {
                if (fabs(a[p * n + q]) < 1e-17)
                    continue;
                const double theta =
                    (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
                const double t = (theta >= 0 ? 1 : -1) /
                                 (fabs(theta) + sqrt(theta * theta + 1));
                const double c = 1 / sqrt(t * t + 1), s = t * c;
                for (uint32_t k = 0; k < n; k++) {
                    const double x = a[k * n + p], y = a[k * n + q];
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for (uint32_t k = 0; k < n; k++) {
                    const double x = a[p * n + k], y = a[q * n + k];
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                }
            }
    double rho = 0;
    for (uint32_t i = 0; i < n; i++)
        rho = fmax(rho, fabs(a[i * n + i]));
    return rho;
}

static void test_slow_twin(void **state)
{
    (void)state;
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *kind = kith_topology_kinds[k];
        if (!kind->is_static || kind->directed)
            continue;
        for (unsigned w = 0; w < KITH_WEIGHTS_UNIFORM; w++) {
            const struct kith_topology_options options = {
                .rewire = 0.2, .weights = (enum kith_weights)w};
            struct graph graph;
            char what[64];
            graph_must(kind->name, 32, 9, &options, &graph);
            snprintf(what, sizeof what, "T1 %s-32 %s, dense", kind->name,
                     kith_weights_name((enum kith_weights)w));
            graph_check(what, dense_rho(&graph.topology),
                        graph_rho(&graph.topology), 1e-12);
            graph_close(&graph);
        }
    }
}

static void multiply(uint32_t n, const double *w, double *x)
{
    double next[LARGEST];
    for (uint32_t i = 0; i < n; i++) {
        next[i] = 0;
        for (uint32_t j = 0; j < n; j++)
            next[i] += w[i * n + j] * x[j];
    }
    memcpy(x, next, n * sizeof *x);
}

/* T1 on every static graph: the slope from a random start tends to log rho; the
 * mean stays. */
static void test_consensus_rate(void **state)
{
    (void)state;
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *kind = kith_topology_kinds[k];
        static double w[LARGEST * LARGEST];
        struct graph graph;
        struct kith_rng rng;
        double x[32], first = 0, drift = 0;
        char what[64];
        if (!kind->is_static)
            continue;
        graph_must(kind->name, 32, 9, NULL, &graph);
        if (!graph.topology.doubly || graph_rho(&graph.topology) < 1e-12) {
            graph_close(&graph);
            continue;
        }
        graph_rows(&graph.topology, 0, w);
        kith_rng_init(&rng, 7, KITH_STREAM_TEST, k);
        for (uint32_t i = 0; i < 32; i++)
            x[i] = kith_rng_double(&rng);
        for (int t = 0; t < 3000; t++) {
            double mean = 0, after = 0;
            if (t == 2000)
                first = 0;
            for (uint32_t i = 0; i < 32; i++)
                mean += x[i] / 32;
            for (uint32_t i = 0; i < 32; i++)
                x[i] -= mean;
            const double norm = sqrt(graph_spread(x, 32));
            for (uint32_t i = 0; i < 32; i++)
                x[i] /= norm;
            multiply(32, w, x);
            for (uint32_t i = 0; i < 32; i++)
                after += x[i] / 32;
            drift = fmax(drift, fabs(after));
            first += log(sqrt(graph_spread(x, 32))) / 1000;
        }
        snprintf(what, sizeof what, "T1 %s-32 slope", kind->name);
        graph_check(what, log(graph_rho(&graph.topology)), first, 1e-3);
        assert_true(drift < 1e-12);
        graph_close(&graph);
    }
}

/* The three ways to weigh a ring of 16, and heavy-ball momentum on it. */
static void test_weights(void **state)
{
    (void)state;
    struct kith_topology_options options = {.weights = KITH_WEIGHTS_OPTIMAL};
    const double rho = (1 + 2 * cos(2 * PI / 16)) / 3;
    const double low = 2 - 2 * cos(2 * PI / 16), high = 4;
    check_rho("ring", 16, &options, (high - low) / (high + low));
    graph_check("ring-16 best constant as printed", .926670,
                rho_of("ring", 16, &options), 1e-6);
    check_rho("star", 9, &options, 8.0 / 10);
    check_rho("complete", 9, &options, 0);
    options.weights = KITH_WEIGHTS_LAZY;
    check_rho("ring", 16, &options, (1 + rho) / 2);

    struct graph graph;
    static double scratch[KITH_RHO_SCRATCH(16)];
    graph_must("ring", 16, 5, NULL, &graph);
    const struct kith_spectrum ends =
        kith_spectrum_laplacian(&graph.topology, scratch);
    const double m = sqrt(ends.low / 3), M = sqrt(ends.high / 3);
    graph_check("ring-16 heavy ball a", 2.100486, pow(2 / (M + m), 2), 1e-6);
    graph_check("ring-16 heavy ball c", .453621, pow((M - m) / (M + m), 2),
                1e-6);
    graph_check("ring-16 heavy ball rate", .673514, (M - m) / (M + m), 1e-6);
}

/* The mean gap over 200 seeds of 64 peers: near what 1,000 graphs of an
 * independent program gave, and inside the spread of the printed samples. */
struct gap {
    const char *name;
    struct kith_topology_options options;
    double mean, deviation; /* of 1,000 */
    double low, high;       /* printed mean -+ spread */
};

static void check_gap(const struct gap *gap)
{
    enum { SEEDS = 200 };
    char what[64];
    double sum = 0, squares = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct graph graph;
        graph_must(gap->name, 64, seed, &gap->options, &graph);
        const double own = 1 - graph_rho(&graph.topology);
        sum += own / SEEDS;
        squares += own * own / SEEDS;
        graph_close(&graph);
    }
    snprintf(what, sizeof what, "gap of %s-64, degree %u, p %g", gap->name,
             gap->options.degree,
             gap->options.probability + gap->options.rewire);
    graph_check(what, gap->mean, sum,
                3.5 * gap->deviation * sqrt(1.0 / SEEDS + 1.0 / 1000));
    graph_check("  its deviation", gap->deviation, sqrt(squares - sum * sum),
                gap->deviation / 4);
    assert_true(sum > gap->low && sum < gap->high);
}

static void test_random_gaps(void **state)
{
    (void)state;
    static const struct gap gaps[] = {
        {"random-regular", {.degree = 3}, .0628, .0110, .055, .075},
        {"random-regular", {.degree = 4}, .1412, .0148, .126, .154},
        {"erdos-renyi", {.probability = .1}, .1282, .0377, .102, .164},
        {"erdos-renyi", {.probability = .2}, .3184, .0488, .270, .360},
        {"watts-strogatz",
         {.degree = 4, .rewire = .1},
         .0289,
         .0090,
         .025,
         .039},
        {"watts-strogatz",
         {.degree = 4, .rewire = .3},
         .0681,
         .0126,
         .054,
         .076},
        {"barabasi-albert", {.degree = 2}, .0579, .0077, .046, .060},
        {"barabasi-albert", {.degree = 3}, .1102, .0096, .098, .114},
    };
    for (int i = 0; i < 8; i++)
        check_gap(&gaps[i]);
}

static bool is_neighbour(const struct kith_topology *topology, kith_id i,
                         kith_id j)
{
    kith_id ids[KITH_DEGREE_MAX];
    const uint32_t count = kith_topology_neighbours(topology, i, 0, ids, NULL);
    for (uint32_t k = 0; k < count; k++)
        if (ids[k] == j)
            return true;
    return false;
}

/* Every `stride`th peer's neighbours: both ways, nobody's own, ascending; how
 * many are missing. */
static uint32_t missing(const struct kith_topology *topology, uint32_t stride)
{
    uint32_t gone = 0;
    for (kith_id i = 0; i < topology->peers; i += stride) {
        kith_id ids[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_neighbours(topology, i, 0, ids, NULL);
        gone += topology->options.degree - count;
        for (uint32_t k = 0; k < count; k++) {
            assert_true(ids[k] != i && (k == 0 || ids[k - 1] < ids[k]));
            assert_true(is_neighbour(topology, ids[k], i));
        }
    }
    return gone;
}

static struct kith_networks orders;

static void list_cycles(const struct kith_topology *topology,
                        struct kith_neighbours *list)
{
    assert_true(topology->options.degree <= KITH_DEGREE_MAX);
    kith_random_cycles(topology, &orders, list);
}

/* Regular graphs that are computed are as good as those that are drawn. */
static void test_random_cycles(void **state)
{
    (void)state;
    struct kith_topology_kind computed = *kith_topology_find("random-regular");
    computed.neighbours = list_cycles;
    static const uint32_t sizes[][2] = {{1000, 3}, {1000, 4},  {1001, 4},
                                        {1000, 5}, {2001, 16}, {257, 4},
                                        {514, 3},  {2000, 63}, {2000, 64}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t n = sizes[i][0], d = sizes[i][1];
        char what[64];
        struct graph graph;
        graph_must("random-regular", n, 11 + i,
                   &(struct kith_topology_options){.degree = d}, &graph);
        kith_random_cycles_draw(&graph.topology, &orders);
        graph.topology.kind = &computed; /* as where there are many to draw */
        snprintf(what, sizeof what, "rho of computed random-regular-%u, %u", n,
                 d);
        const double limit = (1 + 2 * sqrt(d - 1.0)) / (d + 1);
        if (n >= 1000) /* the limit is that of many */
            graph_check(what, limit, graph_rho(&graph.topology), .015);
        const uint32_t gone = missing(&graph.topology, 1);
        printf("  missing ends: expected about %u, measured %u\n", d * d / 2,
               gone);
        assert_true(gone <= d * d);
        graph_close(&graph);
    }
    struct graph graph;
    graph_must("random-regular", 1000000, 7,
               &(struct kith_topology_options){.degree = 16}, &graph);
    assert_true(missing(&graph.topology, 1009) <= 2);
    graph_close(&graph);
    graph_must("regular-rounds", 1000000, 7,
               &(struct kith_topology_options){.degree = 8}, &graph);
    assert_true(missing(&graph.topology, 1009) <= 2);
    graph_close(&graph);
}

/* A cycle of one-peer exponential rounds leaves exactly this. */
static void test_one_peer_cycles(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 100; n++) {
        double worst = 0, cycle = exp2(ceil(log2(n)));
        for (uint32_t k = 1; k < n; k++)
            worst = fmax(
                worst, fabs(sin(PI * k * cycle / n) / sin(PI * k / n)) / cycle);
        check_rho("one-peer-exponential", n, NULL, cycle == n ? 0 : worst);
    }
    static const struct {
        uint32_t n;
        double rho;
    } printed[] = {{6, .216506},  {12, .209129},  {24, .207340},
                   {25, .192116}, {100, .191642}, {64, 0}};
    for (int i = 0; i < 6; i++)
        graph_check("one-peer-exponential as printed", printed[i].rho,
                    rho_of("one-peer-exponential", printed[i].n, NULL), 1e-6);
}

/* What a cycle leaves in the end, from a random start. */
static double slope(const struct kith_topology *topology)
{
    double x[LARGEST], next[LARGEST], first = 0;
    struct kith_rng rng;
    kith_rng_init(&rng, 6, KITH_STREAM_TEST, 0);
    for (uint32_t i = 0; i < topology->peers; i++)
        x[i] = kith_rng_double(&rng);
    for (uint64_t round = 0; round < 800; round++) {
        double mean = 0;
        if (round == 600)
            first = graph_spread(x, topology->peers);
        for (uint32_t i = 0; i < topology->peers; i++)
            mean += x[i] / topology->peers;
        for (uint32_t i = 0; i < topology->peers; i++)
            x[i] -= mean;
        graph_mix(topology, round, x, next);
    }
    return pow(graph_spread(x, topology->peers) / first, 1 / 200.0);
}

/* A cycle is a round within and one between. Leaders alone: W_2 W_1 is not
 * symmetric, and its norm is above its rate. */
static void test_regions(void **state)
{
    (void)state;
    const double ring = (1 + 2 * cos(2 * PI / 8)) / 3;
    const struct kith_topology_options leaders = {.regions = 8,
                                                  .leaders = true};
    struct graph graph;
    check_rho("regions", 32, &(struct kith_topology_options){.regions = 8},
              ring);
    graph_must("regions", 32, 5, &leaders, &graph);
    graph_check("regions-32, leaders: rate of a cycle", 1 - (1 - ring) / 4,
                slope(&graph.topology), 1e-9);
    graph_check("regions-32, leaders, as printed", .951184,
                slope(&graph.topology), 1e-6);
    assert_true(graph_rho(&graph.topology) > 1 - (1 - ring) / 4);
    graph_close(&graph);
    check_rho("regions", 8, &(struct kith_topology_options){.regions = 1}, 0);
    check_rho("regions", 8, &(struct kith_topology_options){.regions = 8},
              ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_slow_twin),
        cmocka_unit_test(test_consensus_rate),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_random_gaps),
        cmocka_unit_test(test_random_cycles),
        cmocka_unit_test(test_one_peer_cycles),
        cmocka_unit_test(test_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
