/* Work items: everything that touches floats.
 *
 * The core starts at most one item at a time per peer; the driver runs it on
 * the peer's worker and answers with WORK_DONE. So items run one after another
 * and there is no lock anywhere. A vector is named by its slot.
 *
 *   slot 0             live model x
 *   slot 4i + 1, + 2   initiated exchange i < 4: snapshot sent, inbox
 *   slot 4i + 3, + 4   answered exchange i < 4: snapshot sent, inbox
 *   slot 17            round: snapshot sent to every neighbour
 *   slot 18 + 3e + b   round: inbox of edge e for rounds of parity b, because
 *                      a neighbour may be one round ahead
 *   slot 18 + 3e + 2   round: what is sent over edge e, where each gets a
 *                      message of its own
 */
#ifndef KITH_WORK_H
#define KITH_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/message.h"
#include "kith/types.h"

#define KITH_SLOTS_PER_EXCHANGE 4u
enum kith_slot {
    KITH_SLOT_LIVE,
    /* + 4 * index of the exchange on its side */
    KITH_SLOT_INITIATED_SENT,
    KITH_SLOT_INITIATED_INBOX,
    KITH_SLOT_ANSWERED_SENT,
    KITH_SLOT_ANSWERED_INBOX,
    KITH_SLOT_ROUND_SENT = 1 + KITH_SLOTS_PER_EXCHANGE * KITH_EXCHANGES_LIMIT,
    KITH_SLOT_ROUND_EDGES, /* + 3 * edge index + (round & 1), or + 2 */
};
#define KITH_SLOTS_PER_EDGE 3u
#define KITH_SLOTS_MAX                                                         \
    (KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * KITH_DEGREE_MAX)
#define KITH_SLOT_NONE UINT32_MAX

static inline uint32_t kith_slot_inbox(uint32_t edge, uint64_t round)
{
    return KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * edge +
           (uint32_t)(round & 1u);
}

static inline uint32_t kith_slot_outbox(uint32_t edge)
{
    return KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * edge + 2u;
}

static inline bool kith_slot_is_edge_outbox(uint32_t slot)
{
    return slot >= KITH_SLOT_ROUND_EDGES && slot < KITH_SLOTS_MAX &&
           (slot - KITH_SLOT_ROUND_EDGES) % KITH_SLOTS_PER_EDGE == 2;
}

/* Of a slot of a round's edges. */
static inline uint32_t kith_slot_edge(uint32_t slot)
{
    return (slot - KITH_SLOT_ROUND_EDGES) / KITH_SLOTS_PER_EDGE;
}

/* `kind`, one of the four slots of exchange 0, as it is of any exchange. */
static inline bool kith_slot_is(enum kith_slot kind, uint32_t slot)
{
    return slot < KITH_SLOT_ROUND_SENT &&
           slot % KITH_SLOTS_PER_EXCHANGE ==
               (uint32_t)kind % KITH_SLOTS_PER_EXCHANGE &&
           slot != KITH_SLOT_LIVE;
}

/* Of a slot of an exchange: which exchange of its side. */
static inline uint32_t kith_slot_exchange(uint32_t slot)
{
    return (slot - 1) / KITH_SLOTS_PER_EXCHANGE;
}

/* What is received into. */
static inline bool kith_slot_is_inbox(uint32_t slot)
{
    return kith_slot_is(KITH_SLOT_INITIATED_INBOX, slot) ||
           kith_slot_is(KITH_SLOT_ANSWERED_INBOX, slot) ||
           (slot >= KITH_SLOT_ROUND_EDGES && slot < KITH_SLOTS_MAX &&
            !kith_slot_is_edge_outbox(slot));
}

/* The snapshot of a round stands for what is sent over each of its edges. */
static inline uint32_t kith_slot_snapshot(uint32_t slot)
{
    return kith_slot_is_edge_outbox(slot) ? (uint32_t)KITH_SLOT_ROUND_SENT
                                          : slot;
}

/* Whether `cancel` of kith_effects means this slot. */
static inline bool kith_slot_cancelled(uint32_t cancel, uint32_t slot)
{
    slot = kith_slot_snapshot(slot);
    return slot < KITH_SLOT_ROUND_EDGES && (cancel >> slot & 1u) != 0;
}

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

#define KITH_FAR_UNKNOWN INT16_MIN

/* One neighbour's part in an item. */
struct kith_work_edge {
    kith_id peer;
    uint32_t sent;  /* slot of our snapshot for this exchange */
    uint32_t inbox; /* slot of what was received, KITH_SLOT_NONE if nothing */
    bool refused;   /* set by MERGE: what came is malformed, nothing merged */
    int16_t far;    /* set by MERGE: what came is 2^far an element away from
                       the last good model; KITH_FAR_UNKNOWN: not looked at */
    double weight;  /* W_ij, or the share p_ji that a push gives away */
    double scalars_sent[KITH_SCALARS_MAX];     /* filled by SNAPSHOT */
    double scalars_received[KITH_SCALARS_MAX]; /* from the MODEL message */
    double delta_sum; /* sum over coordinates of what MERGE added for this
                         edge and withheld of it, float64: what a torn
                         exchange books */
};

struct kith_work {
    enum kith_work_kind kind;
    enum kith_pattern pattern;
    bool snapshot_first; /* MERGE: fill edge.sent from x in the same item */
    uint64_t step;       /* TRAIN: index of this step, from 0 */
    uint32_t part;       /* TRAIN: items of this step that are done; 0: none */
    uint64_t round;      /* a round's; of an exchange of two, a number that
                            both know and that no other exchange has */
    struct kith_work_edge *edges; /* (edge_count); the node's, stable until
                                     WORK_DONE; the worker writes its outputs.
                                     TRAIN: what x is now stays in edges.sent */
    uint32_t edge_count;
};

struct kith_work_result {
    enum kith_work_kind kind;
    bool finite;       /* TRAIN: loss and model are finite; others: true */
    bool recovered;    /* TRAIN, MERGE: x had been spoilt, and is that of an
                          earlier step again */
    bool kept;         /* TRAIN: x is the last good model now */
    bool is_part;      /* TRAIN: the step goes on with another item */
    uint32_t complete; /* TRAIN: of a part: buckets of the step's gradient that
                          are complete (kith/bucket.h) */
    uint32_t needs;    /* TRAIN, of a gradient in buckets: the next item needs
                          so many of the last gradient's to have been shared */
    double loss;       /* TRAIN: mean loss of the batch */
    int64_t more;      /* TRAIN: its examples, less the experiment's batch */
    uint32_t passes;   /* over whole vectors that exchanges made since the item
                          before, of this process alone: a copy, pack or unpack
                          is one, and so is each call of an algorithm's make,
                          merge, undo and finish, whose arithmetic is fused.
                          What guards and recovery look at is not counted. */
};

#endif
