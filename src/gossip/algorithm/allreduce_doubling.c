/* All-reduce by recursive doubling: whole vectors, log2 n rounds.
 *
 *   s_i <- x_i;  with i xor 2^k, k = 0, 1, ...: s_i <- s_i + s_j;  x_i <- s_i /
 * n
 *
 * Peers beyond a power of two hand in their model first and get the mean last.
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005.
 * Test: unit/test_rules.c. */
#include "collective.h"

/* A mean that is handed out replaces what was handed in. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (kith_collective_is_last(algebra) && algebra->self > edge->peer &&
        (algebra->peers & (algebra->peers - 1)) != 0)
        kith_collective_take(algebra, edge);
    else
        kith_collective_add(algebra, edge);
}

const struct kith_algorithm kith_algorithm_allreduce_doubling = {
    .name = "allreduce-doubling",
    .paper = "Thakur et al., 2005",
    .summary = "the mean of all models by recursive doubling, after own steps",
    .differs = "models are averaged after own steps: synchronous SGD under "
               "plain SGD and momentum from one start, not under adamw, "
               "lars, muon or clipping; sync-sgd is, under all",
    COLLECTIVE,
    .schedule = "collective-doubling",
    .make = kith_collective_make,
    .merge = merge,
    .finish = kith_collective_finish,
};
