/* Work items: everything that touches floats.
 *
 * The core starts at most one item at a time per peer; the driver runs it on
 * the peer's worker and answers with WORK_DONE. So items run one after another
 * and there is no lock anywhere. A vector is named by its slot.
 *
 *   slot 0             live model x
 *   slot 1, 2          initiated exchange: snapshot sent, inbox
 *   slot 3, 4          served exchange: snapshot sent, inbox
 *   slot 5             round: snapshot sent to every neighbour
 *   slot 6 + 2e + b    round: inbox of edge e for rounds of parity b, because
 *                      a neighbour may be one round ahead
 */
#ifndef KITH_WORK_H
#define KITH_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/limits.h"
#include "kith/message.h"
#include "kith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kith_slot {
    KITH_SLOT_LIVE,
    KITH_SLOT_ACTIVE_SENT,
    KITH_SLOT_ACTIVE_INBOX,
    KITH_SLOT_SERVED_SENT,
    KITH_SLOT_SERVED_INBOX,
    KITH_SLOT_ROUND_SENT,
    KITH_SLOT_ROUND_INBOX, /* + 2 * edge index + (round & 1) */
};
#define KITH_SLOTS_MAX (KITH_SLOT_ROUND_INBOX + 2u * KITH_DEGREE_MAX)
#define KITH_SLOT_NONE UINT32_MAX

/* X(NAME, text) */
#define KITH_WORKS(X)                                                          \
    X(TRAIN, "train")       /* one step: batch, gradient, optimiser */         \
    X(SNAPSHOT, "snapshot") /* algorithm.make: fill edge.sent from x */        \
    X(MERGE, "merge")       /* algorithm.merge over the edges */               \
    X(UNDO, "undo")         /* take the edge's delta back out of x */          \
    X(ADOPT, "adopt")       /* x <- inbox, weight 1 (a restarted peer) */      \
    X(SAVE, "save")         /* write the model to disk */

enum kith_work_kind {
#define KITH_X(name, text) KITH_WORK_##name,
    KITH_WORKS(KITH_X)
#undef KITH_X
        KITH_WORK_COUNT
};
const char *kith_work_name(enum kith_work_kind kind);

/* One neighbour's part in an item. */
struct kith_work_edge {
    kith_id peer;
    double weight;  /* W_ij, or the share p_ji that a push gives away */
    uint32_t sent;  /* slot of our snapshot for this exchange */
    uint32_t inbox; /* slot of what was received, KITH_SLOT_NONE if nothing */
    double scalars_sent[KITH_SCALARS_MAX];     /* filled by SNAPSHOT */
    double scalars_received[KITH_SCALARS_MAX]; /* from the MODEL message */
    double delta_sum; /* sum over coordinates of what MERGE added for this
                         edge, float64: what a torn exchange books */
};

struct kith_work {
    enum kith_work_kind kind;
    enum kith_pattern pattern;
    bool snapshot_first; /* MERGE: fill edge.sent from x in the same item */
    uint64_t step;       /* TRAIN: index of this step, from 0 */
    struct kith_work_edge *edges; /* (edge_count); the node's, stable until
                                     WORK_DONE; the worker writes its outputs */
    uint32_t edge_count;
};

struct kith_work_result {
    enum kith_work_kind kind;
    bool finite; /* TRAIN: loss and model are finite; others: true */
    double loss; /* TRAIN: mean loss of the batch */
};

#ifdef __cplusplus
}
#endif
#endif
