/* Goal: A2CiD2 does what its paper says (T8.1), finds its coefficients in the
 * graph, names what it cannot, and agrees faster on a ring than pairs do.
 * Method: the hooks in a bare loop of pair events beside a reference of a few
 * lines; the experiment's own coefficients; consensus in the simulator. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/algorithm.h"
#include "tests/support/graph.h"
#include "tests/support/trial.h"

enum { N = 16, DIM = 3, EVENTS = 400 };
static const double mixing = 0.14247, strength = 1.8717, eta = 0.05;

static double x[N][DIM], copy[N][DIM], before[N][DIM], target[N][DIM];

static struct kith_algebra algebra_of(unsigned i, const double *coefficients,
                                      void **vectors)
{
    vectors[0] = copy[i];
    vectors[1] = before[i];
    return (struct kith_algebra){.backend = kith_backend_find("naive64"),
                                 .dim = DIM,
                                 .trained = DIM,
                                 .coefficients = coefficients,
                                 .live = x[i],
                                 .vectors = vectors,
                                 .every = 1};
}

/* One step of i by the algorithm's hooks. */
static void step(const struct kith_algorithm *acid, unsigned i,
                 const double *coefficients)
{
    void *vectors[2];
    struct kith_algebra algebra = algebra_of(i, coefficients, vectors);
    acid->before_step(&algebra);
    for (unsigned k = 0; k < DIM; k++)
        x[i][k] -= eta * (x[i][k] - target[i][k]);
    acid->after_step(&algebra);
}

static void meet(const struct kith_algorithm *acid, unsigned i, double *sent,
                 double *received, const double *coefficients)
{
    void *vectors[2];
    struct kith_algebra algebra = algebra_of(i, coefficients, vectors);
    struct kith_work_edge edge = {.weight = 0.5};
    algebra.sent = sent;
    algebra.received = received;
    acid->merge(&algebra, &edge);
}

static void reference_step(double *a, double *b, const double *to)
{
    for (unsigned k = 0; k < DIM; k++) {
        const double u = a[k] - to[k];
        a[k] -= eta * u;
        b[k] -= eta * u;
    }
}

/* The paper's equations: a pair's event, and (x, x~) as a mean and a difference
 * that fades. */
static void reference_meet(double (*a)[DIM], double (*b)[DIM], unsigned i,
                           unsigned j)
{
    const unsigned both[2] = {i, j};
    for (unsigned k = 0; k < DIM; k++) {
        const double y = a[i][k] - a[j][k];
        a[i][k] -= y / 2;
        a[j][k] += y / 2;
        b[i][k] -= strength * y;
        b[j][k] += strength * y;
        for (unsigned e = 0; e < 2; e++) {
            double *const x_e = &a[both[e]][k], *const copy_e = &b[both[e]][k];
            const double mean = (*x_e + *copy_e) / 2;
            const double half = (*x_e - *copy_e) / 2 * exp(-2 * mixing);
            *x_e = mean + half;
            *copy_e = mean - half;
        }
    }
}

static void test_rule(void **state)
{
    const struct kith_algorithm *acid = kith_algorithm_find("acid");
    const double coefficients[KITH_GOSSIP_KEY_COUNT] = {
        [KITH_GOSSIP_MIXING] = mixing, [KITH_GOSSIP_STRENGTH] = strength};
    static double a[N][DIM], b[N][DIM];
    double worst = 0, largest = 0, sum = 0, found = 0;
    struct kith_rng rng;
    (void)state;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < DIM; k++) {
            x[i][k] = copy[i][k] = a[i][k] = b[i][k] = kith_rng_double(&rng);
            target[i][k] = a[i][k];
        }
    for (unsigned event = 0; event < EVENTS; event++) {
        const unsigned i = kith_rng_below(&rng, N), j = (i + 1) % N;
        if (kith_rng_below(&rng, 2) == 0) {
            step(acid, i, coefficients);
            reference_step(a[i], b[i], target[i]);
            continue;
        }
        double mine[DIM], theirs[DIM];
        memcpy(mine, x[i], sizeof mine);
        memcpy(theirs, x[j], sizeof theirs);
        for (unsigned k = 0; k < DIM; k++)
            sum += x[i][k] + x[j][k] + copy[i][k] + copy[j][k];
        meet(acid, i, mine, theirs, coefficients);
        meet(acid, j, theirs, mine, coefficients);
        for (unsigned k = 0; k < DIM; k++)
            found += x[i][k] + x[j][k] + copy[i][k] + copy[j][k];
        reference_meet(a, b, i, j);
    }
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < DIM; k++) {
            worst = fmax(worst, fabs(x[i][k] - a[i][k]));
            worst = fmax(worst, fabs(copy[i][k] - b[i][k]));
            largest = fmax(largest, fabs(a[i][k]));
        }
    graph_check("T8.1 acid, 400 events on a ring", 0, worst / largest, 1e-12);
    graph_check("   what pairs add to x + x~", 0, (found - sum) / sum, 1e-14);
}

/* What a pair added is taken back of both; what the mixing did, which kept
 * their sum, is not. */
static void test_undo(void **state)
{
    const struct kith_algorithm *acid = kith_algorithm_find("acid");
    const double coefficients[KITH_GOSSIP_KEY_COUNT] = {
        [KITH_GOSSIP_MIXING] = mixing, [KITH_GOSSIP_STRENGTH] = strength};
    void *vectors[2];
    struct kith_algebra algebra = algebra_of(0, coefficients, vectors);
    struct kith_work_edge edge = {.weight = 0.5};
    double sent[DIM], received[DIM], before_x[DIM], before_sum[DIM];
    (void)state;
    for (unsigned k = 0; k < DIM; k++) {
        x[0][k] = sent[k] = 1 + k;
        copy[0][k] = 3.0 * k;
        received[k] = 7 - 2.0 * k;
        before_sum[k] = x[0][k] + copy[0][k];
    }
    algebra.sent = sent;
    algebra.received = received;
    acid->merge(&algebra, &edge);
    memcpy(before_x, x[0], sizeof before_x);
    acid->undo(&algebra, &edge);
    for (unsigned k = 0; k < DIM; k++) {
        const double pull = (received[k] - sent[k]) / 2;
        assert_true(fabs(x[0][k] - (before_x[k] - pull)) < 1e-12);
        assert_true(fabs(x[0][k] + copy[0][k] - before_sum[k]) < 1e-12);
    }
}

static void test_chi(void **state)
{
    struct graph graph;
    double *scratch = malloc(KITH_MIXING_SCRATCH(64) * sizeof *scratch);
    (void)state;
    assert_non_null(scratch);
    graph_must("ring", 16, 0, NULL, &graph);
    struct kith_topology_mixing found =
        kith_topology_mixing(&graph.topology, scratch);
    graph_check("chi_1, ring n=16", 13.137, found.slowest, 5e-4);
    graph_check("   1 / (1 - cos(2 pi / n))", 1 / (1 - cos(2 * acos(-1) / 16)),
                found.slowest, 1e-9);
    graph_check("chi_2, ring n=16", 0.9375, found.resistance, 1e-12);
    graph_close(&graph);
    graph_must("complete", 16, 0, NULL, &graph);
    found = kith_topology_mixing(&graph.topology, scratch);
    graph_check("chi_1, complete n=16: (n - 1) / n", 15.0 / 16, found.slowest,
                1e-9);
    graph_check("chi_2, complete n=16: (n - 1) / n", 15.0 / 16,
                found.resistance, 1e-12);
    graph_close(&graph);
    /* A path's edges are bridges: all of the resistance, 1 / lambda. */
    graph_must("path", 8, 0, NULL, &graph);
    found = kith_topology_mixing(&graph.topology, scratch);
    graph_check("chi_2, path n=8: bridges inside", 1, found.resistance, 1e-12);
    graph_close(&graph);
    free(scratch);
}

static void parse(const char *topology, const char *more,
                  struct kith_experiment *experiment, char *error,
                  enum kith_err expected)
{
    char text[512];
    const int length =
        snprintf(text, sizeof text,
                 "name: a\nseed: 1\npeers: 16\nstop: {steps: 1}\n"
                 "model: {kind: quadratic, dim: 4}\ntrain: {learning_rate: 1}\n"
                 "gossip: {algorithm: acid, topology: %s%s}\n",
                 topology, more);
    const enum kith_err err = kith_experiment_parse("a", text, (size_t)length,
                                                    NULL, 0, experiment, error);
    if (err != expected)
        fail_msg("%s%s: %d, %s", topology, more, err, error);
}

static void test_coefficients(void **state)
{
    static const char *const refused[] = {"random", "complete",
                                          "random-matching"};
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    (void)state;
    parse("ring", "", &experiment, error, KITH_OK);
    graph_check("mixing, ring n=16", 0.14247,
                experiment.gossip.coefficients[KITH_GOSSIP_MIXING], 5e-6);
    graph_check("strength, ring n=16", 1.8717,
                experiment.gossip.coefficients[KITH_GOSSIP_STRENGTH], 5e-5);
    kith_experiment_close(&experiment);
    for (unsigned i = 0; i < 3; i++) {
        parse(refused[i], "", &experiment, error, KITH_EINVAL);
        assert_non_null(strstr(error, "gossip.mixing"));
        assert_non_null(strstr(error, refused[i]));
    }
    parse("random", ", mixing: 0.5, strength: 0.7", &experiment, error,
          KITH_OK);
    kith_experiment_close(&experiment);
}

/* ln of what is left of the disagreement of 16 peers on a ring. */
static double left(const char *gossip, unsigned steps)
{
    double sum = 0;
    for (unsigned seed = 1; seed <= 5; seed++) {
        struct trial trial = {.gossip = gossip,
                              .model = "{kind: consensus, dim: 4}",
                              .peers = N,
                              .steps = steps,
                              .seed = seed};
        if (trial_run(&trial) != KITH_OK)
            fail_msg("%s: %s", gossip, trial.error);
        double spread = 0;
        for (unsigned k = 0; k < TRIAL_DIM; k++) {
            double at[N];
            for (unsigned i = 0; i < N; i++)
                at[i] = trial.z[i][k];
            spread += graph_spread(at, N);
        }
        sum += log(spread) / 5;
    }
    return sum;
}

/* A peer takes part in an exchange in 8 steps: adpsgd's asks in 16. */
static void test_faster(void **state)
{
    static const char pairs[] =
        "algorithm: adpsgd, topology: ring, chance: 0.0625";
    static const char fast[] = "algorithm: acid, topology: ring, every: 8";
    (void)state;
    const double slow = (left(pairs, 400) - left(pairs, 1600)) / 1200;
    const double acid = (left(fast, 400) - left(fast, 1600)) / 1200;
    printf("  ring n=16, decay of ln Gamma in a step: adpsgd %.4f, acid %.4f: "
           "expected twice as fast, measured %.2f\n",
           slow, acid, acid / slow);
    assert_true(acid >= 2 * slow);
}

/* In step, on a long path, as often as can be: overlapping exchanges would let
 * it grow without bounds. */
static void test_in_step(void **state)
{
    static const char every[] = "algorithm: acid, topology: path, every: 1";
    (void)state;
    struct trial trial = {.gossip = every,
                          .model = "{kind: consensus, dim: 4}",
                          .peers = 32,
                          .steps = 400,
                          .seed = 1};
    double most = 0;
    assert_int_equal(trial_run(&trial), KITH_OK);
    for (unsigned i = 0; i < 32; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            most = fmax(most, fabs(trial.z[i][k]));
    printf("  path n=32, largest |x| of 1 at the start: expected <= 2, "
           "measured %.2f\n",
           most);
    assert_true(most <= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),   cmocka_unit_test(test_undo),
        cmocka_unit_test(test_chi),    cmocka_unit_test(test_coefficients),
        cmocka_unit_test(test_faster), cmocka_unit_test(test_in_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
