/* Goal: a hostile neighbour moves a model by at most W_ij tau in a round (T15),
 * plain averaging by whatever it likes.
 * Method: peers that stay at 0 by themselves (gradients are 0), float64, in the
 * simulator; one of them holds 10^6 in every value after every event. Every
 * line prints what is expected and measured. */
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

enum { PEERS = 8, DIM = 10, ROUNDS = 50 };
static const double value = 1e6;

static void attack(const struct sim_world *world, kith_id peer, void *arg)
{
    struct kith_worker *worker = sim_worker(world, 0);
    (void)peer;
    (void)arg;
    if (worker == NULL)
        return;
    double *x = kith_worker_slot(worker, KITH_SLOT_LIVE);
    for (size_t k = 0; k < DIM; k++)
        x[k] = value;
}

static void run(struct probe *probe, const char *gossip)
{
    probe_must(probe,
               "name: t15\nseed: 1\npeers: %d\nstop: {steps: %d}\n"
               "model: {kind: noise, dim: %d, spread: 0}\n"
               "train: {backend: naive64}\ngossip: {%s}\n"
               "network: {latency: 1us}\ncompute: {step: 1ms}\n",
               PEERS, ROUNDS, DIM, gossip);
}

static double norm(const double *x, const double *before)
{
    double sum = 0;
    for (size_t k = 0; k < DIM; k++) {
        const double change = x[k] - (before == NULL ? 0 : before[k]);
        sum += change * change;
    }
    return sqrt(sum);
}

struct found {
    double most; /* the furthest that an honest peer goes in a round */
    double end;  /* and at the end, from 0 */
};

static struct found honest(const char *gossip)
{
    struct probe probe = {.period = 1, .meddle = attack};
    struct found found = {0, 0};
    run(&probe, gossip);
    for (unsigned t = 1; t <= ROUNDS; t++)
        for (unsigned i = 1; i < PEERS; i++) {
            const double *x = probe.history + (t * PEERS + i) * DIM;
            const double moved = norm(x, t == 1 ? NULL : x - PEERS * DIM);
            found.most = fmax(found.most, moved);
            if (t == ROUNDS)
                found.end = fmax(found.end, norm(x, NULL));
        }
    probe_close(&probe);
    return found;
}

static void bounded(const char *graph, double weight, double radius)
{
    char gossip[128];
    (void)snprintf(gossip, sizeof gossip,
                   "algorithm: clipped, topology: %s, radius: %g", graph,
                   radius);
    const struct found found = honest(gossip);
    printf("  T15 %-8s radius %g: most in a round expected %.9f measured "
           "%.9f, after %d rounds at most %.4f, measured %.4f\n",
           graph, radius, weight * radius, found.most, ROUNDS,
           ROUNDS * weight * radius, found.end);
    assert_true(fabs(found.most / (weight * radius) - 1) < 1e-9);
    assert_true(found.end <= ROUNDS * weight * radius);
}

static void test_t15_clipping_bound(void **state)
{
    (void)state;
    bounded("ring", 1.0 / 3, 0.5);
    bounded("ring", 1.0 / 3, 20);
    bounded("complete", 1.0 / PEERS, 0.5);
}

/* The second-farthest neighbour's distance: one attacker moves nobody. */
static void test_t15_adaptive(void **state)
{
    (void)state;
    const struct found found = honest("algorithm: clipped, topology: ring");
    printf("  T15 adaptive radius, ring: moved expected 0, measured %g\n",
           found.most);
    assert_true(found.most == 0);
}

static void test_t15_plain(void **state)
{
    (void)state;
    const struct found found = honest("algorithm: dpsgd-atc, topology: ring");
    const double expected = value / 3 * sqrt(DIM);
    printf("  T15 plain averaging, ring: most in a round expected %.6g "
           "measured %.6g\n",
           expected, found.most);
    assert_true(fabs(found.most / expected - 1) < 1e-9);
    assert_true(found.end > value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t15_clipping_bound),
        cmocka_unit_test(test_t15_adaptive),
        cmocka_unit_test(test_t15_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
