/* Push-sum: see push_sum.h. */
#include "push_sum.h"

double push_sum_fraction(const struct kith_algebra *algebra,
                         const struct kith_work_edge *edge)
{
    return edge->weight / (1 - algebra->given);
}

void push_sum_make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const double fraction = push_sum_fraction(algebra, edge);
    backend->copy(algebra->dim, algebra->sent, algebra->live);
    backend->scale(algebra->dim, fraction, algebra->sent);
    backend->add(algebra->dim, -1.0, algebra->sent, algebra->live);
    edge->scalars_sent[0] = fraction * algebra->scalars[0];
    algebra->scalars[0] -= edge->scalars_sent[0];
    edge->delta_sum = -backend->sum(algebra->dim, algebra->sent);
}

void push_sum_merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->received, algebra->live);
    algebra->scalars[0] += edge->scalars_received[0];
    edge->delta_sum = algebra->backend->sum(algebra->dim, algebra->received);
}

double push_sum_factor(const double *scalars)
{
    /* The weight can shrink but never vanish before x does. */
    return 1.0 / (scalars[0] > 0x1p-100 ? scalars[0] : 0x1p-100);
}
