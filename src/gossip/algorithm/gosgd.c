/* GoSGD: gossip with weights that are halved at every sending.
 *
 *   send, with chance p:   a_i <- a_i / 2;   (x_i, a_i) to a random peer
 *   on receipt of (x, a):  x_i <- (a_i x_i + a x) / (a_i + a);   a_i <- a_i + a
 *
 * With a guard that withholds the part h of x, (1 - h) x + h x_i stands for it.
 *
 * Weights are whole shares, 2^40 each at the start, so that their sum is exact:
 * an odd number is split into floor and ceiling, and who has one share left
 * sends none. sum_i a_i x_i changes by gradients alone. A push is acknowledged,
 * so a message that is lost comes home, share and all.
 *
 * Source: Blot et al., "Gossip training for deep learning", 2016, Alg. 3.
 * Test: unit/test_rules.c, unit/test_taxonomy_mass.c (T8.2). */
#include "push_sum.h"

#define SHARES 1099511627776.0 /* 2^40 */
/* Sums of doubles are exact up to here. */
#define SHARES_MAX 9007199254740992.0

/* x <- (a x + b y) / (a + b), a and b in shares; what that added. */
static double join(struct kith_algebra *algebra, double b, const void *y)
{
    const double all = algebra->scalars[0] + b, held = algebra->withheld;
    if (!(b > 0))
        return 0;
    const double part = (1 - held) * b / all;
    const double own = held > 0 ? 1 - part : algebra->scalars[0] / all;
    algebra->scalars[0] = all;
    if (held >= 1)
        return 0;
    return kith_algorithm_combine(algebra->backend, algebra->dim, own,
                                  algebra->live, 1,
                                  &(struct kith_term){part, y, NULL});
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const uint64_t shares = (uint64_t)algebra->scalars[0];
    algebra->backend->copy(algebra->dim, algebra->sent, algebra->live);
    edge->scalars_sent[0] = (double)(shares / 2);
    algebra->scalars[0] = (double)(shares - shares / 2);
    edge->delta_sum = 0;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    if (!kith_push_sum_fits(algebra, edge, SHARES))
        return;
    edge->delta_sum =
        join(algebra, edge->scalars_received[0], algebra->received);
}

static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)join(algebra, edge->scalars_sent[0], algebra->sent);
}

const struct kith_algorithm kith_algorithm_gosgd = {
    .name = "gosgd",
    .paper = "Blot et al., 2016",
    .summary = "half of one's weight goes to a random peer: "
               "x = (a x + a_j s_j) / (a + a_j)",
    .pattern = KITH_PATTERN_PUSH,
    .wait = KITH_WAIT_NO,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_TAKES_GUARD,
    .scalar_count = 1,
    .scalars_start = {SHARES},
    .scalars_low = 0,
    .scalars_high = SHARES_MAX,
    .make = make,
    .merge = merge,
    .undo = undo,
};
