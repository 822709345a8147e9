/* What all-reduces do alike: see collective.h. */
#include "collective.h"

#include "kith/topology.h"

uint64_t collective_phases(const struct kith_algebra *algebra)
{
    return kith_topology_period(algebra->graph);
}

uint64_t collective_phase(const struct kith_algebra *algebra)
{
    return algebra->round % collective_phases(algebra);
}

double *collective_count(const struct kith_algebra *algebra)
{
    return &algebra->scalars[0];
}

void collective_begin(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[COLLECTIVE_SUM],
                           algebra->live);
    *collective_count(algebra) = 1;
}

void collective_make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    if (collective_phase(algebra) == 0) {
        algorithm_copy_twice(algebra->backend, algebra->dim, algebra->live, sum,
                             algebra->sent);
        *collective_count(algebra) = 1;
    } else {
        algebra->backend->copy(algebra->dim, algebra->sent, sum);
    }
    edge->scalars_sent[0] = *collective_count(algebra);
}

void collective_add(struct kith_algebra *algebra,
                    const struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->received,
                          algebra->vectors[COLLECTIVE_SUM]);
    *collective_count(algebra) += edge->scalars_received[0];
}

double collective_end(struct kith_algebra *algebra)
{
    const struct kith_term mean = {1 / *collective_count(algebra),
                                   algebra->vectors[COLLECTIVE_SUM], NULL};
    return algorithm_combine(algebra->backend, algebra->dim, 0, algebra->live,
                             1, &mean);
}
