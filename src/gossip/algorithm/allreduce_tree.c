/* All-reduce along a binomial tree: sums go up, the mean comes down.
 *
 *   2 ceil(log2 n) rounds of whole vectors
 *
 * A peer that hears no mean on the way down keeps its own model.
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005.
 * Test: unit/test_rules.c. */
#include "collective.h"

static bool is_up(const struct kith_algebra *algebra)
{
    return kith_collective_phase(algebra) < kith_collective_phases(algebra) / 2;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (is_up(algebra))
        kith_collective_add(algebra, edge);
    else
        kith_collective_take(algebra, edge);
}

/* At the end of the way up all but the root start over from their own, which
 * they keep should nothing come down. */
static double finish(struct kith_algebra *algebra)
{
    const uint64_t half = kith_collective_phases(algebra) / 2;
    if (kith_collective_phase(algebra) + 1 == half && algebra->self != 0)
        kith_collective_begin(algebra);
    return kith_collective_finish(algebra);
}

const struct kith_algorithm kith_algorithm_allreduce_tree = {
    .name = "allreduce-tree",
    .paper = "Thakur et al., 2005",
    .summary = "the mean of all models along a binomial tree, after own steps",
    .differs = "models are averaged after own steps: synchronous SGD under "
               "plain SGD and momentum from one start, not under adamw, "
               "lars, muon or clipping; sync-sgd is, under all",
    COLLECTIVE,
    .schedule = "collective-tree",
    .make = kith_collective_make,
    .merge = merge,
    .finish = finish,
};
