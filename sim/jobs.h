/* Items of the peers' workers. Owner: jobs.c. */
#ifndef KITH_SIM_JOBS_H
#define KITH_SIM_JOBS_H

#include "kith/sim.h"
#include "kith/worker.h"

struct sim_work; /* NULL: the model has no parameters */
struct sim_work_pool;

enum kith_err sim_work_open(struct sim_world *world);
void sim_work_close(struct sim_world *world);
/* That run items, this one among them. */
unsigned sim_work_threads(const struct sim_world *world);
/* Items do not run at once: on other threads, or when this one has to wait. */
bool sim_work_queues(const struct sim_world *world);
/* Runs one of those, where there is any. */
bool sim_work_help(struct sim_world *world);
/* Whose other threads have time to spare; NULL: there are none. */
struct sim_work_pool *sim_work_spare(const struct sim_world *world);
/* A peer's worker dies with its process, and is made anew. */
enum kith_err sim_job_open(struct sim_world *world, kith_id peer);
void sim_job_close(struct sim_world *world, kith_id peer);
/* The mean over the steps since it was last taken; NaN: there was none. */
double sim_job_take_loss(struct sim_world *world, kith_id peer);
void sim_work_start(struct sim_world *world, kith_id peer,
                    const struct kith_work *work);
/* It ends then, after so long. */
void sim_work_ends(struct sim_world *world, kith_id peer, kith_ns at_ns,
                   kith_ns took_ns);
/* It ends now, within this event, after so long. */
void sim_work_ended(struct sim_world *world, kith_id peer, kith_ns took_ns);
/* Virtual time of the item is over: it has run, and this is its result, which
 * stands until the peer's next item. */
const struct kith_work_result *sim_work_end(struct sim_world *world,
                                            kith_id peer);
/* Other threads have the peer's item, which takes no time, from now on: the
 * peer goes on later. False: it is better run now. */
bool sim_work_hand_over(struct sim_world *world, kith_id peer);
/* Is the worker in no other thread's hands, nor about to be read by an item? A
 * step that has not begun reads x alone. */
bool sim_work_rests(const struct sim_world *world, kith_id peer);
void sim_work_join_all(struct sim_world *world);
/* After that: what workers were lent and have no use for is given back. */
void sim_work_settle_all(struct sim_world *world);
/* In a save: what came of the peer's item, where that is not over. */
struct kith_archive;
void sim_job_move(struct sim_world *world, kith_id peer,
                  struct kith_archive *archive);

#endif
