/* Goal: a node whose caller pauses has nothing of it open, and holds up nobody:
 * who asks is told to ask others, and rounds go on without it.
 * Method: the node is stepped by hand; the test plays worker and neighbours. */
#include "tests/support/story.h"

/* A caller that pauses: no step is handed out, who asks is told to ask others,
 * and the trigger of its last step waits until it goes on. */
static void test_pause(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 2, 0, false);
    config.every = 1;
    start();
    step(&(struct kith_event){.kind = KITH_EVENT_PAUSE});
    effects.has_work = true;
    worked(KITH_WORK_TRAIN);
    assert_false(effects.has_work);
    assert_null(sent(KITH_MESSAGE_REQUEST));
    assert_true(kith_node_quiet(node));
    struct kith_message request = {.kind = KITH_MESSAGE_REQUEST,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .mine = true,
                                   .payload_bytes = 32,
                                   .overlap = 1};
    say(1, request);
    assert_non_null(sent(KITH_MESSAGE_BUSY));
    assert_false(effects.has_work);
    step(&(struct kith_event){.kind = KITH_EVENT_GO_ON});
    assert_true(effects.has_work);
    assert_int_equal(effects.work.kind, KITH_WORK_SNAPSHOT);
}

/* What it tells 2, which wonders about round 0. */
static void wonder(enum kith_message_kind answer)
{
    const struct kith_message probe = {.kind = KITH_MESSAGE_PROBE,
                                       .pattern = KITH_PATTERN_ROUND,
                                       .slot = KITH_SLOT_NONE};
    say(2, probe);
    assert_int_equal(effects.send_count, 1);
    assert_int_equal(effects.sends[0].message.kind, answer);
}

/* Its neighbours' round is not waited for with "on my way". */
static void test_pause_between_rounds(void **state)
{
    static const char *const algorithms[] = {"dpsgd", "diloco"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        open_node(algorithms[i], "ring", 3, 1, false);
        start();
        wonder(KITH_MESSAGE_ACCEPT);
        step(&(struct kith_event){.kind = KITH_EVENT_PAUSE});
        wonder(KITH_MESSAGE_ABORT);
        effects.has_work = true;
        worked(KITH_WORK_TRAIN);
        assert_false(effects.has_work);
        assert_true(kith_node_quiet(node));
        wonder(KITH_MESSAGE_ABORT);
        step(&(struct kith_event){.kind = KITH_EVENT_GO_ON});
        assert_true(effects.has_work);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_between_rounds),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(node);
    return failed;
}
