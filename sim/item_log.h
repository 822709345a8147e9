/* What an engine needs to know of an item, as a few bytes of the log
 * (rank_log.h): read as they were written, at the same event. */
#ifndef KITH_SIM_ITEM_LOG_H
#define KITH_SIM_ITEM_LOG_H

#include "kith/node.h"
#include "kith/work.h"

struct sim_world;

void sim_item_put_result(struct sim_world *world,
                         const struct kith_work_result *result);
void sim_item_get_result(struct sim_world *world, uint32_t rank,
                         enum kith_work_kind kind,
                         struct kith_work_result *result);
/* What the item wrote into its edges. */
void sim_item_put_edges(struct sim_world *world, const struct kith_work *work);
void sim_item_get_edges(struct sim_world *world, uint32_t rank,
                        const struct kith_work *work);
/* What a guard did with the edge, NULL: nothing; get: did it? */
void sim_item_put_mark(struct sim_world *world, const struct kith_mark *mark);
bool sim_item_get_mark(struct sim_world *world, uint32_t rank,
                       const struct kith_work_edge *edge,
                       struct kith_mark *mark);

#endif
