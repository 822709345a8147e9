/* Workers of the peers, of which each has its process, and what they share:
 * whose examples are whose, memory for the steps that run at a time, vectors of
 * model_copies.c. Owner: workers.c; their items: jobs.c. */
#ifndef KITH_SIM_WORKERS_H
#define KITH_SIM_WORKERS_H

#include "kith/sim.h"
#include "kith/worker.h"

struct sim_workers; /* NULL: the model has no parameters */

enum kith_err sim_workers_open(struct sim_world *world);
void sim_workers_close(struct sim_world *world);
/* Of all peers, on several threads: those that begin from now on start over. */
KITH_MUST_CHECK enum kith_err sim_workers_begin(struct sim_world *world);
/* (threads) from which workers borrow, each NULL where they do not. */
struct kith_worker *const *sim_workers_lenders(const struct sim_world *world);
/* One more worker like the peers', the caller's: a central method's own. */
KITH_MUST_CHECK enum kith_err sim_worker_open(struct sim_world *world,
                                              kith_id self,
                                              struct kith_worker **worker);

/* The peer's is made, and dies with its process, while no item of its is out.
 */
KITH_MUST_CHECK enum kith_err sim_worker_begin(struct sim_world *world,
                                               kith_id peer);
void sim_worker_end(struct sim_world *world, kith_id peer);
/* And what its guard knew; at the end of a run all goes at once. */
void sim_worker_forget(struct sim_world *world, kith_id peer);
struct kith_worker *sim_peer_worker(const struct sim_world *world,
                                    kith_id peer);

/* Do x and the snapshots stand in copies of the pool? Then they are sent as
 * they are. */
bool sim_workers_lend(const struct sim_world *world);
/* The one that all begin with, for the whole run; NULL: each has its own. */
void *sim_workers_first(const struct sim_world *world);
/* Before an item is prepared, once more before it runs; and after either. */
KITH_MUST_CHECK bool sim_worker_lend(struct sim_world *world, kith_id peer,
                                     const struct kith_work *work,
                                     bool prepared);
void sim_worker_take_back(struct sim_world *world, kith_id peer);
/* After each step of its node that asks for an item or cancels a message. */
void sim_worker_settle(struct sim_world *world, kith_id peer);
/* After a mark, MERGED or DONE, of the peer about a swap: both ends may be. */
void sim_worker_settle_swap(struct sim_world *world, kith_id peer,
                            const struct kith_mark *mark);

/* In a save: all of the peer's, between two items. */
struct kith_archive;
void sim_worker_move(struct sim_world *world, kith_id peer,
                     struct kith_archive *archive);

#endif
