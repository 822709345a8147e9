/* Goal: a run that takes longer than virtual time goes (146 years) ends by an
 * error that says what took so long, never by an assertion; whatever its keys
 * are within their ranges.
 * Method: rows that reach the end in a few events, with messages that queue and
 * that share lines; what the error says of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kith/sim.h"

#define WAY "what is under way"
#define BEYOND "later than virtual time goes, "

/* Names `found` where it fails; NULL: it ends in time. */
static void expect(const char *yaml, const char *found)
{
    struct kith_experiment experiment;
    struct kith_summary summary;
    char error[KITH_EXPERIMENT_ERROR_BYTES + SIM_ERROR_BYTES] = "";
    if (kith_experiment_parse("test", yaml, strlen(yaml), NULL, 0, &experiment,
                              error) != KITH_OK)
        fail_msg("%s", error);
    const struct sim_options options = {.experiment = &experiment};
    const enum kith_err err = sim_run(&options, &summary, NULL, error);
    if (err != (found ? KITH_ELIMIT : KITH_OK) ||
        (found && (!strstr(error, found) || !strstr(error, BEYOND) ||
                   !strstr(error, "; allowed: "))))
        fail_msg("%d, \"%s\" of\n%s", (int)err, error, yaml);
    kith_experiment_close(&experiment);
}

/* The longest messages over the slowest lines. */
static void test_central(void **state)
{
    (void)state;
    static const struct {
        unsigned peers;
        const char *rate, *central, *found, *shared;
    } rows[] = {
        {4, "1Mbit", "method: gradient", "a stage of an exchange at ",
         "a stage"},
        {60, "1kbit", "method: gradient", "a stage", "a stage"},
        {60, "1kbit", "exchange: tree", "a stage", "a stage"},
        {60, "1kbit", "exchange: scatter-reduce", "a stage", "a stage"},
        {60, "1kbit", "exchange: doubling", "a stage", "a stage"},
        {60, "1kbit", "exchange: ring", "a stage", "a stage"},
        {4, "unlimited", "reduce: 1kbit, update: 1kbit", "a stage", "a stage"},
        {4, "1kbit", "method: sparknet", "a stage", "a stage"},
        {4, "1kbit", "method: mpca-sgd", NULL, NULL}, /* nobody waits */
        {4, "1kbit", "method: easgd", "a message at ", WAY},
        {4, "1kbit", "method: treeeasgd", NULL, NULL},
        {4, "1kbit", "trigger: async", "a message at server 4 ", WAY},
        {4, "1kbit", "trigger: ssp", "a message", WAY},
        {4, "1kbit", "trigger: quorum, backup: 1", "a message", WAY},
        {4, "1kbit", "trigger: async, replicas: 3", "a message", WAY},
        {4, "unlimited", "trigger: async, update: 1kbit",
         "an update at server 4", "an update"},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
                 "name: t\npeers: %u\nstop: {steps: 20}\nmodel: {kind: none}\n"
                 "compute: {step: 1ms}\nnetwork: {rate: %s, sharing: %s}\n"
                 "central: {payload: 10000000000000, %s}\n",
                 rows[i / 2].peers, rows[i / 2].rate, i % 2 ? "fair" : "queue",
                 rows[i / 2].central);
        expect(yaml, i % 2 ? rows[i / 2].shared : rows[i / 2].found);
    }
}

/* A window of one lossy packet every four minutes. */
static void test_lossy(void **state)
{
    (void)state;
    expect("name: t\npeers: 4\nstop: {steps: 1}\nmodel: {kind: none}\n"
           "compute: {step: 1ms}\n"
           "network: {latency: 60s, jitter: 60s, loss: 0.99}\n"
           "central: {payload: 10000000000000}\n",
           "a stage");
}

/* Steps of 114 years in the mean, and of 11 that share a core. */
static void test_steps(void **state)
{
    (void)state;
#define ALONE                                                                  \
    "name: t\npeers: 100\nmodel: {kind: consensus, dim: 1}\n"                  \
    "gossip: {algorithm: adpsgd}\n"
#define SLOW "step: 3600s, slow: [{peers: all, by: 1000000}]"
    expect(ALONE "stop: {steps: 1}\n"
                 "compute: {spread: exponential, " SLOW "}\n",
           "a step, snapshot or merge at peer ");
    expect(ALONE "stop: {steps: 1}\nhosts: {cores: 1}\n"
                 "compute: {step: 3600s, slow: [{peers: all, by: 100000}]}\n",
           "on a shared host at peer ");
    /* Longer than any clock, but it stops before. */
    expect(ALONE "stop: {steps: 100000, time: 1h}\ncompute: {" SLOW "}\n"
                 "faults: [{at: 0s, slow: all, by: 1000000}]\n",
           NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_central),
        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
