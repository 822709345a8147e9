/* The k largest values of a vector with their indices, and how two such lists
 * become one (gTop-k).
 *
 *   merged  = the k largest of a + b, by size, ties by the lower index
 *   dropped = what a and what b had at the other indices of a + b
 *
 * What is dropped goes back to whose it is and stays in its residual. Without
 * that a contribution dropped here is lost where its index survives in another
 * subtree, for its owner then believes that it was sent.
 *
 * Shi et al., "A Distributed Synchronous SGD Algorithm with Global Top-k
 * Sparsification for Low Bandwidth Networks", ICDCS 2019; the drop lists are
 * ours.
 * Test: unit/test_top_list.c (T3.3). */
#ifndef KITH_TOP_LIST_H
#define KITH_TOP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

KITH_BEGIN_DECLS

struct kith_top_entry {
    double value;
    uint32_t index;
};

/* Owns nothing: the entries are the caller's memory. */
struct kith_top_list {
    struct kith_top_entry *entries; /* (room); after `finish` by index */
    uint32_t count, room;           /* count <= room: k */
};

/* An empty list of up to `room` entries. */
struct kith_top_list kith_top_list_of(struct kith_top_entry *entries,
                                      uint32_t room);
/* One more candidate: kept while it is one of the `room` largest of all that
 * were offered. Each index once.
 *
 * Cost  one comparison where it is not kept, else log2(room) exchanges; no
 *       memory but the list. */
void kith_top_list_offer(struct kith_top_list *list, uint32_t index,
                         double value);
/* The least of the entries, before `finish`; count > 0. */
const struct kith_top_entry *
kith_top_list_least(const struct kith_top_list *list);
/* Gives up the least, before `finish`; count > 0. */
void kith_top_list_shorten(struct kith_top_list *list);
/* Entries in order of their index: no more is offered. Cost: n log2(n). */
void kith_top_list_finish(struct kith_top_list *list);

/* May this list of a peer's be merged? At most `room` entries, indices below
 * `dim` that rise, values that are finite and at most `bound` in size. */
bool kith_top_list_sane(const struct kith_top_list *list, uint64_t dim,
                        double bound);

/* merged <- the largest of ours + theirs, as many as it has room for; kept and
 * given back together are all that came:
 *
 *   merged + back_ours + back_theirs = ours + theirs
 *
 * exactly, but for the rounding of sums at indices that both have and that are
 * kept.
 *
 *   ours, theirs             finished and sane
 *   merged                   apart from all others; what it held is forgotten
 *   back_ours, back_theirs   room for all entries of ours and of theirs
 *
 * Cost    two passes over both, (ours + theirs) log2(room); no allocation.
 * Source  Shi et al., ICDCS 2019, algorithm 2, with the drop lists above. */
void kith_top_list_merge(const struct kith_top_list *ours,
                         const struct kith_top_list *theirs,
                         struct kith_top_list *merged,
                         struct kith_top_list *back_ours,
                         struct kith_top_list *back_theirs);

KITH_END_DECLS

#endif
