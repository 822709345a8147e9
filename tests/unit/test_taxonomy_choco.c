/* Goal: CHOCO-Gossip contracts as measured and as proven (T9), keeps the mean,
 * and diverges where gamma is too large.
 * Method: a ring of 8, 2,000 values each, nearly normal, copies at 0, in
 * float64 through the simulator; the factor of the squared error in an
 * iteration, fitted over the second half. Every line prints what is expected
 * and measured. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/probe.h"

enum { PEERS = 8, DIM = 2000, SIZE = PEERS * DIM };

struct found {
    double factor; /* of the squared error, per iteration */
    double last;   /* what is left of it at the end, relative */
    double drift;  /* of the mean, the largest */
};

static struct found gossip(const char *compressor, double gamma, unsigned seed,
                           unsigned iterations)
{
    struct probe probe = {.period = iterations / 2};
    double before[DIM], after[DIM];
    probe_must(&probe,
               "name: t9\nseed: %u\npeers: %d\nstop: {steps: %u}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive64}\n"
               "gossip: {algorithm: choco, topology: ring, compressor: %s, "
               "density: 0.01, consensus: %.17g}\n"
               "network: {latency: 1us}\ncompute: {step: 1ms}\n",
               seed, PEERS, iterations, DIM, compressor, gamma);
    const double *x = probe.history;
    const double spread[3] = {probe_spread(x, PEERS, DIM),
                              probe_spread(x + SIZE, PEERS, DIM),
                              probe_spread(x + 2 * SIZE, PEERS, DIM)};
    probe_mean(x, PEERS, DIM, before);
    probe_mean(x + 2 * SIZE, PEERS, DIM, after);
    const struct found found = {
        .factor = pow(spread[2] / spread[1], 2.0 / iterations),
        .last = spread[2] / spread[0],
        .drift = probe_distance(after, before, DIM)};
    probe_close(&probe);
    return found;
}

static void check_mean(const char *compressor, double gamma,
                       const struct found *found)
{
    if (!(found->drift < 1e-10))
        fail_msg("%s, gamma %g: the mean moved by %g", compressor, gamma,
                 found->drift);
}

static void test_t9_top_k(void **state)
{
    (void)state;
    static const double gammas[] = {.005, .01, .02, .03};
    static const double factors[] = {.99799, .99588, .99148, .98654};
    for (unsigned i = 0; i < 4; i++) {
        const struct found found = gossip("top-k", gammas[i], 1, 3000);
        printf("  T9 top 1 %%, gamma %.3f: factor expected %.5f measured %.5f, "
               "left %.1e, mean off by %.1e\n",
               gammas[i], factors[i], found.factor, found.last, found.drift);
        assert_true(fabs(found.factor - factors[i]) < 3e-4);
        check_mean("top-k", gammas[i], &found);
    }
    const struct found wide = gossip("top-k", 0.05, 1, 3000);
    printf("  T9 top 1 %%, gamma 0.050: expected above 1, measured %.5f\n",
           wide.factor);
    assert_true(wide.factor > 1);
}

static void test_t9_random_k(void **state)
{
    (void)state;
    const struct found slow = gossip("random-k", 0.005, 1, 2000);
    printf("  T9 random 1 %%, gamma 0.005: factor expected 0.9978 measured "
           "%.5f\n",
           slow.factor);
    assert_true(fabs(slow.factor - 0.9978) < 3e-4);
    check_mean("random-k", 0.005, &slow);

    double mean = 0;
    for (unsigned seed = 1; seed <= 3; seed++) {
        const struct found found = gossip("random-k", 0.01, seed, 3000);
        check_mean("random-k", 0.01, &found);
        mean += found.factor / 3;
    }
    printf("  T9 random 1 %%, gamma 0.010: factor expected 0.9970 measured "
           "%.5f, mean of 3 seeds\n",
           mean);
    assert_true(fabs(mean - 0.9970) < 5e-4);

    const struct found wide = gossip("random-k", 0.02, 1, 1500);
    printf("  T9 random 1 %%, gamma 0.020: expected above 1, measured %.5f\n",
           wide.factor);
    assert_true(wide.factor > 1);
}

/* gamma* = D^2 w / (16 D + D^2 + 4 B^2 + 2 D B^2 - 8 D w): 1 - D^2 w / 82. */
static void test_t9_theory(void **state)
{
    (void)state;
    const double gap = 1 - (1 + sqrt(2)) / 3; /* 1 - rho of a ring of 8 */
    const double norm = 4.0 / 3, w = 0.01;    /* |I - W|, k / d */
    const double gamma = gap * gap * w /
                         (16 * gap + gap * gap + 4 * norm * norm +
                          2 * gap * norm * norm - 8 * gap * w);
    const double bound = 1 - gap * gap * w / 82;
    static const char *const compressors[] = {"top-k", "random-k"};
    for (unsigned i = 0; i < 2; i++) {
        const struct found found = gossip(compressors[i], gamma, 1, 1000);
        printf("  T9 %s, gamma* %.2e: factor expected at most %.8f, measured "
               "%.8f\n",
               compressors[i], gamma, bound, found.factor);
        assert_true(found.factor <= bound);
        check_mean(compressors[i], gamma, &found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t9_top_k),
        cmocka_unit_test(test_t9_random_k),
        cmocka_unit_test(test_t9_theory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
