/* Goal: outer steps whose messages travel while training goes on, and moments
 * of what all did together, do what their papers say (T8.1 of the taxonomy);
 * Streaming DiLoCo with one fragment, applied at once, is DiLoCo (T13).
 * Method: quadratics in float64 through the simulator, beside a reference of a
 * few lines; for T13 the hooks of both by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/algorithm.h"
#include "tests/support/trial.h"

enum { N = 4, STEPS = 103, SEED = 3, EVERY = 5 };
static const double eta = 0.05, mu = 0.9, alpha = 0.7;

typedef double models[TRIAL_PEERS_MAX][TRIAL_DIM];

static void descend(models b, models x)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            x[i][k] -= eta * (x[i][k] - b[i][k]);
}

static double mean_of(models x, unsigned k)
{
    double sum = 0;
    for (unsigned i = 0; i < N; i++)
        sum += x[i][k] / N;
    return sum;
}

static void compare(const char *gossip, double rate,
                    void (*reference)(models b, models x))
{
    static models b, x;
    struct trial trial = {.gossip = gossip,
                          .peers = N,
                          .steps = STEPS,
                          .rate = rate,
                          .seed = SEED};
    if (trial_run(&trial) != KITH_OK)
        fail_msg("%s: %s", gossip, trial.error);
    trial_targets(N, SEED, b);
    memset(x, 0, sizeof x);
    reference(b, x);
    const double distance = trial_distance(&trial, x);
    printf("  T8.1 %-70s expected 0, measured %.1e\n", gossip, distance);
    assert_true(distance < 1e-12);
}

/* What was sent at the end of step t is there after step t + 1. */
static void stream(models b, models x, unsigned parts, double blend)
{
    models theta, m, sent;
    memset(theta, 0, sizeof theta);
    memset(m, 0, sizeof m);
    for (unsigned t = 0; t < STEPS; t++) {
        const unsigned round = t / EVERY - 1, each = TRIAL_DIM / parts;
        descend(b, x);
        if (t >= EVERY && t % EVERY == 0) {
            const unsigned first = round % parts * each;
            for (unsigned k = first; k < first + each; k++) {
                const double mean = mean_of(sent, k);
                for (unsigned i = 0; i < N; i++) {
                    const double d = theta[i][k] - mean;
                    m[i][k] = mu * m[i][k] + d;
                    theta[i][k] -= alpha * (d + mu * m[i][k]);
                    x[i][k] = blend * x[i][k] + (1 - blend) * theta[i][k];
                }
            }
        }
        if (t % EVERY == EVERY - 1)
            memcpy(sent, x, sizeof sent);
    }
}

static void streaming(models b, models x)
{
    stream(b, x, 2, 0.5);
}

static void whole(models b, models x)
{
    stream(b, x, 1, 0);
}

static void test_streaming(void **state)
{
    (void)state;
    compare("algorithm: streaming, every: 5, fragments: 2, topology: complete",
            eta, streaming);
    compare("algorithm: streaming, every: 5, fragments: 1, blend: 0, topology: "
            "complete",
            eta, whole);
}

/* With a share of 1 every round is a mean of everything; theta moves in every
 * K-th. */
static void sliced(models b, models x, unsigned each, unsigned rounds)
{
    models theta, m;
    memset(theta, 0, sizeof theta);
    memset(m, 0, sizeof m);
    for (unsigned t = 1; t <= STEPS; t++) {
        descend(b, x);
        if (t % each != 0)
            continue;
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            const double mean = mean_of(x, k);
            for (unsigned i = 0; i < N; i++) {
                x[i][k] = mean;
                if (t % (each * rounds) != 0)
                    continue;
                const double d = theta[i][k] - mean;
                m[i][k] = mu * m[i][k] + d;
                theta[i][k] -= alpha * (d + mu * m[i][k]);
                x[i][k] = theta[i][k];
            }
        }
    }
}

static void all_slices(models b, models x)
{
    sliced(b, x, 1, 5);
}

static void rare_slices(models b, models x)
{
    sliced(b, x, 2, 5);
}

static void only_outer(models b, models x)
{
    sliced(b, x, EVERY, 1);
}

static void test_sparta_diloco(void **state)
{
    (void)state;
    compare("algorithm: sparta-diloco, every: 1, share: 1, outer_every: 5, "
            "topology: complete",
            eta, all_slices);
    compare("algorithm: sparta-diloco, every: 2, share: 1, outer_every: 5, "
            "topology: complete",
            eta, rare_slices);
    compare("algorithm: sparta-diloco, every: 5, outer_every: 1, topology: "
            "complete",
            eta, only_outer);
    compare("algorithm: diloco, every: 5, topology: complete", eta, only_outer);
}

static void eager(models b, models x)
{
    models theta, m, others, d;
    memset(theta, 0, sizeof theta);
    memset(m, 0, sizeof m);
    memset(others, 0, sizeof others);
    for (unsigned t = 0; t < STEPS; t++) {
        descend(b, x);
        if (t % EVERY != EVERY - 1)
            continue;
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            for (unsigned i = 0; i < N; i++) {
                d[i][k] = theta[i][k] - x[i][k];
                const double all = d[i][k] / N + others[i][k];
                m[i][k] = mu * m[i][k] + all;
                theta[i][k] -= alpha * (all + mu * m[i][k]);
                x[i][k] = theta[i][k];
            }
            for (unsigned i = 0; i < N; i++)
                others[i][k] = mean_of(d, k) - d[i][k] / N;
        }
    }
}

static void test_eager(void **state)
{
    (void)state;
    compare("algorithm: eager, every: 5", eta, eager);
}

static const double small = 0.002;

static void adam(models b, models x)
{
    static const double beta1 = 0.9, beta2 = 0.99;
    models m, v, before, y;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (unsigned t = 0; t < STEPS; t++) {
        memcpy(before, x, sizeof before);
        for (unsigned i = 0; i < N; i++)
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                const double g = x[i][k] - b[i][k];
                y[i][k] =
                    x[i][k] -
                    small * (beta1 * m[i][k] + g) /
                        (sqrt(beta2 * v[i][k] + (1 - beta2) * g * g) + 1e-8);
            }
        for (unsigned i = 0; i < N; i++) {
            double length = 0;
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                x[i][k] =
                    (y[i][k] + y[(i + 1) % N][k] + y[(i + N - 1) % N][k]) / 3;
                length += (before[i][k] - x[i][k]) * (before[i][k] - x[i][k]);
            }
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                const double d = (before[i][k] - x[i][k]) / sqrt(length);
                m[i][k] = beta1 * m[i][k] + (1 - beta1) * d;
                v[i][k] = beta2 * v[i][k] + (1 - beta2) * d * d;
            }
        }
    }
}

static void test_qg_adam(void **state)
{
    (void)state;
    compare("algorithm: qg-adam, topology: ring", small, adam);
}

/* One peer of two, by hand: its hooks in the order of a round, no step between
 * sending and merging. */
struct hand {
    const struct kith_algorithm *algorithm;
    double x[TRIAL_DIM], own[3][TRIAL_DIM], sent[TRIAL_DIM], desk[TRIAL_DIM];
    double coefficients[KITH_GOSSIP_KEY_COUNT];
    void *vectors[3];
};

static struct kith_algebra algebra_of(struct hand *hand, uint64_t step)
{
    for (unsigned i = 0; i < 3; i++)
        hand->vectors[i] = hand->own[i];
    return (struct kith_algebra){.backend = kith_backend_find("naive64"),
                                 .dim = TRIAL_DIM,
                                 .trained = TRIAL_DIM,
                                 .peers = 2,
                                 .coefficients = hand->coefficients,
                                 .live = hand->x,
                                 .vectors = hand->vectors,
                                 .scratch = hand->desk,
                                 .step = step,
                                 .round = step / EVERY,
                                 .every = EVERY,
                                 .sent = hand->sent};
}

static void open(struct hand *hand, const char *name)
{
    memset(hand, 0, sizeof *hand);
    hand->algorithm = kith_algorithm_find(name);
    memcpy(hand->coefficients, hand->algorithm->initial,
           sizeof hand->coefficients);
    struct kith_algebra algebra = algebra_of(hand, 0);
    if (hand->algorithm->start != NULL)
        hand->algorithm->start(&algebra);
}

static void own_step(struct hand *hand, uint64_t step, double target)
{
    struct kith_algebra algebra = algebra_of(hand, step);
    if (hand->algorithm->before_step != NULL)
        hand->algorithm->before_step(&algebra);
    for (unsigned k = 0; k < TRIAL_DIM; k++)
        hand->x[k] -= eta * (hand->x[k] - target - k);
}

static void snapshot(struct hand *hand, uint64_t step)
{
    struct kith_algebra algebra = algebra_of(hand, step);
    struct kith_work_edge edge = {.weight = 0};
    if (hand->algorithm->make != NULL)
        hand->algorithm->make(&algebra, &edge);
    else
        memcpy(hand->sent, hand->x, sizeof hand->x);
}

static void take(struct hand *hand, uint64_t step, const double *received)
{
    struct kith_algebra algebra = algebra_of(hand, step);
    struct kith_work_edge edge = {.weight = 0.5};
    const void *inbox = received;
    algebra.received = received;
    algebra.inboxes = &inbox;
    hand->algorithm->merge(&algebra, &edge);
    algebra.merged = &edge;
    algebra.merged_count = 1;
    (void)hand->algorithm->finish(&algebra);
}

static void run_pair(struct hand pair[2], const char *name)
{
    for (unsigned i = 0; i < 2; i++)
        open(&pair[i], name);
    if (strcmp(name, "streaming") == 0)
        for (unsigned i = 0; i < 2; i++) {
            pair[i].coefficients[KITH_GOSSIP_FRAGMENTS] = 1;
            pair[i].coefficients[KITH_GOSSIP_BLEND] = 0;
        }
    for (uint64_t t = 0; t < 100; t++) {
        for (unsigned i = 0; i < 2; i++)
            own_step(&pair[i], t, 1 + 2 * (double)i);
        if (t % EVERY != EVERY - 1)
            continue;
        for (unsigned i = 0; i < 2; i++)
            snapshot(&pair[i], t);
        for (unsigned i = 0; i < 2; i++)
            take(&pair[i], t, pair[1 - i].sent);
    }
}

static void test_degenerate(void **state)
{
    static struct hand one[2], two[2];
    double worst = 0;
    (void)state;
    run_pair(one, "diloco");
    run_pair(two, "streaming");
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            worst = fmax(worst, fabs(one[i].x[k] / two[i].x[k] - 1));
    printf("  T13 streaming, P = 1, tau = 0, a = 0 against diloco: expected 0, "
           "measured %.1e\n",
           worst);
    assert_true(worst < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streaming),  cmocka_unit_test(test_sparta_diloco),
        cmocka_unit_test(test_eager),      cmocka_unit_test(test_qg_adam),
        cmocka_unit_test(test_degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
