/* Faults: the experiment's flat list of timed atoms, carried out one by one.
 *
 *   crash    node and vectors are gone, connections are reset
 *   restart  a new incarnation starts from the last save, or from the seed's
 *            first model, and adopts its first neighbour's
 *   pause    what happens to the peer is held, its work stands still
 *   slow     training steps cost `factor` times as much
 *   cut      traffic in one direction stalls, in order, until it heals */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

enum kith_err sim_fault_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        struct sim_peer *peer = &world->peers[atom->peer];
        if (!kith_fault_is_link(atom->kind) && peer->extra == 0) {
            peer->extra = ++world->extra_count;
        }
    }
    if (world->extra_count == 0) {
        return KITH_OK;
    }
    world->extras = calloc(world->extra_count, sizeof *world->extras);
    if (!world->extras) {
        return KITH_ENOMEM;
    }
    for (uint32_t i = 0; i < world->extra_count; i++) {
        world->extras[i].slow = 1;
    }
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        if (experiment->atoms[i].kind == KITH_FAULT_RESTART) {
            sim_extra_of(world, experiment->atoms[i].peer)->restarts = true;
        }
    }
    return KITH_OK;
}

void sim_fault_close(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->extra_count && world->extras; i++) {
        free(world->extras[i].image);
    }
    free(world->extras);
}

static size_t live_bytes(const struct sim_world *world)
{
    return world->dim * world->experiment->backend->element_bytes;
}

/* Keep a copy of x for a peer that will come back; the others' saves would
 * never be read. */
void sim_save(struct sim_world *world, kith_id peer)
{
    struct sim_extra *extra = sim_extra_of(world, peer);
    if (!extra || !extra->restarts) {
        return;
    }
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, peer), &counters);
    extra->step = counters.steps;
    extra->saved = true;
    if (!world->desks) {
        return;
    }
    struct kith_worker *worker = world->desks[peer].worker;
    if (!extra->image) {
        extra->image = malloc(live_bytes(world));
    }
    if (!extra->image) {
        sim_fail(world, KITH_ENOMEM, "no memory for the save of peer %u", peer);
        return;
    }
    memcpy(extra->image, kith_worker_slot(worker, KITH_SLOT_LIVE),
           live_bytes(world));
    const unsigned count = world->config.algorithm->scalar_count;
    for (unsigned i = 0; i < count; i++) {
        extra->scalars[i] = kith_worker_scalars(worker)[i];
    }
}

static void load(struct sim_world *world, kith_id peer,
                 const struct sim_extra *extra)
{
    struct kith_worker *worker = world->desks[peer].worker;
    if (!extra->saved) {
        return; /* the seed's first model */
    }
    memcpy(kith_worker_slot(worker, KITH_SLOT_LIVE), extra->image,
           live_bytes(world));
    const unsigned count = world->config.algorithm->scalar_count;
    for (unsigned i = 0; i < count; i++) {
        kith_worker_scalars(worker)[i] = extra->scalars[i];
    }
}

void sim_hold(struct sim_world *world, kith_id peer, uint32_t parcel)
{
    struct sim_extra *extra = sim_extra_of(world, peer);
    world->parcels[parcel - 1].next = 0;
    if (extra->held == 0) {
        extra->held = parcel;
    } else {
        world->parcels[extra->held_last - 1].next = parcel;
    }
    extra->held_last = parcel;
}

/* True when the item is not done yet, because its peer stood still. */
bool sim_fault_delays_work(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    struct sim_extra *extra = sim_extra_of(world, id);
    if (!extra) {
        return false;
    }
    if (peer->flags & SIM_PAUSED) {
        extra->work_held = true;
        extra->work_ns = world->now_ns;
        return true;
    }
    if (extra->shift_ns == 0) {
        return false;
    }
    sim_schedule(world, id, id, world->now_ns + extra->shift_ns,
                 SIM_EVENT_WORK_DONE, peer->incarnation);
    extra->shift_ns = 0;
    return true;
}

static void crash(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    if (peer->flags & SIM_CRASHED) {
        return;
    }
    sim_count(world, id, &world->gone);
    sim_affect(world, id);
    if (world->desks) {
        sim_work_join(world, id);
        sim_ledger_crash(world, id);
        sim_cancel(world, id, UINT32_MAX);
        sim_desk_close(world, id);
    }
    peer->flags &= (uint16_t) ~(SIM_PAUSED | SIM_WORKING);
    peer->flags |= SIM_CRASHED;
    peer->deadline_ns = peer->wake_ns = peer->later_ns = KITH_NEVER;
    struct sim_extra *extra = sim_extra_of(world, id);
    while (extra->held != 0) {
        const uint32_t parcel = extra->held;
        extra->held = world->parcels[parcel - 1].next;
        sim_parcel_free(world, parcel);
    }
    extra->work_held = false;
    extra->shift_ns = 0;
    sim_link_crash(world, id);
}

static void restart(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    struct sim_extra *extra = sim_extra_of(world, id);
    if (!(peer->flags & SIM_CRASHED)) {
        return;
    }
    peer->flags &= (uint16_t)~SIM_CRASHED;
    peer->incarnation++;
    /* What the save holds was counted with the incarnation that wrote it. */
    world->gone.steps -= extra->saved ? extra->step : 0;
    if (world->desks) {
        const enum kith_err err = sim_desk_open(world, id);
        if (err != KITH_OK) {
            sim_fail(world, err, "cannot restart peer %u: %s", id,
                     kith_err_text(err));
            return;
        }
        load(world, id, extra);
        sim_ledger_start(world, id, true);
    }
    sim_start(world, id, extra->saved ? extra->step : 0, true);
}

static void resume(struct sim_world *world, kith_id id)
{
    struct sim_peer *peer = &world->peers[id];
    struct sim_extra *extra = sim_extra_of(world, id);
    if (!(peer->flags & SIM_PAUSED)) {
        return;
    }
    peer->flags &= (uint16_t)~SIM_PAUSED;
    const kith_ns stood_ns = world->now_ns - extra->paused_ns;
    if (extra->work_held) {
        extra->work_held = false;
        sim_schedule(world, id, id, extra->work_ns + stood_ns,
                     SIM_EVENT_WORK_DONE, peer->incarnation);
    } else if (peer->flags & SIM_WORKING) {
        extra->shift_ns += stood_ns;
    }
    uint32_t next = extra->held;
    extra->held = 0;
    while (next != 0) {
        const uint32_t parcel = next;
        next = world->parcels[parcel - 1].next;
        sim_schedule(world, id, id, world->now_ns, SIM_EVENT_DELIVER, parcel);
    }
    const kith_ns deadline_ns = peer->deadline_ns;
    peer->wake_ns = peer->later_ns = KITH_NEVER;
    sim_wake_at(world, id, deadline_ns);
}

static void execute(struct sim_world *world, const struct kith_atom *atom)
{
    struct sim_peer *peer = &world->peers[atom->peer];
    struct sim_extra *extra = sim_extra_of(world, atom->peer);
    const bool begins = kith_atom_begins(atom);
    switch (kith_fault_effect(atom->kind)) {
    case KITH_EFFECT_STOP:
        if (begins) {
            crash(world, atom->peer);
        } else {
            restart(world, atom->peer);
        }
        break;
    case KITH_EFFECT_PAUSE:
        if (!begins) {
            resume(world, atom->peer);
        } else if (!(peer->flags & (SIM_PAUSED | SIM_CRASHED))) {
            peer->flags |= SIM_PAUSED;
            extra->paused_ns = world->now_ns;
        }
        break;
    case KITH_EFFECT_SLOW:
        extra->slow = atom->factor;
        break;
    case KITH_EFFECT_CUT:
        sim_link_cut(world, atom->peer, atom->other, begins);
        break;
    case KITH_EFFECT_COUNT:
        break;
    }
}

/* All atoms that are due, then an event for the next one. */
void sim_fault_due(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    while (world->atom < experiment->atom_count &&
           experiment->atoms[world->atom].at_ns <= world->now_ns) {
        const struct kith_atom *atom = &experiment->atoms[world->atom++];
        sim_trace_fault(world, atom);
        if (atom->statement != UINT32_MAX) { /* not compute.slow */
            world->faults++;
        }
        if (world->options.store) {
            (void)kith_rundb_fault(world->options.store, world->now_ns, atom);
        }
        execute(world, atom);
    }
    if (world->atom < experiment->atom_count) {
        sim_schedule_run(world, experiment->atoms[world->atom].at_ns,
                         SIM_EVENT_ATOM);
    }
}
