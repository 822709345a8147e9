/* Timed faults: crash, restart, pause, slow, cut. Owner: sim_faults.c. */
#ifndef KITH_SIM_SIM_FAULTS_H
#define KITH_SIM_SIM_FAULTS_H

#include "kith/node.h"

struct sim_fault_state;

struct sim_faults {
    struct sim_fault_state *states; /* (state_count) of peers named by one */
    uint32_t state_count;
    uint32_t next; /* atom */
};

struct kith_worker;
struct sim_world;

enum kith_err sim_fault_open(struct sim_world *world);
/* All atoms that are due, then an event for the next one. */
void sim_fault_due(struct sim_world *world);
/* When the next one is due, or KITH_NEVER. */
kith_ns sim_fault_next(const struct sim_world *world);
/* A step of training costs so many times as much. */
double sim_fault_slow(const struct sim_world *world, kith_id peer);
/* Before an item: what a fault does to the models that are sent. */
void sim_fault_prepare(const struct sim_world *world, kith_id peer,
                       struct kith_worker *worker);
/* True when the item is not done yet, because its peer stood still. */
bool sim_fault_delays_work(struct sim_world *world, kith_id peer);
/* The packet waits until the peer resumes. */
void sim_hold(struct sim_world *world, kith_id peer, uint32_t packet);
/* So does its node's first event. */
void sim_hold_start(struct sim_world *world, kith_id peer);
/* Keep a copy of x for a peer that will come back. */
void sim_save(struct sim_world *world, kith_id peer);

/* In a save: what it had saved itself, and whether its worker knows of a lie.
 */
struct kith_archive;
void sim_fault_move(struct sim_world *world, kith_id peer,
                    struct kith_archive *archive);

#endif
