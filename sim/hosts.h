/* Machines whose cores several peers share: `hosts:` of the experiment. Owner:
 * hosts.c.
 *
 * A peer has two threads, as a real one does: one carries out work items, one
 * seals, sends, receives and opens messages, one after another. What they do
 * takes processor time, and the n that have something to do on a host of c
 * cores go on at the same speed (egalitarian processor sharing),
 *
 *   v' = min(1, c / n)       a job that begins at v ends at v + its time
 *
 * Source: Kleinrock, "Time-shared systems", JACM 1967; the count v of what each
 * job has had by now is the virtual time of Parekh and Gallager, "Generalized
 * processor sharing", 1993.
 * Cost    O(log n) a job.
 * Test    unit/test_sim_hosts.c */
#ifndef KITH_SIM_HOSTS_H
#define KITH_SIM_HOSTS_H

#include <stdbool.h>

#include "kith/err.h"
#include "kith/types.h"

struct sim_world;
struct sim_hosts; /* NULL: whatever is computed hinders nobody */

enum kith_err sim_hosts_open(struct sim_world *world);
/* An item of the peer's begins, of so much processor time; its WORK_DONE comes
 * no sooner than `least_ns` from now. */
void sim_host_work(struct sim_world *world, kith_id peer, kith_ns time_ns,
                   kith_ns least_ns);
/* Processor time of a step whose law says step_ns, and of an item that goes
 * over the model once. */
kith_ns sim_host_step_time(const struct sim_world *world, kith_id peer,
                           kith_ns step_ns);
kith_ns sim_host_merge_time(const struct sim_world *world);
/* Do messages take processor time? */
bool sim_host_charges_messages(const struct sim_world *world);
/* A message of the peer's that is to be sent, or that has come to it: it goes
 * on by sim_host_spoken() once its thread has done what it takes. */
void sim_host_message(struct sim_world *world, kith_id peer, uint32_t packet);
/* Its process has ended: what it had to do is not done. */
void sim_host_crash(struct sim_world *world, kith_id peer);
/* SIM_EVENT_HOST: a job of this peer's host may have ended. */
void sim_host_step(struct sim_world *world, kith_id peer, uint32_t stamp);

#endif
