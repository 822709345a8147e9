/* Goal: the watcher asks for what is promised after the last fault, no more.
 * Method: marks made up for eight peers: an edge that stays silent, one whose
 * slower end has not come far, attempts without a success, a peer that stands
 * still; peers and links that are gone for good; `live` and `within` in
 * simulated runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kith/liveness.h"
#include "kith/sim.h"

#define PEERS 8u
#define AFTER_NS (10 * KITH_S)

struct watching {
    struct kith_experiment experiment;
    struct kith_topology topology;
    struct kith_node_config config;
    struct kith_liveness *liveness;
};

static void read_text(struct kith_experiment *experiment, const char *gossip,
                      const char *more)
{
    char text[1024], error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    const int length = snprintf(
        text, sizeof text,
        "name: live\nseed: 1\npeers: 8\nstop: {time: 60s}\n"
        "model: {kind: consensus, dim: 4}\ngossip: %s\n"
        "compute: {step: 10ms}\n%s%s\n",
        gossip, strstr(more, "network:") ? "" : "network: {latency: 2ms}\n",
        more);
    if (kith_experiment_parse("live.yaml", text, (size_t)length, NULL, 0,
                              experiment, error) != KITH_OK)
        fail_msg("%s", error);
}

static void start(struct watching *watching, const char *gossip,
                  const char *faults)
{
    read_text(&watching->experiment, gossip, faults);
    assert_int_equal(
        kith_experiment_node_config(&watching->experiment, UINT64_MAX,
                                    &watching->topology, &watching->config),
        KITH_OK);
    watching->config.topology = &watching->topology;
    assert_int_equal(kith_liveness_open(&watching->config,
                                        &watching->experiment,
                                        &watching->liveness),
                     KITH_OK);
    assert_non_null(watching->liveness);
}

/* The verdict; what was said holds `words`. */
static void end(struct watching *watching, double expected, const char *words)
{
    const char *text = kith_liveness_text(watching->liveness);
    const double live = kith_liveness_value(watching->liveness);
    if (expected >= 0 ? !(live >= expected && live <= expected) : !isnan(live))
        fail_msg("live is %g, not %g: %s", live, expected, text);
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, words);
    kith_liveness_close(watching->liveness);
    kith_experiment_close(&watching->experiment);
}

static void say(struct watching *watching, kith_ns now_ns, kith_id peer,
                enum kith_mark_kind kind, kith_id other, uint64_t value)
{
    const struct kith_mark mark = {
        .kind = kind, .peer = other, .initiator = true, .value = value};
    kith_liveness_mark(watching->liveness, now_ns, peer, &mark);
}

/* A round of the ring in which `silent` and its right neighbour hear nothing of
 * each other. */
static void ring_round(struct watching *watching, uint64_t round,
                       kith_id silent)
{
    const kith_ns now_ns = AFTER_NS + (kith_ns)round * KITH_S;
    for (kith_id peer = 0; peer < PEERS; peer++) {
        const kith_id left = (peer + PEERS - 1) % PEERS;
        const kith_id right = (peer + 1) % PEERS;
        if (left != silent)
            say(watching, now_ns, peer, KITH_MARK_MERGED, left, 0);
        if (peer != silent)
            say(watching, now_ns, peer, KITH_MARK_MERGED, right, 0);
        say(watching, now_ns, peer, KITH_MARK_ROUND, KITH_NOBODY, round);
        say(watching, now_ns, peer, KITH_MARK_STEP, KITH_NOBODY, round);
    }
}

static const char ring[] = "{algorithm: dpsgd, topology: ring}";
static const char cut[] =
    "faults: [{at: 5s, for: 3s, partition: \"peer(3) <-> peer(4)\"}]";

static void test_edges(void **state)
{
    (void)state;
    struct watching watching;
    start(&watching, ring, cut);
    for (uint64_t round = 0; round < 50; round++)
        ring_round(&watching, round, KITH_NOBODY);
    kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
    end(&watching, 1, "");

    start(&watching, ring, cut); /* eight rounds are allowed: 2 * 1 + 6 */
    for (uint64_t round = 0; round < 8; round++)
        ring_round(&watching, round, 3);
    kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
    end(&watching, 1, "");

    start(&watching, ring, cut);
    for (uint64_t round = 0; round < 9; round++)
        ring_round(&watching, round, 3);
    kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
    end(&watching, 0, "peer 3 merged nothing of peer 4 in 9 rounds");

    start(&watching, ring, cut); /* found when they merge at last */
    for (uint64_t round = 0; round < 9; round++)
        ring_round(&watching, round, 3);
    ring_round(&watching, 9, KITH_NOBODY);
    end(&watching, 0, "peer 3 merged nothing of peer 4 in 9 rounds");

    for (unsigned more = 10; more <= 11; more++) { /* a liar among them */
        start(&watching, ring, cut);
        kith_liveness_exempt(watching.liveness, 0);
        for (uint64_t round = 0; round < more; round++)
            ring_round(&watching, round, 3);
        kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
        end(&watching, more == 10, more == 10 ? "" : "in 11 rounds");
    }

    start(&watching, ring,
          "faults: [{at: 5s, partition: \"peer(3) <-> peer(4)\"}]");
    for (uint64_t round = 0; round < 50; round++)
        ring_round(&watching, round, 3);
    kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
    end(&watching, 1, "");

    start(&watching, ring, cut); /* the slower end counts */
    for (uint64_t round = 0; round < 50; round++)
        for (kith_id peer = 0; peer < PEERS; peer += 2)
            say(&watching, AFTER_NS + (kith_ns)round, peer, KITH_MARK_ROUND,
                KITH_NOBODY, round);
    kith_liveness_finish(watching.liveness, AFTER_NS + 60 * KITH_S);
    end(&watching, 1, "");
}

static void test_before_the_end_of_faults(void **state)
{
    (void)state;
    struct watching watching;
    start(&watching, ring, "faults: [{at: 50s, for: 9s, pause: \"peer(0)\"}]");
    for (uint64_t round = 0; round < 50; round++)
        ring_round(&watching, round, 3);
    kith_liveness_finish(watching.liveness, 59 * KITH_S);
    end(&watching, -1, "");
}

static void test_attempts(void **state)
{
    (void)state;
    for (unsigned tries = 70; tries <= 71; tries++) {
        struct watching watching;
        start(&watching, "{algorithm: adpsgd, topology: random}",
              "faults: [{at: 5s, crash: \"peer(7)\"}]");
        for (unsigned k = 0; k < 500; k++) /* of one that is gone for good */
            say(&watching, AFTER_NS, 0, KITH_MARK_ATTEMPT, 7, k);
        for (unsigned k = 0; k <= tries; k++)
            say(&watching, AFTER_NS + 9 * KITH_S, 0, KITH_MARK_ATTEMPT, 3, k);
        end(&watching, tries == 70, tries == 70 ? "" : "71 attempts of peer 0");
        start(&watching, "{algorithm: adpsgd, topology: random}", cut);
        for (unsigned k = 0; k < 5 * tries; k++) {
            say(&watching, AFTER_NS, 0, KITH_MARK_ATTEMPT, 3, k);
            if (k % 70 == 0)
                say(&watching, AFTER_NS, 0, KITH_MARK_DONE, 3, k);
        }
        end(&watching, 1, "");
    }
}

/* Nobody merges what is no number: nothing is promised to who sends it to the
 * end, but again once that is over. */
static void test_attempts_of_who_lies(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *words;
        kith_id peer;
    } cases[] = {{"hostile: \"peer(0)\", kind: nan", "", 0},
                 {"huge: \"peer(0)\", by: 3e38", "", 0},
                 {"hostile: \"peer(0)\", kind: nan", "71 attempts", 1},
                 {"hostile: \"peer(0)\", kind: nan, for: 1s", "71 attempts", 0},
                 {"huge: \"peer(0)\", by: 3e38, models: 9", "71 attempts", 0},
                 {"slow: \"peer(0)\", by: 2", "71 attempts", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watching watching;
        char text[160];
        snprintf(text, sizeof text, "faults: [{at: 5s, %s}]", cases[i].fault);
        start(&watching, "{algorithm: adpsgd, topology: random}", text);
        for (unsigned k = 0; k < 100; k++)
            say(&watching, AFTER_NS + 9 * KITH_S, cases[i].peer,
                KITH_MARK_ATTEMPT, 3, k);
        end(&watching, *cases[i].words == '\0', cases[i].words);
    }
}

/* A packet that is lost seven times in a row at 10 %, T + 2 T + ... + 64 T of
 * T = 204 ms, holds exchanges up for 26 s; at 1 % nothing lasts that long. */
static void test_attempts_where_links_lose(void **state)
{
    (void)state;
    for (unsigned share = 1; share <= 10; share += 9) {
        struct watching watching;
        char text[160];
        snprintf(text, sizeof text, "%s\nnetwork: {loss: %.2f, latency: 2ms}",
                 cut, 0.01 * share);
        start(&watching, "{algorithm: adpsgd, topology: random}", text);
        for (unsigned k = 0; k < 100; k++)
            say(&watching, AFTER_NS + 20 * KITH_S, 0, KITH_MARK_ATTEMPT, 3, k);
        end(&watching, share == 10, share == 10 ? "" : "71 attempts of peer 0");
    }
}

static void test_steps(void **state)
{
    (void)state;
    struct watching watching;
    start(&watching, "{algorithm: adpsgd, topology: random}",
          "faults: [{at: 5s, crash: \"peer(7)\"}]");
    for (kith_id peer = 1; peer < 7; peer++)
        say(&watching, 60 * KITH_S, peer, KITH_MARK_STEP, KITH_NOBODY, 1);
    say(&watching, 20 * KITH_S, 0, KITH_MARK_FINISHED, KITH_NOBODY, 1);
    say(&watching, 20 * KITH_S, 1, KITH_MARK_FINISHED, KITH_NOBODY, 1);
    kith_liveness_finish(watching.liveness, 120 * KITH_S);
    end(&watching, 1, "");

    start(&watching, "{algorithm: adpsgd, topology: random}", cut);
    for (kith_id peer = 1; peer < 8; peer++)
        say(&watching, 60 * KITH_S, peer, KITH_MARK_STEP, KITH_NOBODY, 1);
    kith_liveness_finish(watching.liveness, 73 * KITH_S);
    end(&watching, 0, "peer 0 took no step for 65.000 s");
}

/* A gradient that draws apart what averaging draws together: `before` is what
 * they settle at. */
static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t violations;
    } cases[] = {
        {"finally live", 0},
        {"within 20s of partition.end live", 0},
        {"within 20s of partition.end consensus_distance < 1.2 * before", 0},
        {"within 20s of partition.end consensus_distance < 1e-9 * before", 1},
        {"within 20s of crash.end live", 1}, /* never measured */
        {"within 1ms of partition.end live", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kith_experiment experiment;
        struct kith_summary summary;
        char more[512], error[SIM_ERROR_BYTES];
        (void)snprintf(more, sizeof more,
                       "evaluate: 300ms\n%s\nassert: [\"%s\"]", cut,
                       cases[i].text);
        read_text(&experiment, ring, more);
        const struct sim_options options = {.experiment = &experiment};
        assert_int_equal(sim_run(&options, &summary, NULL, error), KITH_OK);
        if (summary.violations != cases[i].violations)
            fail_msg("%s: %u violations", cases[i].text, summary.violations);
        kith_experiment_close(&experiment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_before_the_end_of_faults),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_attempts_of_who_lies),
        cmocka_unit_test(test_attempts_where_links_lose),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
