/* What a comparison of runs asks of each peer, in virtual time.
 *
 *   staleness    of a received model: own steps now - sender's step in it, and
 *                0 where the sender is ahead
 *   utilisation  cost of all steps / time until the own share was done
 *
 * Nothing here decides anything: the trace is the same without it. */
#include "sim/world.h"

#include <math.h>

void sim_tally_train(struct sim_world *world, kith_id peer, kith_ns cost_ns)
{
    if (world->tallies) {
        world->tallies[peer].trained_ns += cost_ns;
    }
}

void sim_tally_finished(struct sim_world *world, kith_id peer)
{
    if (world->tallies) {
        world->tallies[peer].finished_ns = world->now_ns;
    }
}

void sim_tally_model(struct sim_world *world, kith_id peer,
                     const struct kith_message *model)
{
    if (!world->tallies || model->slot == KITH_SLOT_NONE) {
        return;
    }
    struct sim_tally *tally = &world->tallies[peer];
    struct kith_node_counters counters;
    kith_node_counters(sim_node_at(world, peer), &counters);
    const uint64_t sent = kith_rundb_sender_step(&world->config, model);
    const uint64_t stale = counters.steps > sent ? counters.steps - sent : 0;
    if (stale > tally->stale_max) {
        tally->stale_max = stale;
    }
    tally->stale_sum += stale;
    tally->received++;
}

static struct sim_tally add(struct sim_tally sum, const struct sim_tally *one)
{
    if (one->stale_max > sum.stale_max) {
        sum.stale_max = one->stale_max;
    }
    sum.stale_sum += one->stale_sum;
    sum.received += one->received;
    sum.trained_ns += one->trained_ns;
    return sum;
}

static struct sim_tally tally_of(const struct sim_world *world, kith_id peer)
{
    struct sim_tally sum = {0};
    if (world->tallies && peer != KITH_NOBODY) {
        return world->tallies[peer];
    }
    for (kith_id id = 0; world->tallies && id < world->peer_count; id++) {
        sum = add(sum, &world->tallies[id]);
    }
    return sum;
}

void sim_tally_row(const struct sim_world *world, kith_id peer,
                   struct kith_row *row)
{
    const struct sim_tally tally = tally_of(world, peer);
    const bool any = tally.received > 0;
    row->received = tally.received;
    row->staleness =
        any ? (double)tally.stale_sum / (double)tally.received : NAN;
    row->staleness_max = any ? (double)tally.stale_max : NAN;
    row->training_s =
        world->tallies ? (double)tally.trained_ns * 1e-9 : (double)NAN;
}

/* A share of 1 at most: a step that a crash cut short was booked whole. */
static double utilisation(const struct sim_world *world)
{
    double sum = 0;
    for (kith_id id = 0; id < world->peer_count; id++) {
        const struct sim_tally *tally = &world->tallies[id];
        const kith_ns span =
            tally->finished_ns > 0 ? tally->finished_ns : world->now_ns;
        if (span > 0) {
            sum += fmin(1, (double)tally->trained_ns / (double)span);
        }
    }
    return sum / world->peer_count;
}

void sim_tally_summarise(const struct sim_world *world,
                         struct kith_summary *summary)
{
    struct kith_row row;
    sim_tally_row(world, KITH_NOBODY, &row);
    summary->staleness.mean = row.staleness;
    summary->staleness.max = row.staleness_max;
    summary->utilisation = world->tallies ? utilisation(world) : (double)NAN;
}
