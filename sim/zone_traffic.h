/* Exchanges and bytes between the places of a map (kith/zone_map.h), of all
 * peers as time goes, where rows and marks are of few. Calls but open and
 * close are for a world that has it. Owner: zone_traffic.c. */
#ifndef KITH_SIM_ZONE_TRAFFIC_H
#define KITH_SIM_ZONE_TRAFFIC_H

#include "kith/node.h"

struct sim_world;

enum kith_err sim_zone_traffic_open(struct sim_world *world);
void sim_zone_traffic_close(struct sim_world *world);
void sim_zone_traffic_mark(struct sim_world *world, kith_id peer,
                           const struct kith_mark *mark);
/* They leave then. */
void sim_zone_traffic_sent(struct sim_world *world, kith_id from, kith_id to,
                           kith_ns at_ns, uint64_t bytes);
/* Into the database, once, at the end; an error sticks there. */
void sim_zone_traffic_write(struct sim_world *world);

#endif
