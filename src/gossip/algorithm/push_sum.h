/* Push-sum: a value and a weight are given away in shares.
 *
 *   z_i = x_i / w_i                       gradients are taken at z_i
 *   send (p x_i, p w_i);  x_i <- x_i - p x_i;  w_i <- w_i - p w_i
 *   on receipt   x_j <- x_j + p x_i;  w_j <- w_j + p w_i
 *
 * With a guard that withholds the part h of z_i:
 *
 *   on receipt   x_j <- x_j + (1 - h) p x_i + h p w_i z_j
 *
 * sum_i x_i and sum_i w_i are kept, messages under way included. Shares of a
 * column sum to less than 1; rows need not sum to anything. */
#ifndef KITH_GOSSIP_ALGORITHM_PUSH_SUM_H
#define KITH_GOSSIP_ALGORITHM_PUSH_SUM_H

#include "updates.h"

/* Who would keep less weight than that gives a token of it, or x would leave
 * the range of a float in the end. GoSGD's smallest share, too. */
#define PUSH_SUM_LIGHT 0x1p-40

/* What of x that stands there now is the share of the x that stood there before
 * this round's messages. */
double kith_push_sum_fraction(const struct kith_algebra *algebra,
                              const struct kith_work_edge *edge);
kith_edge_work kith_push_sum_make, kith_push_sum_merge;
/* The account of a receiver: w_i + share <= kith_algorithm_weight_most start,
 * where every w begins at `start`; else edge->refused is set. No peers: an
 * algebra by hand, without one.
 *
 * Of a sender j alone nothing tighter holds. Let i have had r from j, given g
 * to j and out to all others: w_i = 1 + sum (r - g). For any history in which
 * w_i <= n there are honest peers which could have sent it: one peer k holds
 * all that i does not, n - w_i, and hands j what j is to hand i; what i gives
 * away goes on to k. So r - g may grow without end (in a directed ring it does)
 * and only the sum over all senders, which is i's own weight, proves a lie:
 * somebody's. Test: unit/test_shares.c. */
bool kith_push_sum_fits(const struct kith_algebra *algebra,
                        struct kith_work_edge *edge, double start);
/* 1 / w */
double kith_push_sum_factor(const double *scalars);
/* Shares to all out-neighbours of a round. */
#define PUSH_SUM_ROUNDS                                                        \
    .pattern = KITH_PATTERN_ROUND,                                             \
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_CONSERVES_SUM |                 \
             KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_STABLE_MEMBERS |            \
             KITH_SENDS_EDGE_MESSAGES | KITH_SPLITS_MASS | KITH_TAKES_GUARD,   \
    .scalar_count = 1, .scalars_start = {1.0}, .make = kith_push_sum_make,     \
    .merge = kith_push_sum_merge, .factor = kith_push_sum_factor

#endif
