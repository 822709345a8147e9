/* Liveness as an invariant: what must go on happening once the last fault is
 * over, among peers that are there.
 *
 *   edges     a link of a round-based method merges at each of its ends within
 *             2 periods of its graph + 4 rounds of its slower end. Graphs that
 *             are drawn anew for ever: a peer merges something in 6 rounds that
 *             it has neighbours in, and the others had on average
 *   attempts  of a two-party method: one success in 10 x degree attempts, of
 *             the degrees of the peer and its neighbours the largest
 *   steps     nobody's training stands still for a minute and 400 steps
 *
 * A silence of less than 5 s and 20 trips is none: connections are dialled
 * anew, models adopted. Links that lose records are a fault that does not end:
 *
 *   two-party no more attempts, for an attempt that fails takes a round trip
 *             and a stall takes all that are made in it. But a silence may be
 *             longer by the longest stall of a packet in 10^8, which is lost k
 *             times in a row where loss^k > 10^-8, for T + 2 T + ... of the law
 *             of links (kith_link_stall): 1.4 s at 1 %, 25 s at 10 %
 *   rounds    eight times as many of them, and eight times as long
 *
 * Fed with marks; a few bytes an edge, O(1) a mark. What cannot be: a peer that
 * is gone for good, a link cut for good, is not asked for.
 * Test: unit/test_liveness.c. */
#ifndef KITH_LIVENESS_H
#define KITH_LIVENESS_H

#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/node.h"

#define KITH_LIVENESS_TEXT_BYTES 192

struct kith_liveness;

/* Does the file assert `live`, or is there a fault after which it is to be so?
 */
bool kith_liveness_wanted(const struct kith_experiment *experiment);

/* Watches from the last atom of the experiment on; *liveness NULL where there
 * is nothing to watch: nobody communicates. `config` is lent. */
KITH_MUST_CHECK enum kith_err
kith_liveness_open(const struct kith_node_config *config,
                   const struct kith_experiment *experiment,
                   struct kith_liveness **liveness);
void kith_liveness_close(struct kith_liveness *liveness);
/* This peer is not honest: nothing is promised about it. */
void kith_liveness_exempt(struct kith_liveness *liveness, kith_id peer);
/* In the order of time. */
void kith_liveness_mark(struct kith_liveness *liveness, kith_ns now_ns,
                        kith_id peer, const struct kith_mark *mark);
/* Whoever still trains would have to say so in marks STEP from now on. */
void kith_liveness_finish(struct kith_liveness *liveness, kith_ns now_ns);
/* 1: held so far, 0: not; NAN: the last fault is not over yet. */
double kith_liveness_value(const struct kith_liveness *liveness);
/* The first violation in words; "" while it holds. */
const char *kith_liveness_text(const struct kith_liveness *liveness);

#endif
