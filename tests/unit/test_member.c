/* Goal: what is said to a member arrives once, whichever link stands when it is
 * said: while the transport is still held, while both sides dial each other,
 * when a restarted member comes back. Who has copied a member's key takes its
 * place from nowhere unsaid. A member that will not do is dialled on without
 * filling the log.
 * Method: two or three transports on one loop, joined by loopback; the driver
 * is a counter of what it was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/peer/transport.h"
#include "tests/support/sessions.h"

#define MEMBERS 2u
/* Long enough for a loaded machine; only a failure waits for it. */
#define PATIENCE_NS (10 * KITH_S)

struct side {
    struct kith_transport transport;
    struct kith_identity identity;
    int up, down;
    unsigned heard[64];            /* messages by step */
    unsigned dial_failed, refused; /* lines of the log */
    unsigned moved, two_places, told;
};

static uv_loop_t loop;
static uv_timer_t heartbeat;
static struct sessions_cluster cluster;
static struct kith_member members[MEMBERS];
static int listeners[MEMBERS];
static kith_ns alive_ns;

static void on_up(void *arg, kith_id peer)
{
    struct side *side = arg;
    (void)peer;
    side->up++;
}

static void on_down(void *arg, kith_id peer)
{
    struct side *side = arg;
    (void)peer;
    side->down++;
}

static void on_message(void *arg, kith_id from, const struct kith_message *m)
{
    struct side *side = arg;
    (void)from;
    assert_true(m->step < 64);
    side->heard[m->step]++;
}

static uint32_t on_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg, (void)from, (void)m;
    return KITH_SLOT_NONE;
}

static void *on_slot(void *arg, uint32_t slot)
{
    (void)slot;
    return arg; /* never written: there is no payload */
}

static void on_log(void *user, const char *line)
{
    struct side *side = user;
    side->dial_failed += strncmp(line, "dial-failed ", 12) == 0;
    side->refused += strncmp(line, "refused ", 8) == 0;
    side->moved += strncmp(line, "moved ", 6) == 0;
    side->told += strncmp(line, "refused-by ", 11) == 0;
    side->two_places += strncmp(line, "refused kind=two_places ", 24) == 0;
}

static void on_heartbeat(uv_timer_t *timer)
{
    (void)timer;
}

static void listen_at(const char *host, kith_id rank,
                      char address[KITH_ADDRESS_BYTES])
{
    char error[KITH_PEER_ERROR_BYTES];
    assert_int_equal(kith_peer_listen(host, &listeners[rank], address, error),
                     KITH_OK);
}

static void listen_as(kith_id rank, char address[KITH_ADDRESS_BYTES])
{
    listen_at("127.0.0.1:0", rank, address);
}

/* Whoever dials comes from 127.0.0.1, so this one has two addresses. */
static void listen_elsewhere(kith_id rank)
{
    close(listeners[rank]);
    listen_at("127.0.0.9:0", rank, members[rank].address);
}

static int setup(void **state)
{
    (void)state;
    sessions_cluster(&cluster, "member");
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &heartbeat);
    uv_timer_start(&heartbeat, on_heartbeat, 1, 1);
    memset(members, 0, sizeof members);
    alive_ns = 10 * KITH_S;
    for (kith_id i = 0; i < MEMBERS; i++)
        listen_as(i, members[i].address);
    return 0;
}

/* `delay_ns`: everything this side sends is so late. `dim`: of its model. */
static void open_side_of(struct side *side, kith_id rank, uint32_t incarnation,
                         kith_ns delay_ns, uint64_t dim)
{
    char name[16];
    memset(side, 0, sizeof *side);
    snprintf(name, sizeof name, "peer-%u", (unsigned)rank);
    sessions_identity(&side->identity, name, &cluster);
    struct kith_certificate certificate =
        sessions_certificate(&side->identity, name, &cluster);
    certificate.rank = rank;
    certificate.not_before_s = (int64_t)time(NULL) - SESSIONS_DAY_S;
    certificate.not_after_s = (int64_t)time(NULL) + SESSIONS_DAY_S;
    sessions_certify(&side->identity, &certificate, &cluster);
    struct kith_transport_options options = {
        .members = members,
        .peers = MEMBERS,
        .self = rank,
        .seed = 7,
        .identity = &side->identity,
        .trust = &cluster.trust,
        .suite = KITH_SUITE_CHACHAPOLY,
        .hello = {.rank = rank,
                  .incarnation = incarnation,
                  .dim = dim,
                  .model = "none"},
        .log_user = side,
        .on_log = on_log,
        .usual = {.latency_ns = delay_ns},
        .user = {.arg = side,
                 .up = on_up,
                 .down = on_down,
                 .message = on_message,
                 .inbox = on_inbox,
                 .slot = on_slot},
    };
    kith_peer_limits_default(&options.limits);
    options.limits.alive_ns = alive_ns;
    options.limits.dial_first_ns = options.limits.dial_max_ns = KITH_MS;
    assert_int_equal(
        kith_transport_init(&side->transport, &loop, &options, listeners[rank]),
        KITH_OK);
}

static void open_side(struct side *side, kith_id rank, uint32_t incarnation,
                      kith_ns delay_ns)
{
    open_side_of(side, rank, incarnation, delay_ns, 3);
}

static void say(struct side *side, kith_id to, uint64_t step)
{
    const struct kith_message message = {.kind = KITH_MESSAGE_REQUEST,
                                         .pattern = KITH_PATTERN_PULL,
                                         .id = {.counter = step + 1},
                                         .mine = true,
                                         .step = step,
                                         .slot = KITH_SLOT_NONE};
    kith_transport_send(&side->transport, to, &message);
}

static void turn(void)
{
    uv_run(&loop, UV_RUN_ONCE); /* the heartbeat ends it */
}

/* Turns of the loop until the condition holds. */
#define RUN_UNTIL(condition)                                                   \
    do {                                                                       \
        const kith_ns began_ns = (kith_ns)uv_hrtime();                         \
        while (!(condition) && (kith_ns)uv_hrtime() - began_ns < PATIENCE_NS)  \
            turn();                                                            \
        assert_true(condition);                                                \
    } while (0)

static void wait_for(kith_ns ns)
{
    const kith_ns until_ns = (kith_ns)uv_hrtime() + ns;
    while ((kith_ns)uv_hrtime() < until_ns)
        turn();
}

static unsigned link_count(const struct side *side)
{
    unsigned count = 0;
    for (const struct kith_link *l = side->transport.links; l; l = l->next)
        count++;
    return count;
}

static void stop_sides(struct side **sides, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sides[i]->transport.stopping)
            kith_transport_stop(&sides[i]->transport);
    uv_close((uv_handle_t *)&heartbeat, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < count; i++)
        kith_transport_free(&sides[i]->transport);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* START is stepped while the transport is held, and a restarted peer asks for a
 * model in that very step: nobody has dialled it yet. */
static void said_before_the_hold_ends(void **state)
{
    static struct side a, b;
    (void)state;
    open_side(&a, 0, 0, 0);
    open_side(&b, 1, 0, 0);
    kith_transport_unhold(&b.transport);

    say(&a, 1, 3);
    assert_non_null(a.transport.members[1].dialled);
    kith_transport_unhold(&a.transport);

    RUN_UNTIL(b.heard[3] > 0);
    assert_int_equal(b.heard[3], 1);
    assert_int_equal(a.up, 1);
    assert_int_equal(a.down, 0);
    stop_sides((struct side *[]){&a, &b}, 2);
}

/* Dialled once, though nothing is said yet; what is said then needs no dial. */
static void dialled_ahead(void **state)
{
    static struct side a, b;
    (void)state;
    open_side(&a, 0, 0, 0);
    open_side(&b, 1, 0, 0);
    kith_transport_dial(&a.transport, 1);
    const struct kith_link *dialled = a.transport.members[1].dialled;
    assert_non_null(dialled);
    kith_transport_dial(&a.transport, 1);
    kith_transport_unhold(&a.transport);
    kith_transport_unhold(&b.transport);
    RUN_UNTIL(a.up == 1 && b.up == 1);
    kith_transport_dial(&a.transport, 1);
    say(&a, 1, 3);
    RUN_UNTIL(b.heard[3] == 1);
    assert_true(a.transport.members[1].link == dialled);
    assert_int_equal(link_count(&a), 1);
    assert_int_equal(a.down + b.down, 0);
    stop_sides((struct side *[]){&a, &b}, 2);
}

/* The same where the dial has come to an end before the hold does. */
static void said_on_a_held_link(void **state)
{
    static struct side a, b;
    (void)state;
    open_side(&a, 0, 0, 0);
    open_side(&b, 1, 0, 0);
    kith_transport_unhold(&b.transport);

    say(&a, 1, 3);
    RUN_UNTIL(a.transport.members[1].link != NULL && b.up == 1);
    say(&a, 1, 4);
    say(&b, 0, 5);
    for (int i = 0; i < 20; i++)
        turn();
    assert_int_equal(a.up, 0); /* held: nothing is told, nothing is heard */
    assert_int_equal(a.heard[5], 0);
    kith_transport_unhold(&a.transport);

    RUN_UNTIL(b.heard[3] > 0 && b.heard[4] > 0 && a.heard[5] > 0);
    assert_int_equal(a.up, 1);
    assert_int_equal(a.down + b.down, 0);
    stop_sides((struct side *[]){&a, &b}, 2);
}

/* Dialled in vain during the hold (`wait:`), connected before it ends: nobody
 * was down, and a round that is told so goes on alone. */
static void refused_and_then_connected_on_hold(void **state)
{
    static struct side a, b;
    char bound[KITH_ADDRESS_BYTES];
    (void)state;
    close(listeners[1]);
    open_side(&a, 0, 0, 0);
    kith_transport_dial(&a.transport, 1);
    RUN_UNTIL(a.transport.members[1].down_due);
    listen_at(members[1].address, 1, bound);
    open_side(&b, 1, 0, 0);
    kith_transport_unhold(&b.transport);
    say(&b, 0, 3);
    RUN_UNTIL(a.transport.members[1].link != NULL);
    assert_true(a.transport.members[1].down_due);
    assert_int_equal(a.up + a.down, 0);
    kith_transport_unhold(&a.transport);

    say(&a, 1, 4);
    RUN_UNTIL(a.heard[3] == 1 && b.heard[4] == 1);
    assert_int_equal(a.up, 1);
    assert_int_equal(a.down + b.down, 0);
    stop_sides((struct side *[]){&a, &b}, 2);
}

/* Both dial in one turn of the loop and go on talking while it is settled which
 * connection stays. */
static void dial_each_other(kith_ns a_late_ns, kith_ns b_late_ns)
{
    static struct side a, b;
    open_side(&a, 0, 0, a_late_ns);
    open_side(&b, 1, 0, b_late_ns);
    kith_transport_unhold(&a.transport);
    kith_transport_unhold(&b.transport);

    for (uint64_t step = 0; step < 30; step++) {
        say(&a, 1, step);
        say(&b, 0, step);
        turn();
    }
    RUN_UNTIL(a.transport.connected == 2 && b.transport.connected == 2);
    say(&a, 1, 30);
    say(&b, 0, 30);
    RUN_UNTIL(link_count(&a) == 1 && link_count(&b) == 1 && a.heard[30] > 0 &&
              b.heard[30] > 0);

    /* The lower rank's connection, on both sides; nobody noticed. */
    assert_true(a.transport.members[1].link == a.transport.links);
    assert_true(a.transport.links->initiator);
    assert_true(b.transport.members[0].link == b.transport.links);
    assert_false(b.transport.links->initiator);
    assert_int_equal(a.up, 1);
    assert_int_equal(b.up, 1);
    assert_int_equal(a.down + b.down, 0);
    for (size_t step = 0; step <= 30; step++) {
        assert_int_equal(a.heard[step], 1);
        assert_int_equal(b.heard[step], 1);
    }
    stop_sides((struct side *[]){&a, &b}, 2);
}

static void lower_rank_wins(void **state)
{
    (void)state;
    dial_each_other(0, 0);
}

static void lower_rank_wins_though_late(void **state)
{
    (void)state;
    dial_each_other(20 * KITH_MS, 0);
}

static void higher_rank_loses_though_late(void **state)
{
    (void)state;
    dial_each_other(0, 20 * KITH_MS);
}

/* Down, then up: what the dead incarnation held is over. What comes from it
 * afterwards is refused. */
static void restarted_member_replaces_its_past(void **state)
{
    static struct side a, past, present;
    char address[KITH_ADDRESS_BYTES];
    (void)state;
    open_side(&a, 0, 0, 0);
    open_side(&past, 1, 0, 0);
    kith_transport_unhold(&a.transport);
    kith_transport_unhold(&past.transport);
    say(&past, 0, 1);
    RUN_UNTIL(a.heard[1] == 1 && a.up == 1);

    listen_as(1, address);
    open_side(&present, 1, 1, 0);
    kith_transport_unhold(&present.transport);
    say(&present, 0, 2);
    RUN_UNTIL(a.heard[2] == 1 && past.down == 1);
    assert_int_equal(a.down, 1);
    assert_int_equal(a.up, 2);

    /* Closed on before anything was answered, it waits before it dials. */
    RUN_UNTIL((kith_ns)uv_hrtime() > past.transport.members[0].retry_ns);
    say(&past, 0, 3);
    RUN_UNTIL(a.transport.refusals[KITH_REFUSAL_DUPLICATE] == 1);
    say(&present, 0, 4);
    RUN_UNTIL(a.heard[4] == 1);
    assert_int_equal(a.heard[3], 0);
    assert_int_equal(a.down, 1);
    stop_sides((struct side *[]){&a, &past, &present}, 3);
}

/* ---- one key from two addresses */

static void a_crossing_from_two_addresses(void **state)
{
    const kith_id rank = *(const kith_id *)*state;
    listen_elsewhere(rank);
    dial_each_other(0, 0);
    setup(state);
    listen_elsewhere(rank);
    dial_each_other(20 * KITH_MS, 0);
    setup(state);
    listen_elsewhere(rank);
    dial_each_other(0, 20 * KITH_MS);
}

/* It has the rank's key, incarnation and address, and is another process. */
static void a_copy_on_the_same_host(void **state)
{
    static struct side a, first, copy;
    char address[KITH_ADDRESS_BYTES];
    (void)state;
    open_side(&a, 0, 0, 0);
    open_side(&first, 1, 0, 0);
    kith_transport_unhold(&a.transport);
    kith_transport_unhold(&first.transport);
    say(&first, 0, 1);
    RUN_UNTIL(a.heard[1] == 1);
    listen_as(1, address);
    open_side(&copy, 1, 0, 0);
    kith_transport_unhold(&copy.transport);
    say(&copy, 0, 2);
    RUN_UNTIL(a.two_places == 1 && copy.told == 1);
    assert_int_equal(a.heard[2], 0);
    assert_int_equal(a.down, 0);
    stop_sides((struct side *[]){&a, &first, &copy}, 3);
}

/* Of this rank's key, with which `b` has just dialled the owner. */
struct theft {
    struct side owner, thief, b;
    kith_id rank, other;
};

static void open_theft(struct theft *theft, kith_id rank, kith_ns late_ns)
{
    theft->rank = rank;
    theft->other = 1 - rank;
    listen_elsewhere(rank);
    open_side(&theft->owner, rank, 0, late_ns);
    open_side(&theft->b, theft->other, 0, 0);
    kith_transport_unhold(&theft->owner.transport);
    kith_transport_unhold(&theft->b.transport);
    say(&theft->b, rank, 1);
}

/* It cannot know what the owner's connections show. */
static void open_thief(struct theft *theft, uint32_t incarnation)
{
    char address[KITH_ADDRESS_BYTES];
    listen_as(theft->rank, address);
    open_side(&theft->thief, theft->rank, incarnation, 0);
    kith_transport_unhold(&theft->thief.transport);
    say(&theft->thief, theft->other, 2);
}

static void close_theft(struct theft *theft)
{
    stop_sides((struct side *[]){&theft->owner, &theft->thief, &theft->b}, 3);
}

/* As soon as the owner was dialled: nothing of the thief is heard, the owner
 * stays, and it is said. */
static void an_early_thief_is_refused(void **state)
{
    static struct theft theft;
    struct side *const owner = &theft.owner, *const b = &theft.b;
    open_theft(&theft, *(const kith_id *)*state, 0);
    RUN_UNTIL(owner->heard[1] == 1 && b->up == 1);
    open_thief(&theft, 0);
    RUN_UNTIL(b->two_places == 1 && theft.thief.transport.connected == 1);

    say(owner, theft.other, 3);
    say(b, theft.rank, 4);
    RUN_UNTIL(b->heard[3] == 1 && owner->heard[4] == 1);
    assert_int_equal(b->heard[2] + theft.thief.heard[4], 0);
    assert_int_equal(b->down + owner->down + (int)b->moved, 0);
    close_theft(&theft);
}

/* Between our dial and the owner's answer: the one that was first stays, and
 * the owner is told. */
static void a_first_thief_is_named(void **state)
{
    static struct theft theft;
    open_theft(&theft, *(const kith_id *)*state, 50 * KITH_MS);
    open_thief(&theft, 0);
    RUN_UNTIL(theft.b.two_places == 1 && theft.owner.told == 1);
    RUN_UNTIL(theft.b.heard[2] == 1);
    assert_int_equal(theft.b.down + (int)theft.b.moved, 0);
    close_theft(&theft);
}

/* Refused for as long as the first is heard, whatever incarnation it names. */
static void a_late_one_finds_the_first_heard_or_silent(void **state)
{
    static struct theft theft;
    struct side *const b = &theft.b;
    alive_ns = KITH_S;
    open_theft(&theft, *(const kith_id *)*state, 0);
    RUN_UNTIL(theft.owner.heard[1] == 1);
    wait_for(alive_ns + 200 * KITH_MS);
    say(&theft.owner, theft.other, 3);
    RUN_UNTIL(b->heard[3] == 1);
    open_thief(&theft, 1);
    RUN_UNTIL(b->two_places == 1);
    assert_int_equal(b->heard[2] + b->moved, 0);
    assert_int_equal(b->down, 0);

    wait_for(alive_ns);
    say(&theft.thief, theft.other, 4);
    RUN_UNTIL(b->heard[4] == 1 && b->up == 2);
    assert_int_equal(b->moved, 1);
    assert_int_equal(b->down, 1);
    close_theft(&theft);
}

/* A member that ended and comes back at another address waits for nothing. */
static void a_restart_elsewhere(void **state)
{
    static struct theft theft;
    struct side *const b = &theft.b;
    open_theft(&theft, *(const kith_id *)*state, 0);
    RUN_UNTIL(theft.owner.heard[1] == 1 && b->up == 1);
    kith_transport_stop(&theft.owner.transport);
    RUN_UNTIL(b->down == 1);
    open_thief(&theft, 1);
    RUN_UNTIL(b->heard[2] == 1 && b->up == 2);
    assert_int_equal(b->two_places + b->moved, 0);
    close_theft(&theft);
}

/* A dial that fails is told as LINK_DOWN, so a node asks again and again. */
static void another_model_is_said_less_and_less(void **state)
{
    static struct side a, b;
    (void)state;
    open_side_of(&a, 0, 0, 0, 3);
    open_side_of(&b, 1, 0, 0, 4);
    kith_transport_unhold(&a.transport);
    kith_transport_unhold(&b.transport);

    const kith_ns began_ns = (kith_ns)uv_hrtime();
    while (a.transport.dial_failures < 20 &&
           (kith_ns)uv_hrtime() - began_ns < PATIENCE_NS) {
        say(&a, 1, 1);
        turn();
    }
    assert_int_equal(a.transport.dial_failures, 20);
    assert_int_equal(a.dial_failed, 5); /* 1, 2, 4, 8, 16 */
    assert_int_equal(a.refused, 5);
    assert_int_equal(b.refused, 5);
    stop_sides((struct side *[]){&a, &b}, 2);
}

static kith_id lower = 0, higher = 1;

#define OF_EACH_RANK(test)                                                     \
    cmocka_unit_test_prestate_setup_teardown(test, setup, NULL, &lower),       \
        cmocka_unit_test_prestate_setup_teardown(test, setup, NULL, &higher)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(said_before_the_hold_ends, setup),
        cmocka_unit_test_setup(dialled_ahead, setup),
        cmocka_unit_test_setup(said_on_a_held_link, setup),
        cmocka_unit_test_setup(refused_and_then_connected_on_hold, setup),
        cmocka_unit_test_setup(lower_rank_wins, setup),
        cmocka_unit_test_setup(lower_rank_wins_though_late, setup),
        cmocka_unit_test_setup(higher_rank_loses_though_late, setup),
        cmocka_unit_test_setup(restarted_member_replaces_its_past, setup),
        OF_EACH_RANK(a_crossing_from_two_addresses),
        cmocka_unit_test_setup(a_copy_on_the_same_host, setup),
        OF_EACH_RANK(an_early_thief_is_refused),
        OF_EACH_RANK(a_first_thief_is_named),
        OF_EACH_RANK(a_late_one_finds_the_first_heard_or_silent),
        OF_EACH_RANK(a_restart_elsewhere),
        cmocka_unit_test_setup(another_model_is_said_less_and_less, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
