/* Messages that share the lines of their machines: `network.sharing: fair` of
 * the experiment. Owner: fair_sharing.c.
 *
 * A machine has a line out and a line in, of its own rates; between zones are
 * lines that all share which cross them (kith/zones.h). A connection sends one
 * message after another, as TCP does, so each direction of it is at most one
 * flow, over the sender's line out, those between their zones and the
 * receiver's line in; all flows go on at max-min fair rates (flows.h). A
 * message is there a latency after its last bit has left, or later where the
 * law of links says so.
 *
 *   cancelled   what has left by then is all that leaves of it
 *   reset       what the connection had to send is gone, at once
 *   cut         nothing leaves until it heals; what had left arrives, or
 *               stands at the cut (directions.c)
 *
 * Messages of a central method need no connection: each is a flow.
 * Test: unit/test_sim_flows.c */
#ifndef KITH_SIM_FAIR_SHARING_H
#define KITH_SIM_FAIR_SHARING_H

#include "kith/err.h"
#include "kith/types.h"

struct sim_world;
struct sim_sharing; /* NULL: a message after another on each line */

enum kith_err sim_sharing_open(struct sim_world *world);
void sim_sharing_close(struct sim_world *world);
/* A packet of a connection leaves after those before it. */
void sim_sharing_send(struct sim_world *world, uint32_t packet);
/* One of its own, which is there so much after its last bit has left. */
void sim_sharing_send_alone(struct sim_world *world, uint32_t packet,
                            kith_ns delay_ns);
/* Its sender has marked it as cancelled. */
void sim_sharing_cancel(struct sim_world *world, uint32_t packet);
/* Both directions of this link. */
void sim_sharing_reset(struct sim_world *world, uint32_t link);
/* This direction has been cut, or has healed. */
void sim_sharing_turn(struct sim_world *world, uint32_t link, unsigned side);
/* SIM_RUN_FLOWS: flows have begun, or ended, or end now. */
void sim_sharing_step(struct sim_world *world);

#endif
