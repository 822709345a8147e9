/* Goal: the planner's closed forms: golden values to four digits (T2.1), what
 * is read backwards is what went in, graphs as they are measured, and inputs
 * that are refused by name.
 * Method: figures of Zou et al. and of the papers' own graphs; drawn values
 * there and back. Each check prints what is expected and what was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plan.h"
#include "kith/rng.h"
#include "kith/topology.h"

static char error[KITH_PLAN_ERROR_BYTES];

static void is(const char *what, double expected, double found, double within)
{
    printf("  %-44s expected %.6g, measured %.10g\n", what, expected, found);
    if (!(fabs(found - expected) <= within))
        fail_msg("%s", what);
}

static void test_golden_ratios(void **state)
{
    static const struct {
        double alpha, workers, percent;
    } cases[] = {{0.8, 4, 9.091}, {0.9, 8, 1.613}, {0.8, 8, 3.704}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[64];
        double ratio;
        snprintf(what, sizeof what, "T2.1 alpha %g, G %g: R_O, %%",
                 cases[i].alpha, cases[i].workers);
        assert_int_equal(
            kith_plan_ratio(cases[i].alpha, cases[i].workers, &ratio, error),
            KITH_OK);
        is(what, cases[i].percent, 100 * ratio, 5e-4);
    }
}

static void test_speedup(void **state)
{
    struct kith_plan_speedup found;
    (void)state;
    assert_int_equal(kith_plan_speedup(1, 0.3, &found, error), KITH_OK);
    is("T2.1 S(1)", 1, found.speedup, 0);
    assert_int_equal(kith_plan_speedup(8, 1.0 / 27, &found, error), KITH_OK);
    is("T2.1 alpha of G 8, R 1/27", 0.8, found.efficiency, 1e-15);
    is("T2.1 S of G 8, R 1/27", 6.4, found.speedup, 1e-14);
    is("T2.1 its limit", 28, found.limit, 1e-12);
    assert_int_equal(kith_plan_speedup(1e9, 1.0 / 27, &found, error), KITH_OK);
    is("T2.1 S of 10^9", 28, found.speedup, 1e-4);
    assert_int_equal(kith_plan_speedup(64, 0, &found, error), KITH_OK);
    is("T2.1 S of R 0", 64, found.speedup, 0);
    assert_true(isinf(found.limit));
}

/* alpha, G -> R -> G and alpha again. */
static void test_round_trip(void **state)
{
    struct kith_rng rng;
    double worst = 0;
    (void)state;
    kith_rng_init(&rng, 19, KITH_STREAM_TEST, 0);
    for (int i = 0; i < 10000; i++) {
        const double alpha = 0.01 + 0.98 * kith_rng_double(&rng);
        const double workers = 1.001 / alpha + 1000 * kith_rng_double(&rng);
        double ratio, again;
        struct kith_plan_speedup speedup;
        assert_int_equal(kith_plan_ratio(alpha, workers, &ratio, error),
                         KITH_OK);
        assert_int_equal(kith_plan_workers(alpha, ratio, &again, error),
                         KITH_OK);
        assert_int_equal(kith_plan_speedup(workers, ratio, &speedup, error),
                         KITH_OK);
        worst = fmax(worst, fabs(again - workers) / workers);
        worst = fmax(worst, fabs(speedup.efficiency - alpha) / alpha);
    }
    is("T2.1 10,000 round trips: relative error", 0, worst, 1e-10);
}

static void test_servers(void **state)
{
    double servers;
    (void)state;
    /* 240 MB, 4 workers, 1.25 GB/s, 0.4 s: 3.84. */
    assert_int_equal(kith_plan_servers(240e6, 4, 1.25e9, 0.4, &servers, error),
                     KITH_OK);
    is("Lemma 2: 3.84 servers", 4, servers, 0);
    assert_int_equal(kith_plan_servers(250e6, 4, 1e9, 0.5, &servers, error),
                     KITH_OK);
    is("Lemma 2: 4 servers", 4, servers, 0);
    assert_int_equal(kith_plan_servers(1e3, 1, 1e9, 1, &servers, error),
                     KITH_OK);
    is("Lemma 2: hardly any", 1, servers, 0);
}

static void test_hiding(void **state)
{
    /* 100 MB at a quarter, two neighbours, 1 GB/s down: 50 ms, 2 + 8 more. */
    struct kith_plan_exchange exchange = {.model_bytes = 100e6,
                                          .share = 0.25,
                                          .fan_out = 2,
                                          .up = 2e9,
                                          .down = 1e9,
                                          .latency_s = 2e-3,
                                          .codec_s = 8e-3,
                                          .step_s = 20e-3,
                                          .interval = 1,
                                          .overlap = 1};
    struct kith_plan_hiding found;
    (void)state;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("G1 T_X, ms", 60, 1e3 * found.exchange_s, 1e-9);
    is("G1 tau", 3, found.interval, 0);
    is("G2 alpha, tau 1", 20.0 / 60, found.efficiency, 1e-12);
    is("G3 f, tau 1", 0, found.fan_out, 0);
    exchange.interval = 2;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("G2 alpha, tau 2", 20.0 / 30, found.efficiency, 1e-12);
    is("G2 step, ms", 30, 1e3 * found.step_s, 1e-9);
    exchange.interval = 3;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("G2 alpha, tau 3", 1, found.efficiency, 1e-12);
    is("G3 f, tau 3", 2, found.fan_out, 0);
    exchange.overlap = 0;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("G2 alpha, nothing overlaps", 20.0 / 40, found.efficiency, 1e-12);
    is("three messages at most, ms", 85, 1e3 * found.exchange_most_s, 1e-9);
    is("step at most, ms", 20 + 85.0 / 3, 1e3 * found.step_most_s, 1e-9);
}

/* 16 peers of sgp, 100 kB over 80 Mbit/s, 1 ms a crossing: the simulator does
 * one in four steps. */
static void test_push(void **state)
{
    struct kith_plan_exchange exchange = {.model_bytes = 100e3,
                                          .share = 1,
                                          .fan_out = 1,
                                          .up = 10e6,
                                          .down = 10e6,
                                          .latency_s = 4e-3,
                                          .step_s = 10e-3,
                                          .interval = 1,
                                          .overlap = 1,
                                          .is_push = true};
    struct kith_plan_hiding found;
    (void)state;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("a push's T_X, ms", 10 + 20 + 1, 1e3 * found.exchange_s, 1e-9);
    is("a push meets no other, ms", 31, 1e3 * found.exchange_most_s, 1e-9);
    is("a push's tau", 4, found.interval, 0);
    exchange.share = 0.5;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("a push of half, tau", 3, found.interval, 0);
    exchange.share = 1;
    exchange.latency_s = 0;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("a push without latency, tau", 4, found.interval, 0);
    exchange.latency_s = 4e-3;
    exchange.up = 2.5e6;
    assert_int_equal(kith_plan_hiding(&exchange, &found, error), KITH_OK);
    is("a push over a slow line, tau", 7, found.interval, 0);
}

/* Messages' times until the last one is there, where everybody sends to its
 * neighbours in turn and lines take what comes first. */
static double lines_of(const char *name, uint32_t peers, double *degree)
{
    struct kith_topology topology;
    double free_at[64] = {0}, last = 0;
    kith_id ids[KITH_DEGREE_MAX];
    assert_true(peers <= 64);
    assert_int_equal(
        kith_topology_open(kith_topology_find(name), peers, &topology),
        KITH_OK);
    *degree = kith_topology_degree(&topology, 0);
    for (uint32_t turn = 0; turn < (uint32_t)*degree; turn++)
        for (kith_id i = 0; i < peers; i++) {
            assert_int_equal(
                kith_topology_neighbours(&topology, i, 0, ids, NULL),
                (uint32_t)*degree);
            double *const line = &free_at[ids[turn]];
            *line = fmax(*line, turn) + 1;
            last = fmax(last, *line);
        }
    return last;
}

static void test_lines(void **state)
{
    static const char *const graphs[] = {"ring", "torus", "hypercube",
                                         "exponential", "complete"};
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        double degree;
        const double took = lines_of(graphs[i], 16, &degree);
        printf("  %-12s f %g: between %g and %g messages, found %g\n",
               graphs[i], degree, degree, 2 * degree - 1, took);
        assert_true(took >= degree && took <= 2 * degree - 1);
    }
}

/* The closed forms against the graphs that runs use. */
static double rho_of(const char *name, uint32_t peers)
{
    struct kith_topology topology;
    double *scratch = malloc(KITH_RHO_SCRATCH(peers) * sizeof *scratch);
    assert_non_null(scratch);
    assert_int_equal(
        kith_topology_open(kith_topology_find(name), peers, &topology),
        KITH_OK);
    const double rho = kith_topology_rho(&topology, scratch, NULL);
    free(scratch);
    return rho;
}

static void test_mixing(void **state)
{
    static const struct {
        double peers, rho;
    } rings[] = {{8, 0.8047}, {16, 0.9493}, {64, 0.9968}};
    double rho, rounds, gap;
    (void)state;
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        assert_int_equal(kith_plan_ring(rings[i].peers, &rho, error), KITH_OK);
        is("G4 a ring", rings[i].rho, rho, 5e-5);
        is("G4 the same, measured", rho,
           rho_of("ring", (uint32_t)rings[i].peers), 1e-9);
    }
    assert_int_equal(kith_plan_exponential(16, &rho, error), KITH_OK);
    is("G4 exponential, 16 peers", 1 - 2.0 / 5, rho, 1e-15);
    assert_int_equal(kith_plan_rounds(0.8047, 0.01, &rounds, error), KITH_OK);
    is("G4 rounds to 1 % on a ring of 8", 22, rounds, 0);
    assert_int_equal(kith_plan_gap(22, 0.01, &gap, error), KITH_OK);
    is("G4 gap that does it in 22", 0.1889, gap, 5e-5);
    assert_int_equal(kith_plan_rounds(0, 0.01, &rounds, error), KITH_OK);
    is("G4 rounds of the complete graph", 1, rounds, 0);
}

static void test_joins_and_memory(void **state)
{
    double peers;
    struct kith_plan_bound bound;
    struct kith_plan_memory memory = {.cap = 1000,
                                      .model_bytes = 100,
                                      .copies = 3,
                                      .state_bytes = 100,
                                      .slot_bytes = 200,
                                      .sample_bytes = 30};
    (void)state;
    assert_int_equal(kith_plan_joins(2, 100e6, 125e6, &peers, error), KITH_OK);
    is("G5 two join a second", 2, peers, 0);
    assert_int_equal(kith_plan_memory(&memory, &bound, error), KITH_OK);
    is("G6 bound", 400, bound.bytes, 0);
    is("G6 batch", 13, bound.batch, 0);
    memory.cap = 629;
    assert_int_equal(kith_plan_memory(&memory, &bound, error), KITH_ELIMIT);
    assert_non_null(strstr(error, "no batch fits 629 bytes"));
    is("G6 what does not fit changes nothing", 13, bound.batch, 0);
    memory.sample_bytes = 0;
    memory.cap = 600;
    assert_int_equal(kith_plan_memory(&memory, &bound, error), KITH_OK);
    is("G6 no sample, any batch", KITH_PLAN_COUNT_MAX, bound.batch, 0);
    memory.cap = 599;
    assert_int_equal(kith_plan_memory(&memory, &bound, error), KITH_ELIMIT);
}

static void test_gamma(void **state)
{
    const double gap = 1 - 0.8047378541;
    struct kith_plan_gamma ring, denser, whole;
    (void)state;
    assert_int_equal(kith_plan_gamma(gap, -1.0 / 3, 0.01, &ring, error),
                     KITH_OK);
    /* By hand: .038127 * .01 / (3.124194 + .038127 + 7.111111 + .694265 -
     * .015621). */
    is("G7 safe, a ring of 8, the largest 1 %", 3.4813e-5, ring.safe, 5e-10);
    is("G7 advised", 0.05012, ring.advise, 5e-6);
    is("G7 limit", 1.5, ring.limit, 1e-12);
    assert_int_equal(kith_plan_gamma(gap, -1.0 / 3, 0.1, &denser, error),
                     KITH_OK);
    assert_int_equal(kith_plan_gamma(gap, -1.0 / 3, 1, &whole, error), KITH_OK);
    assert_true(ring.safe < denser.safe && denser.safe < whole.safe);
    assert_true(ring.safe < ring.advise && ring.advise < 0.1);
    assert_true(whole.advise <= whole.limit / 2);
}

/* `error` begins with the name; `err` is KITH_EINVAL. */
static void refused(enum kith_err err, const char *name)
{
    assert_int_equal(err, KITH_EINVAL);
    printf("  refused: %s\n", error);
    assert_true(strncmp(error, name, strlen(name)) == 0);
    assert_non_null(strstr(error, "; allowed: "));
    error[0] = '\0';
}

static void test_refused(void **state)
{
    struct kith_plan_speedup speedup;
    struct kith_plan_gamma gamma;
    double out;
    (void)state;
    refused(kith_plan_ratio(0, 8, &out, error), "alpha");
    const double alpha = 0.6624610241169868; /* alpha G rounds to 1 */
    refused(kith_plan_ratio(alpha, nextafter(1 / alpha, 2), &out, error),
            "workers");
    refused(kith_plan_ratio(1.01, 8, &out, error), "alpha");
    refused(kith_plan_ratio((double)NAN, 8, &out, error), "alpha");
    refused(kith_plan_ratio(0.5, 2, &out, error), "workers");
    refused(kith_plan_workers(0.5, 0, &out, error), "ratio");
    refused(kith_plan_workers(0.5, -1, &out, error), "ratio");
    refused(kith_plan_speedup(0, 1, &speedup, error), "workers");
    refused(kith_plan_speedup((double)INFINITY, 1, &speedup, error), "workers");
    refused(kith_plan_servers(1, 1, 0, 1, &out, error), "rate");
    refused(kith_plan_servers(1, 1, 1, 0, &out, error), "step_s");
    refused(kith_plan_ring(2, &out, error), "peers");
    refused(kith_plan_rounds(1, 0.01, &out, error), "rho");
    refused(kith_plan_rounds(0.5, 1, &out, error), "left");
    refused(kith_plan_joins(1, 1, 0, &out, error), "up");
    refused(kith_plan_gamma(0, 0, 0.5, &gamma, error), "gap");
    refused(kith_plan_gamma(0.5, 1, 0.5, &gamma, error), "lowest");
    refused(kith_plan_gamma(0.5, 0, 0, &gamma, error), "omega");
}

/* Each member of an exchange is looked at. */
static void test_refused_exchange(void **state)
{
    static const struct kith_plan_exchange good = {1, 1, 1, 1, 1,    0,
                                                   0, 1, 1, 1, false};
    static const char *const names[] = {
        "model_bytes", "share",   "fan_out", "up",       "down",
        "latency_s",   "codec_s", "step_s",  "interval", "overlap"};
    struct kith_plan_hiding out;
    (void)state;
    assert_int_equal(kith_plan_hiding(&good, &out, error), KITH_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double members[offsetof(struct kith_plan_exchange, is_push) /
                       sizeof(double)];
        struct kith_plan_exchange bad = good;
        static const double values[] = {-1, (double)NAN};
        _Static_assert(sizeof names / sizeof *names ==
                           sizeof members / sizeof(double),
                       "all of them");
        for (size_t k = 0; k < 2; k++) {
            memcpy(members, &good, sizeof members);
            members[i] = values[k];
            memcpy(&bad, members, sizeof members);
            refused(kith_plan_hiding(&bad, &out, error), names[i]);
        }
    }
}

/* At the ends of all ranges every figure is a number. */
static void test_finite(void **state)
{
    static const double ends[][2] = {{KITH_PLAN_LEAST, KITH_PLAN_BYTES_MAX},
                                     {KITH_PLAN_LEAST, KITH_PLAN_COUNT_MAX},
                                     {0, KITH_PLAN_COUNT_MAX},
                                     {KITH_PLAN_LEAST, KITH_PLAN_BYTES_MAX},
                                     {KITH_PLAN_LEAST, KITH_PLAN_BYTES_MAX},
                                     {0, KITH_PLAN_SECONDS_MAX},
                                     {0, KITH_PLAN_SECONDS_MAX},
                                     {KITH_PLAN_LEAST, KITH_PLAN_SECONDS_MAX},
                                     {1, KITH_PLAN_COUNT_MAX},
                                     {0, 1}};
    enum { MEMBERS = sizeof ends / sizeof *ends };
    struct kith_plan_hiding out;
    double found, members[MEMBERS];
    (void)state;
    for (unsigned i = 0; i < 2u << MEMBERS; i++) {
        struct kith_plan_exchange exchange = {.is_push = (i & 1) != 0};
        for (unsigned k = 0; k < MEMBERS; k++)
            members[k] = ends[k][i >> (k + 1) & 1];
        memcpy(&exchange, members, sizeof members);
        assert_int_equal(kith_plan_hiding(&exchange, &out, error), KITH_OK);
        assert_true(isfinite(out.exchange_s) && isfinite(out.interval) &&
                    isfinite(out.efficiency) && isfinite(out.step_s) &&
                    isfinite(out.fan_out) && isfinite(out.exchange_most_s) &&
                    isfinite(out.step_most_s));
    }
    assert_int_equal(kith_plan_workers(KITH_PLAN_LEAST, KITH_PLAN_RATIO_LEAST,
                                       &found, error),
                     KITH_OK);
    assert_true(isfinite(found));
    assert_int_equal(kith_plan_servers(KITH_PLAN_BYTES_MAX, KITH_PLAN_COUNT_MAX,
                                       KITH_PLAN_LEAST, KITH_PLAN_LEAST, &found,
                                       error),
                     KITH_OK);
    assert_true(isfinite(found));
    refused(kith_plan_workers(1e-300, 1e-300, &found, error), "alpha");
    refused(kith_plan_workers(1, 1e-300, &found, error), "ratio");
    refused(kith_plan_servers(1, 1, 1e-300, 1, &found, error), "rate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_ratios),
        cmocka_unit_test(test_speedup),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_hiding),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_finite),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_mixing),
        cmocka_unit_test(test_joins_and_memory),
        cmocka_unit_test(test_gamma),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
