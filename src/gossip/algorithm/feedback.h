/* Sums of a few coordinates of all peers' differences, along a binomial tree,
 * with error feedback: what gtop-k and gs-sgd share.
 *
 *   v <- e + phi - x         after the own steps since the last cycle
 *   G, k sums of v over n peers, is found at the root, each in its own way
 *   e <- v less what of it is in G;  phi <- phi - a G / n;  x <- phi
 *
 * k = `share` of the d coordinates, a = `rate`. Vectors are a host's: lists are
 * found value by value.
 *
 * G comes down with a bit for each entry: is what the child sent in it? Nothing
 * is given back, for it never left e. A parent that lies can waste a child's
 * own numbers, but give it no others.
 *
 * A peer that hears nothing on the way down changes nothing: its steps stay in
 * x, and so in v. If its numbers had come up, they count twice. From then on
 * its phi lacks a G; that of a restarted peer is the x which it adopted. Nobody
 * needs to know: behind G stand k values of the root's phi, another block in
 * each cycle, which take the place of everybody's. After d / k cycles all hold
 * what the root holds. (No algorithm can ask for a model, so that neither whole
 * ones every M cycles nor a pull are open to it; a hash of phi says that
 * something is wrong, and not what.)
 *
 *   message   count, k values, k indices, k bits, k values of phi */
#ifndef KITH_GOSSIP_ALGORITHM_FEEDBACK_H
#define KITH_GOSSIP_ALGORITHM_FEEDBACK_H

#include <string.h>

#include "collective.h"
#include "kith/top_list.h"

/* PHI is the first, as kith_algorithm_start has it. LIST holds sums, in place;
 * BORN where an index came into it. An algorithm's other vectors follow. */
enum {
    FEEDBACK_PHI,
    FEEDBACK_RESIDUAL,
    FEEDBACK_LIST,
    FEEDBACK_BORN,
    FEEDBACK_VECTORS
};
/* BORN: here, or with the child of the p-th round up (CHILD + p); of G those
 * that hold nothing that this peer sent. */
enum { FEEDBACK_ABSENT, FEEDBACK_OWN, FEEDBACK_CHILD, FEEDBACK_NEVER = 64 };
/* Lists of k entries at the beginning of scratch: the rest is the
 * algorithm's. */
enum { FEEDBACK_OURS, FEEDBACK_THEIRS, FEEDBACK_LISTS };

/* A sum of KITH_PEERS_MAX such values is finite in float32. */
#define FEEDBACK_VALUE_MAX 1e30

/* Records of this family. */
#define FEEDBACK                                                               \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_EXACT_MESSAGES |            \
             KITH_CHECKS_ITS_MESSAGES,                                         \
    .scalar_count = 1, .scalars_start = {1},                                   \
    .scalars_high = COLLECTIVE_COUNT_MAX, .start = kith_algorithm_start

/* ---- feedback.c: vectors */

/* k: `multiple` times `share` of d, at least 1 and at most d. */
size_t kith_feedback_kept(const struct kith_algebra *algebra, double multiple);
/* An empty list of k, in its place in scratch. */
struct kith_top_list kith_feedback_list(const struct kith_algebra *algebra,
                                        unsigned which);
/* Element i of a host's vector or, at any alignment, of a message. */
static inline double kith_feedback_get(const struct kith_algebra *algebra,
                                       const void *from, size_t i)
{
    double wide;
    float narrow;
    if (algebra->backend->element_bytes == sizeof wide) {
        memcpy(&wide, (const char *)from + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)from + i * sizeof narrow, sizeof narrow);
    return (double)narrow;
}

static inline void kith_feedback_put(const struct kith_algebra *algebra,
                                     void *to, size_t i, double value)
{
    const float narrow = (float)value;
    if (algebra->backend->element_bytes == sizeof value)
        memcpy((char *)to + i * sizeof value, &value, sizeof value);
    else
        memcpy((char *)to + i * sizeof narrow, &narrow, sizeof narrow);
}
/* What of v_i may travel; of the rest, as of what is no number, nothing. */
double kith_feedback_claim(const struct kith_algebra *algebra, size_t i);
/* list <- the largest of v, as many as it has room for, finished. */
void kith_feedback_largest(const struct kith_algebra *algebra,
                           struct kith_top_list *list);
/* LIST and BORN <- these entries, this peer's own, and nothing else. */
void kith_feedback_hold_own(struct kith_algebra *algebra,
                            const struct kith_top_list *list);
/* L, or G on the way down, from its place. */
struct kith_top_list kith_feedback_gather(const struct kith_algebra *algebra);
/* The rounds up of this cycle whose child was merged, a bit each. */
double *kith_feedback_merged(const struct kith_algebra *algebra);
/* e, phi and x are as G in LIST says; returns the sum of what x changed by. */
double kith_feedback_apply(struct kith_algebra *algebra);

/* ---- feedback_message.c */

/* Bytes of the message above. */
size_t kith_feedback_bytes(const struct kith_algebra *algebra);
/* Does anybody get a message of ours in this round? */
bool kith_feedback_sends(const struct kith_algebra *algebra);
void kith_feedback_write_list(struct kith_algebra *algebra,
                              const struct kith_top_list *list);
/* Of a peer: false where it is no list, or its values are none. */
bool kith_feedback_read_list(const struct kith_algebra *algebra,
                             struct kith_top_list *list);
/* G, to the child that was merged as many rounds before the way's end as have
 * passed since: bits and a block of phi with it. */
void kith_feedback_write_down(struct kith_algebra *algebra);
/* G has come: e, phi and x follow. False: nobody has heard it, or what came is
 * malformed (edge->refused). */
bool kith_feedback_merge_down(struct kith_algebra *algebra,
                              struct kith_work_edge *edge);

#endif
