/* What every step began with, in a file for NumPy. Owner: dump.c. */
#ifndef KITH_SIM_DUMP_H
#define KITH_SIM_DUMP_H

#include <stdbool.h>

#include "kith/sim.h"
#include "kith/work.h"

struct sim_dump;

/* KITH_EINVAL: steps of this experiment have no round in common; KITH_ELIMIT,
 * KITH_ENOSPC and others of kith_npz_create. */
enum kith_err sim_dump_open(struct sim_world *world);
/* A peer's item is about to begin; it has ended. */
void sim_dump_begins(struct sim_world *world, kith_id peer,
                     const struct kith_work *work);
void sim_dump_ended(struct sim_world *world, kith_id peer,
                    const struct kith_work *work);
/* The run is over: the file is whole, or is not there. */
void sim_dump_end(struct sim_world *world, bool completed);
void sim_dump_close(struct sim_world *world);

#endif
