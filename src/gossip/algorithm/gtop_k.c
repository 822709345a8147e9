/* gTop-k: of all peers' differences the k largest coordinates of the sum, along
 * a binomial tree, with error feedback.
 *
 *   v_i <- e_i + phi - x_i         after the own steps since the last cycle
 *   up    L <- the k largest of L + L_child, at first L = top-k(v_i)
 *   down  G, the root's L, and of each entry whether the child is in it
 *   e_i <- v_i less what of it is in G;  phi <- phi - a G / n;  x_i <- phi
 *
 * k = `share` of the d coordinates, a = `rate`, n the peers whose lists came
 * up. Without momentum, every step and a = 1 this is gTop-k S-SGD. The way down
 * and what is kept: feedback.h.
 *
 * In the paper what a merge drops is lost where its index survives in another
 * subtree: its owner believes that it was sent. Here a peer notes since which
 * merge each index has been in its list without a break (BORN). What came into
 * it before that was dropped, and its owner hears so on the way down by a bit
 * for each entry of G. Of a message that is k / 8 bytes, where lists of what
 * was dropped would be k entries.
 *
 *   applied + residuals = sum of differences
 *
 * On the way up bits and phi of a message are zeros.
 *
 * Cost: 2 ceil(log2 n) rounds, 2 (n - 1) messages in all; a pass over e, phi, x
 * for the list and another for what comes down, one over L for each merge.
 *
 * Source: Shi et al., "A Distributed Synchronous SGD Algorithm with Global
 * Top-k Sparsification for Low Bandwidth Networks", ICDCS 2019, Alg. 4; bits
 * and blocks of phi are ours.
 * Test: unit/test_gtop_k.c (T3.3, T3.4), unit/test_gtop_k_message.c,
 * unit/test_gtop_k_learns.c. */
#include <string.h>

#include "feedback.h"

/* More lists of scratch. */
enum { MERGED = FEEDBACK_LISTS, BACK_OURS, BACK_THEIRS, LISTS };

static size_t scratch(const struct kith_algebra *algebra)
{
    return LISTS * kith_feedback_kept(algebra, 1) *
           sizeof(struct kith_top_entry);
}

/* Rounds of the way up. Who is alone has no way, and is its root. */
static uint64_t height(const struct kith_algebra *algebra)
{
    return kith_collective_phases(algebra) / 2;
}

/* A cycle begins with a list of one. */
static void begin(struct kith_algebra *algebra)
{
    struct kith_top_list list = kith_feedback_list(algebra, FEEDBACK_OURS);
    kith_feedback_largest(algebra, &list);
    kith_feedback_hold_own(algebra, &list);
    algebra->scalars[COLLECTIVE_COUNT] = 1;
    *kith_feedback_merged(algebra) = 0;
}

/* Who has heard nothing says so: a list of nobody. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
    if (algebra->dim == 0 || !kith_feedback_sends(algebra))
        return;
    memset(algebra->sent, 0, kith_feedback_bytes(algebra));
    if (algebra->scalars[COLLECTIVE_COUNT] == 0)
        return;
    if (kith_collective_phase(algebra) >= height(algebra)) {
        kith_feedback_write_down(algebra);
        return;
    }
    const struct kith_top_list list = kith_feedback_gather(algebra);
    kith_feedback_write_list(algebra, &list);
}

/* L <- the k largest of L + theirs. */
static void add_list(struct kith_algebra *algebra,
                     const struct kith_top_list *theirs)
{
    void *const values = algebra->vectors[FEEDBACK_LIST];
    void *const born = algebra->vectors[FEEDBACK_BORN];
    const uint64_t phase = kith_collective_phase(algebra);
    const struct kith_top_list ours = kith_feedback_gather(algebra);
    struct kith_top_list merged = kith_feedback_list(algebra, MERGED);
    struct kith_top_list dropped = kith_feedback_list(algebra, BACK_OURS);
    struct kith_top_list not_taken = kith_feedback_list(algebra, BACK_THEIRS);
    kith_top_list_merge(&ours, theirs, &merged, &dropped, &not_taken);
    for (uint32_t n = 0; n < dropped.count; n++) {
        const uint32_t i = dropped.entries[n].index;
        kith_feedback_put(algebra, values, i, 0);
        kith_feedback_put(algebra, born, i, FEEDBACK_ABSENT);
    }
    for (uint32_t n = 0; n < merged.count; n++) {
        const uint32_t i = merged.entries[n].index;
        if (kith_feedback_get(algebra, born, i) == FEEDBACK_ABSENT)
            kith_feedback_put(algebra, born, i,
                              (double)(FEEDBACK_CHILD + phase));
        kith_feedback_put(algebra, values, i, merged.entries[n].value);
    }
    *kith_feedback_merged(algebra) += (double)(UINT64_C(1) << phase);
}

/* The child of phase p speaks for up to 2^p peers. */
static void merge_up(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    const double most = kith_collective_most(algebra, edge->peer,
                                             kith_collective_phase(algebra));
    struct kith_top_list theirs = kith_feedback_list(algebra, FEEDBACK_THEIRS);
    edge->refused = !(models >= 1 && models <= most) ||
                    !kith_feedback_read_list(algebra, &theirs);
    if (edge->refused)
        return;
    add_list(algebra, &theirs);
    algebra->scalars[COLLECTIVE_COUNT] += models;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (algebra->dim == 0)
        return; /* its messages are empty */
    if (kith_collective_phase(algebra) < height(algebra))
        merge_up(algebra, edge);
    else
        (void)kith_feedback_merge_down(algebra, edge);
}

/* At the end of the way up the root has G, and all others nothing. */
static double finish(struct kith_algebra *algebra)
{
    const uint64_t up = height(algebra) > 0 ? height(algebra) : 1;
    if (kith_collective_phase(algebra) + 1 != up)
        return 0;
    if (algebra->self == 0)
        return kith_feedback_apply(algebra);
    algebra->scalars[COLLECTIVE_COUNT] = 0;
    return 0;
}

const struct kith_algorithm kith_algorithm_gtop_k = {
    .name = "gtop-k",
    .paper = "Shi et al., ICDCS 2019",
    .summary = "the k largest coordinates of the sum of all differences along "
               "a binomial tree, with error feedback",
    .differs = "what a merge drops stays with its owner, where the paper's "
               "is lost if the index survives elsewhere; blocks of the "
               "outer point travel along",
    FEEDBACK,
    .schedule = "collective-tree",
    .keys = KITH_GOSSIP_READS(SHARE) | KITH_GOSSIP_READS(RATE),
    .initial = {[KITH_GOSSIP_SHARE] = 0.01, [KITH_GOSSIP_RATE] = 1},
    .vectors = FEEDBACK_VECTORS,
    .payload = kith_feedback_bytes,
    .scratch_bytes = scratch,
    .make = make,
    .merge = merge,
    .finish = finish,
};
