/* Peers that gossip: their nodes, the effects that a step asks for, and the end
 * of the run.
 *
 *   unfinished > 0             healthy peers have steps to do
 *   winding up, restless > 0   all are done; exchanges in doubt go on
 *   restless = 0, or GRACE     over
 *
 * A peer that has crashed once is exempt: nobody waits for it. */
#include "sim/world.h"

/* How long exchanges in doubt may go on after the last peer has finished. */
#define GRACE_NS (300 * KITH_S)
#define NODE_LARGE_BYTES 512u

const struct kith_node_config *sim_node_config(const struct sim_world *world)
{
    return &world->nodes.config;
}

const struct kith_node *sim_node(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return sim_node_at(world, peer);
}

/* ---- timers */

/* A deadline that moves away costs nothing now: the event already pending
 * finds out when it fires. One that comes nearer leaves a later event behind,
 * which is remembered and serves again, so that events do not pile up. */
static void timer_set(struct sim_world *world, kith_id id, kith_ns deadline_ns)
{
    struct sim_peer *peer = &world->peers[id];
    KITH_DEBUG_ASSERT(peer->timer.wake_ns <= peer->timer.later_ns);
    peer->timer.deadline_ns = deadline_ns;
    if (deadline_ns >= peer->timer.wake_ns)
        return;
    if (peer->timer.wake_ns < peer->timer.later_ns)
        peer->timer.later_ns = peer->timer.wake_ns;
    const kith_ns now_ns = sim_time(world);
    peer->timer.wake_ns = deadline_ns > now_ns ? deadline_ns : now_ns;
    if (peer->timer.wake_ns == peer->timer.later_ns) {
        peer->timer.later_ns = KITH_NEVER;
        return; /* it stands there already */
    }
    sim_schedule(world, id, id, peer->timer.wake_ns, SIM_EVENT_WAKE, 0);
}

/* Events that stand in the queue find a time that is not theirs, and do
 * nothing. */
void sim_timer_clear(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    peer->timer.deadline_ns = KITH_NEVER;
    peer->timer.wake_ns = peer->timer.later_ns = KITH_NEVER;
}

/* Events of the timer that stand in the queue from before are passed over:
 * wake_ns is none of theirs. */
void sim_timer_resume(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->peers[id].state == SIM_PEER_RUNS);
    const kith_ns deadline_ns = world->peers[id].timer.deadline_ns;
    sim_timer_clear(world, id);
    timer_set(world, id, deadline_ns);
}

/* ---- the end */

/* Quiet is the node's word for: no exchange of mine is in doubt, and I owe
 * nobody an answer. */
static bool is_restless(const struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    return !(world->peers[id].ending & SIM_EXEMPT) &&
           !kith_node_quiet(sim_node_at(world, id));
}

/* After each event of the peer: keep count of who still has something to do. */
static void settle(struct sim_world *world, kith_id id)
{
    sim_totals_exchanges(world, id);
    if (!world->nodes.winding_up)
        return;
    KITH_DEBUG_ASSERT(world->nodes.restless <= world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    const bool restless = is_restless(world, id);
    if (restless != ((peer->ending & SIM_RESTLESS) != 0)) {
        KITH_DEBUG_ASSERT(restless || world->nodes.restless > 0);
        peer->ending ^= SIM_RESTLESS;
        world->nodes.restless += restless ? 1u : UINT32_MAX;
    }
}

/* Counted once, then kept by settle(): asking all nodes after each event would
 * cost more than the events. */
static void wind_up(struct sim_world *world)
{
    if (world->nodes.winding_up)
        return;
    KITH_ASSERT(world->nodes.restless == 0);
    world->nodes.winding_up = true;
    sim_watch_wind_up(world);
    sim_ending(world);
    for (kith_id id = 0; id < world->peer_count; id++)
        settle(world, id);
    sim_schedule_run(world, sim_time(world) + GRACE_NS, SIM_RUN_GRACE);
}

/* Nobody has a step to do: from now on the loop asks before each event. */
static void ask_for_end(struct sim_world *world)
{
    KITH_ASSERT(world->unfinished <= world->peer_count);
    if (world->unfinished == 0)
        sim_ending(world);
}

/* A peer may finish twice, after a restart: the count goes down once, the time
 * is the last. */
static void finish(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    sim_totals_finished(world, id);
    if (!(peer->ending & SIM_FINISHED)) {
        peer->ending |= SIM_FINISHED;
        world->unfinished -= !(peer->ending & SIM_EXEMPT);
        ask_for_end(world);
    }
    KITH_ASSERT(world->unfinished <= world->peer_count);
}

void sim_nodes_use(struct sim_world *world, struct kith_effects *effects)
{
    KITH_ASSERT(world->division != NULL);
    world->nodes.effects = effects;
}

uint32_t sim_unfinished(const struct sim_world *world)
{
    uint32_t count = 0;
    KITH_ASSERT(world->unfinished <= world->peer_count);
    for (kith_id id = 0; id < world->peer_count; id++)
        count += sim_is_mine(world, id) &&
                 !(world->peers[id].ending & (SIM_FINISHED | SIM_EXEMPT));
    return count;
}

/* Incarnations are added up: a peer's row counts its process, the run's row all
 * of them. */
static void add_counters(const struct sim_world *world, kith_id id,
                         struct kith_node_counters *sum)
{
    struct kith_node_counters one;
    kith_node_counters(sim_node_at(world, id), &one);
    KITH_ASSERT(one.waited_ns >= 0);
    sum->steps += one.steps;
    sum->attempts += one.attempts;
    sum->skipped += one.skipped;
    sum->refused += one.refused;
    sum->done += one.done;
    sum->failed += one.failed;
    sum->torn += one.torn;
    sum->waited_ns = kith_ns_add(sum->waited_ns, one.waited_ns);
}

/* Its share will never be done, or done again: waiting for it would wait for
 * the experiment's own fault. */
void sim_exempt(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->unfinished <= world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    add_counters(world, id, &world->nodes.crashed);
    if (peer->ending & SIM_EXEMPT)
        return;
    peer->ending |= SIM_EXEMPT;
    world->unfinished -= !(peer->ending & SIM_FINISHED);
    ask_for_end(world);
    settle(world, id);
    KITH_ASSERT(!(peer->ending & SIM_RESTLESS));
}

static bool gossip_ended(struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->nodes.restless <= world->peer_count);
    if (world->unfinished == 0)
        wind_up(world);
    return world->nodes.winding_up && world->nodes.restless == 0;
}

/* An event is of one peer. */
bool sim_nodes_may_end(const struct sim_world *world, uint32_t events)
{
    KITH_DEBUG_ASSERT(world->unfinished <= world->peer_count);
    return (world->nodes.winding_up ? world->nodes.restless
                                    : world->unfinished) <= events;
}

/* ---- steps */

/* Rows are in the order of one thread, too. */
void sim_keep_mark(struct sim_world *world, kith_id id,
                   const struct kith_mark *mark)
{
    KITH_DEBUG_ASSERT(mark->kind != KITH_MARK_STEP);
    if (world->division)
        sim_note_mark(world, id, mark);
    else if (world->aside && sim_aside_notes(world))
        sim_aside_note_mark(world, id, mark);
    else /* sticks; reported at the end */
        (void)kith_rundb_mark(world->options.store, id, sim_time(world), mark);
}

/* Marks are what a node says about itself: the trace, the ledger, the totals
 * and the database hear of a decision from here alone. */
static void step_marks(struct sim_world *world, kith_id id)
{
    const struct kith_effects *effects = world->nodes.effects;
    for (uint32_t i = 0; i < effects->mark_count; i++) {
        const struct kith_mark *mark = &effects->marks[i];
        sim_trace_mark(world, id, mark);
        if (world->ledger)
            sim_ledger_mark(world, id, mark);
        if (sim_is_watched(world) && !world->nodes.winding_up)
            sim_watch_mark(world, id, mark);
        if (world->zone_traffic)
            sim_zone_traffic_mark(world, id, mark);
        if (mark->kind == KITH_MARK_FINISHED)
            finish(world, id);
        else if (mark->kind == KITH_MARK_NONFINITE)
            world->nonfinite = true;
        else if (mark->kind == KITH_MARK_STEP)
            world->steps_done++;
        if (mark->kind != KITH_MARK_STEP && sim_is_kept(world, id))
            sim_keep_mark(world, id, mark);
    }
}

/* Vectors that nobody asks for any more: its own, and where a swap is over at
 * both ends, theirs. */
static void settle_vectors(struct sim_world *world, kith_id id)
{
    const struct kith_effects *effects = world->nodes.effects;
    KITH_ASSERT(world->work != NULL);
    if (effects->has_work || effects->cancel != 0)
        sim_worker_settle(world, id);
    for (uint32_t i = 0; i < effects->mark_count; i++) {
        const struct kith_mark *mark = &effects->marks[i];
        if (mark->kind == KITH_MARK_DONE || mark->kind == KITH_MARK_MERGED)
            sim_worker_settle_swap(world, id, mark);
    }
}

/* Everything that a step asks for, in the order in which a driver with sockets
 * carries it out. */
static inline void step_node(struct sim_world *world, kith_id id,
                             struct kith_event *event)
{
    struct kith_effects *effects = world->nodes.effects;
    KITH_DEBUG_ASSERT(world->peers[id].state == SIM_PEER_RUNS);
    event->now_ns = sim_time(world);
    event->utc_s = SIM_UTC_START + event->now_ns / KITH_S;
    kith_node_step(sim_node_at(world, id), event, effects);
    step_marks(world, id);
    if (effects->cancel != 0)
        sim_cancel(world, id, effects->cancel);
    /* Sent before the work begins, which may fill the snapshots anew. */
    for (uint32_t i = 0; i < effects->send_count; i++)
        sim_send(world, id, &effects->sends[i]);
    for (uint32_t i = 0; i < effects->dial_count; i++)
        sim_outbox_dial(world, id, effects->dials[i]);
    if (world->work)
        settle_vectors(world, id);
    if (effects->has_work)
        sim_work_start(world, id, &effects->work);
    timer_set(world, id, effects->deadline_ns);
}

/* The ledger hears first: the marks of this very step may settle what was
 * pending. */
static void step_worked(struct sim_world *world, kith_id id)
{
    KITH_DEBUG_ASSERT(world->peers[id].work != SIM_WORK_NONE);
    struct kith_event event = {.kind = KITH_EVENT_WORK_DONE,
                               .from = KITH_NOBODY,
                               .result = sim_work_end(world, id)};
    if (world->ledger)
        sim_ledger_done(world, id);
    if (event.result->passes > 0)
        sim_totals_passes(world, id, event.result->passes);
    step_node(world, id, &event);
}

/* Items that cost no virtual time are done at once, not queued, unless other
 * threads have them: then the rest of the event waits. A step of training
 * always costs some, so this ends. */
static void finish_event(struct sim_world *world, kith_id id)
{
    KITH_DEBUG_ASSERT(id < world->peer_count);
    while (world->peers[id].work == SIM_WORK_IMMEDIATE) {
        if (world->aside && sim_aside_put(world, id))
            return;
        world->events++;
        step_worked(world, id);
    }
    settle(world, id);
}

void sim_step(struct sim_world *world, kith_id id, struct kith_event *event)
{
    KITH_DEBUG_ASSERT(id < world->peer_count);
    step_node(world, id, event);
    finish_event(world, id);
}

void sim_step_on(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->peers[id].work == SIM_WORK_IMMEDIATE);
    world->events++;
    step_worked(world, id);
    finish_event(world, id);
}

/* A process begins: no timer of the one before is left. */
static void place(struct sim_world *world, kith_id id, uint64_t resume_step,
                  bool adopt)
{
    KITH_ASSERT(world->peers[id].state == SIM_PEER_RUNS);
    sim_timer_clear(world, id);
    (void)kith_node_init(sim_node_at(world, id), &world->nodes.config, id,
                         world->peers[id].incarnation, resume_step, adopt);
}

/* The node is told that it is new. */
void sim_begin(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->peers[id].state == SIM_PEER_RUNS);
    struct kith_event event = {.kind = KITH_EVENT_START, .from = KITH_NOBODY};
    sim_step(world, id, &event);
}

void sim_restart(struct sim_world *world, kith_id id, uint64_t resume_step)
{
    KITH_ASSERT(world->peers[id].incarnation > 0);
    /* What a save holds was counted with the incarnation that wrote it. */
    KITH_ASSERT(world->nodes.crashed.steps >= resume_step);
    world->nodes.crashed.steps -= resume_step;
    place(world, id, resume_step, true);
    sim_begin(world, id);
}

/* Of several events that were set, the one whose time the timer holds is the
 * deadline; the others have been replaced. */
static void step_wake(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->peers[id].timer.wake_ns >= 0);
    struct sim_peer *peer = &world->peers[id];
    if (peer->timer.wake_ns != sim_time(world))
        return; /* an earlier deadline took its place */
    peer->timer.wake_ns = peer->timer.later_ns;
    peer->timer.later_ns = KITH_NEVER;
    if (peer->state != SIM_PEER_RUNS)
        return; /* RESUME and RESTART set it again */
    if (peer->timer.deadline_ns > sim_time(world)) {
        timer_set(world, id, peer->timer.deadline_ns);
        return;
    }
    struct kith_event event = {.kind = KITH_EVENT_WAKE, .from = KITH_NOBODY};
    sim_step(world, id, &event);
}

/* An event of an incarnation that has crashed is passed over: its item ended
 * with it. */
static void step_work_done(struct sim_world *world, kith_id id,
                           uint32_t incarnation)
{
    KITH_ASSERT(incarnation <= world->peers[id].incarnation);
    const struct sim_peer *peer = &world->peers[id];
    if (incarnation != peer->incarnation || peer->state == SIM_PEER_CRASHED)
        return; /* the item died with its process */
    if (peer->fault != 0 && sim_fault_delays_work(world, id))
        return;
    step_worked(world, id);
    finish_event(world, id);
}

static void gossip_step(struct sim_world *world, const struct sim_event *event)
{
    if (event->kind == SIM_EVENT_WAKE) {
        step_wake(world, event->peer);
    } else {
        KITH_ASSERT(event->kind == SIM_EVENT_WORK_DONE);
        step_work_done(world, event->peer, event->value);
    }
}

/* Everybody says goodbye and brings its exchange to an end. */
static void gossip_stop(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) > 0);
    if (world->nodes.winding_up)
        return;
    for (kith_id id = 0; id < world->peer_count; id++) {
        if (world->peers[id].state == SIM_PEER_RUNS) {
            struct kith_event event = {.kind = KITH_EVENT_LEAVE,
                                       .from = KITH_NOBODY};
            sim_step(world, id, &event);
        }
    }
    wind_up(world);
}

/* ---- from the experiment to the first step */

/* The node's size depends on the experiment: all nodes stand in one table, at a
 * stride that keeps them aligned. */
static enum kith_err gossip_configure(struct sim_world *world)
{
    KITH_ASSERT(world->central == NULL);
    KITH_ASSERT(world->machine_count == world->peer_count);
    struct sim_nodes *nodes = &world->nodes;
    const enum kith_err err = kith_experiment_node_config(
        world->experiment, world->steps, &nodes->topology, &nodes->config);
    if (err != KITH_OK)
        return err;
    nodes->config.topology = &nodes->topology;
    const size_t bytes = kith_node_size(&nodes->config);
    /* Whole cache lines, unless they would make idle peers larger. Several
     * threads would take a line from each other. */
    const size_t unit =
        bytes >= NODE_LARGE_BYTES || world->options.threads > 1 ? 64 : 8;
    nodes->stride = (bytes + unit - 1) / unit * unit;
    nodes->memory = sim_alloc(world, world->peer_count, nodes->stride);
    nodes->effects = sim_alloc(world, 1, sizeof *nodes->effects);
    world->vector_bytes =
        nodes->config.model_bytes > nodes->config.payload_bytes
            ? nodes->config.model_bytes
            : nodes->config.payload_bytes;
    return nodes->memory && nodes->effects ? KITH_OK : KITH_ENOMEM;
}

/* Before anything happens, so that a fault of time 0 finds a node. */
static enum kith_err gossip_open(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) == 0);
    for (kith_id id = 0; id < world->peer_count; id++) {
        sim_ledger_start(world, id, false);
        place(world, id, 0, false);
    }
    return KITH_OK;
}

/* In rank order, at time 0. Faults have been there: whoever one has crashed
 * starts when it is restarted, unless it has been, and whoever is paused when
 * it resumes. */
static void gossip_start(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) == 0);
    for (kith_id id = 0; id < world->peer_count && !sim_ended(world); id++) {
        const struct sim_peer *peer = &world->peers[id];
        if (peer->incarnation > 0)
            continue;
        if (peer->state == SIM_PEER_RUNS)
            sim_begin(world, id);
        else if (peer->state == SIM_PEER_PAUSED)
            sim_hold_start(world, id);
    }
}

/* ---- for results */

static struct kith_worker *gossip_worker(const struct sim_world *world,
                                         kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->peer_count);
    return peer == KITH_NOBODY ? NULL : sim_peer_worker(world, peer);
}

/* Of all: what has crashed, and who is alive; a crashed node's own counters
 * were added when it went. */
static void gossip_counters(const struct sim_world *world, kith_id peer,
                            struct kith_node_counters *counters)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->peer_count);
    if (peer != KITH_NOBODY) {
        kith_node_counters(sim_node_at(world, peer), counters);
        return;
    }
    *counters = world->nodes.crashed;
    for (kith_id id = 0; id < world->peer_count; id++)
        if (sim_alive(world, id))
            add_counters(world, id, counters);
}

const struct sim_protocol sim_gossip_protocol = {
    .configure = gossip_configure,
    .open = gossip_open,
    .start = gossip_start,
    .step = gossip_step,
    .stop = gossip_stop,
    .ended = gossip_ended,
    .worker = gossip_worker,
    .counters = gossip_counters,
    .take_loss = sim_job_take_loss,
};
