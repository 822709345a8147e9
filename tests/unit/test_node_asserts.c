/* Goal: the core's assertions fire: a bug stops a peer before it spreads.
 * Method: a process of its own plants one violation each time, in a node that
 * has just sent a REQUEST or opened a round, and must end by SIGABRT. */
#include "src/protocol/core/round.h"
#include "tests/support/story.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void wake(void)
{
    step(&(struct kith_event){.kind = KITH_EVENT_WAKE});
}

static struct kith_round_edge *first_edge(void)
{
    return &kith_round_current(node)->edges[0];
}

/* ---- In a pair: an exchange is asked for, a step is under way. */

static void started_twice(void)
{
    start();
}

static void work_without_end(void)
{
    node->owner = OWNER_NONE;
    worked(KITH_WORK_COUNT);
}

static void within_an_event(void)
{
    node->effects = &effects;
    wake();
}

static void running_without_an_item(void)
{
    node->exchanges[0].running = true;
    wake();
}

static void waiting_for_ever(void)
{
    node->exchanges[0].deadline_ns = KITH_NEVER;
    wake();
}

static void tried_too_often(void)
{
    node->exchanges[0].tries = KITH_TRIES_MAX + 1;
    wake();
}

static void trigger_while_leaving(void)
{
    node->presence = LEAVING;
    node->trigger_due = true;
    wake();
}

static void waited_longer_than_lived(void)
{
    node->waited_ns = now_ns + 1;
    wake();
}

static void asked_itself(void)
{
    node->exchanges[0].edge.peer = node->self;
    now_ns += KITH_TIMEOUT_MAX_NS;
    wake();
}

static void ended_twice(void)
{
    node->effects = &effects;
    kith_exchange_end(node, &node->exchanges[1]);
}

static void marks_without_room(void)
{
    node->effects = &effects;
    effects.mark_count = KITH_EFFECT_MARKS;
    kith_node_mark(node, KITH_MARK_STEP, NULL, 1, 0, 0);
}

static void cancels_an_edge(void)
{
    node->effects = &effects;
    kith_node_cancel(node, KITH_SLOT_ROUND_EDGES);
}

static void round_as_a_pair(void)
{
    node->exchanges[0].pattern = KITH_PATTERN_ROUND;
    down(node->exchanges[0].edge.peer);
    wake();
    (void)kith_exchange_gives(&node->exchanges[0]);
}

static void suspects_itself(void)
{
    node->effects = &effects;
    kith_node_suspect(node, node->self, KITH_S);
}

/* ---- In a round: it is open, models are under way. */

static void round_without_its_list(void)
{
    node->round->round += 2;
    wake();
}

static void deserted_without_rounds(void)
{
    node->round->deserted = true;
    node->mode = &kith_mode_mailbox;
    wake();
}

static void closed_with_a_deadline(void)
{
    node->round->state = ROUND_CLOSED;
    wake();
}

static void dropped_twice(void)
{
    node->effects = &effects;
    kith_edge_drop(node, first_edge());
    kith_edge_drop(node, first_edge());
}

static void committed_after_a_drop(void)
{
    node->effects = &effects;
    kith_edge_drop(node, first_edge());
    kith_edge_commit(node, first_edge());
}

static void edge_of_another_list(void)
{
    (void)kith_edge_index(&node->round->lists[~node->round->round & 1],
                          first_edge());
}

static void mutual_edge_of_one_way(void)
{
    first_edge()->flags &= ~(uint32_t)EDGE_OUT;
    node->effects = &effects;
    kith_edge_advance(node, first_edge());
}

static void passed_more_than_heard(void)
{
    node->round->passed = node->round->generations + 1;
    wake();
}

/* ---- */

static bool aborts(void (*plant)(void))
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int silent = open("/dev/null", O_WRONLY);
        signal(SIGABRT, SIG_DFL);
        if (silent < 0 || dup2(silent, 2) < 0)
            _exit(1);
        plant();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_pair(void **state)
{
    static void (*const plants[])(void) = {
        started_twice,         work_without_end,
        within_an_event,       running_without_an_item,
        waiting_for_ever,      tried_too_often,
        trigger_while_leaving, waited_longer_than_lived,
        asked_itself,          ended_twice,
        marks_without_room,    cancels_an_edge,
        round_as_a_pair,       suspects_itself};
    (void)state;
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        open_node("adpsgd", "random", 4, 0, false);
        (void)ask();
        wake();
        if (!aborts(plants[i]))
            fail_msg("violation %zu of a pair goes on", i);
    }
    assert_false(aborts(wake));
}

static void test_round(void **state)
{
    static void (*const plants[])(void) = {
        round_without_its_list, deserted_without_rounds, closed_with_a_deadline,
        dropped_twice,          committed_after_a_drop,  edge_of_another_list,
        mutual_edge_of_one_way, passed_more_than_heard};
    (void)state;
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        open_node("dpsgd", "ring", 4, 0, false);
        start();
        worked(KITH_WORK_TRAIN);
        worked(KITH_WORK_SNAPSHOT);
        if (!aborts(plants[i]))
            fail_msg("violation %zu of a round goes on", i);
    }
    assert_false(aborts(wake));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
