/* What a comparison of runs asks of each peer, in virtual time.
 *
 *   staleness    of a received model: own steps now - sender's step in it, and
 *                0 where the sender is ahead
 *   utilisation  cost of all steps / time until the own share was done
 *   use          kith/channel_use.h, a model being in flight from its first bit
 *                until it is there, or would be: to be read, not only received
 *
 * Nothing here decides anything: the trace is the same without it. */
#include "sim/peer_totals.h"

#include <math.h>

#include "kith/assert.h"
#include "sim/world.h"

/* Only where somebody reads them: rows of a database, or a central summary. */
enum kith_err sim_totals_open(struct sim_world *world)
{
    KITH_ASSERT(world->totals == NULL);
    if (!world->options.store && !world->protocol->always_counts)
        return KITH_OK;
    world->totals =
        sim_alloc(world, world->machine_count, sizeof *world->totals);
    return world->totals ? KITH_OK : KITH_ENOMEM;
}

/* Booked when the step begins: a step that a crash cuts short has cost its
 * machine the whole time so far, and utilisation is bounded by 1. */
void sim_totals_train(struct sim_world *world, kith_id peer, kith_ns ends_ns,
                      kith_ns cost_ns)
{
    KITH_DEBUG_ASSERT(cost_ns >= 0 && peer < world->peer_count);
    if (!world->totals)
        return;
    struct sim_totals *totals = &world->totals[peer];
    totals->trained_ns = kith_ns_add(totals->trained_ns, cost_ns);
    totals->step_ends_ns = ends_ns;
}

/* The last time counts: a restarted peer finishes again. */
void sim_totals_finished(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    if (world->totals) {
        KITH_ASSERT(sim_time(world) >= world->totals[peer].finished_ns);
        world->totals[peer].finished_ns = sim_time(world);
    }
}

void sim_totals_bytes(struct sim_world *world, kith_id peer, uint64_t bytes)
{
    KITH_ASSERT(peer < world->machine_count);
    if (world->totals)
        world->totals[peer].bytes_received += bytes;
}

/* Mean and maximum: the mean says what an algorithm does, the maximum what it
 * allows. */
void sim_totals_stale(struct sim_world *world, kith_id peer, uint64_t steps)
{
    KITH_ASSERT(peer < world->peer_count);
    if (world->totals) {
        struct sim_totals *totals = &world->totals[peer];
        totals->stale_max =
            steps > totals->stale_max ? steps : totals->stale_max;
        totals->stale_sum += steps;
        totals->received++;
        KITH_ASSERT(totals->stale_max <= totals->stale_sum);
    }
}

/* Both steps are counted in the same unit, own steps of training; rounds are
 * translated by the run database's rule. */
void sim_totals_model(struct sim_world *world, kith_id peer,
                      const struct kith_message *model)
{
    KITH_ASSERT(model->kind == KITH_MESSAGE_MODEL);
    if (!world->totals || model->slot == KITH_SLOT_NONE)
        return;
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, peer), &counters);
    const uint64_t sent = kith_rundb_sender_step(sim_node_config(world), model);
    sim_totals_stale(world, peer,
                     counters.steps > sent ? counters.steps - sent : 0);
}

void sim_totals_use(struct sim_world *world, kith_id peer, kith_ns at_ns,
                    enum sim_use what, uint64_t value)
{
    struct kith_channel_use *use = &world->totals[peer].use;
    KITH_DEBUG_ASSERT(peer < world->machine_count && !world->division);
    switch (what) {
    case SIM_USE_SENT:
        kith_channel_use_sent(use, at_ns, value);
        break;
    case SIM_USE_LEFT:
        kith_channel_use_left(use, at_ns, value);
        break;
    case SIM_USE_COMES:
    case SIM_USE_CAME:
        kith_channel_use_receives(use, at_ns, what == SIM_USE_COMES);
        break;
    case SIM_USE_EXCHANGES:
        kith_channel_use_exchanges(use, at_ns, value != 0);
        break;
    case SIM_USE_PASSES:
        use->passes += value;
        break;
    }
}

/* A message is counted at both ends when it leaves and when it comes: threads
 * would do so out of order. */
static void count_use(struct sim_world *world, kith_id peer, enum sim_use what,
                      uint64_t value)
{
    if (world->division)
        sim_note_use(world, peer, (uint32_t)what, value);
    else if (world->aside && sim_aside_notes(world))
        sim_aside_note_use(world, peer, (uint32_t)what, value);
    else
        sim_totals_use(world, peer, sim_time(world), what, value);
}

/* At its sender the first bit leaves now. */
void sim_totals_moves(struct sim_world *world, struct sim_packet *packet)
{
    KITH_DEBUG_ASSERT(!(packet->flags & SIM_PACKET_MOVES));
    if (!world->totals || packet->message.kind != KITH_MESSAGE_MODEL)
        return;
    KITH_ASSERT(packet->kind == SIM_PACKET_MESSAGE && packet->bytes > 0);
    packet->flags |= SIM_PACKET_MOVES;
    count_use(world, packet->from, SIM_USE_SENT, packet->bytes);
    count_use(world, packet->to, SIM_USE_COMES, 0);
}

void sim_totals_moved(struct sim_world *world, const struct sim_packet *packet)
{
    KITH_ASSERT(world->totals && packet->flags & SIM_PACKET_MOVES);
    count_use(world, packet->from, SIM_USE_LEFT, packet->bytes);
    count_use(world, packet->to, SIM_USE_CAME, 0);
}

/* As a real peer's: one whose share is done only answers. */
void sim_totals_exchanges(struct sim_world *world, kith_id peer)
{
    KITH_DEBUG_ASSERT(peer < world->peer_count);
    if (!world->totals)
        return;
    struct sim_peer *state = &world->peers[peer];
    const struct kith_node *node = sim_node_at(world, peer);
    const bool exchanging = state->state != SIM_PEER_CRASHED &&
                            !kith_node_quiet(node) && !kith_node_finished(node);
    if (exchanging == ((state->ending & SIM_EXCHANGING) != 0))
        return;
    state->ending ^= SIM_EXCHANGING;
    count_use(world, peer, SIM_USE_EXCHANGES, exchanging);
}

void sim_totals_passes(struct sim_world *world, kith_id peer, uint64_t passes)
{
    KITH_DEBUG_ASSERT(peer < world->machine_count);
    if (!world->totals)
        return;
    if (sim_is_mine(world, peer)) /* in any order: a sum of its own */
        world->totals[peer].use.passes += passes;
    else
        count_use(world, peer, SIM_USE_PASSES, passes);
}

/* Up to now: of a step that is out what is over. */
static kith_ns trained_of(const struct sim_totals *totals, kith_ns now_ns)
{
    KITH_DEBUG_ASSERT(totals->step_ends_ns >= 0);
    return totals->step_ends_ns > now_ns
               ? totals->trained_ns - (totals->step_ends_ns - now_ns)
               : totals->trained_ns;
}

/* Sums over machines, because a server receives bytes, too. */
static struct sim_totals totals_of(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    struct sim_totals sum = {0};
    const bool all = peer == KITH_NOBODY;
    const kith_id end = all ? world->machine_count : peer + 1;
    for (kith_id id = all ? 0 : peer; world->totals && id < end; id++) {
        const struct sim_totals *one = &world->totals[id];
        if (one->stale_max > sum.stale_max)
            sum.stale_max = one->stale_max;
        sum.stale_sum += one->stale_sum;
        sum.received += one->received;
        sum.trained_ns =
            kith_ns_add(sum.trained_ns, trained_of(one, sim_time(world)));
        sum.bytes_received += one->bytes_received;
        kith_channel_use_add(&sum.use, sim_time(world), &one->use);
    }
    return sum;
}

/* NaN, not 0, where nothing was received: a mean of nothing is unknown. */
void sim_totals_row(const struct sim_world *world, kith_id peer,
                    struct kith_row *row)
{
    const struct sim_totals totals = totals_of(world, peer);
    const bool any = totals.received > 0;
    row->bytes_received = totals.bytes_received;
    row->received = totals.received;
    row->staleness =
        any ? (double)totals.stale_sum / (double)totals.received : NAN;
    row->staleness_max = any ? (double)totals.stale_max : NAN;
    row->training_s =
        world->totals ? (double)totals.trained_ns * 1e-9 : (double)NAN;
    if (world->totals && !world->central)
        kith_channel_use_row(&totals.use, row);
}

/* A share of 1 at most: a step that a crash cut short was booked whole. */
double sim_utilisation(const struct sim_world *world)
{
    KITH_ASSERT(world->peer_count > 0);
    double sum = world->totals ? 0 : (double)NAN;
    for (kith_id id = 0; world->totals && id < world->peer_count; id++) {
        const struct sim_totals *totals = &world->totals[id];
        const kith_ns span =
            totals->finished_ns > 0 ? totals->finished_ns : sim_time(world);
        if (span > 0)
            sum += fmin(1, (double)totals->trained_ns / (double)span);
    }
    return sum / world->peer_count;
}
