/* Goal: the search finds what was mended once: a bug put back in is found
 * within 500 runs, in which the sound program violates nothing. Method: the
 * linker puts functions of ours before those of the core, the worker and the
 * law of links (--wrap). The runs are those of one seed, first sound, with
 * coverage, then with one mutation after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kith/sim.h"
#include "kith/swarm.h"
#include "src/protocol/core/node_state.h"
#include "src/protocol/core/round.h"
#include "src/training/worker/worker_state.h"

#define RUNS_MAX 500u
#define SEED 7u

enum mutant {
    SOUND,
    DEAF,    /* in rounds nobody who was left out is heard again */
    FROZEN,  /* no good state is kept: mend 1 */
    HELD,    /* who holds a record is neither charged nor given up: mend 2 */
    TIMID,   /* one neighbour further on is not enough to follow: mend 3 */
    OWN_LAW, /* the simulator's losses are of messages: mend 5 */
    MUTANT_COUNT
};
static enum mutant mutant;

#define WRAPPED(type, name, ...)                                               \
    type __real_##name(__VA_ARGS__);                                           \
    type __wrap_##name(__VA_ARGS__);                                           \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(void, kith_worker_judge_step, struct kith_worker *worker,
        struct kith_work_result *result)
{
    if (mutant != FROZEN)
        __real_kith_worker_judge_step(worker, result);
}

WRAPPED(void, kith_worker_judge_merge, struct kith_worker *worker,
        struct kith_work_result *result)
{
    if (mutant != FROZEN)
        __real_kith_worker_judge_merge(worker, result);
}

WRAPPED(bool, kith_worker_is_far, struct kith_worker *worker,
        const struct kith_work_edge *edge)
{
    return mutant != FROZEN && __real_kith_worker_is_far(worker, edge);
}

WRAPPED(void, kith_node_charge, struct kith_node *node, kith_id peer,
        kith_ns span_ns)
{
    if (mutant != HELD)
        __real_kith_node_charge(node, peer, span_ns);
}

WRAPPED(bool, kith_exchange_overslept, const struct kith_node *node,
        const struct kith_exchange *exchange)
{
    return mutant == HELD || __real_kith_exchange_overslept(node, exchange);
}

/* A probe that is answered was none. */
WRAPPED(void, kith_exchange_tell, const struct kith_node *node,
        struct kith_exchange *exchange, enum kith_message_kind kind)
{
    if (mutant == HELD && kind == KITH_MESSAGE_PROBE)
        exchange->probes = 0;
    __real_kith_exchange_tell(node, exchange, kind);
}

/* Neighbours in a later stretch of 8 rounds. */
static uint32_t ahead(const struct kith_round *round)
{
    uint32_t count = 0;
    for (unsigned k = 0; k < 2; k++)
        for (uint32_t e = 0; e < round->lists[k].count; e++)
            count += round->lists[k].edges[e].said / 8 > round->round / 8;
    return count;
}

WRAPPED(void, kith_round_hear, struct kith_node *node, kith_id from,
        uint64_t said)
{
    struct kith_round *round = node->round;
    const uint64_t furthest = round->furthest;
    if (mutant == DEAF)
        return;
    __real_kith_round_hear(node, from, said);
    if (mutant == TIMID && ahead(round) < 2)
        round->furthest = furthest;
}

/* What the simulator did before: a message is lost, and costs a time-out. */
WRAPPED(kith_ns, kith_link_arrival, struct kith_link_flow *flow,
        const struct kith_link_piece *piece)
{
    const double loss = flow->terms.loss;
    if (mutant != OWN_LAW || loss == 0)
        return __real_kith_link_arrival(flow, piece);
    struct kith_rng rng;
    kith_rng_init(&rng, flow->seed, KITH_STREAM_LOSS,
                  (uint64_t)flow->from << 32 | flow->to);
    rng.block = 2 * flow->losses++;
    unsigned lost = 0;
    while (lost < 8 && kith_rng_double(&rng) < loss)
        lost++;
    flow->terms.loss = 0;
    const kith_ns arrives_ns = __real_kith_link_arrival(flow, piece);
    flow->terms.loss = loss;
    return arrives_ns +
           ((1 << lost) - 1) * (200 * KITH_MS + 2 * flow->terms.latency_ns);
}

/* What the swarm calls a violation. */
static bool violates(uint64_t seed, uint64_t run, enum mutant which,
                     uint64_t marks[KITH_MARK_COUNT])
{
    uint8_t claims[64];
    char error[SIM_ERROR_BYTES];
    struct kith_experiment experiment;
    struct kith_draw draw;
    struct kith_summary summary;
    struct sim_report report;
    kith_draw(seed, run, KITH_WORLD_SIM, &draw, &experiment);
    assert_true(experiment.peers <= sizeof claims);
    assert_true(sim_claims_parse(draw.dishonest, experiment.peers, claims));
    const struct sim_options options = {
        .experiment = &experiment, .claims = claims, .watch = true};
    mutant = which;
    assert_int_equal(sim_run(&options, &summary, &report, error), KITH_OK);
    mutant = SOUND;
    const char *found = report.not_live;
    for (uint32_t i = 0; i < experiment.check_count; i++)
        if (summary.checks.results[i].verdict == KITH_VERDICT_BROKEN &&
            strcmp(experiment.checks[i].quantity, "live") != 0)
            found = experiment.checks[i].text;
    for (unsigned k = 0; marks != NULL && k < KITH_MARK_COUNT; k++)
        marks[k] += report.marks[k] > 0;
    if (found[0] != '\0')
        print_message("  seed %u, run %u, %s: %s\n", (unsigned)seed,
                      (unsigned)run, experiment.gossip.algorithm->name, found);
    const bool is_found = found[0] != '\0';
    kith_experiment_close(&experiment);
    return is_found;
}

static void test_mutants_are_found(void **state)
{
    static const struct {
        const char *name;
        uint64_t seed;
    } of[MUTANT_COUNT] = {
        [DEAF] = {"who was left out is never heard again", 7},
        [FROZEN] = {"no good state is kept", 7},
        [HELD] = {"who holds a record is neither charged nor given up", 7},
        [TIMID] = {"one that is further on is not followed", 3},
        [OWN_LAW] = {"the simulator loses messages, not packets", 7},
    };
    (void)state;
    for (unsigned m = SOUND + 1; m < MUTANT_COUNT; m++) {
        uint64_t run = 0;
        print_message("%s:\n", of[m].name);
        while (run < RUNS_MAX &&
               !violates(of[m].seed, run, (enum mutant)m, NULL))
            run++;
        assert_true(run < RUNS_MAX);
        /* Those of the other seed are below. */
        for (uint64_t before = 0; of[m].seed != SEED && before <= run; before++)
            assert_false(violates(of[m].seed, before, SOUND, NULL));
    }
}

static void test_sound(void **state)
{
    uint64_t marks[KITH_MARK_COUNT] = {0};
    (void)state;
    for (uint64_t run = 0; run < RUNS_MAX; run++)
        assert_false(violates(SEED, run, SOUND, marks));
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++)
        print_message("  %-12s in %3u of %u runs\n",
                      kith_mark_name((enum kith_mark_kind)k),
                      (unsigned)marks[k], RUNS_MAX);
    assert_true(marks[KITH_MARK_GATED] > 5);
    assert_true(marks[KITH_MARK_RECOVERED] > 5);
    assert_true(marks[KITH_MARK_SUSPECT] > 50);
    assert_true(marks[KITH_MARK_ADOPTED] > 50);
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
            kith_draw(3, run, KITH_WORLD_SIM, &draws[k], &experiment);
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
        kith_draw(13, run, KITH_WORLD_SIM, &draw, &experiment);
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
        cmocka_unit_test(test_mutants_are_found),
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_draws_converge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
