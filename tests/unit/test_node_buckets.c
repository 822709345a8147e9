/* Goal: of a step in parts a bucket's rounds open when it is complete and not
 * before, training goes on meanwhile and waits before the next step; who leaves
 * in the middle leaves no round behind.
 * Method: one node's story by hand: the leaf of a tree of two, whose gradient
 * has two buckets. */
#include "tests/support/story.h"

static void open_leaf(void)
{
    open_node("sync-sgd", "collective-tree", 2, 1, false);
    config.buckets = 2;
    config.phases = 4;
    node = kith_node_init(node, &config, 1, 0, 0, false);
    start();
}

static void part_done(uint32_t complete)
{
    const struct kith_work_result result = {.kind = KITH_WORK_TRAIN,
                                            .finite = true,
                                            .is_part = complete > 0,
                                            .complete = complete,
                                            .needs = complete > 0 ? 0 : 2};
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &result});
}

static void ready(uint64_t round)
{
    say(0, (struct kith_message){.kind = KITH_MESSAGE_READY,
                                 .pattern = KITH_PATTERN_ROUND,
                                 .id = {.counter = round},
                                 .step = round,
                                 .mine = true,
                                 .slot = KITH_SLOT_NONE});
}

/* What comes down in a round. */
static void mean(uint64_t round)
{
    struct kith_message model = {.kind = KITH_MESSAGE_MODEL,
                                 .pattern = KITH_PATTERN_ROUND,
                                 .id = {.counter = round},
                                 .step = round,
                                 .mine = true,
                                 .finite = true,
                                 .payload_bytes = 32,
                                 .scalar_count = 1,
                                 .scalars = {2}};
    model.slot = kith_node_inbox(node, 0, &model);
    assert_int_not_equal(model.slot, KITH_SLOT_NONE);
    say(0, model);
}

static void is_work(enum kith_work_kind kind, uint64_t round, uint32_t part)
{
    assert_true(effects.has_work);
    assert_int_equal(effects.work.kind, kind);
    assert_int_equal(effects.work.round, round);
    assert_int_equal(effects.work.part, part);
}

static void rounds_wait_for_their_bucket(void **state)
{
    (void)state;
    open_leaf();
    is_work(KITH_WORK_TRAIN, 0, 0);
    part_done(1);
    is_work(KITH_WORK_SNAPSHOT, 0, 0);
    assert_false(marked(KITH_MARK_STEP));
    worked(KITH_WORK_SNAPSHOT);
    assert_non_null(sent(KITH_MESSAGE_MODEL));
    is_work(KITH_WORK_TRAIN, 0, 1); /* while the round is open */
    ready(0);
    part_done(1);
    is_work(KITH_WORK_MERGE, 0, 0);
    worked(KITH_WORK_MERGE);
    is_work(KITH_WORK_SNAPSHOT, 1, 0);
    worked(KITH_WORK_SNAPSHOT);
    is_work(KITH_WORK_TRAIN, 0, 2);
    mean(1);
    part_done(1);
    is_work(KITH_WORK_MERGE, 1, 0);
    worked(KITH_WORK_MERGE);
    is_work(KITH_WORK_TRAIN, 0, 3); /* the second bucket is not there */
    part_done(0);
    assert_true(marked(KITH_MARK_STEP));
    is_work(KITH_WORK_SNAPSHOT, 2, 0);
    worked(KITH_WORK_SNAPSHOT);
    assert_false(effects.has_work); /* the next step needs the mean */
    ready(2);
    worked(KITH_WORK_MERGE);
    worked(KITH_WORK_SNAPSHOT);
    mean(3);
    is_work(KITH_WORK_MERGE, 3, 0);
    worked(KITH_WORK_MERGE);
    is_work(KITH_WORK_TRAIN, 0, 0);
    assert_int_equal(effects.work.step, 1);
}

static void who_leaves_in_the_middle_leaves_nothing(void **state)
{
    (void)state;
    open_leaf();
    part_done(1);
    worked(KITH_WORK_SNAPSHOT);
    ready(0);
    part_done(1);
    worked(KITH_WORK_MERGE);
    worked(KITH_WORK_SNAPSHOT);
    mean(1);
    part_done(1);
    worked(KITH_WORK_MERGE);
    assert_false(kith_node_quiet(node)); /* round 2 waits for its bucket */
    step(&(struct kith_event){.kind = KITH_EVENT_LEAVE});
    now_ns += KITH_S;
    step(&(struct kith_event){.kind = KITH_EVENT_WAKE});
    part_done(1);
    assert_false(effects.has_work);
    assert_true(kith_node_quiet(node));
}

/* A loss that is none ends the step where it is found: the others go on
 * without its gradient. */
static void what_begins_badly_is_not_gone_on_with(void **state)
{
    const struct kith_work_result spoilt = {
        .kind = KITH_WORK_TRAIN, .recovered = true, .needs = 2};
    (void)state;
    open_leaf();
    step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &spoilt});
    assert_true(marked(KITH_MARK_STEP));
    is_work(KITH_WORK_SNAPSHOT, 0, 0);
    for (uint64_t round = 0; round < 4; round += 2) {
        worked(KITH_WORK_SNAPSHOT);
        assert_false(effects.has_work);
        ready(round);
        worked(KITH_WORK_MERGE);
        worked(KITH_WORK_SNAPSHOT);
        mean(round + 1);
        worked(KITH_WORK_MERGE);
    }
    is_work(KITH_WORK_TRAIN, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_wait_for_their_bucket),
        cmocka_unit_test(who_leaves_in_the_middle_leaves_nothing),
        cmocka_unit_test(what_begins_badly_is_not_gone_on_with),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(node);
    return failed;
}
