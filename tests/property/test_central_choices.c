/* Goal: whatever may be chosen in `central:` runs to its end, stays finite and
 * repeats its trace. Method: a seeded sample of methods, exchanges, triggers,
 * machines, links and optimisers, each run twice, the second time with the
 * other queue. KITH_CASES says how many, KITH_SEED which. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/central.h"
#include "kith/rng.h"
#include "kith/sim.h"
#include "kith/text.h"

#define CASES 120u
#define BYTES 2048u

static struct kith_rng rng;

static uint32_t below(uint32_t n)
{
    return kith_rng_below(&rng, n);
}

static const char *one_of(const char *const *names, uint32_t count)
{
    return names[below(count)];
}

static size_t add_gradient(char *text, size_t at, unsigned peers)
{
    const enum kith_central_trigger trigger =
        (enum kith_central_trigger)below(KITH_CENTRAL_TRIGGER_COUNT);
    at = kith_text_add(text, BYTES, at, "trigger: %s",
                       kith_central_triggers[trigger].name);
    if (trigger == KITH_CENTRAL_SYNC) {
        const uint32_t exchange = below(KITH_CENTRAL_EXCHANGE_COUNT);
        return kith_text_add(text, BYTES, at, ", exchange: %s",
                             kith_central_exchanges[exchange].name);
    }
    if (trigger == KITH_CENTRAL_SSP || trigger == KITH_CENTRAL_ESSP)
        at = kith_text_add(text, BYTES, at, ", staleness: %u", below(4));
    if (trigger == KITH_CENTRAL_VALUE)
        at = kith_text_add(text, BYTES, at, ", bound: %g",
                           pow(10, -(double)below(6)));
    if (trigger == KITH_CENTRAL_BACKUP || trigger == KITH_CENTRAL_QUORUM)
        at = kith_text_add(text, BYTES, at, ", backup: %u",
                           1 + below(peers - 1));
    else if (trigger != KITH_CENTRAL_ESSP && below(3) == 0)
        return kith_text_add(text, BYTES, at, ", proxies: %u",
                             1 + below(peers));
    at = kith_text_add(text, BYTES, at, ", servers: %u", 1 + below(peers));
    return below(2) == 0
               ? kith_text_add(text, BYTES, at, ", placement: workers")
               : kith_text_add(text, BYTES, at, ", replicas: %u", 1 + below(4));
}

static size_t add_method(char *text, size_t at, unsigned peers)
{
    const enum kith_central_method method =
        (enum kith_central_method)below(KITH_CENTRAL_VERTICAL);
    const char *name = kith_central_methods[method].name;
    if (method == KITH_CENTRAL_GRADIENT || below(2) == 0)
        return add_gradient(text, at, peers);
    at = kith_text_add(text, BYTES, at, "method: %s", name);
    if (method == KITH_CENTRAL_TREEEASGD)
        return kith_text_add(text, BYTES, at, ", degree: %u, up: %u, down: %u",
                             2 + below(3), 1 + below(3), 1 + below(3));
    if (method != KITH_CENTRAL_GRADIENT)
        at = kith_text_add(text, BYTES, at, ", every: %u", 1 + below(4));
    if (method == KITH_CENTRAL_SPARKNET || method == KITH_CENTRAL_MPCA)
        at = kith_text_add(
            text, BYTES, at, ", exchange: %s",
            kith_central_exchanges[below(KITH_CENTRAL_EXCHANGE_COUNT)].name);
    return at;
}

static void choose(char *text, uint64_t seed)
{
    static const char *const optimisers[] = {
        "{learning_rate: 0.01}", "{learning_rate: 0.01, momentum: 0.5}",
        "{optimiser: adamw, learning_rate: 0.01}"};
    static const char *const rates[] = {"unlimited", "1Mbit", "1Gbit"};
    static const char *const spans[] = {"0s", "10us", "2ms"};
    static const char *const spreads[] = {"fixed", "exponential"};
    const unsigned peers = 2 + below(9);
    size_t at = kith_text_add(
        text, BYTES, 0,
        "name: t\nseed: %llu\npeers: %u\nstop: {%s}\n"
        "model: {kind: quadratic, dim: %u}\ntrain: %s\nevaluate: 5ms\n",
        (unsigned long long)seed, peers,
        below(3) == 0 ? "time: 25ms" : "steps: 15", 1 + below(40),
        one_of(optimisers, 3));
    at = kith_text_add(text, BYTES, at,
                       "network: {latency: %s, jitter: %s, rate: %s}\n",
                       one_of(spans, 3), one_of(spans, 3), one_of(rates, 3));
    at = kith_text_add(text, BYTES, at,
                       "compute: {step: 1ms, spread: %s, slow: "
                       "[{peers: \"n(1)\", by: %u}]}\ncentral: {",
                       one_of(spreads, 2), 2 + below(8));
    at = add_method(text, at, peers);
    (void)kith_text_add(text, BYTES, at, "}\n");
}

static bool run(const struct kith_experiment *experiment,
                enum sim_queue_kind queue, struct kith_summary *summary)
{
    char error[SIM_ERROR_BYTES] = "";
    const struct sim_options options = {.experiment = experiment,
                                        .queue = queue};
    if (sim_run(&options, summary, NULL, error) != KITH_OK) {
        printf("%s\n", error);
        return false;
    }
    return summary->completed;
}

static void test_choices(void **state)
{
    (void)state;
    const char *cases = getenv("KITH_CASES"), *seed = getenv("KITH_SEED");
    const unsigned count = cases ? (unsigned)atoi(cases) : CASES;
    const uint64_t first = seed ? (uint64_t)atoll(seed) : 1;
    double stalest = 0;
    for (unsigned i = 0; i < count; i++) {
        char text[BYTES], error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        struct kith_experiment experiment;
        struct kith_summary a, b;
        kith_rng_init(&rng, first + i, KITH_STREAM_TEST, 0);
        choose(text, first + i);
        const bool loaded =
            kith_experiment_parse("t", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        const bool good = loaded && run(&experiment, SIM_QUEUE_CALENDAR, &a) &&
                          run(&experiment, SIM_QUEUE_HEAP, &b) &&
                          a.trace_hash == b.trace_hash &&
                          a.loss.averaged == b.loss.averaged &&
                          isfinite(a.loss.mean) && a.utilisation <= 1;
        if (!good)
            fail_msg("KITH_SEED=%llu KITH_CASES=1: %s\n%s",
                     (unsigned long long)(first + i), error, text);
        stalest = fmax(stalest, a.staleness.max);
        kith_experiment_close(&experiment);
    }
    printf(
        "%u choices, twice each: expected 0 that fail, measured 0; staleness "
        "up to %.0f\n",
        count, stalest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
