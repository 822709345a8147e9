/* Staleness, utilisation and use of the channel of each peer. Every call
 * accepts a world that does not count them. Owner: peer_totals.c. */
#ifndef KITH_SIM_PEER_TOTALS_H
#define KITH_SIM_PEER_TOTALS_H

#include "kith/channel_use.h"
#include "kith/message.h"
#include "kith/rundb.h"
#include "sim/huge_pages.h"

struct sim_packet;
struct sim_world;

/* Of a machine: two cache lines. */
struct sim_totals {
    _Alignas(64) kith_ns trained_ns; /* cost of the steps begun so far */
    kith_ns step_ends_ns;            /* of the last of these */
    kith_ns finished_ns;             /* its share was done; 0: not yet */
    uint64_t bytes_received;
    uint64_t received; /* models that found a slot, gradients applied */
    uint64_t stale_sum, stale_max;
    struct kith_channel_use use;
};

/* Ask for a peer's, which its next message changes. */
SIM_INLINE void sim_totals_fetch(const struct sim_totals *totals, kith_id peer)
{
    if (totals) {
        sim_fetch(&totals[peer]);
        sim_fetch(&totals[peer].use.sending_ns);
    }
}

/* What happens to a peer's channel, of kith/channel_use.h. */
enum sim_use {
    SIM_USE_SENT, /* value: bytes */
    SIM_USE_LEFT, /* bytes */
    SIM_USE_COMES,
    SIM_USE_CAME,
    SIM_USE_EXCHANGES, /* whether it does */
    SIM_USE_PASSES,    /* how many */
};

enum kith_err sim_totals_open(struct sim_world *world);
/* A step of the peer ends then, after so long: it may have begun before now,
 * and may go on. */
void sim_totals_train(struct sim_world *world, kith_id peer, kith_ns ends_ns,
                      kith_ns cost_ns);
void sim_totals_finished(struct sim_world *world, kith_id peer);
void sim_totals_bytes(struct sim_world *world, kith_id peer, uint64_t bytes);
void sim_totals_model(struct sim_world *world, kith_id peer,
                      const struct kith_message *model);
/* A model or a gradient of the peer's was so many steps old. */
void sim_totals_stale(struct sim_world *world, kith_id peer, uint64_t steps);
/* A model under way, at both its ends; the packet keeps that it is counted. */
void sim_totals_moves(struct sim_world *world, struct sim_packet *packet);
void sim_totals_moved(struct sim_world *world, const struct sim_packet *packet);
/* The peer has stepped, or crashed: is an exchange open? */
void sim_totals_exchanges(struct sim_world *world, kith_id peer);
void sim_totals_passes(struct sim_world *world, kith_id peer, uint64_t passes);
/* It happened then: what a division has noted. */
void sim_totals_use(struct sim_world *world, kith_id peer, kith_ns at_ns,
                    enum sim_use what, uint64_t value);
/* bytes, staleness, received, training_s, use of the channel of a row;
 * KITH_NOBODY: of all. */
void sim_totals_row(const struct sim_world *world, kith_id peer,
                    struct kith_row *row);
double sim_utilisation(const struct sim_world *world); /* NaN: not counted */

#endif
