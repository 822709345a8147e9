/* Peers whose word is not true: what they send is changed on its way out; what
 * they are is the same node as everybody's. Owner: dishonest.c. */
#ifndef KITH_SIM_DISHONEST_H
#define KITH_SIM_DISHONEST_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/types.h"

struct kith_send;
struct sim_world;

/* False: it is not sent. *extra: sent so many times more. */
bool sim_dishonest_send(struct sim_world *world, kith_id from,
                        struct kith_send *send, uint32_t *extra);
/* Is anything promised of this peer? */
bool sim_is_honest(const struct sim_world *world, kith_id peer);

#endif
