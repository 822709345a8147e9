/* What came of an item: told to the other ranks and to saves in a log of a few
 * bytes (rank_log.h), which is read as it was written, at the same event; and,
 * of one that has run and is not over, in a save. */
#ifndef KITH_SIM_ITEM_LOG_H
#define KITH_SIM_ITEM_LOG_H

#include "kith/node.h"

struct kith_archive;
struct sim_job;
struct sim_world;

/* One that is over, and was run here: its result, and what it wrote into its
 * edges. */
void sim_item_tell(struct sim_world *world, const struct sim_job *job);
/* Of another rank's, or of a run that is caught up with. */
void sim_item_hear(struct sim_world *world, kith_id peer, struct sim_job *job);
/* A merge that is over, here or not: a guard has looked at vectors, and what it
 * did the first rank writes down. */
void sim_item_guarded(struct sim_world *world, kith_id peer,
                      const struct sim_job *job);
/* Its result and edges, to or from a save. */
void sim_item_move(struct kith_archive *archive, struct sim_job *job);

#endif
