/* Peers that gossip: each a node (kith/node.h), its timer, and what the end of
 * the run waits for. Owner: nodes.c. */
#ifndef KITH_SIM_NODES_H
#define KITH_SIM_NODES_H

#include "kith/node.h"
#include "sim/protocol.h"

/* Virtual runs start at this second of UTC: certificates carry it. */
#define SIM_UTC_START 1767225600 /* 2026-01-01 */

/* Cache lines that are asked for before a node steps: those of one with an
 * exchange each way, 416 bytes at a multiple of 32. */
#define SIM_NODE_LINES 7u

struct sim_nodes {
    struct kith_topology topology;
    struct kith_node_config config;
    uint8_t *memory; /* (peers) of `stride` bytes */
    size_t stride;
    struct kith_effects *effects;
    uint32_t restless; /* healthy peers not quiet; while winding_up */
    bool winding_up;
    struct kith_node_counters crashed; /* of incarnations that crashed */
};

/* Step the peer's node with this event and carry out what it asks for. */
void sim_step(struct sim_world *world, kith_id peer, struct kith_event *event);
/* The rest of an event whose item other threads had: sim/aside.c. */
void sim_step_on(struct sim_world *world, kith_id peer);
/* What a peer says for the database. */
void sim_keep_mark(struct sim_world *world, kith_id peer,
                   const struct kith_mark *mark);
/* The first event of the peer's node, which has none yet. */
void sim_begin(struct sim_world *world, kith_id peer);
/* A fresh node in the peer's place, which begins at this step. */
void sim_restart(struct sim_world *world, kith_id peer, uint64_t resume_step);
/* No event of the peer comes until it starts again; it resumes. */
void sim_timer_clear(struct sim_world *world, kith_id peer);
void sim_timer_resume(struct sim_world *world, kith_id peer);
/* This peer crashes now: from now on it does not hold up the end, and what it
 * has counted is kept. */
void sim_exempt(struct sim_world *world, kith_id peer);
/* Might the run be over when so many events have come to their ends? */
bool sim_nodes_may_end(const struct sim_world *world, uint32_t events);
/* A division's steps have effects of their own. */
void sim_nodes_use(struct sim_world *world, struct kith_effects *effects);
/* Of the world's own peers, those that have steps to do. */
uint32_t sim_unfinished(const struct sim_world *world);
const struct kith_node_config *sim_node_config(const struct sim_world *world);

#endif
