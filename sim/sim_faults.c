/* Faults: the experiment's flat list of timed atoms, carried out one by one.
 *
 *   crash    node and vectors are gone, connections are reset
 *   restart  a new incarnation starts from the last save, or from the seed's
 *            first model, and adopts its first neighbour's
 *   pause    what happens to the peer is held, its work stands still
 *   slow     training steps cost `factor` times as much
 *   link     terms change between two sides (directions.c); what is cut stalls,
 * in order, until it heals lie      what the peer sends is not its model:
 * kith/lie.h */
#include "sim/sim_faults.h"

#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "kith/fault.h"
#include "sim/world.h"

/* What a paused peer's own next event is, where its time has come. */
enum held_event { HELD_NONE, HELD_START, HELD_WORK };

/* What only peers named by a fault need. */
struct sim_fault_state {
    double slow;
    struct kith_lie lie;         /* in force */
    kith_ns paused_ns, shift_ns; /* pause began; WORK_DONE is late by this */
    uint32_t held;               /* packets kept while paused */
    bool restarts, saved, lie_told;
    enum held_event own;
    kith_ns work_ns; /* the WORK_DONE that was held */
    uint64_t step;   /* of the image */
    void *image;     /* last save: the vector */
    double scalars[KITH_SCALARS_MAX];
};

static struct sim_fault_state *state_of(const struct sim_world *world,
                                        kith_id peer)
{
    const uint32_t state = world->peers[peer].fault;
    KITH_ASSERT(state <= world->faults.state_count);
    return state == 0 ? NULL : &world->faults.states[state - 1];
}

double sim_fault_slow(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    const struct sim_fault_state *state = state_of(world, peer);
    return state ? state->slow : 1;
}

static void begin_lie(struct sim_fault_state *state, struct kith_lie lie)
{
    KITH_ASSERT(lie.kind < KITH_LIE_COUNT);
    state->lie = lie;
    state->lie_told = false;
}

void sim_fault_prepare(const struct sim_world *world, kith_id peer,
                       struct kith_worker *worker)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_fault_state *state = state_of(world, peer);
    if (!state || state->lie_told)
        return;
    state->lie_told = true;
    kith_worker_lie(worker, &state->lie);
}

bool sim_alive(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->machine_count);
    return world->peers[peer].state != SIM_PEER_CRASHED;
}

/* A state only for peers that a fault names: a run of a million peers has few,
 * and the others' line stays one. */
enum kith_err sim_fault_open(struct sim_world *world)
{
    KITH_ASSERT(world->faults.states == NULL);
    const struct kith_experiment *experiment = world->experiment;
    struct sim_faults *faults = &world->faults;
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        struct sim_peer *peer = &world->peers[atom->peer];
        KITH_ASSERT(i == 0 || atom->at_ns >= experiment->atoms[i - 1].at_ns);
        if (atom->sides == NULL && peer->fault == 0)
            peer->fault = ++faults->state_count;
    }
    if (faults->state_count == 0)
        return KITH_OK;
    faults->states =
        sim_alloc(world, faults->state_count, sizeof *faults->states);
    if (!faults->states)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < faults->state_count; i++)
        faults->states[i].slow = 1;
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        if (atom->fault->effect == KITH_EFFECT_STOP && !atom->begins)
            state_of(world, atom->peer)->restarts = true;
    }
    return KITH_OK;
}

static size_t live_bytes(const struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    return world->dim * world->experiment->backend->element_bytes;
}

static size_t scalar_bytes(const struct sim_world *world)
{
    KITH_ASSERT(world->dim > 0);
    return sim_node_config(world)->algorithm->scalar_count * sizeof(double);
}

/* Keep a copy of x for a peer that will come back; the others' saves would
 * never be read. */
void sim_save(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_fault_state *state = state_of(world, peer);
    if (!state || !state->restarts)
        return;
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, peer), &counters);
    state->step = counters.steps;
    state->saved = true;
    if (!world->work || !sim_is_here(world, peer))
        return;
    struct kith_worker *worker = sim_peer_worker(world, peer);
    if (!state->image)
        state->image = sim_alloc(world, 1, live_bytes(world));
    if (!state->image) {
        sim_fail(world, KITH_ENOMEM, "no memory for the save of peer %u", peer);
        return;
    }
    memcpy(state->image, kith_worker_slot(worker, KITH_SLOT_LIVE),
           live_bytes(world));
    memcpy(state->scalars, kith_worker_scalars(worker), scalar_bytes(world));
}

/* The node's counters begin at the save's step; the vectors, and the
 * algorithm's scalars, must be of that step, too. */
static void load(struct sim_world *world, kith_id peer,
                 const struct sim_fault_state *state)
{
    KITH_ASSERT(world->work != NULL);
    struct kith_worker *worker = sim_peer_worker(world, peer);
    if (!state->saved || !sim_is_here(world, peer))
        return; /* the seed's first model */
    memcpy(kith_worker_slot(worker, KITH_SLOT_LIVE), state->image,
           live_bytes(world));
    memcpy(kith_worker_scalars(worker), state->scalars, scalar_bytes(world));
}

/* In order: a paused machine's kernel keeps what arrives, and its process reads
 * it when it goes on. */
void sim_hold(struct sim_world *world, kith_id peer, uint32_t packet)
{
    KITH_ASSERT(world->peers[peer].state == SIM_PEER_PAUSED);
    sim_packet_at(world, packet)->flags |= SIM_PACKET_HERE;
    sim_packet_append(world, &state_of(world, peer)->held, packet);
}

void sim_hold_start(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(world->peers[peer].state == SIM_PEER_PAUSED);
    state_of(world, peer)->own = HELD_START;
}

/* True when the item is not done yet, because its peer stood still. */
bool sim_fault_delays_work(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(world->peers[id].state != SIM_PEER_CRASHED);
    struct sim_peer *peer = &world->peers[id];
    struct sim_fault_state *state = state_of(world, id);
    if (!state)
        return false;
    if (peer->state == SIM_PEER_PAUSED) {
        state->own = HELD_WORK;
        state->work_ns = sim_time(world);
        return true;
    }
    if (state->shift_ns == 0)
        return false;
    sim_schedule(world, id, id, sim_time(world) + state->shift_ns,
                 SIM_EVENT_WORK_DONE, peer->incarnation);
    state->shift_ns = 0;
    return true;
}

/* The order is that of a process that dies: what it has counted is kept, its
 * vectors go, then its links break, and nobody is told but by a RESET. */
static void crash(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    struct sim_fault_state *state = state_of(world, id);
    if (peer->state == SIM_PEER_CRASHED)
        return;
    sim_exempt(world, id);
    /* A crashed process takes its item with it; here the item still runs to its
     * end, because a thread cannot be stopped within a kernel. */
    if (peer->work != SIM_WORK_NONE)
        (void)sim_work_end(world, id);
    if (world->work) {
        sim_ledger_crash(world, id);
        sim_cancel(world, id, UINT32_MAX);
        sim_job_close(world, id);
    }
    peer->state = SIM_PEER_CRASHED;
    sim_totals_exchanges(world, id);
    sim_timer_clear(world, id);
    sim_host_crash(world, id);
    sim_packet_free_all(world, &state->held);
    state->own = HELD_NONE;
    state->shift_ns = 0;
    /* What was to be so many models ends with their sender. */
    begin_lie(state, state->lie.models > 0 ? (struct kith_lie){.models = 0}
                                           : state->lie);
    sim_link_crash(world, id);
}

/* A peer that comes back has a new incarnation: what the old one had under way
 * is told apart by it. */
static void restart(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    struct sim_fault_state *state = state_of(world, id);
    if (peer->state != SIM_PEER_CRASHED)
        return;
    peer->state = SIM_PEER_RUNS;
    peer->incarnation++;
    if (world->work) {
        const enum kith_err err = sim_job_open(world, id);
        if (err != KITH_OK) {
            sim_fail(world, err, "cannot restart peer %u: %s", id,
                     kith_err_text(err));
            return;
        }
        load(world, id, state);
        sim_ledger_start(world, id, true);
    }
    sim_restart(world, id, state->saved ? state->step : 0);
}

/* Paused, a peer is alive: its messages wait with it, its neighbours only see
 * it silent, and its time-outs go on when it resumes. */
static void pause_peer(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    if (world->peers[id].state == SIM_PEER_RUNS) {
        world->peers[id].state = SIM_PEER_PAUSED;
        state_of(world, id)->paused_ns = sim_time(world);
    }
}

/* Work stood still as long as the pause lasted: an item ends that much later,
 * whether its event has come already or not. */
static void resume(struct sim_world *world, kith_id id)
{
    KITH_ASSERT(id < world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    struct sim_fault_state *state = state_of(world, id);
    if (peer->state != SIM_PEER_PAUSED)
        return;
    peer->state = SIM_PEER_RUNS;
    const kith_ns stood_ns = sim_time(world) - state->paused_ns;
    KITH_ASSERT(stood_ns >= 0);
    const enum held_event own = state->own;
    state->own = HELD_NONE;
    if (own == HELD_WORK) {
        sim_schedule(world, id, id, state->work_ns + stood_ns,
                     SIM_EVENT_WORK_DONE, peer->incarnation);
    } else if (peer->work != SIM_WORK_NONE) {
        state->shift_ns += stood_ns;
    }
    while (state->held != 0) {
        sim_schedule(world, id, id, sim_time(world), SIM_EVENT_DELIVER,
                     sim_packet_next(world, &state->held));
    }
    if (own == HELD_START)
        sim_begin(world, id);
    else
        sim_timer_resume(world, id);
}

/* The atoms are what src/experiment/fault/ has made of statements, for the lab
 * and for virtual time alike. */
static void execute(struct sim_world *world, const struct kith_atom *atom)
{
    KITH_ASSERT(atom->at_ns <= sim_time(world));
    const bool begins = atom->begins;
    switch (atom->fault->effect) {
    case KITH_EFFECT_STOP:
        (begins ? crash : restart)(world, atom->peer);
        break;
    case KITH_EFFECT_PAUSE:
        (begins ? pause_peer : resume)(world, atom->peer);
        break;
    case KITH_EFFECT_SLOW:
        state_of(world, atom->peer)->slow = atom->factor;
        break;
    case KITH_EFFECT_LIE:
        begin_lie(state_of(world, atom->peer), kith_atom_lie(atom));
        break;
    case KITH_EFFECT_LINK:
        sim_directions_act(world, atom);
        break;
    }
}

/* Links are told one by one, whoever has any: the hash is a run's, not what it
 * has come across. */
static void trace(struct sim_world *world, const struct kith_atom *atom)
{
    struct kith_atom_walk walk = {.atom = atom};
    struct kith_atom one;
    KITH_ASSERT(atom->at_ns <= sim_time(world));
    while (kith_atom_next(&walk, &one)) {
        sim_trace_fault(world, &one);
        world->faults_done += one.statement != UINT32_MAX; /* .slow is not */
    }
}

kith_ns sim_fault_next(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_ASSERT(world->faults.next <= experiment->atom_count);
    return world->faults.next < experiment->atom_count
               ? experiment->atoms[world->faults.next].at_ns
               : KITH_NEVER;
}

/* One event stands for all atoms of a time: they are carried out in the order
 * of the file. */
void sim_fault_due(struct sim_world *world)
{
    KITH_ASSERT(world->faults.next <= world->experiment->atom_count);
    const struct kith_experiment *experiment = world->experiment;
    struct sim_faults *faults = &world->faults;
    while (faults->next < experiment->atom_count &&
           experiment->atoms[faults->next].at_ns <= sim_time(world)) {
        const struct kith_atom *atom = &experiment->atoms[faults->next++];
        trace(world, atom);
        if (world->options.store)
            (void)kith_rundb_fault(world->options.store, sim_time(world), atom);
        execute(world, atom);
    }
    if (faults->next < experiment->atom_count) {
        sim_schedule_run(world, experiment->atoms[faults->next].at_ns,
                         SIM_RUN_ATOM);
    }
}

/* ---- in a save */

/* When it will be restarted, and whether it was saved, the engine knows. */
void sim_fault_move(struct sim_world *world, kith_id peer,
                    struct kith_archive *archive)
{
    struct sim_fault_state *state = state_of(world, peer);
    KITH_ASSERT(sim_is_here(world, peer));
    if (!state)
        return;
    bool has_image = state->image != NULL;
    kith_archive_bool(archive, &state->lie_told);
    kith_archive_bool(archive, &has_image);
    if (has_image && !state->image && !archive->failed)
        state->image = sim_alloc(world, 1, live_bytes(world));
    if (has_image && !state->image)
        kith_archive_fail(archive, "there is no memory for the save of a peer");
    if (!has_image || archive->failed)
        return;
    kith_archive_pages(archive, state->image, live_bytes(world));
    KITH_ARCHIVE(archive, state->scalars);
}
