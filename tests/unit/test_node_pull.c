/* Goal: a peer that needs a model takes a neighbour's before it trains, and no
 * neighbour can hold it for long.
 * Method: the node is stepped by hand; the test plays worker and neighbours. */
#include "src/protocol/core/node_state.h"
#include "tests/support/story.h"

static void test_restarted_peer_adopts(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, true);
    start();
    assert_false(effects.has_work); /* no training before */
    const struct kith_send request = *sent(KITH_MESSAGE_REQUEST);
    assert_int_equal(request.message.pattern, KITH_PATTERN_PULL);
    now_ns += 3 * KITH_MS;
    say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    give_model(&request);
    assert_int_equal(effects.work.kind, KITH_WORK_ADOPT);
    worked(KITH_WORK_ADOPT);
    assert_true(marked(KITH_MARK_ADOPTED));
    assert_non_null(sent(KITH_MESSAGE_ACK));
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    struct kith_node_counters counters;
    kith_node_counters(node, &counters);
    assert_int_equal(counters.waited_ns, 3 * KITH_MS);
}

/* A donor that forgets the pull while its model is being taken over: there is
 * nothing to take back. Found by test_member_fuzz, KITH_SEED=601673. */
static void test_donor_forgets_what_is_adopted(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, true);
    start();
    const struct kith_send request = *sent(KITH_MESSAGE_REQUEST);
    say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    give_model(&request);
    assert_int_equal(effects.work.kind, KITH_WORK_ADOPT);
    say(request.to, about(&request, KITH_MESSAGE_ABORTED));
    assert_false(effects.has_work);
    effects.has_work = true; /* it is still out */
    worked(KITH_WORK_ADOPT);
    assert_true(marked(KITH_MARK_ADOPTED));
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
}

/* What a pull waits for is our own step, which may take long: nobody is charged
 * for that. Found by kith swarm --random --seed 17 --run 1654. */
static void test_slow_donor_charges_nobody(void **state)
{
    (void)state;
    open_node("sgp", "complete", 2, 0, false);
    start();
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    say(1, (struct kith_message){.kind = KITH_MESSAGE_REQUEST,
                                 .pattern = KITH_PATTERN_PULL,
                                 .mine = true,
                                 .payload_bytes = 32});
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
    expire();
    assert_false(marked(KITH_MARK_SUSPECT));
    effects.has_work = true;
    worked(KITH_WORK_TRAIN);
    assert_int_equal(effects.work.kind, KITH_WORK_SNAPSHOT);
    worked(KITH_WORK_SNAPSHOT);
    assert_non_null(sent(KITH_MESSAGE_MODEL));
}

/* In the first round of a reduction of three, one of them meets nobody. Found
 * by kith swarm --random --seed 53 --run 5933: it began with no model. */
static void test_adopts_in_a_later_round(void **state)
{
    (void)state;
    open_node("allreduce-doubling", "collective-doubling", 3, 1, true);
    config.phases = (uint32_t)kith_topology_period(&topology);
    free(node);
    node = kith_node_init(calloc(1, kith_node_size(&config)), &config, 1, 0, 0,
                          true);
    start();
    assert_non_null(sent(KITH_MESSAGE_REQUEST));
    assert_int_equal(sent(KITH_MESSAGE_REQUEST)->to, 0);
    assert_false(effects.has_work);
}

/* A donor that was alone has taken more steps than it counted rounds: its
 * ACCEPT says in which round it is, and until then the peer is in none. Found
 * by kith swarm --random --seed 208 --run 1376. */
static void test_takes_its_donors_place(void **state)
{
    (void)state;
    open_node("dpsgd", "ring", 3, 1, true);
    config.steps = 1000;
    free(node);
    node = kith_node_init(calloc(1, kith_node_size(&config)), &config, 1, 0, 30,
                          true);
    start();
    const struct kith_send request = *sent(KITH_MESSAGE_REQUEST);
    const kith_id other = 2 - request.to;
    say(other, (struct kith_message){.kind = KITH_MESSAGE_PROBE,
                                     .pattern = KITH_PATTERN_ROUND,
                                     .id = {.counter = 5},
                                     .mine = other < 1,
                                     .step = 5,
                                     .slot = KITH_SLOT_NONE});
    assert_int_equal(effects.sends[0].message.step, 0);
    struct kith_message accept = about(&request, KITH_MESSAGE_ACCEPT);
    accept.step = 7;
    say(request.to, accept);
    struct kith_message model = about(&request, KITH_MESSAGE_MODEL);
    model.step = 40;
    model.slot = kith_node_inbox(node, request.to, &model);
    say(request.to, model);
    assert_int_equal(effects.work.kind, KITH_WORK_ADOPT);
    worked(KITH_WORK_ADOPT);
    assert_int_equal(node->steps, 40);
    worked(KITH_WORK_TRAIN);
    worked(KITH_WORK_SNAPSHOT);
    assert_non_null(sent(KITH_MESSAGE_MODEL));
    assert_int_equal(sent(KITH_MESSAGE_MODEL)->message.id.counter, 7);
    assert_int_equal(sent(KITH_MESSAGE_MODEL)->message.step, 7);
}

static void test_nobody_to_adopt_from(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 3, 0, true);
    start();
    for (int i = 0; i < 100 && !effects.has_work; i++) {
        const struct kith_send *request = sent(KITH_MESSAGE_REQUEST);
        if (request != NULL)
            down(request->to);
        else
            expire(); /* between two pulls: donors may be busy just now */
    }
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    open_node("adpsgd", "random", 1, 0, true);
    start();
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
}

/* Donors that serve others at every moment they are asked are asked again, less
 * and less often; training goes on after a few seconds at most. */
static void test_busy_donors_are_asked_again(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, true);
    const kith_ns began_ns = now_ns;
    kith_ns wait_ns = 0;
    uint32_t pulls = 0;
    start();
    while (!effects.has_work && pulls <= KITH_PULLS_MAX) {
        const struct kith_send *request = sent(KITH_MESSAGE_REQUEST);
        if (request != NULL) {
            say(request->to, about(request, KITH_MESSAGE_BUSY));
            pulls += marked(KITH_MARK_FAILED);
            continue;
        }
        const kith_ns before_ns = now_ns;
        expire();
        assert_true(now_ns - before_ns > wait_ns);
        wait_ns = now_ns - before_ns;
    }
    assert_int_equal(pulls, KITH_PULLS_MAX);
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    assert_in_range(now_ns - began_ns, KITH_S, 4 * KITH_S);
}

static void test_pull_is_served(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, false);
    config.steps = 0;
    start();
    struct kith_message request = {.kind = KITH_MESSAGE_REQUEST,
                                   .pattern = KITH_PATTERN_PULL,
                                   .id = {.counter = 1},
                                   .mine = true,
                                   .payload_bytes = 32};
    say(3, request);
    assert_int_equal(effects.work.kind, KITH_WORK_SNAPSHOT);
    worked(KITH_WORK_SNAPSHOT);
    assert_non_null(sent(KITH_MESSAGE_MODEL));
    request.kind = KITH_MESSAGE_ABORT;
    say(3, request);
    assert_non_null(sent(KITH_MESSAGE_ABORTED));
    assert_true(kith_node_quiet(node));
}

/* Started again from a save at the end of its share, a peer is done at once:
 * it keeps its model and only answers. */
static void test_restart_after_the_end(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, true);
    config.steps = 0;
    start();
    assert_true(marked(KITH_MARK_FINISHED));
    assert_int_equal(effects.send_count, 0);
    assert_true(kith_node_finished(node) && kith_node_quiet(node));
}

static void test_own_non_finite_step(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, false);
    start();
    const struct kith_work_result result = {.kind = KITH_WORK_TRAIN,
                                            .finite = false};
    step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &result});
    assert_true(marked(KITH_MARK_NONFINITE));
    assert_int_equal(sent(KITH_MESSAGE_REQUEST)->message.pattern,
                     KITH_PATTERN_PULL);
    /* Nobody gets this model meanwhile. */
    struct kith_message request = {.kind = KITH_MESSAGE_REQUEST,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = 1},
                                   .mine = true,
                                   .payload_bytes = 32};
    say(3, request);
    assert_non_null(sent(KITH_MESSAGE_BUSY));
}

/* A peer of `local` has no room for anybody's model, not even for a pull's:
 * it refuses, and asks for none when it is restarted. */
static void test_local_answers_nobody(void **state)
{
    (void)state;
    open_node("local", "random", 4, 0, true);
    start();
    assert_int_equal(effects.send_count, 0);
    assert_int_equal(effects.work.kind, KITH_WORK_TRAIN);
    const struct kith_message request = {.kind = KITH_MESSAGE_REQUEST,
                                         .pattern = KITH_PATTERN_PULL,
                                         .id = {.counter = 1},
                                         .mine = true,
                                         .payload_bytes = 32};
    say(3, request);
    assert_non_null(sent(KITH_MESSAGE_BUSY));
    assert_true(kith_node_quiet(node));
    const struct kith_work_result result = {.kind = KITH_WORK_TRAIN,
                                            .finite = false};
    step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &result});
    assert_true(marked(KITH_MARK_NONFINITE));
    assert_int_equal(effects.send_count, 0);
}

/* A donor that accepts and then says "soon" for ever holds training for a few
 * deadlines only, whatever it answers. */
static void test_dawdling_donor_is_left(void **state)
{
    (void)state;
    open_node("adpsgd", "random", 4, 0, true);
    start();
    const struct kith_send request = *sent(KITH_MESSAGE_REQUEST);
    const kith_ns began_ns = now_ns;
    say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    for (int i = 0; i < 64 && sent(KITH_MESSAGE_ABORT) == NULL; i++) {
        expire();
        if (sent(KITH_MESSAGE_PROBE) != NULL)
            say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    }
    assert_non_null(sent(KITH_MESSAGE_ABORT));
    assert_in_range(now_ns - began_ns, 1, 15 * KITH_S);
    expire(); /* And soon another one is asked. */
    assert_in_range(now_ns - began_ns, 1, 15 * KITH_S);
    assert_int_equal(sent(KITH_MESSAGE_REQUEST)->message.pattern,
                     KITH_PATTERN_PULL);
}

/* So long a donor that has accepted is waited for; it says "soon", or nothing.
 */
static kith_ns waits_for(bool says_soon)
{
    const struct kith_send request = *sent(KITH_MESSAGE_REQUEST);
    const kith_ns began_ns = now_ns;
    say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    for (int i = 0; i < 64 && sent(KITH_MESSAGE_ABORT) == NULL; i++) {
        expire();
        if (says_soon && sent(KITH_MESSAGE_PROBE) != NULL)
            say(request.to, about(&request, KITH_MESSAGE_ACCEPT));
    }
    assert_int_equal(sent(KITH_MESSAGE_ABORT)->to, request.to);
    return now_ns - began_ns;
}

static void next_pull(void)
{
    for (int i = 0; i < 64 && sent(KITH_MESSAGE_REQUEST) == NULL; i++)
        expire();
    assert_int_equal(sent(KITH_MESSAGE_REQUEST)->message.pattern,
                     KITH_PATTERN_PULL);
}

/* Training waits: where the first donor takes long another one is asked before
 * anybody is waited for longer. That one has four deadlines, half of them where
 * it says itself that it has sent nothing yet. */
static void test_second_donor_has_longer(void **state)
{
    (void)state;
    for (int soon = 0; soon < 2; soon++) {
        open_node("adpsgd", "random", 4, 0, true);
        start();
        const kith_ns first_ns = waits_for(soon);
        next_pull();
        assert_int_equal(waits_for(soon), (soon ? 2 : 4) * first_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarted_peer_adopts),
        cmocka_unit_test(test_donor_forgets_what_is_adopted),
        cmocka_unit_test(test_slow_donor_charges_nobody),
        cmocka_unit_test(test_adopts_in_a_later_round),
        cmocka_unit_test(test_takes_its_donors_place),
        cmocka_unit_test(test_nobody_to_adopt_from),
        cmocka_unit_test(test_busy_donors_are_asked_again),
        cmocka_unit_test(test_pull_is_served),
        cmocka_unit_test(test_restart_after_the_end),
        cmocka_unit_test(test_own_non_finite_step),
        cmocka_unit_test(test_local_answers_nobody),
        cmocka_unit_test(test_dawdling_donor_is_left),
        cmocka_unit_test(test_second_donor_has_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
