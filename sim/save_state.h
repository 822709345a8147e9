/* What vectors and workers are between two events: the body of a save. */
#ifndef KITH_SIM_SAVE_STATE_H
#define KITH_SIM_SAVE_STATE_H

#include "kith/archive.h"

struct sim_world;

/* Either way, once no item is out: of the peers whose vectors are here. Read
 * into a world that stands at the same event and has no vectors. */
void sim_state_move(struct sim_world *world, struct kith_archive *archive);

#endif
