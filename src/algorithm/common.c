/* What several algorithms do alike. */
#include "common.h"

void algorithm_mix(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum =
        algebra->backend->mix(algebra->dim, edge->weight, algebra->received,
                              algebra->sent, algebra->live);
}

void algorithm_swap_mix(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    edge->delta_sum = algebra->backend->swap_mix(algebra->dim, edge->weight,
                                                 algebra->received,
                                                 algebra->sent, algebra->live);
}

void algorithm_unmix(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->live);
}

void algorithm_add_difference(const struct kith_backend *backend, size_t n,
                              const void *a, const void *b, void *y)
{
    (void)backend->mix(n, 1.0, a, b, y);
}

size_t algorithm_two_vectors(const struct kith_algebra *algebra)
{
    return 2 * algebra->dim * algebra->backend->element_bytes;
}

void algorithm_make_two(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    (void)edge;
    algebra->backend->copy(algebra->dim, algebra->sent, algebra->live);
    algebra->backend->copy(algebra->dim,
                           algorithm_second(algebra, algebra->sent),
                           algebra->vectors[0]);
}

void algorithm_mix_two(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    algorithm_mix(algebra, edge);
    (void)algebra->backend->mix(algebra->dim, edge->weight,
                                algorithm_second(algebra, algebra->received),
                                algorithm_second(algebra, algebra->sent),
                                algebra->vectors[0]);
}

void algorithm_stash(struct kith_algebra *algebra, unsigned index)
{
    if (algebra->step % algebra->every == 0)
        algebra->backend->copy(algebra->dim, algebra->vectors[index],
                               algebra->live);
}

void algorithm_track(struct kith_algebra *algebra, unsigned tracked,
                     unsigned before)
{
    const struct kith_backend *backend = algebra->backend;
    void *const y = algebra->vectors[tracked];
    algorithm_add_difference(backend, algebra->trained, algebra->gradient,
                             algebra->vectors[before], y);
    backend->copy(algebra->trained, algebra->vectors[before],
                  algebra->gradient);
    backend->copy(algebra->trained, algebra->gradient, y);
}
