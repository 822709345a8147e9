/* Machines whose cores several peers share: `hosts:` of the experiment. Owner:
 * hosts.c.
 *
 * A peer has two threads, as a real one does. One carries out work items. The
 * other is its loop: it sends what an event made it send, then submits the next
 * item, hears that an item is over (the hand-over) and opens what has come in,
 * one after another. A thread that has something to do takes an idle core, or
 * waits in one queue for the host's c cores. It keeps its core until it has
 * nothing to do, or as long as a slice where others wait: nobody is preempted
 * for having slept, as under Linux's EEVDF scheduler with RUN_TO_PARITY.
 * Whoever wakes a thread has its core until it is done. A period that was slept
 * to its end ends late.
 *
 * Cost    O(c) a job, c <= 2 threads of each of its peers.
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
