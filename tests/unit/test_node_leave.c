/* Goal: who is told to leave when its share is done ends the rounds that its
 * last step began, however long they take, and waits for a silent neighbour no
 * longer than they took.
 * Method: one node's story by hand: the leaf of a tree of two, whose gradient
 * goes up in one round and comes down in the next. */
#include "tests/support/story.h"

#define STEPS 3

static void open_leaf(uint64_t payload_bytes)
{
    open_node("sync-sgd", "collective-tree", 2, 1, false);
    config.steps = STEPS;
    config.phases = 2;
    config.save_period_ns = 0;
    config.payload_bytes = payload_bytes;
    node = kith_node_init(node, &config, 1, 0, 0, false);
    start();
}

static struct kith_message of_round(uint64_t round, enum kith_message_kind kind)
{
    return (struct kith_message){.kind = kind,
                                 .pattern = KITH_PATTERN_ROUND,
                                 .id = {.counter = round},
                                 .step = round,
                                 .mine = true,
                                 .slot = KITH_SLOT_NONE};
}

/* Up, then down: each takes so long. */
static void answer(uint64_t round, kith_ns after_ns)
{
    struct kith_message message = of_round(
        round, round % 2 == 0 ? KITH_MESSAGE_READY : KITH_MESSAGE_MODEL);
    assert_int_equal(effects.work.kind, KITH_WORK_SNAPSHOT);
    worked(KITH_WORK_SNAPSHOT);
    now_ns += after_ns;
    if (message.kind == KITH_MESSAGE_MODEL) {
        message.finite = true;
        message.payload_bytes = config.payload_bytes;
        message.scalar_count = 1;
        message.scalars[0] = 2;
        message.slot = kith_node_inbox(node, 0, &message);
        assert_int_not_equal(message.slot, KITH_SLOT_NONE);
    }
    say(0, message);
    assert_true(effects.has_work);
    assert_int_equal(effects.work.kind, KITH_WORK_MERGE);
    assert_int_equal(effects.work.round, round);
    worked(KITH_WORK_MERGE);
}

/* Of the last step nothing was shared yet; returns its first round. */
static uint64_t train(uint32_t steps, kith_ns round_ns)
{
    for (uint32_t i = 0; i < steps; i++) {
        assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
        worked(KITH_WORK_TRAIN);
        if (i + 1 < steps)
            for (uint64_t k = 0; k < 2; k++)
                answer(2 * i + k, round_ns);
    }
    return 2 * (steps - 1);
}

static void leave(void)
{
    step(&(struct kith_event){.kind = KITH_EVENT_LEAVE});
    assert_null(sent(KITH_MESSAGE_BYE));
    assert_false(kith_node_quiet(node));
    effects.has_work = true; /* the snapshot is being taken */
}

static void the_last_rounds_end_however_long_they_take(void **state)
{
    static const kith_ns rounds_ns[] = {KITH_MS, 354 * KITH_MS, 3 * KITH_S};
    (void)state;
    for (size_t i = 0; i < sizeof rounds_ns / sizeof *rounds_ns; i++) {
        open_leaf(32);
        const uint64_t round = train(STEPS, rounds_ns[i]);
        leave();
        answer(round, rounds_ns[i]);
        assert_null(sent(KITH_MESSAGE_BYE));
        answer(round + 1, rounds_ns[i]);
        assert_non_null(sent(KITH_MESSAGE_BYE));
        assert_true(kith_node_quiet(node));
    }
}

/* A share of one step: nothing was measured, but it is known what travels. */
static void a_first_round_may_take_its_bytes(void **state)
{
    (void)state;
    open_leaf(5000000); /* 4 s at 10 Mbit/s */
    config.steps = 1;
    const uint64_t round = train(1, 0);
    leave();
    answer(round, 4 * KITH_S);
    answer(round + 1, 4 * KITH_S);
    assert_non_null(sent(KITH_MESSAGE_BYE));
    assert_true(kith_node_quiet(node));
}

static void nobody_silent_is_waited_for_longer(void **state)
{
    (void)state;
    open_leaf(32);
    train(STEPS, 354 * KITH_MS);
    leave();
    const kith_ns told_ns = now_ns;
    worked(KITH_WORK_SNAPSHOT);
    while (sent(KITH_MESSAGE_BYE) == NULL)
        expire();
    assert_in_range(now_ns - told_ns, 2 * 354 * KITH_MS, 3 * KITH_S);
    worked(KITH_WORK_MERGE);
    assert_true(kith_node_quiet(node));
}

/* Before its share is done a peer leaves at once, whatever is under way. */
static void who_leaves_early_waits_for_nothing(void **state)
{
    (void)state;
    open_leaf(32);
    train(STEPS - 1, 354 * KITH_MS);
    worked(KITH_WORK_SNAPSHOT);
    step(&(struct kith_event){.kind = KITH_EVENT_LEAVE});
    assert_non_null(sent(KITH_MESSAGE_BYE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rounds_end_however_long_they_take),
        cmocka_unit_test(a_first_round_may_take_its_bytes),
        cmocka_unit_test(nobody_silent_is_waited_for_longer),
        cmocka_unit_test(who_leaves_early_waits_for_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(node);
    return failed;
}
