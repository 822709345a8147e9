/* Saves of a run, and going on from one. Owner: sim_saves.c, which says how. */
#ifndef KITH_SIM_SIM_SAVES_H
#define KITH_SIM_SIM_SAVES_H

#include "kith/sim.h"

struct sim_saves; /* NULL: nobody asked */

enum kith_err sim_saves_open(struct sim_world *world);
void sim_saves_close(struct sim_world *world);
/* Before each event: the run catches up with its save, or is saved now; false:
 * it has failed. */
bool sim_saves_step(struct sim_world *world);
/* Does it run again to where it was saved? Nobody has vectors then. */
bool sim_saves_recalls(const struct sim_world *world);
/* At the end of a run: it still does, and has failed. */
bool sim_saves_unfinished(struct sim_world *world);
/* Until when; 0: it does not. */
kith_ns sim_saves_target_ns(const struct sim_world *world);
/* What a signal ends at the next save: of several ranks, where all are. */
bool sim_saves_takes_signals(const struct sim_world *world);

/* What an engine needs to know of vectors, as it is known, and again, in the
 * same order, where the run is caught up with. */
void sim_saves_put(struct sim_world *world, const void *bytes, size_t size);
void sim_saves_get(struct sim_world *world, void *bytes, size_t size);

#endif
