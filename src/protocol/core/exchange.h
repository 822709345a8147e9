/* Two-party exchanges: the state of each, and the table of those under way.
 *
 *   exchange.c            the table; what both sides share
 *   exchange_partner.c    whom this peer asks
 *   exchange_initiator.c  the side that asks
 *   exchange_responder.c  the side that is asked
 *   exchange_turns.c      whose turn it is where many ask */
#ifndef KITH_PROTOCOL_CORE_EXCHANGE_H
#define KITH_PROTOCOL_CORE_EXCHANGE_H

#include "kith/assert.h"
#include "kith/node.h"
#include "src/protocol/core/round_trip.h"

struct kith_node; /* node_state.h */

/* A peer that always answers "still busy" is given up after this many; it is
 * then 16 times as slow as the slowest deadline allows for. */
#define KITH_PROBES_MAX 16u
/* A restarted peer gives up adopting after this many failed pulls; after the
 * n-th it waits 2^n times KITH_PULL_WAIT_NS, three seconds in all. */
#define KITH_PULLS_MAX 8u
#define KITH_PULL_WAIT_NS (KITH_TIMEOUT_MIN_NS / 8)

enum initiator_state {
    INITIATOR_IDLE,
    INITIATOR_SNAPSHOT,  /* swap: our snapshot is taken before the request */
    INITIATOR_ASKED,     /* REQUEST sent */
    INITIATOR_SPLIT,     /* push: accepted, our share is being split off */
    INITIATOR_SENT,      /* MODEL sent, or a pull accepted: an answer is due */
    INITIATOR_MERGE,     /* their model is in the inbox, to be merged */
    INITIATOR_MERGED,    /* swap: our half is done, their ACK is due */
    INITIATOR_ABORTING,  /* ABORT sent, to be acknowledged */
    INITIATOR_RECALLING, /* the same, after our half was merged */
    INITIATOR_UNDO,      /* our half, or what was pushed, is taken back */
};

enum responder_state {
    RESPONDER_IDLE,
    RESPONDER_ACCEPTED,   /* ACCEPT sent; swap, pull: our snapshot is due */
    RESPONDER_SENT,       /* swap: our MODEL is sent, theirs is due */
    RESPONDER_MERGE,      /* their model is in the inbox, to be merged */
    RESPONDER_MERGE_BOTH, /* the same, and our snapshot is due with it */
    RESPONDER_MERGED,     /* our half is done and answered: ACK is due */
    RESPONDER_UNDO,       /* ABORT came after the merge */
};
#define KITH_EXCHANGE_IDLE 0u
_Static_assert(INITIATOR_IDLE == KITH_EXCHANGE_IDLE &&
                   RESPONDER_IDLE == KITH_EXCHANGE_IDLE,
               "an exchange is idle whichever side we are");

/* One two-party exchange as seen from one side. */
struct kith_exchange {
    kith_ns deadline_ns, since_ns; /* of this phase */
    uint64_t counter;
    uint32_t incarnation; /* of the initiator */
    unsigned state : 4, pattern : 3;
    unsigned tries : 3;  /* of the message that is repeated, <= TRIES_MAX + 1 */
    unsigned probes : 5; /* "still busy" heard, <= PROBES_MAX + 1 */
    unsigned retries : 5; /* other peers that may still be asked */
    unsigned overlap : 4; /* of kith_message; it made the weight */
    bool running : 1;     /* its work item is out */
    bool abort_due : 1;   /* it is taken back when that item is done */
    bool broken : 1;      /* the link broke after our answer left */
    bool acked : 1;       /* the other side's half is done */
    struct kith_work_edge edge;
};
#define KITH_RETRIES_MAX 31u
_Static_assert(KITH_RETRIES_MAX + 1 == KITH_ASKS, "one counter each");
_Static_assert(INITIATOR_UNDO < 16 && KITH_PATTERN_COUNT <= 8 &&
                   KITH_TRIES_MAX + 1 < 8 && KITH_PROBES_MAX + 1 < 32 &&
                   KITH_OVERLAP_MAX < 16,
               "the bits of an exchange hold their values");

/* Nobody has asked for so many steps: the next one is not prepared for. */
#define KITH_PREPARES_STEPS 16u
/* No exchange of the table. */
#define KITH_EXCHANGE_NONE UINT32_MAX
_Static_assert(2 * KITH_EXCHANGES_LIMIT <= 8,
               "kith_node.exchange_mask has 8 bits");

/* What node.c calls where there may be exchanges, whatever the mode. */
bool kith_exchange_schedule(struct kith_node *node);
void kith_exchange_worked(struct kith_node *node, uint32_t index,
                          enum kith_work_kind kind);
void kith_exchange_message(struct kith_node *node, kith_id from,
                           const struct kith_message *message);
void kith_exchange_wake(struct kith_node *node);
void kith_exchange_link_down(struct kith_node *node, kith_id peer);
uint32_t kith_exchange_inbox(const struct kith_node *node, kith_id from,
                             const struct kith_message *model);
uint32_t kith_exchange_needed(const struct kith_node *node);
struct kith_settled kith_exchange_settled(const struct kith_node *responder,
                                          const struct kith_node *initiator,
                                          struct kith_exchange_id id);
kith_ns kith_exchange_deadline(struct kith_node *node);
bool kith_exchange_is_quiet(const struct kith_node *node);
bool kith_exchange_is_finished(const struct kith_node *node);

void kith_exchange_init(struct kith_node *node);
/* Into the TRAIN item: the snapshot with which the next swap is answered. */
void kith_exchange_prepare(struct kith_node *node);
/* A pull is answered, which may carry far more than what was measured. */
bool kith_exchange_is_pulled(const struct kith_node *node);
/* Its other side held it, and let it lapse. */
void kith_exchange_warn(struct kith_node *node,
                        const struct kith_exchange *exchange);
/* Says `kind` about an exchange to its other side. */
void kith_exchange_tell(const struct kith_node *node,
                        const struct kith_exchange *exchange,
                        enum kith_message_kind kind);
/* Answers a message about an exchange that is not in the table (any more). */
void kith_exchange_reply(const struct kith_node *node, kith_id to,
                         const struct kith_message *about,
                         enum kith_message_kind kind);
void kith_exchange_undone(struct kith_node *node,
                          const struct kith_exchange *exchange);
/* The model that a MODEL brought may be merged; false: it is refused. */
bool kith_exchange_take(struct kith_node *node, struct kith_exchange *exchange,
                        const struct kith_message *message);
/* Of swaps with `peer` one at a time is asked for, and one answered: a peer of
 * few neighbours would repeat itself, which takes weight from the first. */
bool kith_exchange_is_single(const struct kith_node *node, kith_id peer);
/* The weight of a swap while `overlap` are under way at its busier end, such
 * that exchanges which overlap, each against a snapshot of before the others,
 * add up to an average.
 * Test: unit/test_overlap.c; measured: docs/validation.md. */
double kith_exchange_weight(const struct kith_node *node, kith_id peer,
                            uint32_t overlap);
/* Takes `overlap`, which a peer sent, and its weight, once no item is out;
 * false: no exchange has that. */
bool kith_exchange_weigh(const struct kith_node *node,
                         struct kith_exchange *exchange, uint32_t overlap);
/* Exchanges whose half this peer has still to merge, `exchange` among them. */
uint32_t kith_exchange_overlap(const struct kith_node *node);
/* Its slots are free again. */
void kith_exchange_end(const struct kith_node *node,
                       struct kith_exchange *exchange);
/* One exchange at a time: what is answered comes first. */
bool kith_exchange_defers(const struct kith_node *node);
/* Who takes part in one exchange at a time answers nobody while it asks: it
 * listens about as long as it asked before it asks again, or neighbours whose
 * steps are short beside a round trip would all ask and none answer. */
void kith_exchange_listen(struct kith_node *node,
                          struct kith_exchange *exchange);
/* Its deadline passed long ago: it was we who stood still, and what came
 * meanwhile is still to be read. Nobody is charged for that. */
bool kith_exchange_overslept(const struct kith_node *node,
                             const struct kith_exchange *exchange);
/* Asks again over a new link, soon but not at once. */
void kith_exchange_hurry(const struct kith_node *node,
                         struct kith_exchange *exchange);

/* What travels: the initiator's model, the responder's; a push splits its share
 * off x, which must come back if it never arrives. */
static inline bool kith_exchange_gives(const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->pattern != KITH_PATTERN_ROUND);
    return exchange->pattern != KITH_PATTERN_PULL;
}
static inline bool kith_exchange_brings(const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->pattern != KITH_PATTERN_ROUND);
    return exchange->pattern != KITH_PATTERN_PUSH;
}
/* One side of an exchange: what exchange.c calls for a record of the table. */
struct kith_exchange_side {
    /* The item that it waits for, in a state of is_due; KITH_WORK_COUNT: none
     * of this pattern. */
    enum kith_work_kind (*due)(const struct kith_exchange *exchange);
    void (*worked)(struct kith_node *node, struct kith_exchange *exchange,
                   enum kith_work_kind kind);
    /* `exchange` is NULL where the message is about none of the table. */
    void (*message)(struct kith_node *node, struct kith_exchange *exchange,
                    kith_id from, const struct kith_message *message);
    void (*wake)(struct kith_node *node, struct kith_exchange *exchange);
    void (*link_down)(struct kith_node *node, struct kith_exchange *exchange);
    uint32_t is_due;       /* bit s: in state s an item may be due */
    uint32_t awaits_model; /* bit s: in state s a MODEL may come */
    uint32_t is_ahead;     /* bit s: our half is still to be merged */
    /* Bit s: what stands in its snapshot, in its inbox, is still asked for. An
     * item that is out may fill the snapshot. */
    uint32_t holds_sent, holds_inbox;
};
extern const struct kith_exchange_side kith_initiator, kith_responder;

/* exchange_turns.c: a peer was refused a record in favour of others; had one,
 * or was asked by us; gave it up. */
void kith_turn_refused(struct kith_node *node, kith_id from);
void kith_turn_served(struct kith_node *node, kith_id peer);
void kith_turn_given_up(struct kith_node *node,
                        const struct kith_exchange *exchange);
/* Is the record kept for others? */
bool kith_turn_is_others(struct kith_node *node, kith_id from);
/* A neighbour that is owed one and not to be avoided, else KITH_NOBODY. */
kith_id kith_turn_owed(struct kith_node *node, const kith_id *avoid,
                       uint32_t count);

/* exchange_partner.c: dials the partners of the first draws. */
void kith_exchange_start(struct kith_node *node);
bool kith_exchange_is_in(const kith_id *list, uint32_t count, kith_id id);
/* Draws a partner by the topology; those left out serve where nobody else is
 * left. False when alone, or when all may not be asked now. */
bool kith_exchange_draw(struct kith_node *node, struct kith_exchange *exchange);

/* exchange_initiator.c: asks a partner. */
void kith_exchange_open(struct kith_node *node, enum kith_pattern pattern);
/* Has this peer completed what it opened under that number, and remembers? */
bool kith_exchange_is_completed(const struct kith_node *node,
                                struct kith_exchange_id id);
/* A restarted peer, or one whose own step went non-finite, pulls a neighbour's
 * model before it trains on. */
void kith_exchange_adopt(struct kith_node *node);

#endif
