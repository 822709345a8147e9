/* Goal: algorithms whose rounds change, have a direction or wait for nobody do
 * what their papers say (T8.1 of the taxonomy); push-sum is exact after log2 n
 * rounds (T5) and keeps w at 1 where columns and rows sum to 1 (T13); Push-Pull
 * has no bias (T6).
 * Method: quadratics in float64 through the simulator, beside a reference of a
 * few lines over the dense matrices of each round. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "tests/support/graph.h"
#include "tests/support/trial.h"

enum { N = 8, STEPS = 100, SEED = 3 };
static const double eta = 0.05;

typedef double models[TRIAL_PEERS_MAX][TRIAL_DIM];
typedef double matrix[N][N];

/* Rows of W (what is averaged) or columns of C (what is given away), with what
 * stays on the diagonal. */
static void rows_of(const struct kith_topology *topology, uint64_t round,
                    matrix w)
{
    graph_rows(topology, round, &w[0][0]);
}

static void columns_of(const struct kith_topology *topology, uint64_t round,
                       matrix c)
{
    kith_id out[KITH_DEGREE_MAX];
    double shares[KITH_DEGREE_MAX];
    memset(c, 0, sizeof(matrix));
    for (kith_id i = 0; i < N; i++) {
        const uint32_t count =
            kith_topology_neighbours(topology, i, round, out, shares);
        c[i][i] = 1;
        for (uint32_t k = 0; k < count; k++) {
            c[out[k]][i] = shares[k];
            c[i][i] -= shares[k];
        }
    }
}

/* y <- y + factor x */
static void add(double factor, models x, models y)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            y[i][k] += factor * x[i][k];
}

/* y <- y + factor (diagonal, or all but it) of m x. */
enum part { DIAGONAL, REST, WHOLE };
static void add_product(double factor, matrix m, enum part part, models x,
                        models y)
{
    models sum;
    memset(sum, 0, sizeof sum);
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++)
            for (unsigned k = 0; k < TRIAL_DIM; k++)
                if (part == WHOLE || (part == DIAGONAL) == (i == j))
                    sum[i][k] += factor * m[i][j] * x[j][k];
    add(1, sum, y);
}

/* x <- m x */
static void multiply(matrix m, enum part part, models x)
{
    models y;
    memset(y, 0, sizeof y);
    add_product(1, m, part, x, y);
    memcpy(x, y, sizeof y);
}

/* x <- x - eta (z - b) */
static void descend(models z, models b, models x)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            x[i][k] -= eta * (z[i][k] - b[i][k]);
}

/* z <- x / w, w in every coordinate. */
static void divide(models x, models w, models z)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            z[i][k] = x[i][k] / w[i][k];
}

static void fill(double value, models x)
{
    for (unsigned i = 0; i < TRIAL_PEERS_MAX; i++)
        for (unsigned k = 0; k < TRIAL_DIM; k++)
            x[i][k] = value;
}

struct reference {
    const struct kith_topology *topology;
    unsigned every;
    void (*run)(const struct reference *reference, models b, models x);
};

/* H steps, then the rows of the round. */
static void rounds(const struct reference *reference, models b, models x)
{
    matrix w;
    for (unsigned t = 0; t < STEPS; t++) {
        descend(x, b, x);
        if ((t + 1) % reference->every != 0)
            continue;
        rows_of(reference->topology, t / reference->every, w);
        multiply(w, WHOLE, x);
    }
}

/* The merge of a round comes after the step that follows it. */
static void overlapped(const struct reference *reference, models b, models x)
{
    models sent;
    matrix w;
    for (unsigned t = 0; t <= STEPS; t++) {
        if (t < STEPS)
            descend(x, b, x);
        if (t > 0) { /* x + (W - I) sent */
            rows_of(reference->topology, t - 1, w);
            add_product(1, w, WHOLE, sent, x);
            add(-1, sent, x);
        }
        memcpy(sent, x, sizeof sent);
    }
}

/* What came last of each neighbour is that of its step before. */
static void newest(const struct reference *reference, models b, models x)
{
    models before, sent;
    matrix w;
    rows_of(reference->topology, 0, w);
    for (unsigned t = 0; t <= STEPS; t++) {
        if (t < STEPS)
            descend(x, b, x);
        memcpy(sent, x, sizeof sent);
        if (t > 0) {
            multiply(w, DIAGONAL, x);
            add_product(1, w, REST, before, x);
        }
        memcpy(before, sent, sizeof before);
    }
}

static void push_sum(const struct reference *reference, models b, models x)
{
    models w, z;
    matrix c;
    fill(1, w);
    for (unsigned t = 0; t < STEPS; t++) {
        divide(x, w, z);
        descend(z, b, x);
        columns_of(reference->topology, t, c);
        multiply(c, WHOLE, x);
        multiply(c, WHOLE, w);
    }
    divide(x, w, x);
}

/* Shares travel during a step; merged before the next ones are split off. */
static void push_sum_overlapped(const struct reference *reference, models b,
                                models x)
{
    models w, z, way_x, way_w;
    matrix c;
    fill(1, w);
    fill(0, way_x);
    fill(0, way_w);
    for (unsigned t = 0; t <= STEPS; t++) {
        divide(x, w, z);
        if (t < STEPS)
            descend(z, b, x);
        add(1, way_x, x);
        add(1, way_w, w);
        if (t == STEPS)
            break;
        columns_of(reference->topology, t, c);
        fill(0, way_x);
        fill(0, way_w);
        add_product(1, c, REST, x, way_x);
        add_product(1, c, REST, w, way_w);
        multiply(c, DIAGONAL, x);
        multiply(c, DIAGONAL, w);
    }
    divide(x, w, x);
}

/* As above, but split off first: nobody waits for what is under way. Steps are
 * those of z. */
static void totals(const struct reference *reference, models b, models x)
{
    models w, z, way_x, way_w, old_x, old_w;
    matrix c;
    fill(1, w);
    fill(0, way_x);
    fill(0, way_w);
    columns_of(reference->topology, 0, c);
    for (unsigned t = 0; t <= STEPS; t++) {
        divide(x, w, z);
        if (t < STEPS)
            descend(z, b, z);
        for (unsigned i = 0; i < N; i++)
            for (unsigned k = 0; k < TRIAL_DIM; k++)
                x[i][k] = w[i][k] * z[i][k];
        memcpy(old_x, way_x, sizeof old_x);
        memcpy(old_w, way_w, sizeof old_w);
        fill(0, way_x);
        fill(0, way_w);
        add_product(1, c, REST, x, way_x);
        add_product(1, c, REST, w, way_w);
        multiply(c, DIAGONAL, x);
        multiply(c, DIAGONAL, w);
        add(1, old_x, x);
        add(1, old_w, w);
    }
    divide(x, w, x);
}

static void push_pull(const struct reference *reference, models b, models x)
{
    models y, g, old;
    matrix r, c;
    fill(0, y);
    fill(0, old);
    for (unsigned t = 0; t < STEPS; t++) {
        for (unsigned i = 0; i < N; i++)
            for (unsigned k = 0; k < TRIAL_DIM; k++) {
                g[i][k] = x[i][k] - b[i][k];
                y[i][k] += g[i][k] - old[i][k];
                old[i][k] = g[i][k];
                x[i][k] -= eta * y[i][k];
            }
        rows_of(reference->topology, t, r);
        columns_of(reference->topology, t, c);
        multiply(r, WHOLE, x);
        multiply(c, WHOLE, y);
    }
}

/* The algorithm in the simulator beside the reference on the same graph. */
static void compare(const char *gossip, const char *topology,
                    const struct kith_topology_options *options, unsigned every,
                    void (*run)(const struct reference *reference, models b,
                                models x))
{
    static models b, x;
    struct graph graph;
    struct trial trial = {.gossip = gossip,
                          .peers = N,
                          .steps = STEPS,
                          .rate = eta,
                          .seed = SEED};
    if (trial_run(&trial) != KITH_OK)
        fail_msg("%s: %s", gossip, trial.error);
    graph_must(topology, N, SEED, options, &graph);
    const struct reference reference = {
        .topology = &graph.topology, .every = every, .run = run};
    trial_targets(N, SEED, b);
    memset(x, 0, sizeof x);
    reference.run(&reference, b, x);
    const double distance = trial_distance(&trial, x);
    printf("  T8.1 %-58s expected 0, measured %.1e\n", gossip, distance);
    assert_true(distance < 1e-12);
    graph_close(&graph);
}

static void test_local_sgd(void **state)
{
    (void)state;
    compare("algorithm: local-sgd, every: 5, topology: ring", "ring", NULL, 5,
            rounds);
}

static void test_gossip_pga(void **state)
{
    (void)state;
    compare("algorithm: gossip-pga, graph: ring, period: 3", "global-rounds",
            &(struct kith_topology_options){.graph = kith_topology_find("ring"),
                                            .period = 3},
            1, rounds);
}

static void test_matcha(void **state)
{
    (void)state;
    compare("algorithm: matcha, budget: 0.5", "matcha", NULL, 1, rounds);
}

static void test_moshpit(void **state)
{
    (void)state;
    compare("algorithm: moshpit, degree: 2, every: 2", "grid-groups",
            &(struct kith_topology_options){.degree = 2}, 2, rounds);
}

static void test_epidemic(void **state)
{
    (void)state;
    compare("algorithm: epidemic, degree: 2", "random-out",
            &(struct kith_topology_options){.degree = 2}, 1, rounds);
    compare("algorithm: epidemic-oracle, degree: 3, every: 2", "regular-rounds",
            &(struct kith_topology_options){.degree = 3}, 2, rounds);
}

static void test_gossipgrad(void **state)
{
    (void)state;
    compare("algorithm: gossipgrad", "dissemination", NULL, 1, overlapped);
}

static void test_swift(void **state)
{
    (void)state;
    compare("algorithm: swift, topology: ring", "ring", NULL, 1, newest);
}

/* Not regular, strongly connected. */
static const struct kith_topology_edge uneven[] = {
    {0, 1, 0}, {0, 2, 0}, {0, 4, 0}, {1, 2, 0}, {2, 3, 0}, {3, 0, 0},
    {3, 4, 0}, {4, 5, 0}, {5, 1, 0}, {5, 6, 0}, {6, 7, 0}, {7, 0, 0}};
enum { UNEVEN = sizeof uneven / sizeof uneven[0] };

/* The same in a file; its name must be removed. */
static void write_uneven(char path[64])
{
    strcpy(path, "/tmp/kith-test-edges-XXXXXX");
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    for (unsigned i = 0; i < UNEVEN; i++)
        assert_true(dprintf(handle, "%u %u\n", uneven[i].from, uneven[i].to) >
                    0);
    (void)close(handle);
}

static void compare_uneven(const char *algorithm,
                           void (*run)(const struct reference *reference,
                                       models b, models x))
{
    char path[64], gossip[160];
    write_uneven(path);
    (void)snprintf(gossip, sizeof gossip,
                   "algorithm: %s, topology: file-directed, path: %s",
                   algorithm, path);
    compare(
        gossip, "file-directed",
        &(struct kith_topology_options){.edges = uneven, .edge_count = UNEVEN},
        1, run);
    (void)unlink(path);
}

static void test_push_sum(void **state)
{
    (void)state;
    compare("algorithm: sgp-sync, topology: one-peer-exponential",
            "one-peer-exponential", NULL, 1, push_sum);
    compare("algorithm: sgp-sync, topology: random-out, degree: 2",
            "random-out", &(struct kith_topology_options){.degree = 2}, 1,
            push_sum);
    compare("algorithm: sgp-sync, topology: star, weights: uniform", "star",
            &(struct kith_topology_options){.weights = KITH_WEIGHTS_UNIFORM}, 1,
            push_sum);
    compare_uneven("sgp-sync", push_sum);
    compare("algorithm: overlap-sgp, topology: one-peer-exponential",
            "one-peer-exponential", NULL, 1, push_sum_overlapped);
    compare_uneven("overlap-sgp", push_sum_overlapped);
    compare("algorithm: running-sums, topology: exponential", "exponential",
            NULL, 1, totals);
    compare_uneven("running-sums", totals);
}

static void test_push_pull(void **state)
{
    (void)state;
    compare("algorithm: push-pull, topology: exponential", "exponential", NULL,
            1, push_pull);
    compare_uneven("push-pull", push_pull);
}

/* The mean of all targets, where methods without a bias end. */
static double bias(const char *gossip, unsigned steps)
{
    static models b;
    double worst = 0;
    struct trial trial = {.gossip = gossip,
                          .peers = N,
                          .steps = steps,
                          .rate = eta,
                          .seed = SEED};
    if (trial_run(&trial) != KITH_OK)
        fail_msg("%s: %s", gossip, trial.error);
    trial_targets(N, SEED, b);
    for (unsigned k = 0; k < TRIAL_DIM; k++) {
        double mean = 0;
        for (unsigned i = 0; i < N; i++)
            mean += b[i][k] / N;
        for (unsigned i = 0; i < N; i++)
            worst = fmax(worst, fabs(trial.z[i][k] - mean));
    }
    return worst;
}

static void test_no_bias(void **state)
{
    char path[64], gossip[160];
    (void)state;
    graph_check("T6 push-pull, exponential", 0,
                bias("algorithm: push-pull, topology: exponential", 1500),
                1e-12);
    write_uneven(path);
    (void)snprintf(gossip, sizeof gossip,
                   "algorithm: push-pull, topology: file-directed, path: %s",
                   path);
    graph_check("T6 push-pull, an uneven digraph", 0, bias(gossip, 2500),
                1e-12);
    (void)unlink(path);
}

/* Models that start apart and do not train: what rounds do to them alone. */
static void consensus(const char *gossip, unsigned peers, unsigned steps,
                      double *left, double *drift)
{
    struct trial trial = {.gossip = gossip,
                          .model = "{kind: consensus, dim: 4}",
                          .peers = peers,
                          .steps = steps,
                          .seed = SEED};
    static struct trial first;
    first = trial;
    first.gossip = "algorithm: local";
    *left = *drift = 0;
    if (trial_run(&trial) != KITH_OK || trial_run(&first) != KITH_OK)
        fail_msg("%s: %s%s", gossip, trial.error, first.error);
    for (unsigned k = 0; k < TRIAL_DIM; k++) {
        double before = 0, after = 0;
        for (unsigned i = 0; i < peers; i++) {
            before += first.z[i][k] / peers;
            after += trial.z[i][k] / peers;
        }
        *drift = fmax(*drift, fabs(after - before));
        for (unsigned i = 0; i < peers; i++)
            *left = fmax(*left, fabs(trial.z[i][k] - after));
    }
}

static void check_exact(const char *what, const char *gossip, unsigned peers,
                        unsigned steps)
{
    double left, drift;
    consensus(gossip, peers, steps, &left, &drift);
    graph_check(what, 0, left, 1e-12);
    graph_check("   the mean moves by", 0, drift, 1e-12);
}

/* Real rounds of the simulator, not only matrices. */
static void test_exact(void **state)
{
    (void)state;
    check_exact("T5 one-peer-exponential, dpsgd, n=16, 4 rounds",
                "algorithm: dpsgd, topology: one-peer-exponential", 16, 4);
    check_exact("T4 one-peer-exponential, sgp-sync, n=16, 4 rounds",
                "algorithm: sgp-sync, topology: one-peer-exponential", 16, 4);
    check_exact("T5 dissemination, gossipgrad, n=16, 4 rounds",
                "algorithm: gossipgrad", 16, 4);
    check_exact("T5 base-3, dpsgd-atc, n=25, 6 rounds",
                "algorithm: dpsgd-atc, topology: base, degree: 2", 25, 6);
    check_exact("moshpit, n=32 in groups of 4, 3 rounds",
                "algorithm: moshpit, degree: 3", 32, 3);
    check_exact("moshpit, n=16 in groups of 4, 2 rounds", "algorithm: moshpit",
                16, 2);
    check_exact("gossip-pga, n=12, the third round",
                "algorithm: gossip-pga, period: 3", 12, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_sgd), cmocka_unit_test(test_gossip_pga),
        cmocka_unit_test(test_matcha),    cmocka_unit_test(test_moshpit),
        cmocka_unit_test(test_epidemic),  cmocka_unit_test(test_gossipgrad),
        cmocka_unit_test(test_swift),     cmocka_unit_test(test_push_sum),
        cmocka_unit_test(test_push_pull), cmocka_unit_test(test_no_bias),
        cmocka_unit_test(test_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
