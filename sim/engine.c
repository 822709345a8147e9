/* The loop: pop an event, carry it out, whatever the machines of the run do.
 *
 * The simulator is a driver like the daemon (node.h): it moves messages, runs
 * work items, and wakes a node at its deadline, all in virtual time. Order is
 * (time, machine, sequence): a function of the experiment alone, so that every
 * queue, thread count and compiler gives the same run. */
#include "sim/world.h"

#include <inttypes.h>
#include <stdarg.h>

#include "kith/text.h"

/* The wall clock is looked at this often, and more often where events are real
 * training. */
#define PROGRESS_EVENTS 1024u
#define PROGRESS_TRAINING_EVENTS 8u
/* So many events before their turn, an event's machine and packet are asked
 * for; and, once the packet is there, its link. */
#define PREFETCH_FAR 12u
#define PREFETCH_NEAR 6u

/* Room for two events a machine, a deadline and a finished step: what most runs
 * have pending. It grows where that is not enough. */
enum kith_err sim_engine_open(struct sim_world *world)
{
    KITH_ASSERT(world->machine_count > 0);
    KITH_ASSERT(world->engine.error != NULL);
    return sim_queue_open(&world->engine.queue, world->options.queue,
                          2 * (size_t)world->machine_count);
}

void sim_engine_close(struct sim_world *world)
{
    sim_queue_close(&world->engine.queue);
}

/* One line for the caller; whatever fails after it is a consequence, and would
 * only hide it. */
enum kith_err sim_fail(struct sim_world *world, enum kith_err err,
                       const char *format, ...)
{
    struct sim_engine *engine = &world->engine;
    KITH_ASSERT(err != KITH_OK);
    if (engine->err == KITH_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(engine->error, SIM_ERROR_BYTES, format, arguments);
        va_end(arguments);
        engine->err = err;
    }
    engine->over = true;
    return err;
}

enum kith_err sim_failure(const struct sim_world *world)
{
    /* A failure ends the run: nothing that comes after it is a result. */
    KITH_ASSERT(world->engine.err == KITH_OK || world->engine.over);
    return world->engine.err;
}

const char *sim_failure_text(const struct sim_world *world)
{
    KITH_ASSERT(world->engine.err != KITH_OK);
    return world->engine.error;
}

/* No event is taken any more; what the event in hand still does is carried out.
 * */
void sim_end(struct sim_world *world)
{
    world->engine.over = true;
}

void sim_ending(struct sim_world *world)
{
    KITH_ASSERT(world->protocol->ended != NULL);
    world->engine.ending = true;
}

bool sim_ended(const struct sim_world *world)
{
    return world->engine.over;
}

/* No event lies in the past: the clock can only be where an event put it, so it
 * never has to be set back. */
static void push(struct sim_world *world, const struct sim_event *event)
{
    KITH_DEBUG_ASSERT(event->time_ns >= sim_time(world));
    if (sim_queue_push(&world->engine.queue, event) != KITH_OK) {
        sim_fail(world, KITH_ENOMEM, "no memory for %zu pending events",
                 world->engine.queue.count);
    }
}

_Static_assert(KITH_PEERS_MAX <= 1u << 24, "a rank and 2^39 events of it");
_Static_assert(SIM_EVENT_RUN < 8, "a kind has three bits");

/* The causing machine's own counter makes sequences unique without a counter
 * that all share: the order of equal times is then a matter of ranks, not of
 * who was scheduled first. */
SIM_INLINE struct sim_event event_at(const struct sim_world *world,
                                     uint64_t sequence, kith_id peer,
                                     kith_ns at_ns, enum sim_event_kind kind,
                                     uint32_t value)
{
    KITH_DEBUG_ASSERT(peer < world->machine_count);
    return (struct sim_event){
        .time_ns = at_ns,
        .sequence = sequence,
        .peer = peer,
        .kind = (uint32_t)kind & 7u,
        .value = value & SIM_VALUE_MAX,
    };
}

uint64_t sim_sequence(struct sim_world *world, kith_id by)
{
    KITH_DEBUG_ASSERT(by < world->machine_count);
    return (uint64_t)by << 40 | world->peers[by].sequence++;
}

void sim_schedule(struct sim_world *world, kith_id by, kith_id peer,
                  kith_ns at_ns, enum sim_event_kind kind, uint32_t value)
{
    KITH_DEBUG_ASSERT(sim_is_mine(world, peer));
    const struct sim_event event =
        event_at(world, sim_sequence(world, by), peer, at_ns, kind, value);
    push(world, &event);
}

/* Among equal times its sender's rank orders it, as if that had caused it, and
 * the receiver's counter: the order of one connection is kept by either, and
 * the sender may be another thread's. Behind what the sender itself causes. */
void sim_schedule_delivery(struct sim_world *world, kith_id from, kith_id to,
                           kith_ns at_ns, uint32_t packet)
{
    KITH_DEBUG_ASSERT(from != to && from < world->machine_count);
    const uint64_t count = UINT64_C(1) << 39 | world->peers[to].sequence++;
    const struct sim_event event =
        event_at(world, (uint64_t)from << 40 | count, to, at_ns,
                 SIM_EVENT_DELIVER, packet);
    push(world, &event);
}

/* Nobody's events come last among equal times: an evaluation sees all that
 * happened by then. */
void sim_schedule_run(struct sim_world *world, kith_ns at_ns,
                      enum sim_run_event what)
{
    KITH_ASSERT(at_ns >= sim_time(world));
    const struct sim_event event = {.time_ns = at_ns,
                                    .sequence = world->engine.sequence++,
                                    .peer = KITH_NOBODY,
                                    .kind = SIM_EVENT_RUN,
                                    .value = (uint32_t)what & SIM_VALUE_MAX};
    push(world, &event);
}

/* What the run itself does; faults among them, because they are given from
 * outside. */
static void step_run(struct sim_world *world, enum sim_run_event what)
{
    sim_outbox_flush(world);
    switch (what) {
    case SIM_RUN_ATOM:
        sim_fault_due(world);
        break;
    case SIM_RUN_EVALUATE:
        KITH_ASSERT(world->experiment->evaluate_ns > 0);
        sim_evaluate(world);
        sim_schedule_run(world,
                         sim_time(world) + world->experiment->evaluate_ns,
                         SIM_RUN_EVALUATE);
        break;
    case SIM_RUN_STOP:
        KITH_ASSERT(sim_time(world) == world->experiment->stop.time_ns);
        world->protocol->stop(world);
        break;
    case SIM_RUN_FLOWS:
        sim_sharing_step(world);
        break;
    case SIM_RUN_GRACE:
        sim_end(world);
        break;
    }
}

/* Kinds of the network are common to all runs; the rest is the protocol's. */
SIM_INLINE void step_event(struct sim_world *world,
                           const struct sim_event *event)
{
    switch ((enum sim_event_kind)event->kind) {
    case SIM_EVENT_ARRIVE:
        sim_arrive(world, event->value);
        break;
    case SIM_EVENT_DELIVER:
        sim_deliver(world, event->value);
        break;
    case SIM_EVENT_HOST:
        sim_host_step(world, event->peer, event->value);
        break;
    case SIM_EVENT_RUN:
        KITH_DEBUG_ASSERT(event->peer == KITH_NOBODY);
        step_run(world, (enum sim_run_event)event->value);
        break;
    case SIM_EVENT_WAKE:
    case SIM_EVENT_WORK_DONE:
    case SIM_EVENT_COMPUTED:
    case SIM_EVENT_STAGE:
        world->protocol->step(world, event);
        break;
    }
}

/* A machine's line, its node's and its totals', and the packet that comes: ten
 * or twelve misses that now overlap with the events in between. What arrives
 * takes a line of the network, and no node hears of it yet. */
SIM_INLINE void prefetch_far(const struct sim_world *world,
                             const struct sim_event *event)
{
    if (!event || event->peer >= world->machine_count)
        return;
    if (event->kind == SIM_EVENT_ARRIVE) {
        sim_fetch(sim_packet_at(world, event->value));
        sim_access_fetch(&world->network, event->peer);
        return;
    }
    sim_fetch(&world->peers[event->peer]);
    sim_nodes_fetch(world, event->peer);
    sim_totals_fetch(world->totals, event->peer);
    if (event->kind == SIM_EVENT_DELIVER) {
        const char *packet = (const char *)sim_packet_at(world, event->value);
        sim_fetch(packet);
        sim_fetch(packet + 64);
        sim_payload_fetch(world, event->value);
    }
}

/* The answer to a message goes back over its link; a model is counted at both
 * its ends, and an ACCEPT is answered by one. What is another thread's would be
 * taken from it. */
SIM_INLINE void prefetch_near(const struct sim_world *world,
                              const struct sim_event *event)
{
    if (event && event->kind == SIM_EVENT_ARRIVE) {
        if (!sim_links_are_clear(world))
            sim_link_fetch_index(&world->links,
                                 sim_packet_at(world, event->value)->link);
    } else if (event && event->kind == SIM_EVENT_DELIVER) {
        const struct sim_packet *packet = sim_packet_at(world, event->value);
        sim_link_fetch_index(&world->links, packet->link);
        if ((packet->flags & SIM_PACKET_MOVES ||
             packet->message.kind == KITH_MESSAGE_ACCEPT) &&
            sim_is_mine(world, packet->from))
            sim_totals_fetch(world->totals, packet->from);
        if (packet->message.kind == KITH_MESSAGE_MODEL)
            sim_payload_fetch_vector(world, event->value);
    }
}

/* Machines of a large run are never in the cache: ask for those that come next.
 * A wrong guess costs nothing but the request. */
SIM_INLINE void prefetch(struct sim_world *world)
{
    struct sim_engine *engine = &world->engine;
    const struct sim_queue *queue = &engine->queue;
    if (engine->prefetched_day != queue->day) {
        engine->prefetched_day = queue->day;
        for (size_t next = 0; next < PREFETCH_FAR; next++)
            prefetch_far(world, sim_queue_peek(queue, next));
    }
    prefetch_far(world, sim_queue_peek(queue, PREFETCH_FAR));
    prefetch_near(world, sim_queue_peek(queue, PREFETCH_NEAR));
}

/* Observers see vectors: every work item has run to its end then. */
static void observe(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    sim_outbox_flush(world);
    sim_ledger_check(world);
    if (world->options.observe) {
        sim_work_join_all(world);
        world->options.observe(world, peer, world->options.arg);
    }
}

/* What stands in the outbox arrives a latency after it was sent, or later, with
 * a matrix the least of all: before an event as late as that is taken, it must
 * be under way. */
SIM_INLINE bool next_event(struct sim_world *world, struct sim_event *event)
{
    const kith_ns due_ns = sim_outbox_due_ns(
        &world->outbox, world->experiment->network.link.latency_ns);
    if (due_ns != KITH_NEVER &&
        sim_queue_next_ns(&world->engine.queue) >= due_ns)
        sim_outbox_flush(world);
    return sim_queue_pop(&world->engine.queue, event);
}

/* What takes time, by the event that ends it, and what would take less. */
static const struct {
    const char *what, *shorter;
} late[] = {
    [SIM_EVENT_WAKE] = {"a deadline", "a shorter gossip.deadline"},
    [SIM_EVENT_WORK_DONE] = {"a step, snapshot or merge",
                             "a shorter compute.step or compute.merge, or "
                             "peers that are less slow"},
    [SIM_EVENT_ARRIVE] = {"a message", "smaller messages, fewer at once, or "
                                       "more network.rate"},
    [SIM_EVENT_DELIVER] = {"a message", "smaller messages, fewer at once, or "
                                        "more network.rate"},
    [SIM_EVENT_COMPUTED] = {"a sum or an update",
                            "more central.reduce or central.update"},
    [SIM_EVENT_STAGE] = {"a stage of an exchange",
                         "smaller messages, or more network.rate, "
                         "central.reduce or central.update"},
    [SIM_EVENT_HOST] = {"a step, message or merge on a shared host",
                        "less of them, or more hosts.cores"},
    [SIM_EVENT_RUN] =
        {"what is under way",
         "smaller messages, fewer at once, more network.rate, or fewer steps"},
};

static void fail_late(struct sim_world *world, const struct sim_event *event)
{
    char whose[32] = "", most[32];
    KITH_ASSERT(late[event->kind].what != NULL);
    kith_text_from_time(KITH_TIME_MAX, most, sizeof most);
    if (event->peer != KITH_NOBODY)
        (void)snprintf(whose, sizeof whose, " at %s %" PRIu32,
                       event->peer < world->peer_count ? "peer" : "server",
                       event->peer);
    sim_fail(world, KITH_ELIMIT,
             "%s%s ends later than virtual time goes, %s; allowed: %s, or a "
             "stop.time",
             late[event->kind].what, whose, most, late[event->kind].shorter);
}

/* Prefetching comes after the clock and before the event: its addresses arrive
 * while this event is carried out. Part of both loops, as a call costs a
 * hundredth of an event. */
SIM_INLINE void take(struct sim_world *world, const struct sim_event *event)
{
    if (event->time_ns > KITH_TIME_MAX) {
        fail_late(world, event);
        return;
    }
    sim_clock_advance(&world->engine.clock, event->time_ns);
    world->events++;
    prefetch(world);
    step_event(world, event);
}

void sim_engine_take(struct sim_world *world)
{
    struct sim_event event;
    KITH_ASSERT(!world->engine.over && world->division == NULL);
    if (next_event(world, &event))
        take(world, &event);
}

/* ---- divisions */

/* What another thread has sent lies in a later window: never in the past. */
void sim_engine_put(struct sim_world *world, const struct sim_event *event)
{
    KITH_ASSERT(event->time_ns >= sim_time(world));
    KITH_DEBUG_ASSERT(event->peer == KITH_NOBODY ||
                      sim_is_mine(world, event->peer));
    push(world, event);
}

bool sim_engine_first(struct sim_world *world, struct sim_event *event)
{
    KITH_ASSERT(event != NULL);
    return sim_queue_first(&world->engine.queue, event);
}

bool sim_engine_empty(struct sim_world *world, struct sim_event *event)
{
    KITH_ASSERT(event != NULL);
    return sim_queue_pop(&world->engine.queue, event);
}

/* A queue that has been emptied is at the time of its last event. */
enum kith_err sim_engine_renew(struct sim_world *world)
{
    struct sim_engine *engine = &world->engine;
    KITH_ASSERT(engine->queue.count == 0);
    sim_queue_close(&engine->queue);
    engine->prefetched_day = 0;
    engine->ending = false;
    engine->at = (struct sim_moment){0};
    return sim_engine_open(world);
}

void sim_engine_reach(struct sim_world *world, kith_ns now_ns)
{
    KITH_ASSERT(now_ns >= 0 && now_ns <= KITH_TIME_MAX);
    if (now_ns > sim_time(world))
        sim_clock_advance(&world->engine.clock, now_ns);
}

/* Of a division: all of its own peers have finished. */
bool sim_is_ending(const struct sim_world *world)
{
    return world->engine.ending;
}

struct sim_moment sim_moment(const struct sim_world *world)
{
    KITH_ASSERT(world->division != NULL);
    return world->engine.at;
}

/* Whether there is an event before `until`, in the queue or in the outbox. */
static bool is_due(struct sim_world *world, struct sim_moment until)
{
    struct sim_queue *queue = &world->engine.queue;
    struct sim_event first;
    const kith_ns next_ns = sim_queue_next_ns(queue);
    KITH_DEBUG_ASSERT(until.time_ns >= 0);
    if (next_ns < until.time_ns)
        return true;
    sim_outbox_flush(world);
    return sim_queue_first(queue, &first) &&
           (first.time_ns < until.time_ns ||
            (first.time_ns == until.time_ns && first.peer < until.peer));
}

/* The loop of a division, which has no end of its own: what it may not decide
 * alone ends its windows. */
void sim_engine_run(struct sim_world *world, struct sim_moment until,
                    bool past_end)
{
    struct sim_engine *engine = &world->engine;
    struct sim_event event;
    KITH_ASSERT(world->division != NULL);
    while (!engine->over && (past_end || !engine->ending) &&
           is_due(world, until) && next_event(world, &event)) {
        if (event.time_ns != engine->at.time_ns || event.peer > engine->at.peer)
            engine->at = (struct sim_moment){event.time_ns, event.peer};
        take(world, &event);
    }
    sim_outbox_flush(world);
}

/* Asked after every event; of one that waits for its end, then. */
SIM_INLINE void take_point(struct sim_world *world)
{
    if (sim_points_is_due(world) && !world->engine.over &&
        !(world->aside && sim_aside_waits(world)))
        sim_points_take(world);
}

/* Whether all is done is asked before an event is taken, so that what is
 * pending then never happens. Where threads share the events they take all up
 * to the run's own next one; what is left of them is taken here. */
bool sim_loop(struct sim_world *world, bool *stalled)
{
    const struct sim_protocol *protocol = world->protocol;
    const bool watched = world->options.observe || world->ledger;
    const unsigned shown_after =
        world->work ? PROGRESS_TRAINING_EVENTS : PROGRESS_EVENTS;
    unsigned since_shown = 0;
    bool divides = world->windows != NULL;
    struct sim_event event;
    *stalled = false;
    while (!world->engine.over) {
        if (world->aside && sim_aside_step(world)) {
            take_point(world);
            continue;
        }
        if (world->engine.ending && protocol->ended(world))
            break;
        if (world->saves && !sim_saves_step(world))
            return false;
        if (world->options.stop && *world->options.stop && !world->ranks) {
            sim_aside_end(world);
            return false;
        }
        if (divides) {
            sim_windows_run(world);
            divides = false;
            continue;
        }
        if (++since_shown >= shown_after) {
            since_shown = 0;
            if (world->ranks && !sim_ranks_look(world))
                return false;
            sim_progress(world);
        }
        if (!next_event(world, &event)) {
            *stalled = world->unfinished > 0;
            break;
        }
        if (world->aside)
            sim_aside_begin(world, &event);
        take(world, &event);
        divides = world->windows && event.peer == KITH_NOBODY;
        if (watched)
            observe(world, event.peer);
        take_point(world);
    }
    sim_aside_end(world);
    sim_outbox_flush(world);
    return !*stalled && sim_failure(world) == KITH_OK;
}

kith_ns sim_now(const struct sim_world *world)
{
    return sim_time(world);
}

uint64_t sim_events(const struct sim_world *world)
{
    return world->events;
}
