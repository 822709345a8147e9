/* All-reduce: every peer ends with the mean of all models.
 *
 * The graph says in a cycle of rounds who sends to whom; training waits for the
 * whole cycle. Sums travel with the number of models in them, so what is
 * missing of a peer that died is missing in the mean as well: survivors finish.
 * x changes once, in the last round. After plain SGD steps from one start this
 * is synchronous SGD; with momentum too, not with Adam, whose state is each
 * peer's own. */
#ifndef KITH_GOSSIP_ALGORITHM_COLLECTIVE_H
#define KITH_GOSSIP_ALGORITHM_COLLECTIVE_H

#include "updates.h"

/* The sum is the first, as kith_algorithm_start has it. */
enum { COLLECTIVE_SUM, COLLECTIVE_VECTORS };
/* Its one scalar: models in the sum at hand. */
enum { COLLECTIVE_COUNT };

/* The most models in one sum. */
#define COLLECTIVE_COUNT_MAX 1048576.0 /* KITH_PEERS_MAX */

/* What records of all-reduce have in common. */
#define COLLECTIVE                                                             \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_EXACT_MESSAGES,             \
    .scalar_count = 1, .scalars_start = {1},                                   \
    .scalars_high = COLLECTIVE_COUNT_MAX, .vectors = COLLECTIVE_VECTORS

uint64_t kith_collective_phase(const struct kith_algebra *algebra);
uint64_t kith_collective_phases(const struct kith_algebra *algebra);
bool kith_collective_is_last(const struct kith_algebra *algebra);
/* Of a binomial tree: the most models that the child of round p of a way up
 * speaks for, itself and its own children. */
double kith_collective_most(const struct kith_algebra *algebra, kith_id child,
                            uint64_t round_of_way);
/* The first round of a cycle: a sum of one model. */
void kith_collective_begin(struct kith_algebra *algebra);
/* Whole vectors: the sum and its count travel, */
kith_edge_work kith_collective_make;
/* and sum <- sum + received, with its count. */
void kith_collective_add(struct kith_algebra *algebra,
                         const struct kith_work_edge *edge);
/* sum <- received, with its count: a mean on its way back. */
void kith_collective_take(struct kith_algebra *algebra,
                          const struct kith_work_edge *edge);
/* `finish`; the last round: x <- sum / count. */
double kith_collective_finish(struct kith_algebra *algebra);

#endif
