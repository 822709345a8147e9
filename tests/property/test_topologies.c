/* Goal: what every topology claims holds, at every small size and a few larger
 * ones: weights add up, sources mirror neighbours, schedules repeat, links are
 * all whom one meets, the graph is connected, the same seed gives the same one,
 * limits are refused by name. Method: loop over the registry. What single kinds
 * promise stands in unit/test_topology.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/graph.h"

enum { SIZES = 26, LARGEST = 65, ROUNDS = 24 };
static const uint32_t sizes[SIZES] = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                      10, 11, 12, 13, 14, 15, 16, 17, 18,
                                      19, 20, 24, 33, 48, 60, 64, 65};

/* Opens a kind at its defaults; false where it says why it cannot have n. */
static bool open_kind(const struct kith_topology_kind *kind, uint32_t n,
                      struct graph *graph)
{
    if (graph_open(kind->name, n, 5, NULL, graph) == KITH_OK)
        return true;
    if (strcmp(kind->name, "hypercube") != 0 || (n & (n - 1)) == 0)
        fail_msg("%s, %u peers: %s", kind->name, n, graph->error);
    assert_non_null(strstr(graph->error, "power of two"));
    return false;
}

static uint64_t rounds_of(const struct kith_topology *topology)
{
    const uint64_t period = kith_topology_period(topology);
    return period == 0 ? ROUNDS : period;
}

static bool contains(const kith_id *ids, uint32_t count, kith_id id)
{
    for (uint32_t k = 0; k < count; k++)
        if (ids[k] == id)
            return true;
    return false;
}

/* A list is ascending, within bounds, of others, with weights. */
static void check_list(const struct kith_topology *topology, kith_id self,
                       const kith_id *ids, const double *weights,
                       uint32_t count)
{
    assert_true(count <= kith_topology_degree(topology, self));
    for (uint32_t k = 0; k < count; k++) {
        assert_true(ids[k] < topology->peers && ids[k] != self);
        assert_true(k == 0 || ids[k - 1] < ids[k]);
        assert_true(weights[k] > 0 && weights[k] < 1);
    }
}

/* in and out see the same edges; one matrix where `doubly`. */
static void check_mirror(const struct kith_topology *topology, uint64_t round)
{
    const uint32_t n = topology->peers;
    static double rows[LARGEST * LARGEST], columns[LARGEST * LARGEST];
    memset(rows, 0, sizeof rows);
    memset(columns, 0, sizeof columns);
    for (kith_id i = 0; i < n; i++) {
        kith_id ids[KITH_DEGREE_MAX];
        double weights[KITH_DEGREE_MAX];
        uint32_t count =
            kith_topology_sources(topology, i, round, ids, weights);
        check_list(topology, i, ids, weights, count);
        for (uint32_t k = 0; k < count; k++)
            rows[i * n + ids[k]] = weights[k];
        count = kith_topology_neighbours(topology, i, round, ids, weights);
        check_list(topology, i, ids, weights, count);
        for (uint32_t k = 0; k < count; k++)
            columns[ids[k] * n + i] = weights[k];
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const double row = rows[i * n + j], column = columns[i * n + j];
            assert_true((row > 0) == (column > 0));
            assert_true(!topology->doubly || row == column);
            if (!topology->kind->directed) {
                assert_true((row > 0) == (rows[j * n + i] > 0));
                assert_true(!topology->doubly || row == rows[j * n + i]);
            }
        }
}

/* Columns sum to 1 (rows do, by what a peer keeps); nobody gives away more
 * than there is, but where weights are the best and not the safest. */
static void check_sums(const struct kith_topology *topology, uint64_t round)
{
    static double w[LARGEST * LARGEST];
    const uint32_t n = topology->peers;
    const bool safe = topology->options.weights != KITH_WEIGHTS_OPTIMAL &&
                      strcmp(topology->kind->name, "matcha") != 0;
    graph_rows(topology, round, w);
    for (uint32_t j = 0; j < n; j++) {
        double column = 0;
        for (uint32_t i = 0; i < n; i++)
            column += w[i * n + j];
        assert_true(!topology->doubly || fabs(column - 1) < 1e-12);
        assert_true(!safe || w[j * n + j] > -1e-12);
    }
}

static void check_period(const struct kith_topology *topology, kith_id self)
{
    const uint64_t period = kith_topology_period(topology);
    kith_id one[KITH_DEGREE_MAX], two[KITH_DEGREE_MAX];
    assert_true(!topology->kind->is_static || period == 1);
    for (uint64_t round = 0; round < period; round++) {
        const uint32_t count =
            kith_topology_neighbours(topology, self, round, one, NULL);
        assert_int_equal(kith_topology_neighbours(
                             topology, self, round + 7 * period, two, NULL),
                         count);
        assert_memory_equal(one, two, count * sizeof *one);
    }
}

static void check_links(const struct kith_topology *topology, kith_id self)
{
    kith_id links[KITH_LINKS_MAX], some[KITH_DEGREE_MAX];
    bool met[LARGEST] = {false};
    const uint32_t count =
        kith_topology_links(topology, self, links, KITH_LINKS_MAX);
    if (count == KITH_LINKS_ANY) {
        assert_true(kith_topology_period(topology) == 0);
        return;
    }
    for (uint32_t k = 1; k < count; k++)
        assert_true(links[k - 1] < links[k]);
    for (uint64_t round = 0; round < rounds_of(topology); round++) {
        uint32_t found =
            kith_topology_neighbours(topology, self, round, some, NULL);
        for (uint32_t k = 0; k < found; k++)
            met[some[k]] = true;
        found = kith_topology_sources(topology, self, round, some, NULL);
        for (uint32_t k = 0; k < found; k++)
            met[some[k]] = true;
    }
    for (kith_id i = 0; i < topology->peers; i++)
        if (kith_topology_period(topology) > 0)
            assert_true(met[i] == contains(links, count, i));
        else
            assert_true(!met[i] || contains(links, count, i));
    /* A short array takes the first, the answer stays. */
    some[1] = KITH_NOBODY;
    assert_int_equal(kith_topology_links(topology, self, some, 1), count);
    assert_true(some[1] == KITH_NOBODY);
    assert_true(count == 0 || some[0] == links[0]);
}

/* Everybody hears of peer 0 in the end. */
static void check_connected(const struct kith_topology *topology)
{
    const uint32_t n = topology->peers;
    bool reached[LARGEST] = {true};
    for (uint64_t round = 0; round < n * rounds_of(topology); round++) {
        bool next[LARGEST];
        memcpy(next, reached, sizeof next);
        for (kith_id i = 0; i < n; i++) {
            kith_id out[KITH_DEGREE_MAX];
            const uint32_t count =
                kith_topology_neighbours(topology, i, round, out, NULL);
            for (uint32_t k = 0; reached[i] && k < count; k++)
                next[out[k]] = true;
        }
        memcpy(reached, next, sizeof next);
    }
    for (kith_id i = 0; i < n; i++)
        if (!reached[i])
            fail_msg("%s, %u peers: peer %u hears nothing of peer 0",
                     topology->kind->name, n, i);
}

static void check_graph(const struct kith_topology *topology)
{
    for (uint64_t round = 0; round < rounds_of(topology); round++) {
        check_mirror(topology, round);
        check_sums(topology, round);
    }
    for (kith_id self = 0; self < topology->peers; self++) {
        check_period(topology, self);
        check_links(topology, self);
    }
    check_connected(topology);
}

static void test_every_size(void **state)
{
    (void)state;
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++)
        for (int s = 0; s < SIZES; s++) {
            struct graph graph;
            if (kith_topology_is_any_pair(kith_topology_kinds[k]) ||
                !open_kind(kith_topology_kinds[k], sizes[s], &graph))
                continue;
            check_graph(&graph.topology);
            graph_close(&graph);
        }
}

static void test_every_weight(void **state)
{
    (void)state;
    static const uint32_t few[] = {1, 2, 4, 8, 16, 64};
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *kind = kith_topology_kinds[k];
        for (int s = 0; s < 6; s++)
            for (unsigned w = 0; w < KITH_WEIGHTS_COUNT; w++) {
                const struct kith_topology_options options = {
                    .rewire = 0.3, .weights = (enum kith_weights)w};
                struct graph graph;
                if (!(kind->keys & KITH_TOPOLOGY_READS(WEIGHTS)))
                    continue;
                graph_must(kind->name, few[s], 11, &options, &graph);
                assert_true(graph.topology.doubly || w == KITH_WEIGHTS_UNIFORM);
                check_graph(&graph.topology);
                graph_close(&graph);
            }
    }
}

/* Peers draw for all others, many side by side: whatever number of draws. */
static void test_every_draw(void **state)
{
    static const uint32_t degrees[] = {1, 3, 5, 8, 16};
    (void)state;
    for (int d = 0; d < 5; d++)
        for (uint32_t n = degrees[d] + 1; n <= LARGEST; n += 8) {
            struct graph graph;
            graph_must("random-out", n, 11,
                       &(struct kith_topology_options){.degree = degrees[d]},
                       &graph);
            for (uint64_t round = 0; round < ROUNDS; round++)
                check_mirror(&graph.topology, round);
            graph_close(&graph);
        }
}

/* The same seed: the same lists. Another one: not the same, where it is drawn.
 */
static void test_seeds(void **state)
{
    (void)state;
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *kind = kith_topology_kinds[k];
        struct graph graphs[3];
        bool differs = false;
        if (kith_topology_is_any_pair(kind))
            continue;
        for (int g = 0; g < 3; g++)
            graph_must(kind->name, 64, g == 2 ? 6 : 5, NULL, &graphs[g]);
        for (uint64_t round = 0; round < 8; round++)
            for (kith_id i = 0; i < 64; i++) {
                kith_id out[3][KITH_DEGREE_MAX] = {{0}};
                double weights[3][KITH_DEGREE_MAX] = {{0}};
                uint32_t count[3];
                for (int g = 0; g < 3; g++)
                    count[g] = kith_topology_neighbours(
                        &graphs[g].topology, i, round, out[g], weights[g]);
                assert_int_equal(count[0], count[1]);
                assert_memory_equal(out[0], out[1], sizeof out[0]);
                assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
                differs = differs || count[0] != count[2] ||
                          memcmp(out[0], out[2], sizeof out[0]) != 0;
            }
        const bool drawn = kith_topology_period(&graphs[0].topology) == 0 ||
                           strstr(kind->name, "random") != NULL ||
                           strstr(kind->name, "equi") != NULL ||
                           strcmp(kind->name, "erdos-renyi") == 0 ||
                           strcmp(kind->name, "watts-strogatz") == 0 ||
                           strcmp(kind->name, "barabasi-albert") == 0 ||
                           strcmp(kind->name, "matcha") == 0;
        assert_true(differs == drawn);
        for (int g = 0; g < 3; g++)
            graph_close(&graphs[g]);
    }
}

static void test_registry(void **state)
{
    (void)state;
    size_t count = 0;
    for (; kith_topology_kinds[count] != NULL; count++) {
        const struct kith_topology_kind *const kind =
            kith_topology_kinds[count];
        assert_ptr_equal(kith_topology_find(kind->name), kind);
        assert_true(strlen(kind->paper) > 0 && strlen(kind->summary) > 0);
        assert_true(kith_topology_is_any_pair(kind) == (kind->degree == NULL));
        assert_true((kind->size == NULL) == (kind->build == NULL));
        assert_true(!kind->is_static || kind->period == NULL);
    }
    assert_true(count >= 24);
    assert_non_null(kith_topology_find("one_peer_exponential"));
    assert_null(kith_topology_find("star-of-david"));
    assert_null(kith_topology_find("rin"));
    assert_null(kith_topology_find("rings"));
    assert_null(kith_topology_find(""));
}

static void refuse(const char *name, uint32_t n,
                   const struct kith_topology_options *options,
                   enum kith_err err, const char *words)
{
    struct graph graph;
    if (graph_open(name, n, 5, options, &graph) != err)
        fail_msg("%s, %u peers: not refused with %d", name, n, err);
    if (strstr(graph.error, words) == NULL)
        fail_msg("%s: no \"%s\" in: %s", name, words, graph.error);
}

static void test_limits(void **state)
{
    (void)state;
    struct kith_topology topology;
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        refuse(kith_topology_kinds[k]->name, KITH_PEERS_MAX + 1, NULL,
               KITH_ELIMIT, "1 to 1048576");
        refuse(kith_topology_kinds[k]->name, 0, NULL, KITH_ELIMIT, "1 to");
    }
    refuse("complete", 66, NULL, KITH_ELIMIT, "more than 64");
    refuse("star", 66, NULL, KITH_ELIMIT, "found star");
    refuse("hypercube", 48, NULL, KITH_EINVAL, "power of two");
    refuse("regions", 1000, &(struct kith_topology_options){.regions = 4},
           KITH_ELIMIT, "more than 64");
    refuse("regions", 10, &(struct kith_topology_options){.regions = 11},
           KITH_EINVAL, "regions: found 11");
    refuse("circulant", 9, &(struct kith_topology_options){.degree = 3},
           KITH_EINVAL, "degree: found 3");
    refuse("circulant", 9, &(struct kith_topology_options){.degree = 9},
           KITH_EINVAL, "up to 8");
    refuse("random-regular", 9, &(struct kith_topology_options){.degree = 5},
           KITH_EINVAL, "degree: found 5");
    refuse("random-regular", 1000000,
           &(struct kith_topology_options){.degree = 66}, KITH_ELIMIT,
           "more than 64");
    refuse("random-regular", 9, &(struct kith_topology_options){.degree = 1},
           KITH_EINVAL, "allowed: 2 to 8");
    refuse("ring", 20000,
           &(struct kith_topology_options){.weights = KITH_WEIGHTS_OPTIMAL},
           KITH_ELIMIT, "weights: found optimal");
    refuse("watts-strogatz", 9, &(struct kith_topology_options){.degree = 9},
           KITH_EINVAL, "degree: found 9");
    refuse("barabasi-albert", 4, &(struct kith_topology_options){.degree = 4},
           KITH_EINVAL, "degree: found 4");
    refuse("barabasi-albert", 20000,
           &(struct kith_topology_options){.degree = 8}, KITH_ELIMIT,
           "more than 64");
    refuse("erdos-renyi", 200,
           &(struct kith_topology_options){.probability = 0.9}, KITH_ELIMIT,
           "more than 64");
    refuse("erdos-renyi", 64,
           &(struct kith_topology_options){.probability = 0.001}, KITH_EINVAL,
           "not connected");
    refuse("equistatic", 8, &(struct kith_topology_options){.degree = 8},
           KITH_EINVAL, "degree: found 8");
    refuse("matcha", 2000, NULL, KITH_ELIMIT, "up to 1024");
    refuse("matcha", 20,
           &(struct kith_topology_options){
               .graph = kith_topology_find("exponential")},
           KITH_EINVAL, "graph: found exponential");
    refuse("matcha", 20,
           &(struct kith_topology_options){.graph =
                                               kith_topology_find("hypercube")},
           KITH_EINVAL, "power of two");
    /* Computed ones need no memory, however many. */
    assert_int_equal(kith_topology_open(kith_topology_find("exponential"),
                                        KITH_PEERS_MAX, &topology),
                     KITH_OK);
    assert_int_equal(kith_topology_open(kith_topology_find("random-matching"),
                                        KITH_PEERS_MAX, &topology),
                     KITH_OK);
    assert_int_equal(
        kith_topology_open(kith_topology_find("base"), 7, &topology),
        KITH_EINVAL);
}

/* Chi-square of `draws` over the peers allowed: below df + 5 sqrt(2 df). */
static void assert_uniform(const uint32_t *counts, const bool *allowed,
                           uint32_t peers, uint32_t draws)
{
    uint32_t cells = 0;
    for (uint32_t i = 0; i < peers; i++)
        cells += allowed[i];
    double chi = 0;
    const double expected = (double)draws / cells;
    for (uint32_t i = 0; i < peers; i++) {
        if (!allowed[i]) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        const double gap = counts[i] - expected;
        chi += gap * gap / expected;
    }
    const double freedom = cells - 1.0;
    assert_true(chi <= freedom + 5 * sqrt(2 * freedom) + 1e-9);
}

static void allow_neighbours(const struct kith_topology *topology, kith_id self,
                             bool *allowed)
{
    kith_id out[KITH_DEGREE_MAX];
    const uint32_t count =
        kith_topology_neighbours(topology, self, 3, out, NULL);
    for (kith_id i = 0; i < topology->peers; i++)
        allowed[i] = kith_topology_is_any_pair(topology->kind) && i != self;
    for (uint32_t k = 0; k < count; k++)
        allowed[out[k]] = true;
}

static void check_partners(const struct kith_topology_kind *kind,
                           uint32_t peers, const kith_id *avoid,
                           uint32_t avoid_count)
{
    enum { DRAWS = 20000 };
    struct graph graph;
    if (!open_kind(kind, peers, &graph))
        return;
    const struct kith_topology topology = graph.topology;
    const kith_id self = peers / 2;
    bool allowed[LARGEST], left = false, any = false;
    allow_neighbours(&topology, self, allowed);
    for (kith_id i = 0; i < peers; i++)
        any = any || allowed[i];
    for (kith_id i = 0; i < peers; i++) {
        bool avoided = false;
        for (uint32_t k = 0; k < avoid_count; k++)
            avoided = avoided || avoid[k] == i;
        left = left || (allowed[i] && !avoided);
    }
    for (uint32_t k = 0; left && k < avoid_count; k++)
        if (avoid[k] < peers)
            allowed[avoid[k]] = false;

    struct kith_rng rng;
    kith_rng_init(&rng, 31, KITH_STREAM_PARTNER, self);
    uint32_t counts[LARGEST] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double weight = 0;
        const kith_id partner = kith_topology_partner(
            &topology, self, 3, &rng, avoid, avoid_count, &weight);
        if (!any) {
            assert_true(partner == KITH_NOBODY); /* sits this round out */
            continue;
        }
        assert_true(partner < peers && partner != self);
        assert_true(weight > 0 && weight <= 0.5);
        assert_true(kind->directed || weight == 0.5);
        counts[partner]++;
    }
    if (any)
        assert_uniform(counts, allowed, peers, DRAWS);
    graph_close(&graph);
}

static void test_partners(void **state)
{
    (void)state;
    static const kith_id few[] = {9, 7, 9, 8, KITH_NOBODY, 0};
    kith_id all[LARGEST - 1];
    for (kith_id i = 0; i + 1 < LARGEST; i++)
        all[i] = i;

    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *const kind = kith_topology_kinds[k];
        check_partners(kind, 2, NULL, 0);
        check_partners(kind, 16, NULL, 0);
        check_partners(kind, 17, few, 6);
        check_partners(kind, 17, all, 17); /* nobody left: the list is moot */
        check_partners(kind, 33, all, 32);
        check_partners(kind, 64, all, 64);
    }
}

static void test_alone(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 32, KITH_STREAM_PARTNER, 0);
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        struct graph graph;
        assert_true(open_kind(kith_topology_kinds[k], 1, &graph));
        const struct kith_topology topology = graph.topology;
        double weight;
        kith_id out[KITH_DEGREE_MAX];

        assert_int_equal(kith_topology_neighbours(&topology, 0, 0, out, NULL),
                         0);
        assert_int_equal(
            kith_topology_partner(&topology, 0, 0, &rng, NULL, 0, &weight),
            KITH_NOBODY);
        assert_int_equal(kith_topology_degree(&topology, 0), 0);
        graph_close(&graph);
    }
}

/* A draw costs one word of the stream, whatever is avoided: traces of runs
 * with and without a suspect stay comparable. */
static void test_one_word_per_draw(void **state)
{
    (void)state;
    static const kith_id avoid[] = {3, 4};
    struct kith_topology topology;
    assert_int_equal(
        kith_topology_open(kith_topology_find("random"), 1000, &topology),
        KITH_OK);
    struct kith_rng rng;
    kith_rng_init(&rng, 33, KITH_STREAM_PARTNER, 0);
    double weight;

    kith_topology_partner(&topology, 0, 0, &rng, NULL, 0, &weight);
    assert_int_equal(rng.used, 1);
    kith_topology_partner(&topology, 0, 0, &rng, avoid, 2, &weight);
    assert_int_equal(rng.used, 2);
}

/* Of a graph with directions either end of an edge may serve who adopts. */
static void test_donors(void **state)
{
    (void)state;
    struct kith_topology topology;
    assert_int_equal(
        kith_topology_open(kith_topology_find("collective-ring"), 6, &topology),
        KITH_OK);
    static const kith_id avoid[] = {1};
    struct kith_rng rng;
    kith_rng_init(&rng, 34, KITH_STREAM_PARTNER, 0);
    unsigned drawn[6] = {0};
    for (unsigned i = 0; i < 64; i++)
        drawn[kith_topology_donor(&topology, 0, i, &rng, NULL, 0)]++;
    assert_true(drawn[1] > 0 && drawn[5] > 0);
    assert_int_equal(drawn[1] + drawn[5], 64);
    assert_int_equal(kith_topology_donor(&topology, 0, 0, &rng, avoid, 1), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_donors),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_every_weight),
        cmocka_unit_test(test_every_draw),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_partners),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_one_word_per_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
