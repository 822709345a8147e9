/* Push-sum: see push_sum.h. */
#include "push_sum.h"

/* Of a peer that is too light: a share must have some weight. */
#define TOKEN 0x1p-20

double kith_push_sum_fraction(const struct kith_algebra *algebra,
                              const struct kith_work_edge *edge)
{
    return edge->weight / (1 - algebra->given);
}

void kith_push_sum_make(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    double fraction = kith_push_sum_fraction(algebra, edge);
    if ((1 - fraction) * algebra->scalars[0] < PUSH_SUM_LIGHT)
        fraction = TOKEN;
    const struct kith_term share = {fraction, algebra->live, NULL};
    const struct kith_term given = {-1, algebra->sent, NULL};
    const struct kith_update updates[] = {
        kith_one_term(algebra->sent, 0, &share, NULL),
        kith_one_term(algebra->live, 1, &given, &edge->delta_sum)};
    algebra->backend->combine(algebra->dim, 2, updates);
    edge->scalars_sent[0] = fraction * algebra->scalars[0];
    algebra->scalars[0] -= edge->scalars_sent[0];
}

bool kith_push_sum_fits(const struct kith_algebra *algebra,
                        struct kith_work_edge *edge, double start)
{
    const double most = kith_algorithm_weight_most(algebra->peers) * start;
    const double sum = algebra->scalars[0] + edge->scalars_received[0];
    edge->refused = algebra->peers > 0 && !(sum <= most);
    return !edge->refused;
}

void kith_push_sum_merge(struct kith_algebra *algebra,
                         struct kith_work_edge *edge)
{
    const double let_in = 1 - algebra->withheld;
    const struct kith_term taken = {let_in, algebra->received, NULL};
    if (!kith_push_sum_fits(algebra, edge, 1))
        return;
    const double own = 1 + algebra->withheld * edge->scalars_received[0] *
                               kith_push_sum_factor(algebra->scalars);
    algebra->scalars[0] += edge->scalars_received[0];
    edge->delta_sum =
        kith_algorithm_combine(algebra->backend, algebra->dim, own,
                               algebra->live, let_in > 0 ? 1 : 0, &taken);
}

double kith_push_sum_factor(const double *scalars)
{
    /* The weight can shrink but never vanish before x does. */
    return 1.0 / (scalars[0] > 0x1p-100 ? scalars[0] : 0x1p-100);
}
