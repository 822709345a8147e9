/* Goal: a neighbour that lets what it was given lapse, drags its feet or says
 * what it likes costs this node a bounded share of its time, and never its
 * feet; one that we kept waiting ourselves is not charged. Method: the node is
 * stepped by hand; the test plays worker and neighbours. */
#include "src/protocol/core/node_state.h"
#include "tests/support/story.h"

/* Whoever takes our one served exchange and lets it lapse is refused for a
 * while, so that others get a turn; talking does not end that. */
static void test_idle_initiator_is_charged(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, false);
    config.steps = 0;
    start();
    struct kith_send request = serve_swap();
    assert_int_equal(request.to, 1);
    expire(); /* its model never came */
    assert_true(marked(KITH_MARK_SUSPECT));

    struct kith_message again = {.kind = KITH_MESSAGE_REQUEST,
                                 .pattern = KITH_PATTERN_SWAP,
                                 .id = {.counter = 9},
                                 .mine = true,
                                 .payload_bytes = 32,
                                 .overlap = 1};
    for (int i = 0; i < 2; i++) {
        say(1, again);
        assert_non_null(sent(KITH_MESSAGE_BUSY));
    }
    again.id.counter = 1;
    say(2, again); /* another neighbour is served */
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
    again.kind = KITH_MESSAGE_ABORT;
    say(2, again);
    effects.has_work = true; /* the snapshot for it was being taken */
    worked(KITH_WORK_SNAPSHOT);

    now_ns += 40 * KITH_S;
    again.kind = KITH_MESSAGE_REQUEST;
    again.id.counter = 10;
    say(1, again);
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
}

/* We stood still past a deadline, our neighbour's model among what is still to
 * be read: it is asked and answered as before. Found by kith swarm --random
 * --seed 13 --run 5374: after a pause both ends refused each other for 8 s. */
static void test_own_pause_charges_nobody(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, false);
    config.steps = 0;
    start();
    serve_swap();
    now_ns = effects.deadline_ns + KITH_S;
    step(&(struct kith_event){.kind = KITH_EVENT_WAKE});
    assert_true(kith_node_quiet(node));
    assert_false(marked(KITH_MARK_SUSPECT));
    serve_swap(); /* accepted, not BUSY */
    expire();
    assert_true(marked(KITH_MARK_SUSPECT));
}

/* A cut link looks like a peer that holds a record: the first lapse costs it a
 * short span, the next one a long one; being heard in between changes nothing
 * of that, nor does it if that peer does not answer meanwhile. Found by kith
 * swarm --random --seed 59 --run 6105: two peers charged each other for ever.
 */
static void test_second_lapse_costs_more(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, false);
    config.steps = 0;
    start();
    node->effects = &effects;
    for (unsigned k = 0; k < 3; k++) {
        kith_node_warn(node, 1, KITH_S, 16 * KITH_S);
        assert_true(kith_node_is_charged(node, 1));
        kith_node_forgive(node, 1);
        /* What is still under way with it lapses, too. */
        kith_node_suspect(node, 1, 60 * KITH_S);
        node->now_ns += k == 0 ? KITH_S : 15 * KITH_S;
        assert_true(kith_node_is_charged(node, 1) == (k > 0));
        node->now_ns += k == 0 ? 0 : KITH_S;
        assert_false(kith_node_is_charged(node, 1));
        kith_node_suspect(node, 1, KITH_S);
        kith_node_forgive(node, 1);
        assert_false(kith_node_is_suspect(node, 1));
    }
    /* Whoever holds two records lets both lapse: that shortens nothing. */
    kith_node_warn(node, 1, KITH_S, 16 * KITH_S);
    kith_node_warn(node, 1, KITH_S, 16 * KITH_S);
    kith_node_charge(node, 1, 2 * KITH_S);
    node->now_ns += 15 * KITH_S;
    assert_true(kith_node_is_charged(node, 1));
    node->now_ns += 120 * KITH_S; /* and forgotten */
    kith_node_warn(node, 1, KITH_S, 16 * KITH_S);
    node->now_ns += KITH_S;
    assert_false(kith_node_is_charged(node, 1));
    node->effects = NULL;
}

/* Peers in step: we always serve peer 1 when peer 2 asks. The fourth record is
 * kept for it, though peer 1 asks first. Found by kith swarm --random --seed 13
 * --run 4266. */
static void test_unlucky_has_its_turn(void **state)
{
    (void)state;
    open_node("sgp", "star", 4, 0, false);
    config.steps = 0;
    start();
    struct kith_message request = {.kind = KITH_MESSAGE_REQUEST,
                                   .pattern = KITH_PATTERN_PUSH,
                                   .mine = true,
                                   .payload_bytes = 32};
    /* 1 gives up the record that it has, and in this turn has one more. */
    for (int i = 0; i < 4; i++) {
        request.id.counter++;
        say(1, request);
        assert_non_null(sent(KITH_MESSAGE_ACCEPT));
        if (i < 3) {
            say(2, request);
            assert_non_null(sent(KITH_MESSAGE_BUSY));
        }
        now_ns += 10 * KITH_MS;
        request.kind = KITH_MESSAGE_ABORT;
        say(1, request);
        request.kind = KITH_MESSAGE_REQUEST;
    }
    /* 2 may be ten times as slow as 1, and has nobody else. */
    for (int i = 0; i < 30; i++) {
        say(1, request);
        assert_non_null(sent(KITH_MESSAGE_BUSY));
    }
    say(2, request);
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
}

/* One neighbour that drags its feet lifts the deadline by a bounded factor, not
 * by as much as it likes. */
static void test_one_slow_answer_does_not_lift_deadlines(void **state)
{
    (void)state;
    struct kith_estimate estimate = {0};
    for (int i = 0; i < 20; i++)
        kith_estimate_add(&estimate, 100 * KITH_MS);
    const kith_ns before = kith_estimate_timeout(&estimate, 0, 0);
    kith_estimate_add(&estimate, 600 * KITH_S);
    assert_in_range(kith_estimate_timeout(&estimate, 0, 0), before, 6 * before);
}

static uint64_t count_bad(void)
{
    struct kith_node_counters counters;
    kith_node_counters(node, &counters);
    return counters.bad;
}

/* What is not about numbers of models has no sum. */
static void check_sums(void)
{
    for (uint32_t i = 0; i < effects.mark_count; i++)
        if (effects.marks[i].kind == KITH_MARK_BAD ||
            effects.marks[i].kind == KITH_MARK_STEP ||
            effects.marks[i].kind == KITH_MARK_ROUND)
            assert_true(effects.marks[i].sum == 0);
}

/* Whatever an authenticated neighbour says, the node stays on its feet. */
static void test_hostile_messages(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"adpsgd", "sgp", "dpsgd", "local"};
    static const char *const graphs[] = {"random", "one-peer-exponential",
                                         "ring", "random"};
    for (int a = 0; a < 4; a++) {
        open_node(algorithms[a], graphs[a], 4, 1, false);
        config.steps = UINT64_MAX;
        struct kith_rng rng;
        kith_rng_init(&rng, 99, KITH_STREAM_TEST, (uint64_t)a);
        start();
        bool working = effects.has_work;
        enum kith_work_kind kind = effects.work.kind;
        for (int i = 0; i < 200000; i++) {
            now_ns += kith_rng_below(&rng, 1000000);
            const uint32_t choice = kith_rng_below(&rng, 8);
            if (choice == 0 && working) {
                const struct kith_work_result result = {.kind = kind,
                                                        .finite = true};
                step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE,
                                          .result = &result});
                working = false;
            } else if (choice == 1) {
                down(kith_rng_below(&rng, 5));
            } else {
                struct kith_message message = {
                    .kind = (enum kith_message_kind)kith_rng_below(
                        &rng, KITH_MESSAGE_COUNT),
                    .pattern = (enum kith_pattern)kith_rng_below(
                        &rng, KITH_PATTERN_COUNT),
                    .id = {.counter = kith_rng_below(&rng, 6),
                           .incarnation = kith_rng_below(&rng, 2)},
                    .mine = kith_rng_below(&rng, 2) == 0,
                    .step = kith_rng_u64(&rng) >> kith_rng_below(&rng, 64),
                    .scalar_count = config.algorithm->scalar_count,
                    .scalars = {0.5},
                    .payload_bytes = kith_rng_below(&rng, 8) == 0 ? 31 : 32,
                    .finite = kith_rng_below(&rng, 4) != 0};
                const kith_id from = kith_rng_below(&rng, 6);
                message.slot = kith_node_inbox(node, from, &message);
                const uint64_t bad = count_bad();
                say(from, message);
                /* No graph has a 4 or 5, and nobody is its own neighbour. */
                if (from >= 4)
                    assert_int_equal(count_bad(), bad + 1);
            }
            check_sums();
            if (effects.has_work) {
                assert_false(working);
                working = true;
                kind = effects.work.kind;
            }
        }
        struct kith_node_counters counters;
        kith_node_counters(node, &counters);
        assert_true(counters.bad > 200000 / 5);
        assert_true(counters.steps > 100);
    }
}

/* At every try, up to the most there is; never below the least. */
static void test_timeouts_double(void **state)
{
    (void)state;
    const struct kith_estimate none = {0},
                               known = {.mean_us = 25000, .deviation_us = 5000};
    const kith_ns once_ns = 4 * (25 + 4 * 5) * KITH_MS;
    assert_int_equal(kith_estimate_timeout(&known, KITH_S, 0), once_ns);
    for (uint32_t tries = 1; tries < 8; tries++)
        assert_int_equal(kith_estimate_timeout(&known, KITH_S, tries),
                         once_ns << tries);
    assert_int_equal(kith_estimate_timeout(&known, KITH_S, 60),
                     KITH_TIMEOUT_MAX_NS);
    assert_int_equal(kith_estimate_timeout(&none, KITH_S, 2), 4 * KITH_S);
    assert_int_equal(kith_estimate_timeout(&none, 1, 1),
                     2 * KITH_TIMEOUT_MIN_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_initiator_is_charged),
        cmocka_unit_test(test_own_pause_charges_nobody),
        cmocka_unit_test(test_second_lapse_costs_more),
        cmocka_unit_test(test_unlucky_has_its_turn),
        cmocka_unit_test(test_one_slow_answer_does_not_lift_deadlines),
        cmocka_unit_test(test_hostile_messages),
        cmocka_unit_test(test_timeouts_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
