/* Ranks that carry out one run together: every one of them the same events,
 * each a block of the peers' vectors. Owner: sim_ranks.c, which says how. */
#ifndef KITH_SIM_SIM_RANKS_H
#define KITH_SIM_SIM_RANKS_H

#include "kith/ranks.h"
#include "kith/sim.h"

struct sim_ranks; /* NULL: one process has all */

/* First of all parts: who has whom. */
enum kith_err sim_ranks_open(struct sim_world *world);
void sim_ranks_close(struct sim_world *world);
uint32_t sim_ranks_self(const struct sim_world *world);
/* Whose the peer's vectors are. */
uint32_t sim_rank_of(const struct sim_world *world, kith_id peer);
/* Now and then: false where another rank has failed, or a signal has come; the
 * run has failed then. */
bool sim_ranks_look(struct sim_world *world);
/* The run is over here: waits for what is under way, and says to the others
 * what has failed, `error`. The answer is err, or why it failed at last. */
enum kith_err sim_ranks_end(struct sim_world *world, enum kith_err err,
                            const char *error);
/* Is MPI still at memory of the run? After a failure. */
bool sim_ranks_linger(const struct sim_world *world);

/* Before this rank computes: others may wait for what it has put. */
void sim_ranks_flush(struct sim_world *world);

/* ---- The log: what happens to a rank's peers, and others cannot work out. It
 * is written by one and read by all others, at the same event. */
void sim_ranks_put(struct sim_world *world, const void *bytes, size_t size);
/* As they were, or partly, where the run has failed. */
void sim_ranks_get(struct sim_world *world, uint32_t rank, void *bytes,
                   size_t size);
/* A byte of that log that is read when it is needed: sim_copy_told(copy). */
void sim_ranks_expect(struct sim_world *world, uint32_t rank, void *copy);
/* Reads the next of those; false: the run has failed. */
bool sim_ranks_hear(struct sim_world *world, uint32_t rank);

/* ---- Models, held until they have left or come. */
void sim_ranks_send(struct sim_world *world, uint32_t rank, void *copy,
                    size_t bytes);
void sim_ranks_receive(struct sim_world *world, uint32_t rank, void *copy,
                       size_t bytes);
/* It is there; returns at once where it was never under way. */
void sim_ranks_await(struct sim_world *world, void *copy);

/* ---- Of an evaluation, by all: the owner's become everybody's. */
void sim_ranks_share(struct sim_world *world, uint32_t owner, void *values,
                     size_t size);
/* Sums in the order of the peers: the one before has added its own, and hands
 * them on; the last one's are shared. false: there is none before. */
bool sim_ranks_take_over(struct sim_world *world, void *values, size_t size);
void sim_ranks_hand_on(struct sim_world *world, void *values, size_t size);
/* Fails where another rank's hash differs: "another run". */
void sim_ranks_compare(struct sim_world *world, uint64_t hash,
                       const char *what);

#endif
