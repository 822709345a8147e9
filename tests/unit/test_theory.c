/* Goal: the averaging rules do what their mathematics says, to 1e-12.
 * Method: the algorithms' own hooks and the topologies' own weights, in
 * float64, driven round by round; then the same rounds through kith_node_step.
 * Every test prints what is expected and what was measured.
 * Expected values: Metropolis-Hastings spectra, Boyd et al. 2006; one-step
 * contractions of randomised gossip; Kempe et al. 2003 (push-sum). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node_network.h"

#define PEERS_MAX 64
static const double PI = 3.14159265358979323846;

static const struct kith_backend *backend;
static struct kith_topology graph;

static void open_graph(const char *name, uint32_t n)
{
    backend = kith_backend_find("naive64");
    assert_int_equal(kith_topology_open(kith_topology_find(name), n, &graph),
                     KITH_OK);
}

static double norm(const double *x, uint32_t n)
{
    double mean = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum);
}

/* Takes the mean out and returns it. */
static double centre(double *x, uint32_t n)
{
    double mean = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        x[i] -= mean;
    return mean;
}

/* x_i <- x_i + w (received - sent) by the algorithm's merge hook. */
static void mix(const char *algorithm, double weight, double received,
                double sent, double *x)
{
    struct kith_work_edge edge = {.weight = weight};
    struct kith_algebra algebra = {.backend = backend,
                                   .dim = 1,
                                   .live = x,
                                   .sent = &sent,
                                   .received = &received};
    kith_algorithm_find(algorithm)->merge(&algebra, &edge);
}

/* One synchronous round of W: for a directed graph the share goes forward. */
static void round_of(double *x, uint64_t round)
{
    double before[PEERS_MAX];
    memcpy(before, x, sizeof before);
    for (kith_id i = 0; i < graph.peers; i++) {
        kith_id to[KITH_DEGREE_MAX];
        double w[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_neighbours(&graph, i, round, to, w);
        for (uint32_t e = 0; e < count; e++)
            if (graph.kind->directed)
                mix("dpsgd", w[e], before[i], before[to[e]], &x[to[e]]);
            else
                mix("dpsgd", w[e], before[to[e]], before[i], &x[i]);
    }
}

static void check(const char *what, double expected, double measured,
                  double tolerance)
{
    printf("  %-44s expected %.12g measured %.12g\n", what, expected, measured);
    assert_true(fabs(measured - expected) <= tolerance);
}

/* T1: from an eigenvector of rho the norm is rho^t; from a random start the
 * slope tends to log rho; the mean stays. */
static void consensus(const char *name, uint32_t n, double rho, double wave)
{
    char what[64];
    double x[PEERS_MAX], scratch[KITH_RHO_SCRATCH(PEERS_MAX)];
    open_graph(name, n);
    snprintf(what, sizeof what, "T1 %s-%u rho", name, n);
    check(what, rho, kith_topology_rho(&graph, scratch, NULL), 1e-10);
    if (wave > 0 && rho > 0) {
        for (uint32_t i = 0; i < n; i++)
            x[i] = cos(2 * PI * wave * i / n);
        for (uint32_t i = 0; i < n; i++)
            if (fabs(x[i]) < 1e-15)
                x[i] = 0; /* cos(pi / 2) is not: keep the eigenvector exact */
        const double start = norm(x, n);
        for (int t = 0; t < 50; t++)
            round_of(x, 0);
        snprintf(what, sizeof what, "T1 %s-%u |x_50|/|x_0| / rho^50", name, n);
        check(what, 1, norm(x, n) / start / pow(rho, 50), 1e-10);
    }
    /* Random start. Centred again at every step, so that rounding shrinks with
     * x; what is taken out is the drift of the mean. */
    struct kith_rng rng;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = kith_rng_double(&rng) - 0.5;
    (void)centre(x, n);
    const int settle = rho > 0.98 ? 2000 : 200;
    double drift = 0, first = 0;
    for (int t = 0; t < settle + 20 && rho > 0; t++) {
        if (t == settle)
            first = norm(x, n);
        round_of(x, 0);
        drift += fabs(centre(x, n));
    }
    snprintf(what, sizeof what, "T1 %s-%u drift of the mean", name, n);
    check(what, 0, drift, 1e-12);
    snprintf(what, sizeof what, "T1 %s-%u slope", name, n);
    if (rho > 0) {
        check(what, log(rho), (log(norm(x, n)) - log(first)) / 20, 1e-3);
    } else {
        round_of(x, 0);
        check(what, 0, norm(x, n), 1e-12); /* one step is enough */
    }
}

static void test_t1_consensus_rate(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 8, 16, 32, 64};
    for (int i = 0; i < 5; i++)
        consensus("ring", sizes[i], (1 + 2 * cos(2 * PI / sizes[i])) / 3, 1);
    for (int i = 0; i < 5; i++)
        consensus("complete", sizes[i], 0, 0);
    for (int i = 0; i < 5; i++) {
        const double tau = log2(sizes[i]);
        consensus("exponential", sizes[i], (tau - 1) / (tau + 1),
                  sizes[i] / 2.0);
    }
    open_graph("exponential", 17);
    double scratch[KITH_RHO_SCRATCH(PEERS_MAX)];
    check("T1 exponential-17 rho", 0.547621,
          kith_topology_rho(&graph, scratch, NULL), 1e-6);
    open_graph("exponential", 33);
    check("T1 exponential-33 rho", 0.607800,
          kith_topology_rho(&graph, scratch, NULL), 1e-6);
}

/* The same through the protocol: after t rounds of the ring the nodes hold
 * W^t x to the last bit. */
static void test_t1_through_the_protocol(void **state)
{
    (void)state;
    static struct net net;
    double x[PEERS_MAX] = {0};
    net_open(&net, "dpsgd", "ring", 16, 30, 1, 3);
    net.frozen = true;
    for (uint32_t i = 0; i < 16; i++)
        x[i] = net.peers[i].slots[KITH_SLOT_LIVE][0] = cos(2 * PI * i / 16);
    net_run(&net, 3600 * KITH_S);
    assert_int_equal(net.marks[KITH_MARK_ROUND], 16 * 30);
    open_graph("ring", 16);
    for (int t = 0; t < 30; t++)
        round_of(x, 0);
    for (uint32_t i = 0; i < 16; i++)
        assert_true(net.peers[i].slots[KITH_SLOT_LIVE][0] == x[i]);
    net_close(&net);
}

/* T2: E[Gamma'/Gamma] over random zero-mean starts, 3 standard errors. */
static void contraction(uint32_t n, bool matching, double expected)
{
    char what[64];
    struct kith_rng rng;
    double sum = 0, squares = 0;
    const int trials = 20000;
    open_graph("random", n);
    kith_rng_init(&rng, 2, KITH_STREAM_TEST, n);
    for (int trial = 0; trial < trials; trial++) {
        double x[PEERS_MAX];
        uint32_t order[PEERS_MAX];
        for (uint32_t i = 0; i < n; i++) {
            order[i] = i;
            x[i] = kith_rng_double(&rng) + kith_rng_double(&rng) - 1;
        }
        const double before = norm(x, n);
        if (matching)
            kith_rng_shuffle(&rng, order, n);
        else {
            double weight;
            order[0] = kith_rng_below(&rng, n);
            order[1] = kith_topology_partner(&graph, order[0], 0, &rng, NULL, 0,
                                             &weight);
            assert_true(weight == 0.5);
        }
        for (uint32_t i = 0; i + 1 < (matching ? n : 2); i += 2) {
            const double a = x[order[i]], b = x[order[i + 1]];
            mix("adpsgd", 0.5, b, a, &x[order[i]]);
            mix("adpsgd", 0.5, a, b, &x[order[i + 1]]);
        }
        const double ratio = pow(norm(x, n) / before, 2);
        sum += ratio;
        squares += ratio * ratio;
    }
    const double mean = sum / trials;
    const double error = sqrt((squares / trials - mean * mean) / trials);
    snprintf(what, sizeof what, "T2 %s n=%u",
             matching ? "random matching" : "one random pair", n);
    check(what, expected, mean, 3 * error);
}

static void test_t2_randomised_contraction(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 8, 16, 32};
    for (int i = 0; i < 4; i++)
        contraction(sizes[i], true,
                    (sizes[i] - 2.0) / (2.0 * (sizes[i] - 1.0)));
    contraction(16, false, 1 - 1.0 / 15);
}

/* Push-sum over the one-peer exponential graph, synchronous rounds. */
struct push_sum {
    double x[PEERS_MAX], w[PEERS_MAX];
};

static void push_round(struct push_sum *all, uint64_t round, double loss,
                       struct kith_rng *rng)
{
    const struct kith_algorithm *sgp = kith_algorithm_find("sgp");
    double sent[PEERS_MAX];
    struct kith_work_edge edges[PEERS_MAX];
    kith_id to[PEERS_MAX];
    for (kith_id i = 0; i < graph.peers; i++) {
        kith_id out[KITH_DEGREE_MAX];
        assert_int_equal(kith_topology_neighbours(&graph, i, round, out, NULL),
                         1);
        to[i] = out[0];
        edges[i] = (struct kith_work_edge){.weight = 0.5};
        struct kith_algebra algebra = {.backend = backend,
                                       .dim = 1,
                                       .live = &all->x[i],
                                       .scalars = &all->w[i],
                                       .sent = &sent[i]};
        sgp->make(&algebra, &edges[i]);
    }
    for (kith_id i = 0; i < graph.peers; i++) {
        if (loss > 0 && kith_rng_double(rng) < loss)
            continue;
        edges[i].scalars_received[0] = edges[i].scalars_sent[0];
        struct kith_algebra algebra = {.backend = backend,
                                       .dim = 1,
                                       .live = &all->x[to[i]],
                                       .scalars = &all->w[to[i]],
                                       .received = &sent[i]};
        sgp->merge(&algebra, &edges[i]);
    }
}

/* Zero mean, rms 1. */
static void start_apart(double *x, int n, struct kith_rng *rng)
{
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += (x[i] = kith_rng_double(rng)) / n;
    for (int i = 0; i < n; i++)
        square += pow(x[i] - mean, 2) / n;
    for (int i = 0; i < n; i++)
        x[i] = (x[i] - mean) / sqrt(square);
}

static void keep_own_round(double *x, uint64_t round, double loss,
                           struct kith_rng *rng)
{
    double before[PEERS_MAX];
    memcpy(before, x, sizeof before);
    for (kith_id i = 0; i < graph.peers; i++) {
        kith_id to[KITH_DEGREE_MAX];
        (void)kith_topology_neighbours(&graph, i, round, to, NULL);
        if (kith_rng_double(rng) >= loss)
            mix("adpsgd", 0.5, before[i], before[to[0]], &x[to[0]]);
    }
}

static void test_t4_push_sum(void **state)
{
    (void)state;
    struct push_sum all;
    struct kith_rng rng;
    open_graph("one-peer-exponential", 16);
    kith_rng_init(&rng, 4, KITH_STREAM_TEST, 0);
    double mean = 0;
    for (int i = 0; i < 16; i++) {
        all.w[i] = 1;
        mean += (all.x[i] = kith_rng_double(&rng)) / 16;
    }
    double worst = 0;
    for (uint64_t t = 0; t < 4; t++) {
        push_round(&all, t, 0, &rng);
        double sum = 0, weights = 0;
        for (int i = 0; i < 16; i++) {
            sum += all.x[i];
            weights += all.w[i];
        }
        assert_true(fabs(sum / 16 - mean) < 1e-12);
        assert_true(fabs(weights - 16) < 1e-12);
    }
    for (int i = 0; i < 16; i++)
        worst = fmax(worst, fabs(all.x[i] / all.w[i] - mean));
    check("T4 no loss: worst error after 4 rounds", 0, worst, 1e-12);

    static const double losses[] = {0.01, 0.05, 0.1, 0.3};
    static const double rms[] = {0.017, 0.036, 0.054, 0.095};
    const int runs = 2000;
    for (int q = 0; q < 4; q++) {
        char what[64];
        double mass = 0, squares = 0, errors = 0;
        for (int run = 0; run < runs; run++) {
            double left = 0;
            start_apart(all.x, 16, &rng);
            for (int i = 0; i < 16; i++)
                all.w[i] = 1;
            for (uint64_t t = 0; t < 80; t++)
                push_round(&all, t, losses[q], &rng);
            for (int i = 0; i < 16; i++) {
                left += all.w[i] / 16;
                errors += pow(all.x[i] / all.w[i], 2) / 16;
            }
            mass += left;
            squares += left * left;
        }
        mass /= runs;
        const double error = sqrt((squares / runs - mass * mass) / runs);
        snprintf(what, sizeof what, "T4 loss %g: mass left at t = 80",
                 losses[q]);
        check(what, pow(1 - losses[q] / 2, 80), mass, 3 * error);
        snprintf(what, sizeof what, "T4 loss %g: rms error of x / w",
                 losses[q]);
        check(what, rms[q], sqrt(errors / runs), 0.06 * rms[q] + 0.001);
    }
}

/* What push-sum is better than: plain averaging that keeps its own where the
 * other half is lost. */
static void test_t4_keep_own(void **state)
{
    (void)state;
    static const double losses[] = {0.01, 0.05, 0.1, 0.3};
    static const double rms[] = {0.025, 0.055, 0.077, 0.130};
    const int runs = 2000;
    struct kith_rng rng;
    open_graph("one-peer-exponential", 16);
    kith_rng_init(&rng, 4, KITH_STREAM_TEST, 1);
    for (int q = 0; q < 4; q++) {
        char what[64];
        double errors = 0;
        for (int run = 0; run < runs; run++) {
            double x[PEERS_MAX];
            start_apart(x, 16, &rng);
            for (uint64_t t = 0; t < 80; t++)
                keep_own_round(x, t, losses[q], &rng);
            for (int i = 0; i < 16; i++)
                errors += x[i] * x[i] / 16;
        }
        snprintf(what, sizeof what, "T4 loss %g: rms error, own kept",
                 losses[q]);
        check(what, rms[q], sqrt(errors / runs), 0.06 * rms[q] + 0.001);
    }
}

/* T5: of all ways to draw tau matrices out of tau, with replacement, the
 * permutations are exact and no other is. */
static void test_t5_any_order_none_twice(void **state)
{
    (void)state;
    enum { TAU = 4, WAYS = 256 };
    unsigned exact = 0, permutations = 0;
    open_graph("one-peer-exponential", 1u << TAU);
    for (unsigned way = 0; way < WAYS; way++) {
        struct push_sum all;
        unsigned used = 0;
        bool same = true;
        for (unsigned i = 0; i < 1u << TAU; i++) {
            all.w[i] = 1;
            all.x[i] = i * 37 % 101;
        }
        for (unsigned t = 0; t < TAU; t++) {
            const unsigned drawn = way >> 2 * t & 3;
            push_round(&all, drawn, 0, NULL);
            used |= 1u << drawn;
        }
        for (unsigned i = 1; i < 1u << TAU; i++)
            same = same && all.x[i] == all.x[0];
        exact += same;
        permutations += same && used == (1u << TAU) - 1;
    }
    check("T5 n=16: exact of 256 ways to draw 4 rounds", 24, exact, 0);
    check("T5   of which permutations", 24, permutations, 0);
}

/* T5: n = 2^tau, integers: every peer holds the mean to the last bit after tau
 * rounds, in float32, for any starting round. */
static void test_t5_one_peer_exponential_is_exact(void **state)
{
    (void)state;
    const struct kith_backend *single = kith_backend_find("naive32");
    const struct kith_algorithm *sgp = kith_algorithm_find("sgp");
    for (uint32_t tau = 1; tau <= 6; tau++) {
        const uint32_t n = 1u << tau;
        unsigned off = 0;
        open_graph("one-peer-exponential", n);
        for (uint64_t start = 0; start < tau; start++) {
            float x[PEERS_MAX], sent[PEERS_MAX];
            double w[PEERS_MAX], sum = 0;
            struct kith_work_edge edges[PEERS_MAX];
            for (uint32_t i = 0; i < n; i++) {
                w[i] = 1;
                x[i] = (float)(i * 37 % 101);
                sum += (double)x[i];
            }
            for (uint64_t t = start; t < start + tau; t++) {
                kith_id to[PEERS_MAX];
                for (kith_id i = 0; i < n; i++) {
                    kith_id out[KITH_DEGREE_MAX];
                    kith_topology_neighbours(&graph, i, t, out, NULL);
                    to[i] = out[0];
                    edges[i] = (struct kith_work_edge){.weight = 0.5};
                    sgp->make(&(struct kith_algebra){.backend = single,
                                                     .dim = 1,
                                                     .live = &x[i],
                                                     .scalars = &w[i],
                                                     .sent = &sent[i]},
                              &edges[i]);
                }
                for (kith_id i = 0; i < n; i++) {
                    edges[i].scalars_received[0] = edges[i].scalars_sent[0];
                    sgp->merge(&(struct kith_algebra){.backend = single,
                                                      .dim = 1,
                                                      .live = &x[to[i]],
                                                      .scalars = &w[to[i]],
                                                      .received = &sent[i]},
                               &edges[i]);
                }
            }
            for (uint32_t i = 0; i < n; i++)
                off += x[i] != (float)(sum / n) || w[i] != 1.0;
        }
        printf("  T5 n=%u, %u rounds, any start: peers whose bits are not the "
               "mean's expected 0 measured %u\n",
               n, tau, off);
        assert_int_equal(off, 0);
    }
}

/* T13: D-PSGD on the complete graph moves its mean exactly as synchronous SGD
 * does (curvature 1); push-sum on a doubly stochastic schedule keeps w = 1;
 * a pair that swaps ends with one model. */
static void test_t13_degenerate_equalities(void **state)
{
    (void)state;
    const uint32_t n = 8;
    const double rate = 0.1;
    double x[PEERS_MAX] = {0}, target[PEERS_MAX], centre = 0, mean = 0;
    open_graph("complete", n);
    for (uint32_t i = 0; i < n; i++) {
        target[i] = sin(i + 1.0);
        mean += target[i] / n;
    }
    double worst = 0;
    for (int t = 0; t < 200; t++) {
        double gradient[PEERS_MAX], average = 0;
        for (uint32_t i = 0; i < n; i++)
            gradient[i] = x[i] - target[i];
        round_of(x, 0);
        for (uint32_t i = 0; i < n; i++) {
            x[i] -= rate * gradient[i];
            average += x[i] / n;
        }
        centre -= rate * (centre - mean);
        worst = fmax(worst, fabs(average - centre));
    }
    check("T13 D-PSGD(J) mean - synchronous SGD", 0, worst, 1e-12);

    struct push_sum all;
    open_graph("one-peer-exponential", 12); /* not a power of two */
    for (int i = 0; i < 12; i++)
        all.w[i] = all.x[i] = 1;
    worst = 0;
    for (uint64_t t = 0; t < 100; t++) {
        push_round(&all, t, 0, NULL);
        for (int i = 0; i < 12; i++)
            worst = fmax(worst, fabs(all.w[i] - 1));
    }
    check("T13 SGP weight - 1, doubly stochastic", 0, worst, 1e-12);

    double a = 0.1, b = 7.3;
    const double a0 = a, b0 = b;
    mix("adpsgd", 0.5, b0, a0, &a);
    mix("adpsgd", 0.5, a0, b0, &b);
    check("T13 pair: difference after a swap", 0, a - b, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t1_consensus_rate),
        cmocka_unit_test(test_t1_through_the_protocol),
        cmocka_unit_test(test_t2_randomised_contraction),
        cmocka_unit_test(test_t4_push_sum),
        cmocka_unit_test(test_t4_keep_own),
        cmocka_unit_test(test_t5_one_peer_exponential_is_exact),
        cmocka_unit_test(test_t5_any_order_none_twice),
        cmocka_unit_test(test_t13_degenerate_equalities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
