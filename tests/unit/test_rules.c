/* Goal: every algorithm that waits for its rounds does what its paper says
 * (T8.1 of the taxonomy), and corrects the bias of unlike data as predicted
 * (T6, T7).
 * Method: quadratics in float64 through the simulator, beside a reference of a
 * few lines over the dense matrix W; fixed points in closed form. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/topology.h"
#include "tests/support/trial.h"

typedef double matrix[TRIAL_PEERS_MAX][TRIAL_PEERS_MAX];
typedef double models[TRIAL_PEERS_MAX][TRIAL_DIM];

enum { N = 4, STEPS = 100, SEED = 3 };
static const double eta = 0.05;

static void ring_weights(unsigned n, matrix w)
{
    memset(w, 0, sizeof(matrix));
    for (unsigned i = 0; i < n; i++) {
        w[i][i] += 1 - 2.0 / 3;
        w[i][(i + 1) % n] += 1.0 / 3;
        w[i][(i + n - 1) % n] += 1.0 / 3;
    }
}

static void multiply(unsigned n, matrix w, models x)
{
    models y;
    memset(y, 0, sizeof y);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            for (unsigned k = 0; k < TRIAL_DIM; k++)
                y[i][k] += w[i][j] * x[j][k];
    memcpy(x, y, sizeof y);
}

/* y <- y + factor x */
static void add(double factor, models x, models y)
{
    for (unsigned i = 0; i < TRIAL_PEERS_MAX; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            y[i][k] += factor * x[i][k];
}

/* g <- x - b */
static void gradient(models x, models b, models g)
{
    memset(g, 0, sizeof(models));
    add(1, x, g);
    add(-1, b, g);
}

/* The algorithm in the simulator beside what `reference` leaves in x. */
static void compare(const char *gossip, unsigned steps,
                    void (*reference)(unsigned steps, matrix w, models b,
                                      models x))
{
    static matrix w;
    static models b, x;
    struct trial trial = {.gossip = gossip,
                          .peers = N,
                          .steps = steps,
                          .rate = eta,
                          .seed = SEED};
    if (trial_run(&trial) != KITH_OK)
        fail_msg("%s", trial.error);
    ring_weights(N, w);
    trial_targets(N, SEED, b);
    memset(x, 0, sizeof x);
    reference(steps, w, b, x);
    const double distance = trial_distance(&trial, x);
    printf("  T8.1 %-50s expected 0, measured %.1e\n", gossip, distance);
    assert_true(distance < 1e-12);
}

static void atc(unsigned steps, matrix w, models b, models x)
{
    models g;
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        add(-eta, g, x);
        multiply(N, w, x);
    }
}

static void test_dpsgd_atc(void **state)
{
    (void)state;
    compare("algorithm: dpsgd-atc, topology: ring", STEPS, atc);
}

/* As published, with both pasts: x(t+1) = W (2 x - x' - eta (g - g')). */
static void d2(unsigned steps, matrix w, models b, models x)
{
    models g, old_x, old_g, next;
    memset(old_x, 0, sizeof old_x);
    memset(old_g, 0, sizeof old_g);
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        memcpy(next, x, sizeof next);
        add(-eta, g, next);
        if (t > 0) {
            add(1, x, next);
            add(-1, old_x, next);
            add(eta, old_g, next);
        }
        multiply(N, w, next);
        memcpy(old_x, x, sizeof old_x);
        memcpy(old_g, g, sizeof old_g);
        memcpy(x, next, sizeof next);
    }
}

/* W <- (W + I) / 2: a ring of 4 has an eigenvalue of -1/3. */
static void lazy_d2(unsigned steps, matrix w, models b, models x)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++)
            w[i][j] = (w[i][j] + (i == j)) / 2;
    d2(steps, w, b, x);
}

static void test_d2(void **state)
{
    (void)state;
    compare("algorithm: d2, topology: ring, weights: lazy", STEPS, lazy_d2);
}

static void tracking(unsigned steps, matrix w, models b, models x)
{
    models g, old, y;
    memset(old, 0, sizeof old);
    memset(y, 0, sizeof y);
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        add(1, g, y);
        add(-1, old, y);
        memcpy(old, g, sizeof old);
        add(-eta, y, x);
        multiply(N, w, x);
        multiply(N, w, y);
    }
}

static void test_gt(void **state)
{
    (void)state;
    compare("algorithm: gt, topology: ring", STEPS, tracking);
}

/* As published, with both pasts. */
static void extra(unsigned steps, matrix w, models b, models x)
{
    models g, old_x, old_g, next, mixed;
    memset(old_x, 0, sizeof old_x);
    memset(old_g, 0, sizeof old_g);
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        memcpy(next, x, sizeof next);
        multiply(N, w, next);
        add(-eta, g, next);
        if (t > 0) { /* + x - (I + W) x' / 2 + eta g' */
            add(1, x, next);
            add(-0.5, old_x, next);
            memcpy(mixed, old_x, sizeof mixed);
            multiply(N, w, mixed);
            add(-0.5, mixed, next);
            add(eta, old_g, next);
        }
        memcpy(old_x, x, sizeof old_x);
        memcpy(old_g, g, sizeof old_g);
        memcpy(x, next, sizeof next);
    }
}

static void test_extra(void **state)
{
    (void)state;
    compare("algorithm: extra, topology: ring", STEPS, extra);
}

static const double beta = 0.9, mu = 0.8;

/* The papers' buffer, of gradients. */
static void quasi_global(unsigned steps, matrix w, models b, models x,
                         bool nesterov)
{
    models g, m, before;
    memset(m, 0, sizeof m);
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        memcpy(before, x, sizeof before);
        add(-eta * (nesterov ? 1 + beta : 1), g, x);
        add(-eta * (nesterov ? beta * beta : beta), m, x);
        multiply(N, w, x);
        for (unsigned i = 0; i < N; i++)
            for (unsigned k = 0; k < TRIAL_DIM; k++)
                m[i][k] =
                    mu * m[i][k] + (1 - mu) * (before[i][k] - x[i][k]) / eta;
    }
}

static void heavy(unsigned steps, matrix w, models b, models x)
{
    quasi_global(steps, w, b, x, false);
}

static void ahead(unsigned steps, matrix w, models b, models x)
{
    quasi_global(steps, w, b, x, true);
}

static void test_qg(void **state)
{
    (void)state;
    compare("algorithm: qg-dsgdm, topology: ring, decay: 0.8", STEPS, heavy);
    compare("algorithm: qg-dsgdm-n, topology: ring, decay: 0.8", STEPS, ahead);
}

/* A step of one's own, five of them from `base` on; true after the fifth. */
static bool inner(unsigned t, models b, models x, models base)
{
    models g;
    if (t % 5 == 0)
        memcpy(base, x, sizeof(models));
    gradient(x, b, g);
    add(-eta, g, x);
    return t % 5 == 4;
}

static void slow_momentum(unsigned steps, matrix w, models b, models x)
{
    models u, outer;
    memset(u, 0, sizeof u);
    for (unsigned t = 0; t < steps; t++) {
        if (!inner(t, b, x, outer))
            continue;
        multiply(N, w, x);
        for (unsigned i = 0; i < N; i++) {
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                u[i][k] = 0.5 * u[i][k] + (outer[i][k] - x[i][k]) / eta;
                x[i][k] = outer[i][k] - 0.8 * eta * u[i][k];
            }
        }
    }
}

static void test_slowmo(void **state)
{
    (void)state;
    compare("algorithm: slowmo, every: 5, topology: ring, rate: 0.8", STEPS,
            slow_momentum);
}

/* C = identity and gamma = 1: averaging itself. */
static void test_choco(void **state)
{
    (void)state;
    compare("algorithm: choco, topology: ring, consensus: 1", STEPS, atc);
}

/* As published, C = identity: H = x, G = V at every step. */
static void compressed_tracking(unsigned steps, matrix w, models b, models x)
{
    static const double gamma = 0.5;
    models g, old, v, h, mixed;
    memset(old, 0, sizeof old);
    memset(v, 0, sizeof v);
    memset(h, 0, sizeof h);
    for (unsigned t = 0; t < steps; t++) {
        gradient(x, b, g);
        memcpy(mixed, v, sizeof mixed); /* G of the step before is V */
        multiply(N, w, mixed);
        add(-gamma, v, v);
        add(gamma, mixed, v);
        add(1, g, v);
        add(-1, old, v);
        memcpy(old, g, sizeof old);
        memcpy(mixed, h, sizeof mixed);
        multiply(N, w, mixed);
        add(gamma, mixed, x);
        add(-gamma, h, x);
        add(-eta, v, x);
        memcpy(h, x, sizeof h);
    }
}

static void test_beer(void **state)
{
    (void)state;
    compare("algorithm: beer, topology: ring, consensus: 0.5", STEPS,
            compressed_tracking);
}

static void all_alike(matrix w)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++)
            w[i][j] = 1.0 / N;
}

/* All peers average with all: H own steps, then Nesterov's outer one. */
static void diloco(unsigned steps, matrix w, models b, models x)
{
    models m, outer;
    memset(m, 0, sizeof m);
    all_alike(w);
    for (unsigned t = 0; t < steps; t++) {
        if (!inner(t, b, x, outer))
            continue;
        multiply(N, w, x);
        for (unsigned i = 0; i < N; i++) {
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                const double d = outer[i][k] - x[i][k];
                m[i][k] = 0.9 * m[i][k] + d;
                x[i][k] = outer[i][k] - 0.7 * (d + 0.9 * m[i][k]);
            }
        }
    }
}

static void test_diloco(void **state)
{
    (void)state;
    compare("algorithm: diloco, every: 5, topology: complete", STEPS, diloco);
}

/* The whole group is the pair: DiLoCo with heavy-ball momentum (T13). */
static void heavy_diloco(unsigned steps, matrix w, models b, models x)
{
    models d, f;
    memset(d, 0, sizeof d);
    all_alike(w);
    for (unsigned t = 0; t < steps; t++) {
        if (!inner(t, b, x, f))
            continue;
        multiply(N, w, x);
        for (unsigned i = 0; i < N; i++) {
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                d[i][k] = 0.5 * d[i][k] + 0.7 * (x[i][k] - f[i][k]);
                x[i][k] = f[i][k] + d[i][k];
            }
        }
    }
}

static void test_noloco(void **state)
{
    (void)state;
    compare("algorithm: noloco, every: 5, topology: complete", STEPS,
            heavy_diloco);
}

static void gasloc(unsigned steps, matrix w, models b, models x)
{
    models base, y, before, mixed;
    memcpy(before, x, sizeof before);
    for (unsigned t = 0; t < steps; t++) {
        if (!inner(t, b, x, base))
            continue;
        memcpy(y, base, sizeof y);
        add(0.7, x, y);
        add(-0.7, base, y);
        memcpy(mixed, y, sizeof mixed);
        multiply(N, w, mixed);
        memcpy(x, y, sizeof(models)); /* y - a (I - W) y + c (y - before) */
        add(-0.7, y, x);
        add(0.7, mixed, x);
        add(0.5, y, x);
        add(-0.5, before, x);
        memcpy(before, y, sizeof before);
    }
}

static void test_gasloc(void **state)
{
    (void)state;
    compare("algorithm: gasloc, every: 5, topology: ring", STEPS, gasloc);
}

/* A radius beyond all distances: averaging itself (T13). */
static void test_clipped(void **state)
{
    (void)state;
    compare("algorithm: clipped, topology: ring, radius: 1e30", STEPS, atc);
}

/* x_i at t + 1 holds y of a peer h hops away as of t - h + 1. */
static void relay(unsigned steps, matrix w, models b, models x)
{
    static models y[STEPS];
    models g;
    (void)w;
    for (unsigned t = 0; t < steps; t++) {
        memcpy(y[t], x, sizeof y[t]);
        gradient(x, b, g);
        add(-eta, g, y[t]);
        memset(x, 0, sizeof(models)); /* x(0) = 0 stands for who is unheard */
        for (unsigned i = 0; i < N; i++) {
            for (unsigned j = 0; j < N; j++) {
                const unsigned hops = i > j ? i - j : j - i;
                const unsigned late = hops > 0 ? hops - 1 : 0;
                for (unsigned k = 0; k < TRIAL_DIM && late <= t; k++)
                    x[i][k] += y[t - late][j][k] / N;
            }
        }
    }
}

static void test_relaysgd(void **state)
{
    (void)state;
    compare("algorithm: relaysgd, topology: path", STEPS, relay);
}

/* Models that have not come yet count as x(0): with targets at 0, after one
 * step that halves them, a peer of five with two neighbours has (3 / 2 + 2)
 * x(0) / 5, the ends of the path (2 / 2 + 3) x(0) / 5. */
static void test_relaysgd_begins(void **state)
{
    (void)state;
    struct trial relayed = {.gossip = "algorithm: relaysgd, topology: path",
                            .model = "{kind: quadratic, dim: 4, spread: 0, "
                                     "start: 3}",
                            .peers = 5,
                            .steps = 1,
                            .rate = 0.5,
                            .seed = 1};
    struct trial halved = relayed;
    halved.gossip = "algorithm: local";
    assert_int_equal(trial_run(&relayed), KITH_OK);
    assert_int_equal(trial_run(&halved), KITH_OK);
    for (unsigned i = 0; i < 5; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            const double share = i == 0 || i == 4 ? 1.6 : 1.4;
            assert_true(halved.z[i][k] != 0);
            assert_true(fabs(relayed.z[i][k] / halved.z[i][k] - share) < 1e-12);
        }
}

/* Synchronous SGD: the mean of all after every step, whatever the number of
 * peers. */
static void all_reduce(const char *algorithm, unsigned peers)
{
    static models b, x, g;
    char gossip[64];
    (void)snprintf(gossip, sizeof gossip, "algorithm: %s", algorithm);
    struct trial trial = {.gossip = gossip,
                          .peers = peers,
                          .steps = 20,
                          .rate = eta,
                          .seed = SEED};
    if (trial_run(&trial) != KITH_OK)
        fail_msg("%s", trial.error);
    trial_targets(peers, SEED, b);
    memset(x, 0, sizeof x);
    for (unsigned t = 0; t < trial.steps; t++) {
        gradient(x, b, g);
        add(-eta, g, x);
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            double mean = 0;
            for (unsigned i = 0; i < peers; i++)
                mean += x[i][k] / peers;
            for (unsigned i = 0; i < peers; i++)
                x[i][k] = mean;
        }
    }
    const double distance = trial_distance(&trial, x);
    printf("  T13 %s, %2u peers: expected 0, measured %.1e\n", algorithm, peers,
           distance);
    assert_true(distance < 1e-12);
}

static void test_all_reduce(void **state)
{
    static const unsigned peers[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
    (void)state;
    for (unsigned i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        all_reduce("allreduce-ring", peers[i]);
        all_reduce("allreduce-tree", peers[i]);
        all_reduce("allreduce-doubling", peers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dpsgd_atc),
        cmocka_unit_test(test_d2),
        cmocka_unit_test(test_gt),
        cmocka_unit_test(test_extra),
        cmocka_unit_test(test_qg),
        cmocka_unit_test(test_slowmo),
        cmocka_unit_test(test_choco),
        cmocka_unit_test(test_beer),
        cmocka_unit_test(test_diloco),
        cmocka_unit_test(test_noloco),
        cmocka_unit_test(test_gasloc),
        cmocka_unit_test(test_clipped),
        cmocka_unit_test(test_relaysgd),
        cmocka_unit_test(test_relaysgd_begins),
        cmocka_unit_test(test_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
