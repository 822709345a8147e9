/* The hash of all decisions, and the story as text. Owner: trace.c. */
#ifndef KITH_SIM_TRACE_H
#define KITH_SIM_TRACE_H

#include <stdio.h>

#include "kith/experiment.h"
#include "kith/node.h"

struct sim_trace {
    uint64_t hash;
    FILE *file; /* NULL: nobody asked */
};

struct sim_world;
struct sim_packet;

enum kith_err sim_trace_open(struct sim_world *world);
void sim_trace_close(struct sim_world *world);
/* The next entry of the run, hashed: what a division has noted. */
void sim_trace_fold(struct sim_world *world, uint64_t entry);
void sim_trace_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark);
void sim_trace_message(struct sim_world *world,
                       const struct sim_packet *packet);
void sim_trace_link(struct sim_world *world, kith_id peer, kith_id other,
                    bool up);
void sim_trace_fault(struct sim_world *world, const struct kith_atom *atom);
/* A decision of a central method; `other` may be KITH_NOBODY. */
void sim_trace_decision(struct sim_world *world, const char *what, kith_id peer,
                        kith_id other, uint64_t value);

#endif
