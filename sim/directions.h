/* A link's two directions: when what leaves arrives, and what faults make of it
 * (kith/link_law.h). Owner: directions.c.
 *
 * Most links are as the experiment's `network` says and have nothing here: loss
 * and faults give one a pair. Messages of a direction that is cut stall, in
 * order, at its sender (network.sharing: fair) or on their way. */
#ifndef KITH_SIM_DIRECTIONS_H
#define KITH_SIM_DIRECTIONS_H

#include "kith/err.h"
#include "kith/link_law.h"
#include "kith/types.h"

struct sim_direction_pair {
    struct kith_link_flow flow[2]; /* end[s] -> the other one */
    uint32_t stalled[2];           /* packets of end[s] until it heals */
};

struct sim_directions {
    struct sim_direction_pair *pairs; /* (capacity) of some links */
    uint32_t count, capacity;
    const struct kith_atom **acted; /* (acted_count) so far, in their order */
    uint32_t acted_count;
    uint32_t cuts; /* directions that are cut now */
};

struct kith_atom;
struct sim_link;
struct sim_world;

enum kith_err sim_directions_open(struct sim_world *world);
void sim_directions_close(struct sim_world *world);
/* A new link is as it would be if it had always been there. False: no memory.
 */
bool sim_directions_catch_up(struct sim_world *world, struct sim_link *link);
/* A fault that acts on links begins or ends. Cost: the links that there are. */
void sim_directions_act(struct sim_world *world, const struct kith_atom *atom);
/* When what leaves from then to then will arrive, to its last bit, less
 * `early_ns` for what its caller looks at; after what left before (TCP). */
kith_ns sim_direction_arrival(struct sim_world *world, uint32_t packet,
                              kith_ns leaves_ns, kith_ns left_ns,
                              kith_ns early_ns);
/* One direction of a link goes on in another world of the run, where the link
 * is `target`. */
void sim_directions_hand_over(struct sim_world *from,
                              const struct sim_link *link, unsigned side,
                              struct sim_world *to, struct sim_link *target);
/* No link is left. */
void sim_directions_forget(struct sim_world *world);
/* Must it wait at its sender, because its direction is cut? */
bool sim_direction_holds(struct sim_world *world, uint32_t packet);
/* It has come as far as a cut, and waits there until that heals. */
bool sim_direction_stalls(struct sim_world *world, uint32_t packet);

#endif
