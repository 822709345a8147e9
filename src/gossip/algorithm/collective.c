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

double *kith_collective_count(const struct kith_algebra *algebra)
{
    return &algebra->scalars[0];
}

void kith_collective_begin(struct kith_algebra *algebra)
{
    kith_algorithm_start(algebra);
    *kith_collective_count(algebra) = 1;
}

void kith_collective_make(struct kith_algebra *algebra,
                          struct kith_work_edge *edge)
{
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    if (kith_collective_phase(algebra) == 0) {
        kith_algorithm_copy_twice(algebra->backend, algebra->dim, algebra->live,
                                  sum, algebra->sent);
        *kith_collective_count(algebra) = 1;
    } else {
        algebra->backend->copy(algebra->dim, algebra->sent, sum);
    }
    edge->scalars_sent[0] = *kith_collective_count(algebra);
}

void kith_collective_add(struct kith_algebra *algebra,
                         const struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->received,
                          algebra->vectors[COLLECTIVE_SUM]);
    *kith_collective_count(algebra) += edge->scalars_received[0];
}

void kith_collective_take(struct kith_algebra *algebra,
                          const struct kith_work_edge *edge)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[COLLECTIVE_SUM],
                           algebra->received);
    *kith_collective_count(algebra) = edge->scalars_received[0];
}

double kith_collective_end(struct kith_algebra *algebra)
{
    const struct kith_term mean = {1 / *kith_collective_count(algebra),
                                   algebra->vectors[COLLECTIVE_SUM], NULL};
    return kith_algorithm_combine(algebra->backend, algebra->dim, 0,
                                  algebra->live, 1, &mean);
}
