/* Staleness and utilisation of each peer. Every call accepts a world that does
 * not count them. Owner: peer_totals.c. */
#ifndef KITH_SIM_PEER_TOTALS_H
#define KITH_SIM_PEER_TOTALS_H

#include "kith/message.h"
#include "kith/rundb.h"

struct sim_world;
struct sim_totals; /* (machines), NULL: not counted */

enum kith_err sim_totals_open(struct sim_world *world);
void sim_totals_close(struct sim_world *world);
void sim_totals_train(struct sim_world *world, kith_id peer, kith_ns cost_ns);
void sim_totals_finished(struct sim_world *world, kith_id peer);
void sim_totals_bytes(struct sim_world *world, kith_id peer, uint64_t bytes);
void sim_totals_model(struct sim_world *world, kith_id peer,
                      const struct kith_message *model);
/* A model or a gradient of the peer's was so many steps old. */
void sim_totals_stale(struct sim_world *world, kith_id peer, uint64_t steps);
/* bytes, staleness, received, training_s of a row; KITH_NOBODY: of all. */
void sim_totals_row(const struct sim_world *world, kith_id peer,
                    struct kith_row *row);
void sim_totals_summarise(const struct sim_world *world,
                          struct kith_summary *summary);

#endif
