/* Ranks that carry out one run together: every one of them the same events,
 * each a block of the peers' vectors. Owner: sim_ranks.c, which says how. */
#ifndef KITH_SIM_SIM_RANKS_H
#define KITH_SIM_SIM_RANKS_H

#include "kith/ranks.h"
#include "kith/sim.h"

struct sim_ranks; /* NULL: one process has all */

/* First of all parts: who has whom. */
enum kith_err sim_ranks_open(struct sim_world *world);
/* NULL: one process has all. */
const struct kith_ranks *sim_ranks_all(const struct sim_world *world);
uint32_t sim_ranks_self(const struct sim_world *world);
/* Whose the peer's vectors are. */
uint32_t sim_rank_of(const struct sim_world *world, kith_id peer);
/* Now and then: false where another rank has failed, or a signal has come; the
 * run has failed then. */
bool sim_ranks_look(struct sim_world *world);
/* Until the request is done; items of own peers run meanwhile. false: the run
 * has failed, and the request is still out. */
bool sim_ranks_wait(struct sim_world *world, void *request, size_t *size);
/* The run is over here: waits for what is under way, and says to the others
 * what has failed, `error`. The answer is err, or why it failed at last. */
enum kith_err sim_ranks_end(struct sim_world *world, enum kith_err err,
                            const char *error);
/* Is MPI still at memory of the run? After a failure. */
bool sim_ranks_linger(const struct sim_world *world);

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

/* NULL, or what looks at vectors of many peers at an event of any of them. */
const char *sim_undivided(const struct sim_options *options);

#endif
