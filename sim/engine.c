/* The loop: pop an event, step that peer's node, carry out its effects.
 *
 * The simulator is a driver like the daemon (node.h): it moves messages, runs
 * work items, and wakes the node at its deadline, all in virtual time. */
#include "sim/world.h"

#include <stdarg.h>

#include "kith/assert.h"

/* How long exchanges in doubt may go on after the last peer has finished. */
#define GRACE_NS (300 * KITH_S)
/* The clock is looked at this often, and more often where events are real
 * training. */
#define PROGRESS_EVENTS 1024u
/* So many events ahead memory is asked for, and so much of a node. */
#define NODE_LINES 6u
#define FAR 12u
#define NEAR 6u

void sim_fail(struct sim_world *world, enum kith_err err, const char *format,
              ...)
{
    if (world->err == KITH_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(world->error, SIM_ERROR_BYTES, format, arguments);
        va_end(arguments);
        world->err = err;
    }
    world->over = true;
}

_Static_assert(KITH_PEERS_MAX <= 1u << 24, "a rank and 2^40 events of it");

void sim_schedule(struct sim_world *world, kith_id by, kith_id peer,
                  kith_ns at_ns, enum sim_event_kind kind, uint32_t value)
{
    const struct sim_event event = {
        .time_ns = at_ns,
        .sequence = (uint64_t)by << 40 | world->peers[by].sequence++,
        .peer = peer,
        .kind = (uint32_t)kind & 7u,
        .value = value & SIM_VALUE_MAX,
    };
    if (sim_queue_push(&world->queue, &event) != KITH_OK) {
        sim_fail(world, KITH_ENOMEM, "no memory for %zu pending events",
                 world->queue.count);
    }
}

void sim_schedule_run(struct sim_world *world, kith_ns at_ns,
                      enum sim_event_kind kind)
{
    const struct sim_event event = {.time_ns = at_ns,
                                    .sequence = world->sequence++,
                                    .peer = KITH_NOBODY,
                                    .kind = (uint32_t)kind & 7u};
    if (sim_queue_push(&world->queue, &event) != KITH_OK) {
        sim_fail(world, KITH_ENOMEM, "no memory for %zu pending events",
                 world->queue.count);
    }
}

/* A deadline that moves away costs nothing now: the event already pending
 * finds out when it fires. One that comes nearer leaves a later event behind,
 * which is remembered and serves again, so that events do not pile up. */
void sim_wake_at(struct sim_world *world, kith_id id, kith_ns deadline_ns)
{
    struct sim_peer *peer = &world->peers[id];
    peer->deadline_ns = deadline_ns;
    if (deadline_ns >= peer->wake_ns) {
        return;
    }
    if (peer->wake_ns < peer->later_ns) {
        peer->later_ns = peer->wake_ns;
    }
    peer->wake_ns = deadline_ns > world->now_ns ? deadline_ns : world->now_ns;
    if (peer->wake_ns == peer->later_ns) {
        peer->later_ns = KITH_NEVER;
        return; /* it stands there already */
    }
    sim_schedule(world, id, id, peer->wake_ns, SIM_EVENT_WAKE, 0);
}

static void wind_up(struct sim_world *world)
{
    if (world->winding_up) {
        return;
    }
    world->winding_up = true;
    for (kith_id id = 0; id < world->peer_count; id++) {
        struct sim_peer *peer = &world->peers[id];
        if (!(peer->flags & SIM_AFFECTED) &&
            !kith_node_quiet(sim_node_at(world, id))) {
            peer->flags |= SIM_RESTLESS;
            world->restless++;
        }
    }
    sim_schedule_run(world, world->now_ns + GRACE_NS, SIM_EVENT_GRACE);
}

/* Keep count of who still has something to do. */
static void settle(struct sim_world *world, kith_id id)
{
    if (!world->winding_up) {
        return;
    }
    struct sim_peer *peer = &world->peers[id];
    const bool restless = !(peer->flags & SIM_AFFECTED) &&
                          !kith_node_quiet(sim_node_at(world, id));
    if (restless != ((peer->flags & SIM_RESTLESS) != 0)) {
        peer->flags ^= SIM_RESTLESS;
        world->restless += restless ? 1u : UINT32_MAX;
    }
}

void sim_affect(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    if (peer->flags & SIM_AFFECTED) {
        return;
    }
    peer->flags |= SIM_AFFECTED;
    if (!(peer->flags & SIM_FINISHED)) {
        world->unfinished--;
    }
    if (peer->flags & SIM_RESTLESS) {
        peer->flags &= (uint16_t)~SIM_RESTLESS;
        world->restless--;
    }
}

static void step_marks(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    const struct kith_effects *effects = world->effects;
    for (uint32_t i = 0; i < effects->mark_count; i++) {
        const struct kith_mark *mark = &effects->marks[i];
        sim_trace_mark(world, id, mark);
        if (world->ledger) {
            sim_ledger_mark(world, id, mark);
        }
        if (mark->kind == KITH_MARK_FINISHED) {
            sim_tally_finished(world, id);
        }
        if (mark->kind == KITH_MARK_FINISHED && !(peer->flags & SIM_FINISHED)) {
            peer->flags |= SIM_FINISHED;
            world->unfinished -= !(peer->flags & SIM_AFFECTED);
        } else if (mark->kind == KITH_MARK_NONFINITE) {
            world->nonfinite = true;
        } else if (mark->kind == KITH_MARK_STEP) {
            world->steps_done++;
        }
        if (world->options.store && mark->kind != KITH_MARK_STEP) {
            (void)kith_rundb_mark(world->options.store, id, world->now_ns,
                                  mark); /* sticks; reported at the end */
        }
    }
}

static void step_node(struct sim_world *world, kith_id id,
                      struct kith_event *event)
{
    struct kith_effects *effects = world->effects;
    event->now_ns = world->now_ns;
    event->utc_s = SIM_UTC_START + world->now_ns / KITH_S;
    kith_node_step(sim_node_at(world, id), event, effects);

    const uint32_t messages =
        sim_messages_pack(world, id, effects->sends, effects->send_count);
    step_marks(world, id);
    if (effects->cancel != 0) {
        sim_cancel(world, id, effects->cancel);
    }
    sim_messages_fetch(world, messages);
    if (effects->has_work) {
        sim_work_start(world, id, &effects->work);
    }
    sim_wake_at(world, id, effects->deadline_ns);
    sim_messages_post(world, messages);
}

static void step_worked(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    struct kith_work_result result = {.kind = (enum kith_work_kind)peer->work,
                                      .finite = true};
    peer->flags &= (uint16_t) ~(SIM_WORKING | SIM_INSTANT);
    if (world->desks) {
        sim_work_join(world, id);
        result = world->desks[id].result;
        sim_ledger_done(world, id);
    }
    struct kith_event event = {
        .kind = KITH_EVENT_WORK_DONE, .from = KITH_NOBODY, .result = &result};
    step_node(world, id, &event);
}

/* Items that cost no virtual time are done at once, not queued. A step of
 * training always costs some, so this ends. */
static void step_instant(struct sim_world *world, kith_id id)
{
    while (world->peers[id].flags & SIM_INSTANT) {
        world->events++;
        step_worked(world, id);
    }
    settle(world, id);
}

void sim_step(struct sim_world *world, kith_id id, struct kith_event *event)
{
    step_node(world, id, event);
    step_instant(world, id);
}

void sim_start(struct sim_world *world, kith_id id, uint64_t resume_step,
               bool adopt)
{
    struct sim_peer *peer = &world->peers[id];
    peer->deadline_ns = peer->wake_ns = peer->later_ns = KITH_NEVER;
    (void)kith_node_init(sim_node_at(world, id), &world->config, id,
                         peer->incarnation, resume_step, adopt);
    struct kith_event event = {.kind = KITH_EVENT_START, .from = KITH_NOBODY};
    sim_step(world, id, &event);
}

static void step_wake(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    if (peer->wake_ns != world->now_ns) {
        return; /* an earlier deadline took its place */
    }
    peer->wake_ns = peer->later_ns;
    peer->later_ns = KITH_NEVER;
    if (peer->flags & (SIM_PAUSED | SIM_CRASHED)) {
        return; /* RESUME and RESTART set it again */
    }
    if (peer->deadline_ns > world->now_ns) {
        sim_wake_at(world, id, peer->deadline_ns);
        return;
    }
    struct kith_event event = {.kind = KITH_EVENT_WAKE, .from = KITH_NOBODY};
    sim_step(world, id, &event);
}

static void step_work_done(struct sim_world *world, kith_id id,
                           uint32_t incarnation)
{
    struct sim_peer *peer = &world->peers[id];
    if (incarnation != peer->incarnation || (peer->flags & SIM_CRASHED)) {
        return; /* the item died with its process */
    }
    if (peer->extra != 0 && sim_fault_delays_work(world, id)) {
        return;
    }
    step_worked(world, id);
    step_instant(world, id);
}

/* stop.time: everybody says goodbye and brings its exchange to an end. */
static void step_stop(struct sim_world *world)
{
    if (world->winding_up) {
        return;
    }
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (!(world->peers[id].flags & (SIM_CRASHED | SIM_PAUSED))) {
            struct kith_event event = {.kind = KITH_EVENT_LEAVE,
                                       .from = KITH_NOBODY};
            sim_step(world, id, &event);
        }
    }
    wind_up(world);
}

static void step_run(struct sim_world *world, enum sim_event_kind kind)
{
    switch (kind) {
    case SIM_EVENT_ATOM:
        sim_fault_due(world);
        break;
    case SIM_EVENT_EVALUATE:
        sim_evaluate(world);
        sim_schedule_run(world, world->now_ns + world->experiment->evaluate_ns,
                         SIM_EVENT_EVALUATE);
        break;
    case SIM_EVENT_STOP:
        step_stop(world);
        break;
    case SIM_EVENT_GRACE:
        world->over = true;
        break;
    case SIM_EVENT_WAKE:
    case SIM_EVENT_WORK_DONE:
    case SIM_EVENT_ARRIVE:
    case SIM_EVENT_DELIVER:
        KITH_ASSERT(kind == SIM_EVENT_ATOM); /* never a peer's event */
        break;
    }
}

static void step_event(struct sim_world *world, const struct sim_event *event)
{
    switch ((enum sim_event_kind)event->kind) {
    case SIM_EVENT_WAKE:
        step_wake(world, event->peer);
        break;
    case SIM_EVENT_WORK_DONE:
        step_work_done(world, event->peer, event->value);
        break;
    case SIM_EVENT_ARRIVE:
        sim_arrive(world, event->value);
        break;
    case SIM_EVENT_DELIVER:
        sim_deliver(world, event->value);
        break;
    case SIM_EVENT_ATOM:
    case SIM_EVENT_EVALUATE:
    case SIM_EVENT_STOP:
    case SIM_EVENT_GRACE:
        step_run(world, (enum sim_event_kind)event->kind);
        break;
    }
}

SIM_INLINE void fetch_far(const struct sim_world *world,
                          const struct sim_event *event)
{
    if (!event || event->peer >= world->peer_count) {
        return;
    }
    sim_fetch(&world->peers[event->peer]);
    const uint8_t *node = world->nodes + event->peer * world->node_stride;
    for (size_t line = 0; line < NODE_LINES; line++) {
        sim_fetch(node + line * 64);
    }
    if (event->kind == SIM_EVENT_DELIVER) {
        const uint8_t *parcel =
            (const uint8_t *)&world->parcels[event->value - 1];
        sim_fetch(parcel);
        sim_fetch(parcel + 64);
    }
}

/* The answer to a message goes back over its link: the packet says which one,
 * and has been asked for before. */
SIM_INLINE void fetch_near(const struct sim_world *world,
                           const struct sim_event *event)
{
    if (event && event->kind == SIM_EVENT_DELIVER) {
        sim_fetch(
            &world->links.links[world->parcels[event->value - 1].link]);
    }
}

/* Peers of a large run are never in the cache: ask for those that come next.
 * A wrong guess costs nothing but the request. */
static void look_ahead(struct sim_world *world)
{
    const struct sim_queue *queue = &world->queue;
    if (world->day != queue->day) {
        world->day = queue->day;
        for (size_t ahead = 0; ahead < FAR; ahead++) {
            fetch_far(world, sim_queue_ahead(queue, ahead));
        }
    }
    fetch_far(world, sim_queue_ahead(queue, FAR));
    fetch_near(world, sim_queue_ahead(queue, NEAR));
}

static void observed(struct sim_world *world, kith_id id)
{
    sim_ledger_check(world);
    if (world->options.observe) {
        sim_work_join_all(world);
        world->options.observe(world, id, world->options.arg);
    }
}

/* Until everybody is done, time is up, or somebody pressed Ctrl-C. Returns
 * whether the run came to its own end. */
bool sim_loop(struct sim_world *world, bool *stalled)
{
    const bool watched = world->options.observe || world->ledger;
    const unsigned shown_after = world->desks ? 8u : PROGRESS_EVENTS;
    unsigned since_shown = 0;
    struct sim_event event;
    while (!world->over) {
        if (world->unfinished == 0) {
            wind_up(world);
        }
        if (world->winding_up && world->restless == 0) {
            break;
        }
        if (world->options.stop && *world->options.stop) {
            return false;
        }
        if (++since_shown >= shown_after) {
            since_shown = 0;
            sim_progress(world);
        }
        if (!sim_queue_pop(&world->queue, &event)) {
            *stalled = world->unfinished > 0;
            break;
        }
        KITH_ASSERT(event.time_ns >= world->now_ns);
        world->now_ns = event.time_ns;
        world->events++;
        look_ahead(world);
        step_event(world, &event);
        if (watched) {
            observed(world, event.peer);
        }
    }
    return !*stalled && world->err == KITH_OK;
}
