/* Workers of the peers, and the threads that run their items. Owner:
 * work_pool.c. */
#ifndef KITH_SIM_WORK_POOL_H
#define KITH_SIM_WORK_POOL_H

#include "kith/sim.h"
#include "kith/worker.h"

struct sim_work; /* NULL: the model has no parameters */

enum kith_err sim_work_open(struct sim_world *world);
void sim_work_close(struct sim_world *world);
/* One more worker like the peers', the caller's: a central method's own. */
KITH_MUST_CHECK enum kith_err sim_worker_open(struct sim_world *world,
                                              kith_id self,
                                              struct kith_worker **worker);
/* A peer's worker dies with its process, and is made anew. */
enum kith_err sim_job_open(struct sim_world *world, kith_id peer);
void sim_job_close(struct sim_world *world, kith_id peer);
/* After each step of its node that asks for an item or cancels a message. */
void sim_job_settle(struct sim_world *world, kith_id peer);
/* Do x and the snapshots stand in copies of the pool? Then they are sent as
 * they are. */
bool sim_work_lends(const struct sim_world *world);
struct kith_worker *sim_job_worker(const struct sim_world *world, kith_id peer);
/* The mean over the steps since it was last taken; NaN: there was none. */
double sim_job_take_loss(struct sim_world *world, kith_id peer);
void sim_work_start(struct sim_world *world, kith_id peer,
                    const struct kith_work *work);
/* It ends then, after so long. */
void sim_work_ends(struct sim_world *world, kith_id peer, kith_ns at_ns,
                   kith_ns took_ns);
/* Virtual time of the item is over: it has run, and this is its result, which
 * stands until the peer's next item. */
const struct kith_work_result *sim_work_end(struct sim_world *world,
                                            kith_id peer);
void sim_work_join_all(struct sim_world *world);

#endif
