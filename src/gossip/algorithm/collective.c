/* What all-reduces do alike: see collective.h. */
#include "collective.h"

#include "kith/topology.h"

uint64_t kith_collective_phases(const struct kith_algebra *algebra)
{
    return kith_topology_period(algebra->graph);
}

uint64_t kith_collective_phase(const struct kith_algebra *algebra)
{
    return algebra->round % kith_collective_phases(algebra);
}

bool kith_collective_is_last(const struct kith_algebra *algebra)
{
    return kith_collective_phase(algebra) + 1 ==
           kith_collective_phases(algebra);
}

double kith_collective_most(const struct kith_algebra *algebra, kith_id child,
                            uint64_t round_of_way)
{
    const double below = (double)(UINT64_C(1) << round_of_way);
    const double left = (double)algebra->peers - (double)child;
    return left < below ? left : below;
}

void kith_collective_begin(struct kith_algebra *algebra)
{
    kith_algorithm_start(algebra);
    algebra->scalars[COLLECTIVE_COUNT] = 1;
}

void kith_collective_make(struct kith_algebra *algebra,
                          struct kith_work_edge *edge)
{
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    if (kith_collective_phase(algebra) == 0) {
        kith_algorithm_copy_twice(algebra->backend, algebra->dim, algebra->live,
                                  sum, algebra->sent);
        algebra->scalars[COLLECTIVE_COUNT] = 1;
    } else {
        algebra->backend->copy(algebra->dim, algebra->sent, sum);
    }
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
}

void kith_collective_add(struct kith_algebra *algebra,
                         const struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->received,
                          algebra->vectors[COLLECTIVE_SUM]);
    algebra->scalars[COLLECTIVE_COUNT] += edge->scalars_received[0];
}

void kith_collective_take(struct kith_algebra *algebra,
                          const struct kith_work_edge *edge)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[COLLECTIVE_SUM],
                           algebra->received);
    algebra->scalars[COLLECTIVE_COUNT] = edge->scalars_received[0];
}

double kith_collective_finish(struct kith_algebra *algebra)
{
    const struct kith_term mean = {1 / algebra->scalars[COLLECTIVE_COUNT],
                                   algebra->vectors[COLLECTIVE_SUM], NULL};
    return kith_collective_is_last(algebra)
               ? kith_algorithm_combine(algebra->backend, algebra->dim, 0,
                                        algebra->live, 1, &mean)
               : 0;
}
