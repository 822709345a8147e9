/* Goal: noise in the gradients keeps up a spread between peers that is known in
 * closed form (T8); SPARTA contracts as it should (T2).
 * Method: gradients that are nothing but noise N(0, s^2 I_d), eta = 0.1, s = 1,
 * a steady state, float64; Gamma = sum |x_i - mean|^2 per coordinate, mean over
 * seeds within 3 standard errors. Rounds run through the simulator, SPARTA's
 * masks through its own hooks. Every line prints what is expected and measured.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "tests/support/probe.h"

enum { PEERS = 16, DIM = 64 };
static const double PI = 3.14159265358979323846;
static const double eta = 0.1;

static void check(const char *what, double expected, double sum, double squares,
                  unsigned runs)
{
    const double mean = sum / runs;
    const double error = sqrt((squares / runs - mean * mean) / runs);
    printf("  T8 %-44s expected %.5f measured %.5f +- %.5f\n", what, expected,
           mean, error);
    assert_true(error < 0.05 * expected);
    assert_true(fabs(mean - expected) < 3 * error);
}

static void steady(const char *what, const char *gossip, unsigned steps,
                   unsigned seeds, double expected)
{
    double sum = 0, squares = 0;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        struct probe probe = {.period = 0};
        probe_must(&probe,
                   "name: t8\nseed: %u\npeers: %d\nstop: {steps: %u}\n"
                   "model: {kind: noise, dim: %d}\n"
                   "train: {backend: naive64, learning_rate: %g}\n"
                   "gossip: {%s}\n"
                   "network: {latency: 1us}\ncompute: {step: 1ms}\n",
                   seed, PEERS, steps, DIM, eta, gossip);
        const double spread = probe_spread(probe.z, PEERS, DIM) / DIM;
        sum += spread;
        squares += spread * spread;
        probe_close(&probe);
    }
    check(what, expected, sum, squares, seeds);
}

static void test_t8_rounds(void **state)
{
    (void)state;
    double ring = 0;
    for (int mode = 1; mode < PEERS; mode++) {
        const double l = (1 + 2 * cos(2 * PI * mode / PEERS)) / 3;
        ring += eta * eta * l * l / (1 - l * l);
    }
    assert_true(fabs(ring - 0.23553) < 5e-6);
    steady("D-PSGD ATC, ring-16", "algorithm: dpsgd-atc, topology: ring", 120,
           60, ring);
    /* All take H = 5 steps, then pairs average: (n-1)(1-2/n) H eta^2 s^2. */
    steady("pairs, H = 5, n = 16",
           "algorithm: dpsgd-atc, topology: random-matching, every: 5", 150, 60,
           15 * (1 - 2.0 / PEERS) * 5 * eta * eta);
    /* 5 steps after the third average of all: n H eta^2 s^2 (1 - 1/n). */
    steady("local SGD, 5 steps after an average",
           "algorithm: dpsgd-atc, topology: complete, every: 6", 3 * 6 + 5, 30,
           PEERS * 5 * eta * eta * (1 - 1.0 / PEERS));
}

/* SPARTA over a random matching: each coordinate of each pair has the chance p
 * to be averaged, after a step of noise. */
static void sparta_round(struct kith_rng *rng, double *x, unsigned n, size_t d,
                         double share, uint64_t round)
{
    static double sent[2][256];
    const struct kith_algorithm *sparta = kith_algorithm_find("sparta");
    const double coefficients[KITH_GOSSIP_KEY_COUNT] = {[KITH_GOSSIP_SHARE] =
                                                            share};
    uint32_t order[PEERS];
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    kith_rng_shuffle(rng, order, n);
    for (unsigned pair = 0; pair < n; pair += 2) {
        struct kith_work_edge edge = {.weight = 0.5};
        struct kith_algebra algebra[2];
        for (unsigned side = 0; side < 2; side++) {
            algebra[side] =
                (struct kith_algebra){.backend = kith_backend_find("naive64"),
                                      .dim = d,
                                      .coefficients = coefficients,
                                      .live = x + order[pair + side] * d,
                                      .sent = sent[side],
                                      .received = sent[1 - side],
                                      .seed = 1,
                                      .round = round * PEERS + pair};
            assert_true(sparta->payload(&algebra[side]) <= sizeof sent[0]);
            sparta->make(&algebra[side], &edge);
        }
        for (unsigned side = 0; side < 2; side++)
            sparta->merge(&algebra[side], &edge);
    }
}

/* Gamma' = (1 - p (1 - q)) (Gamma + (n - 1) eta^2 s^2), q what a matching
 * leaves of Gamma; n = 2: q = 0, per node eta^2 s^2 (1 - p) / p (1 - 1 / n). */
static void sparta(unsigned n, double share)
{
    enum { WIDE = 1000, RUNS = 16 };
    static double x[PEERS * WIDE];
    const double left = (n - 2.0) / (2 * (n - 1.0));
    const double p = share * (1 - left);
    const double expected = (1 - p) / p * (1 - 1.0 / n) * eta * eta;
    double sum = 0, squares = 0;
    char what[64];
    for (unsigned run = 0; run < RUNS; run++) {
        struct kith_rng rng;
        kith_rng_init(&rng, run, KITH_STREAM_TEST, n);
        memset(x, 0, sizeof x);
        for (uint64_t t = 0; (double)t < 8 / p; t++) {
            for (size_t i = 0; i < n * WIDE; i++) {
                double step = -6;
                for (unsigned k = 0; k < 12; k++)
                    step += kith_rng_double(&rng);
                x[i] += eta * step;
            }
            sparta_round(&rng, x, n, WIDE, share, run * 100000 + t);
        }
        const double spread = probe_spread(x, n, WIDE) / (n * WIDE);
        sum += spread;
        squares += spread * spread;
    }
    (void)snprintf(what, sizeof what, "SPARTA n = %u, p = %g, per node", n,
                   share);
    check(what, expected, sum, squares, RUNS);
}

static void test_t8_sparta(void **state)
{
    (void)state;
    sparta(2, 0.1);
    sparta(2, 0.05);
    sparta(16, 0.2);
}

/* T2: what a round leaves of Gamma, and how many coordinates t of them touch.
 */
static void contraction(unsigned n, double share)
{
    enum { WIDE = 1000, RUNS = 400 };
    static double x[PEERS * WIDE];
    const double expected = 1 - share * (1 - (n - 2.0) / (2 * (n - 1.0)));
    double sum = 0, squares = 0;
    struct kith_rng rng;
    kith_rng_init(&rng, 9, KITH_STREAM_TEST, n);
    for (unsigned run = 0; run < RUNS; run++) {
        for (size_t i = 0; i < n * WIDE; i++)
            x[i] = kith_rng_double(&rng) - 0.5;
        const double before = probe_spread(x, n, WIDE);
        sparta_round(&rng, x, n, WIDE, share, run);
        const double left = probe_spread(x, n, WIDE) / before;
        sum += left;
        squares += left * left;
    }
    const double mean = sum / RUNS;
    const double error = sqrt((squares / RUNS - mean * mean) / RUNS);
    printf("  T2 SPARTA n = %-2u p = %g: left expected %.5f measured %.5f +- "
           "%.5f\n",
           n, share, expected, mean, error);
    assert_true(fabs(mean - expected) < 3 * error);
}

static void test_t2_sparta(void **state)
{
    (void)state;
    enum { WIDE = 8000, ROUNDS = 10000 };
    static double x[2 * WIDE];
    struct kith_rng rng;
    double touched = 0;
    contraction(2, 0.1);
    contraction(16, 0.2);
    kith_rng_init(&rng, 9, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < WIDE; i++)
        x[i] = 1;
    for (uint64_t t = 0; t < ROUNDS; t++)
        sparta_round(&rng, x, 2, WIDE, 0.0005, t);
    for (size_t i = 0; i < WIDE; i++)
        touched += (x[i] == 0.5) / (double)WIDE;
    const double expected = 1 - pow(1 - 0.0005, ROUNDS);
    const double error = sqrt(expected * (1 - expected) / WIDE);
    printf("  T2 SPARTA p = 0.0005, touched in %d rounds: expected %.5f "
           "measured %.5f +- %.5f\n",
           ROUNDS, expected, touched, error);
    assert_true(fabs(touched - expected) < 3 * error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t8_rounds),
        cmocka_unit_test(test_t8_sparta),
        cmocka_unit_test(test_t2_sparta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
