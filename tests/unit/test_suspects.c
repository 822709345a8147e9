/* Goal: a peer that did not answer is left out until its span is over or it is
 * heard; one that is charged, whatever it says; and of the few places the one
 * whose span ends first makes room, with nothing of it left for who comes.
 * Method: the table by itself, in a node of ten peers. */
#include "src/protocol/core/node_state.h"
#include "tests/support/story.h"

static void open_table(void)
{
    open_node("adpsgd", "complete", 10, 0, false);
    start();
    node->effects = &effects;
    node->now_ns = now_ns;
    effects.mark_count = 0;
}

static void later(kith_ns span_ns)
{
    node->now_ns += span_ns;
    effects.mark_count = 0;
}

static void test_until_it_is_over_or_heard(void **state)
{
    (void)state;
    open_table();
    kith_id list[KITH_SUSPECTS_MAX];
    kith_node_suspect(node, 1, 2 * KITH_S);
    kith_node_suspect(node, 2, 4 * KITH_S);
    later(2 * KITH_S - KITH_MS);
    assert_true(kith_node_is_suspect(node, 1));
    assert_int_equal(kith_node_suspects(node, list), 2);
    later(KITH_MS);
    assert_false(kith_node_is_suspect(node, 1));
    assert_int_equal(kith_node_suspects(node, list), 1);
    assert_int_equal(list[0], 2);
    kith_node_forgive(node, 2);
    assert_false(kith_node_is_suspect(node, 2));
    assert_int_equal(kith_node_suspects(node, list), 0);
    assert_false(kith_node_is_charged(node, 2));
    assert_false(kith_node_is_warned(node, 2));
}

static void test_a_charge_ends_when_it_was_said_to(void **state)
{
    (void)state;
    open_table();
    kith_node_charge(node, 1, 4 * KITH_S);
    kith_node_forgive(node, 1);
    kith_node_suspect(node, 1, KITH_S);
    kith_node_charge(node, 1, KITH_S);
    later(4 * KITH_S - KITH_MS);
    assert_true(kith_node_is_charged(node, 1));
    kith_node_charge(node, 1, 8 * KITH_S); /* longer */
    later(8 * KITH_S - KITH_MS);
    assert_true(kith_node_is_charged(node, 1));
    later(KITH_MS);
    assert_false(kith_node_is_charged(node, 1));
    kith_node_suspect(node, 1, KITH_S); /* of its charge nothing is left */
    assert_false(kith_node_is_charged(node, 1));
    assert_true(kith_node_is_warned(node, 1));
    kith_node_forgive(node, 1);
    assert_false(kith_node_is_suspect(node, 1));
    assert_true(kith_node_is_warned(node, 1)); /* that stays known */
    later(KITH_TIMEOUT_MAX_NS - KITH_MS);
    assert_true(kith_node_is_warned(node, 1));
    later(KITH_MS);
    assert_false(kith_node_is_warned(node, 1));
}

/* A span after which a second lapse is the first again: four long ones. */
static void test_twice_is_no_accident(void **state)
{
    (void)state;
    const kith_ns brief = KITH_S, long_ns = 8 * KITH_S;
    for (int soon = 0; soon < 2; soon++) {
        open_table();
        kith_node_warn(node, 1, brief, long_ns);
        later(brief);
        assert_false(kith_node_is_charged(node, 1));
        later(4 * long_ns - (soon ? KITH_MS : 0));
        kith_node_warn(node, 1, brief, long_ns);
        kith_node_warn(node, 1, brief, 2 * long_ns); /* while it stands */
        later(brief);
        assert_int_equal(kith_node_is_charged(node, 1), soon);
        later(long_ns - brief);
        assert_false(kith_node_is_charged(node, 1));
    }
}

static void test_room_is_made_by_who_is_over_first(void **state)
{
    (void)state;
    open_table();
    kith_id list[KITH_SUSPECTS_MAX];
    for (kith_id peer = 1; peer <= KITH_SUSPECTS_MAX; peer++)
        kith_node_charge(node, peer, (peer == 3 ? 1 : 2 + peer) * KITH_S);
    kith_node_suspect(node, 9, 20 * KITH_S);
    assert_false(kith_node_is_suspect(node, 3));
    assert_false(kith_node_is_charged(node, 9));
    assert_false(kith_node_is_warned(node, 9));
    assert_int_equal(kith_node_suspects(node, list), KITH_SUSPECTS_MAX);
    later(3 * KITH_S);
    kith_node_suspect(node, 8, 20 * KITH_S); /* that of 1, which is over */
    assert_false(kith_node_is_warned(node, 8));
    assert_true(kith_node_is_charged(node, 2));
    assert_true(kith_node_is_charged(node, KITH_SUSPECTS_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_until_it_is_over_or_heard),
        cmocka_unit_test(test_a_charge_ends_when_it_was_said_to),
        cmocka_unit_test(test_twice_is_no_accident),
        cmocka_unit_test(test_room_is_made_by_who_is_over_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
