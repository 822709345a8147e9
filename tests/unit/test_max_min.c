/* Goal: rates are max-min fair after every change, and only those move that
 * have to.
 * Method: cases worked out by hand; 1,000 random platforms whose flows come and
 * go, against filling of all flows, round by round, without what the solver
 * remembers; the definition itself: no link above its capacity, and each flow
 * has a full link on which none is faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "kith/rng.h"
#include "sim/max_min.h"

#define LINKS_MAX 12u
#define FLOWS_MAX 40u
#define PLATFORMS 1000u

struct platform {
    double capacity[LINKS_MAX];
    unsigned links;
    uint32_t path[FLOWS_MAX][SIM_PATH_LINKS];
    unsigned crossed[FLOWS_MAX]; /* 0: no flow */
};

static void add(struct sim_rates *rates, uint32_t flow, unsigned links,
                uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t path[] = {a, b, c};
    assert_int_equal(sim_rates_add(rates, flow, path, links), KITH_OK);
}

static double solved(struct sim_rates *rates, uint32_t flow)
{
    assert_int_equal(sim_rates_solve(rates), KITH_OK);
    return rates->flows[flow].rate;
}

/* Bertsekas, Gallager, 6.5.2: a long flow over links that short ones share. */
static void test_by_hand(void **state)
{
    (void)state;
    struct sim_rates rates;
    assert_int_equal(sim_rates_open(&rates, 3), KITH_OK);
    sim_rates_capacity(&rates, 0, 12);
    sim_rates_capacity(&rates, 1, 6);
    sim_rates_capacity(&rates, 2, 20);
    add(&rates, 0, 3, 0, 1, 2);
    assert_true(solved(&rates, 0) == 6);
    add(&rates, 1, 1, 1, 0, 0);
    assert_true(solved(&rates, 0) == 3 && rates.flows[1].rate == 3);
    add(&rates, 2, 1, 0, 0, 0); /* what the long one leaves */
    assert_true(solved(&rates, 2) == 9 && rates.flows[0].rate == 3);
    add(&rates, 3, 2, 0, 2, 0); /* 12 less 3 for two */
    assert_true(solved(&rates, 3) == 4.5 && rates.flows[2].rate == 4.5);
    sim_rates_remove(&rates, 1); /* 12 for three, so the long one stops there */
    assert_true(solved(&rates, 0) == 4 && rates.flows[3].rate == 4);
    sim_rates_remove(&rates, 0);
    sim_rates_remove(&rates, 2);
    assert_true(solved(&rates, 3) == 12);
    sim_rates_remove(&rates, 3);
    assert_int_equal(sim_rates_solve(&rates), KITH_OK);
    assert_int_equal(rates.flows_affected.count, 0);
    sim_rates_close(&rates);
}

/* A flow that comes to links of its own touches no other; one that comes to a
 * slower link leaves faster flows elsewhere alone. */
static void test_only_who_is_affected(void **state)
{
    (void)state;
    struct sim_rates rates;
    assert_int_equal(sim_rates_open(&rates, 2000), KITH_OK);
    for (uint32_t link = 0; link < 2000; link++)
        sim_rates_capacity(&rates, link, 1 + link % 2);
    for (uint32_t flow = 0; flow < 999; flow++)
        add(&rates, flow, 2, 2 * flow, 2 * flow + 1, 0);
    assert_true(solved(&rates, 7) == 1);
    assert_int_equal(rates.flows_affected.count, 999);
    add(&rates, 999, 2, 1998, 1999, 0);
    assert_true(solved(&rates, 999) == 1);
    assert_int_equal(rates.flows_affected.count, 1);
    /* From a slow link to the next pair's fast one, which is not full. */
    add(&rates, 1000, 2, 0, 3, 0);
    assert_true(solved(&rates, 1000) == 0.5);
    assert_int_equal(rates.flows_affected.count, 2);
    assert_true(rates.flows[1].rate == 1);
    sim_rates_close(&rates);
}

/* All rates grow together; who crosses a full link stops. Everything is summed
 * up anew in each round. */
static void fill_plainly(const struct platform *platform, double *rates)
{
    bool stopped[FLOWS_MAX];
    double level = 0;
    for (unsigned flow = 0; flow < FLOWS_MAX; flow++) {
        stopped[flow] = platform->crossed[flow] == 0;
        rates[flow] = 0;
    }
    for (;;) {
        double least = INFINITY, step[LINKS_MAX];
        for (unsigned link = 0; link < platform->links; link++) {
            double rest = platform->capacity[link];
            unsigned open = 0;
            for (unsigned flow = 0; flow < FLOWS_MAX; flow++)
                for (unsigned k = 0; k < platform->crossed[flow]; k++)
                    if (platform->path[flow][k] == link) {
                        rest -= stopped[flow] ? rates[flow] : level;
                        open += !stopped[flow];
                    }
            step[link] = open > 0 ? rest / open : INFINITY;
            least = fmin(least, step[link]);
        }
        if (isinf(least))
            return;
        level += least;
        for (unsigned flow = 0; flow < FLOWS_MAX; flow++) {
            if (stopped[flow])
                continue;
            rates[flow] = level;
            for (unsigned k = 0; k < platform->crossed[flow]; k++)
                if (step[platform->path[flow][k]] <= least * (1 + 1e-12))
                    stopped[flow] = true;
        }
    }
}

static double sum_on(const struct sim_rates *rates,
                     const struct platform *platform, uint32_t link,
                     double *fastest)
{
    double sum = *fastest = 0;
    for (unsigned flow = 0; flow < FLOWS_MAX; flow++)
        for (unsigned k = 0; k < platform->crossed[flow]; k++)
            if (platform->path[flow][k] == link) {
                sum += rates->flows[flow].rate;
                *fastest = fmax(*fastest, rates->flows[flow].rate);
            }
    return sum;
}

static void check_rates(const struct sim_rates *rates,
                        const struct platform *platform, unsigned seed)
{
    double expected[FLOWS_MAX], sum[LINKS_MAX], fastest[LINKS_MAX];
    fill_plainly(platform, expected);
    for (unsigned link = 0; link < platform->links; link++) {
        sum[link] = sum_on(rates, platform, link, &fastest[link]);
        if (sum[link] > platform->capacity[link] * (1 + 1e-9))
            fail_msg("KITH_SEED=%u: link %u carries %.17g of %.17g", seed, link,
                     sum[link], platform->capacity[link]);
    }
    for (unsigned flow = 0; flow < FLOWS_MAX; flow++) {
        const double rate = rates->flows[flow].rate;
        if (platform->crossed[flow] == 0)
            continue;
        if (fabs(rate - expected[flow]) > 1e-9 * expected[flow])
            fail_msg("KITH_SEED=%u: flow %u has %.17g, not %.17g", seed, flow,
                     rate, expected[flow]);
        bool has_bottleneck = false;
        for (unsigned k = 0; k < platform->crossed[flow]; k++) {
            const uint32_t link = platform->path[flow][k];
            has_bottleneck =
                has_bottleneck ||
                (sum[link] >= platform->capacity[link] * (1 - 1e-9) &&
                 rate >= fastest[link] * (1 - 1e-9));
        }
        if (!has_bottleneck)
            fail_msg("KITH_SEED=%u: flow %u has no bottleneck", seed, flow);
    }
}

/* Capacities of few values, so that many links are full at once, or of any. */
static void draw_platform(struct kith_rng *rng, struct platform *platform,
                          struct sim_rates *rates)
{
    *platform = (struct platform){
        .links = SIM_PATH_LINKS +
                 kith_rng_below(rng, LINKS_MAX + 1 - SIM_PATH_LINKS)};
    assert_int_equal(sim_rates_open(rates, platform->links), KITH_OK);
    const bool even = kith_rng_below(rng, 2);
    for (unsigned link = 0; link < platform->links; link++) {
        platform->capacity[link] =
            even ? 1 + kith_rng_below(rng, 3)
                 : 1e-4 * pow(1e6, kith_rng_below(rng, 1u << 30) / 0x1p30);
        sim_rates_capacity(rates, link, platform->capacity[link]);
    }
}

static void change_flow(struct kith_rng *rng, struct platform *platform,
                        struct sim_rates *rates)
{
    const uint32_t flow = kith_rng_below(rng, FLOWS_MAX);
    uint32_t *path = platform->path[flow];
    if (platform->crossed[flow] > 0) {
        sim_rates_remove(rates, flow);
        platform->crossed[flow] = 0;
        return;
    }
    const unsigned links = 1 + kith_rng_below(rng, SIM_PATH_LINKS);
    path[0] = kith_rng_below(rng, platform->links);
    for (unsigned k = 1; k < links; k++)
        path[k] = (path[k - 1] + 1) % platform->links;
    if (links == 2 && platform->links > 2) /* any other one */
        path[1] = (path[0] + 1 + kith_rng_below(rng, platform->links - 1)) %
                  platform->links;
    platform->crossed[flow] = links;
    assert_int_equal(sim_rates_add(rates, flow, path, links), KITH_OK);
}

static void test_random_platforms(void **state)
{
    (void)state;
    const char *given = getenv("KITH_SEED");
    const unsigned first = given ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (unsigned seed = first; seed < first + (given ? 1 : PLATFORMS);
         seed++) {
        struct kith_rng rng;
        struct platform platform;
        struct sim_rates rates;
        kith_rng_init(&rng, seed, 0, 0);
        draw_platform(&rng, &platform, &rates);
        for (unsigned changes = 0; changes < 120; changes++) {
            /* Mostly one at a time, now and then several. */
            do
                change_flow(&rng, &platform, &rates);
            while (kith_rng_below(&rng, 4) == 0);
            assert_int_equal(sim_rates_solve(&rates), KITH_OK);
            check_rates(&rates, &platform, seed);
        }
        sim_rates_close(&rates);
    }
}

/* The same calls, the same bits. */
static void test_repeats(void **state)
{
    (void)state;
    struct sim_rates rates[2];
    for (unsigned i = 0; i < 2; i++) {
        struct kith_rng rng;
        struct platform platform;
        kith_rng_init(&rng, 3, 0, 0);
        draw_platform(&rng, &platform, &rates[i]);
        for (unsigned changes = 0; changes < 1000; changes++) {
            change_flow(&rng, &platform, &rates[i]);
            assert_int_equal(sim_rates_solve(&rates[i]), KITH_OK);
        }
    }
    for (uint32_t flow = 0; flow < FLOWS_MAX; flow++)
        assert_true(rates[0].flows[flow].rate == rates[1].flows[flow].rate);
    for (unsigned i = 0; i < 2; i++)
        sim_rates_close(&rates[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_only_who_is_affected),
        cmocka_unit_test(test_random_platforms),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
