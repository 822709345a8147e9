/* Staleness, utilisation and use of the channel of each peer. Every call
 * accepts a world that does not count them. Owner: peer_totals.c. */
#ifndef KITH_SIM_PEER_TOTALS_H
#define KITH_SIM_PEER_TOTALS_H

#include "kith/message.h"
#include "kith/rundb.h"

struct sim_packet;
struct sim_world;
struct sim_totals; /* (machines), NULL: not counted */

enum kith_err sim_totals_open(struct sim_world *world);
void sim_totals_train(struct sim_world *world, kith_id peer, kith_ns cost_ns);
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
/* bytes, staleness, received, training_s, use of the channel of a row;
 * KITH_NOBODY: of all. */
void sim_totals_row(const struct sim_world *world, kith_id peer,
                    struct kith_row *row);
double sim_utilisation(const struct sim_world *world); /* NaN: not counted */

#endif
