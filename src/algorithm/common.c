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
