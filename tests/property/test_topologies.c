/* Goal: what every topology claims holds, at many sizes; rho of the static
 * graphs to 1e-12. Method: loop over the registry; closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kith/topology.h"

enum { SIZES = 12, LARGEST = 65 };
static const uint32_t sizes[SIZES] = {1, 2, 3, 4, 5, 8, 16, 17, 24, 33, 64, 65};

static struct kith_topology open_kind(const struct kith_topology_kind *kind,
                                      uint32_t peers)
{
    struct kith_topology topology;
    assert_int_equal(kith_topology_open(kind, peers, &topology), KITH_OK);
    return topology;
}

static struct kith_topology open_name(const char *name, uint32_t peers)
{
    const struct kith_topology_kind *const kind = kith_topology_find(name);
    assert_non_null(kind);
    return open_kind(kind, peers);
}

/* W (n, n) of one round, the diagonal being what a peer keeps. */
static void fill_matrix(const struct kith_topology *topology, uint64_t round,
                        double *w)
{
    const uint32_t n = topology->peers;
    memset(w, 0, sizeof *w * n * n);
    for (kith_id i = 0; i < n; i++) {
        kith_id out[KITH_DEGREE_MAX];
        double weights[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_neighbours(topology, i, round, out, weights);
        w[i * n + i] = 1;
        for (uint32_t k = 0; k < count; k++) {
            assert_true(out[k] < n && out[k] != i);
            assert_true(k == 0 || out[k - 1] < out[k]);
            assert_true(weights[k] > 0 && weights[k] < 1);
            w[i * n + out[k]] = weights[k];
            w[i * n + i] -= weights[k];
        }
    }
}

static void assert_doubly_stochastic(uint32_t n, const double *w)
{
    for (uint32_t i = 0; i < n; i++) {
        double row = 0, column = 0;
        for (uint32_t j = 0; j < n; j++) {
            assert_true(w[i * n + j] >= -1e-15);
            row += w[i * n + j];
            column += w[j * n + i];
        }
        assert_true(fabs(row - 1) < 1e-12);
        assert_true(fabs(column - 1) < 1e-12);
    }
}

static void assert_symmetric(uint32_t n, const double *w)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_true(w[i * n + j] == w[j * n + i]);
}

/* Everybody hears of peer 0 within n rounds. */
static void assert_connected(const struct kith_topology *topology)
{
    const uint32_t n = topology->peers;
    bool reached[LARGEST] = {true};
    for (uint64_t round = 0; round < n; round++) {
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
        assert_true(reached[i]);
}

static void test_weights(void **state)
{
    (void)state;
    static double w[LARGEST * LARGEST];
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        const struct kith_topology_kind *const kind = kith_topology_kinds[k];
        for (int s = 0; s < SIZES && !kind->any_pair; s++) {
            const struct kith_topology topology = open_kind(kind, sizes[s]);
            for (uint64_t round = 0; round < 8; round++) {
                fill_matrix(&topology, round, w);
                assert_doubly_stochastic(sizes[s], w);
                if (!kind->directed)
                    assert_symmetric(sizes[s], w);
            }
            assert_connected(&topology);
        }
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
        assert_true(kind->any_pair == (kind->neighbours == NULL));
        assert_true(kind->any_pair == (kind->degree == NULL));
    }
    assert_true(count >= 5);
    assert_non_null(kith_topology_find("one_peer_exponential"));
    assert_null(kith_topology_find("star-of-david"));
    assert_null(kith_topology_find("rin"));
    assert_null(kith_topology_find("rings"));
    assert_null(kith_topology_find(""));
}

static void test_limits(void **state)
{
    (void)state;
    struct kith_topology topology;
    const struct kith_topology_kind *const complete =
        kith_topology_find("complete");

    assert_int_equal(kith_topology_open(complete, 66, &topology), KITH_ELIMIT);
    assert_int_equal(kith_topology_open(complete, 0, &topology), KITH_ELIMIT);
    for (size_t k = 0; kith_topology_kinds[k] != NULL; k++) {
        assert_int_equal(kith_topology_open(kith_topology_kinds[k],
                                            KITH_PEERS_MAX + 1, &topology),
                         KITH_ELIMIT);
        open_kind(kith_topology_kinds[k], 65);
    }
    open_name("exponential", KITH_PEERS_MAX);
    open_name("random", KITH_PEERS_MAX);
}

static double rho_of(const char *name, uint32_t peers)
{
    double scratch[KITH_RHO_SCRATCH(LARGEST)];
    const struct kith_topology topology = open_name(name, peers);
    return kith_topology_rho(&topology, scratch);
}

static void assert_rho(const char *name, uint32_t peers, double want)
{
    const double got = rho_of(name, peers);
    if (fabs(got - want) >= 1e-12)
        fail_msg("rho of %s, %u peers: %.15f, not %.15f", name, peers, got,
                 want);
}

/* algorithms.md section 2; |W - J| of a circulant is its second eigenvalue. */
static void test_rho(void **state)
{
    (void)state;
    const double turn = 2 * acos(-1);
    for (uint32_t n = 3; n <= 64; n++)
        assert_rho("ring", n, (1 + 2 * cos(turn / n)) / 3);
    for (uint32_t n = 1; n <= 64; n++)
        assert_rho("complete", n, 0);
    for (uint32_t n = 4; n <= 64; n += 2) {
        const double tau = ceil(log2(n));
        assert_rho("exponential", n, (tau - 1) / (tau + 1));
    }
    assert_true(fabs(rho_of("exponential", 17) - .547621) < 1e-6);
    assert_true(fabs(rho_of("exponential", 33) - .607800) < 1e-6);
}

/* The product of tau rounds: J exactly for n = 2^tau, else the closed form. */
static void test_one_peer_cycle(void **state)
{
    (void)state;
    const double half_turn = acos(-1);
    for (uint32_t n = 2; n <= 64; n++) {
        const struct kith_topology topology =
            open_name("one-peer-exponential", n);
        double x[LARGEST] = {1}, squares = 0, worst = 0;
        uint32_t tau = 0;
        for (; 1u << tau < n; tau++) {
            double next[LARGEST] = {0};
            for (kith_id i = 0; i < n; i++) {
                kith_id out[KITH_DEGREE_MAX];
                double weight[KITH_DEGREE_MAX];
                assert_int_equal(
                    kith_topology_neighbours(&topology, i, tau, out, weight),
                    1);
                next[i] += (1 - weight[0]) * x[i];
                next[out[0]] += weight[0] * x[i];
            }
            memcpy(x, next, sizeof x);
        }
        for (uint32_t i = 0; i < n; i++)
            squares += (x[i] - 1.0 / n) * (x[i] - 1.0 / n);

        /* Parseval over the circulant's spectrum. */
        double want = 0;
        const double cycle = (double)(1u << tau);
        for (uint32_t k = 1; k < n; k++) {
            const double value =
                fabs(sin(half_turn * k * cycle / n) / sin(half_turn * k / n)) /
                cycle;
            want += value * value / n;
            worst = value > worst ? value : worst;
        }
        if (1u << tau == n)
            for (uint32_t i = 0; i < n; i++)
                assert_true(x[i] == 1.0 / n);
        assert_true(fabs(squares - want) < 1e-13);
        if (n == 6)
            assert_true(fabs(worst - .216506) < 1e-6);
        if (n == 24)
            assert_true(fabs(worst - .207340) < 1e-6);
    }
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
        allowed[i] = topology->kind->any_pair && i != self;
    for (uint32_t k = 0; k < count; k++)
        allowed[out[k]] = true;
}

static void check_partners(const struct kith_topology_kind *kind,
                           uint32_t peers, const kith_id *avoid,
                           uint32_t avoid_count)
{
    enum { DRAWS = 20000 };
    const struct kith_topology topology = open_kind(kind, peers);
    const kith_id self = peers / 2;
    bool allowed[LARGEST], left = false;
    allow_neighbours(&topology, self, allowed);
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
        assert_true(partner < peers && partner != self);
        assert_true(weight > 0 && weight <= 0.5);
        assert_true(kind->directed || weight == 0.5);
        counts[partner]++;
    }
    assert_uniform(counts, allowed, peers, DRAWS);
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
        const struct kith_topology topology =
            open_kind(kith_topology_kinds[k], 1);
        double weight;
        kith_id out[KITH_DEGREE_MAX];

        assert_int_equal(kith_topology_neighbours(&topology, 0, 0, out, NULL),
                         0);
        assert_int_equal(
            kith_topology_partner(&topology, 0, 0, &rng, NULL, 0, &weight),
            KITH_NOBODY);
    }
}

/* A draw costs one word of the stream, whatever is avoided: traces of runs
 * with and without a suspect stay comparable. */
static void test_one_word_per_draw(void **state)
{
    (void)state;
    static const kith_id avoid[] = {3, 4};
    const struct kith_topology topology = open_name("random", 1000);
    struct kith_rng rng;
    kith_rng_init(&rng, 33, KITH_STREAM_PARTNER, 0);
    double weight;

    kith_topology_partner(&topology, 0, 0, &rng, NULL, 0, &weight);
    assert_int_equal(rng.used, 1);
    kith_topology_partner(&topology, 0, 0, &rng, avoid, 2, &weight);
    assert_int_equal(rng.used, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_rho),
        cmocka_unit_test(test_one_peer_cycle),
        cmocka_unit_test(test_partners),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_one_word_per_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
