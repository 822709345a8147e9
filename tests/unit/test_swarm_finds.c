/* Goal: the search can find something: a bug put back in is found within 500
 * runs.
 * Method: the linker puts a function of ours before one of the core (--wrap):
 * in rounds nobody who was left out is heard again. The runs that a sound core
 * passes are simulated with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kith/sim.h"
#include "kith/swarm.h"
#include "src/protocol/core/round.h"

#define RUNS_MAX 500u

static bool mutant;

void __real_kith_round_hear(struct kith_node *node, kith_id from,
                            uint64_t said);
void __wrap_kith_round_hear(struct kith_node *node, kith_id from,
                            uint64_t said);
void __wrap_kith_round_hear(struct kith_node *node, kith_id from, uint64_t said)
{
    if (!mutant)
        __real_kith_round_hear(node, from, said);
}

static bool violates(const struct kith_draw *draw,
                     const struct kith_experiment *experiment, bool is_mutant)
{
    uint8_t claims[64];
    char error[SIM_ERROR_BYTES];
    struct kith_summary summary;
    struct sim_report report;
    assert_true(experiment->peers <= sizeof claims);
    assert_true(sim_claims_parse(draw->dishonest, experiment->peers, claims));
    const struct sim_options options = {
        .experiment = experiment, .claims = claims, .watch = true};
    mutant = is_mutant;
    const enum kith_err err = sim_run(&options, &summary, &report, error);
    mutant = false;
    assert_int_equal(err, KITH_OK);
    if (summary.violations > 0 && is_mutant)
        print_message("found: %s\n", report.not_live);
    return summary.violations > 0;
}

static void test_a_bug_is_found(void **state)
{
    (void)state;
    bool found = false;
    for (uint64_t run = 0; run < RUNS_MAX && !found; run++) {
        struct kith_experiment experiment;
        struct kith_draw draw;
        kith_draw(7, run, &draw, &experiment);
        found = violates(&draw, &experiment, true) &&
                !violates(&draw, &experiment, false);
        if (found)
            print_message("in run %llu of 500\n", (unsigned long long)run);
        kith_experiment_close(&experiment);
    }
    assert_true(found);
}

/* A draw is its seed and run; leaving a fault out changes no other. */
static void test_draws(void **state)
{
    (void)state;
    char texts[2][KITH_DRAW_TEXT_BYTES];
    for (uint64_t run = 0; run < 50; run++) {
        struct kith_draw draws[2];
        for (unsigned k = 0; k < 2; k++) {
            struct kith_experiment experiment;
            kith_draw(3, run, &draws[k], &experiment);
            assert_true(kith_draw_text(&draws[k], texts[k]) > 0);
            kith_experiment_close(&experiment);
        }
        assert_string_equal(texts[0], texts[1]);
        assert_true(draws[0].fault_count < KITH_DRAW_FAULTS_MAX);
        kith_draw_faults(3, run, 8, 60 * KITH_S, &draws[1]);
        for (uint32_t i = 0; i < draws[1].fault_count; i++)
            assert_true(draws[1].faults[i][0] == '{');
    }
}

/* What diverges without any fault is not drawn. */
static void test_draws_converge(void **state)
{
    (void)state;
    unsigned outer = 0;
    for (uint64_t run = 0; run < 500; run++) {
        struct kith_experiment experiment;
        struct kith_draw draw;
        kith_draw(13, run, &draw, &experiment);
        const char *name = experiment.gossip.algorithm->name;
        const struct kith_topology_kind *kind = experiment.gossip.topology;
        if (strcmp(name, "diloco") == 0 || strcmp(name, "slowmo") == 0) {
            assert_true(kind->is_static && !kind->directed);
            outer++;
        }
        kith_experiment_close(&experiment);
    }
    assert_true(outer > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bug_is_found),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_draws_converge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
