/* The node's own state, shared by the files of this folder.
 *
 *   node.c                events, training, what runs next
 *   suspects.c            peers that are left out for a while
 *   round_trip.c          deadlines from measured round trips
 *
 *   exchange.c            two-party exchanges: the table of those under way
 *   exchange_initiator.c  the side that asks
 *   exchange_responder.c  the side that is asked
 *
 *   round.c               rounds with all neighbours: what the modes share
 *   round_mutual.c        both ends of an edge merge or neither does
 *   round_cast.c          each message goes one way, whatever comes back
 *   round_mailbox.c       training never waits; what came last is merged
 *   round_edge.c          one neighbour of a round
 *   round_neighbours.c    who the neighbours are, how past rounds ended
 *   round_rejoin.c        catching up after crashes and partitions
 *
 * Every function that decides something gets `node` and `effects`; the time is
 * node->now_ns, that of the event. */
#ifndef KITH_PROTOCOL_CORE_NODE_STATE_H
#define KITH_PROTOCOL_CORE_NODE_STATE_H

#include "kith/assert.h"
#include "kith/node.h"

/* Running mean and mean deviation of a duration (Jacobson and Karels, SIGCOMM
 * 1988; RFC 6298 with its gains 1/8 and 1/4), in integers. */
struct kith_estimate {
    int32_t mean_us, deviation_us; /* <= 120 s; mean 0: never measured */
};
void kith_estimate_add(struct kith_estimate *estimate, kith_ns sample_ns);
/* 4 (mean + 4 deviation), at least KITH_TIMEOUT_MIN_NS; `initial_ns` before the
 * first sample; doubled `tries` times, capped at KITH_TIMEOUT_MAX_NS. */
kith_ns kith_estimate_timeout(const struct kith_estimate *estimate,
                              kith_ns initial_ns, uint32_t tries);

/* Below this a busy machine's scheduling noise would look like a fault. */
#define KITH_TIMEOUT_MIN_NS (100 * KITH_MS)
#define KITH_TIMEOUT_MAX_NS (120 * KITH_S)
/* RFC 6298's first guess; a transfer adds its bytes at 10 Mbit/s. */
#define KITH_TIMEOUT_INITIAL_NS KITH_S
#define KITH_INITIAL_BITS_PER_S 10000000u
/* A message is repeated this often before the other side is declared dead. */
#define KITH_TRIES_MAX 4u
/* A peer that always answers "still busy" is given up after this many; it is
 * then 16 times as slow as the slowest deadline allows for. */
#define KITH_PROBES_MAX 16u
/* Past outcomes kept for a late PROBE: one bit each. */
#define KITH_OUTCOMES 64u
/* A restarted peer gives up adopting after this many failed pulls; after the
 * n-th it waits 2^n times KITH_PULL_WAIT_NS, three seconds in all. */
#define KITH_PULLS_MAX 8u
#define KITH_PULL_WAIT_NS (KITH_TIMEOUT_MIN_NS / 8)
/* On LEAVE a round that the last step began may finish for so long; the driver
 * waits twice that. */
#define KITH_LEAVE_NS (500 * KITH_MS)

/* ---- Two-party exchanges. */

enum initiator_state {
    INITIATOR_IDLE,
    INITIATOR_SNAPSHOT, /* swap: our snapshot is taken before the request */
    INITIATOR_ASKED,    /* REQUEST sent */
    INITIATOR_SPLIT,    /* push: accepted, our share is being split off */
    INITIATOR_SENT,     /* MODEL sent, or a pull accepted: an answer is due */
    INITIATOR_MERGE,    /* their model is in the inbox, to be merged */
    INITIATOR_ABORTING, /* ABORT sent, to be acknowledged */
    INITIATOR_UNDO,     /* push: never arrived, our share comes back */
};

enum responder_state {
    RESPONDER_IDLE,
    RESPONDER_ACCEPTED, /* ACCEPT sent, their MODEL is due (pull: snapshot) */
    RESPONDER_MERGE,    /* their model is in the inbox, to be merged */
    RESPONDER_MERGED,   /* our half is done and answered: ACK is due */
    RESPONDER_UNDO,     /* ABORT came after the merge */
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
    uint8_t state : 4, pattern : 4;
    uint8_t tries : 4;  /* of the message that is repeated, <= TRIES_MAX + 1 */
    bool running : 1;   /* its work item is out */
    bool abort_due : 1; /* ABORT came while its work item was out */
    bool broken : 1;    /* the link broke after our answer left */
    uint8_t probes;     /* "still busy" heard, <= PROBES_MAX + 1 */
    uint8_t retries;    /* other peers that may still be asked */
    struct kith_work_edge edge;
};
_Static_assert(INITIATOR_UNDO < 16 && KITH_PATTERN_COUNT <= 16 &&
                   KITH_TRIES_MAX + 1 < 16,
               "state, pattern and tries have four bits each");

/* The table of exchanges under way: first those that this peer initiates, then
 * those that it answers. A larger table needs slots of work.h for each. */
#define KITH_INITIATED_MAX 1u
#define KITH_ANSWERED_MAX 1u
#define KITH_EXCHANGES_MAX (KITH_INITIATED_MAX + KITH_ANSWERED_MAX)

struct kith_suspect {
    kith_id peer;
    uint32_t until_ms;
};

/* ---- Rounds. */

enum edge_decision { EDGE_OPEN, EDGE_COMMITTED, EDGE_DROPPED };

/* What is known of one neighbour in one round. */
enum edge_flag {
    EDGE_OUT = 1u << 0,         /* we send to it */
    EDGE_IN = 1u << 1,          /* it sends to us */
    EDGE_MADE = 1u << 2,        /* this round has a message for it */
    EDGE_RECEIVED = 1u << 3,    /* its model is in the inbox */
    EDGE_TOLD_READY = 1u << 4,  /* we said READY, so it may commit */
    EDGE_HEARD_READY = 1u << 5, /* it holds our model */
    EDGE_DOWN = 1u << 6,        /* left out until it is heard again */
    EDGE_GIVEN_UP = 1u << 7,    /* cast: its sender gave this round up before it
                                   began here */
};

/* One neighbour of one round. */
struct kith_round_edge {
    double weight;                    /* of what comes from it */
    double share;                     /* of x that goes to it */
    double split;                     /* what that took from the sum of x */
    double scalars[KITH_SCALARS_MAX]; /* received */
    uint64_t said;                    /* the furthest round it spoke of */
    kith_id peer;
    uint32_t incarnation; /* whose model it is */
    uint32_t flags;       /* edge_flag */
    uint8_t decision;
    uint8_t tries;  /* PROBEs in doubt */
    uint8_t silent; /* rounds dropped since it was last heard */
    /* Mailbox: which of its two inboxes holds what came last, and which one is
     * being merged. */
    uint8_t held, merging;
};

/* The neighbours of one round, ascending; graphs may change from round to
 * round. A neighbour may be a round ahead, so there are two lists, by the
 * round's lowest bit, with an inbox each. */
struct kith_round_list {
    uint64_t round;
    uint32_t count;
    struct kith_round_edge *edges; /* (count) */
    kith_id *peers;                /* (count) theirs, to search in */
};

/* How a round that was opened ended, for a late query. */
struct kith_round_outcome {
    uint64_t round, committed; /* bit e: edge e of that round was */
};

/* A peer says that it is in a round. */
struct kith_round_claim {
    uint64_t round;
    kith_id peer;
};
#define KITH_EARLY_MAX 16u
/* Rounds after one that somebody was missing in: where neighbours change, those
 * that still think that we are dead show up one by one. */
#define KITH_WARY_ROUNDS 16u

enum round_state {
    ROUND_CLOSED,   /* nothing open */
    ROUND_SNAPSHOT, /* due to open: our snapshot is being taken */
    ROUND_OPEN,     /* models are under way */
    ROUND_MERGE,    /* every edge is decided */
};

struct kith_round {
    uint64_t round; /* open, or next to open */
    kith_ns opened_ns, deadline_ns;
    uint8_t state;
    bool running;     /* its work item is out */
    bool merged;      /* mailbox: this round's merge is done */
    bool lapsed;      /* an edge of it was left out at the deadline */
    bool passing;     /* mailbox: it passes on what a peer in training sent */
    uint8_t patience; /* rounds in a row that lapsed */
    uint8_t wary;     /* rounds in which what is missing is asked for */
    uint32_t early_count;
    struct kith_round_list lists[2];
    struct kith_work_edge *work; /* (degree), gathered for each item */
    uint64_t share;              /* rounds of all steps */
    uint64_t most; /* highest plausible round number; larger ones are ignored */
    struct kith_round_claim furthest[2]; /* of two peers */
    uint64_t generations, passed; /* mailbox: above those heard, passed on */
    /* Models that came more than a round too early: there was no inbox. */
    struct kith_round_claim early[KITH_EARLY_MAX];     /* (early_count) */
    struct kith_round_outcome outcomes[KITH_OUTCOMES]; /* round % OUTCOMES */
};

/* ---- The node. */

/* Which part of the node the item that is out belongs to. */
enum owner {
    OWNER_NONE,
    OWNER_UNSTARTED, /* before START nothing runs */
    OWNER_TRAIN,
    OWNER_SAVE,
    OWNER_ROUND,
    OWNER_EXCHANGE, /* + its index in the table */
};

/* What every event asks for stands in front. */
struct kith_node {
    const struct kith_node_config *config;
    const struct kith_mode *mode;
    struct kith_round *round; /* NULL unless the pattern is ROUND */
    kith_ns now_ns;           /* of the event at hand */
    uint64_t steps;
    kith_ns save_ns;    /* next SAVE */
    kith_ns leave_ns;   /* told to leave: until then the last round ends */
    kith_ns blocked_ns; /* training held back since, KITH_NEVER: it is not */
    kith_id self;
    uint8_t owner;
    uint8_t pulls;   /* failed pulls while adopting */
    uint8_t charged; /* bit s: suspects[s] wasted our time */
    bool leaving, adopting, trigger_due, saving_due;
    struct kith_suspect suspects[KITH_SUSPECTS_MAX];
    struct kith_exchange exchanges[KITH_EXCHANGES_MAX];
    struct kith_estimate control, turn; /* REQUEST -> ACCEPT; MODEL -> answer */
    kith_ns waited_ns;
    uint64_t next_counter; /* of our next exchange */
    uint64_t outcomes;     /* bit k: exchange next_counter - 1 - k merged */
    uint32_t draws;        /* partners drawn: the position in that stream */
    uint32_t incarnation;
    uint32_t attempts, skipped, refused, done, failed, torn, serving, bad,
        gated, undone, late;
};

/* How a node takes part in the protocol: one record a mode, at the end of the
 * mode's file. Pulls are two-party exchanges in every mode, so the handlers of
 * a round call those of the exchange. */
struct kith_mode {
    /* ---- What kith_node_step calls. */
    void (*trigger)(struct kith_node *node, struct kith_effects *effects);
    /* A trigger is skipped while one is open; it waits; the next step waits. */
    bool (*is_open)(const struct kith_node *node);
    bool (*defers_trigger)(const struct kith_node *node);
    bool (*holds_training)(const struct kith_node *node);
    /* Puts the next work item into the effects, if there is one. */
    bool (*schedule)(struct kith_node *node, struct kith_effects *effects);
    /* Nothing of our own is due; NULL: nothing to do for others. */
    void (*idle)(struct kith_node *node, struct kith_effects *effects);
    void (*message)(struct kith_node *node, struct kith_effects *effects,
                    kith_id from, const struct kith_message *message);
    void (*wake)(struct kith_node *node, struct kith_effects *effects);
    void (*link_down)(struct kith_node *node, struct kith_effects *effects,
                      kith_id peer);
    /* BYE was heard; LEAVE was told. */
    void (*peer_left)(struct kith_node *node, struct kith_effects *effects,
                      kith_id peer);
    void (*leave)(struct kith_node *node, struct kith_effects *effects);
    uint32_t (*inbox)(const struct kith_node *node, kith_id from,
                      const struct kith_message *model);
    kith_ns (*deadline)(const struct kith_node *node);
    bool (*is_quiet)(const struct kith_node *node);
    bool (*is_finished)(const struct kith_node *node);

    /* ---- What round.c calls: how the edges of a round behave. */
    uint8_t
        list_mask;   /* round & mask: which of the two lists; 0: one for all */
    bool says_round; /* a message's `step` is its sender's round, else step */
    /* The round at hand: its snapshot is taken, it is merged, it is over. */
    void (*opened)(struct kith_node *node, struct kith_effects *effects);
    void (*merged)(struct kith_node *node, struct kith_effects *effects);
    void (*closed)(struct kith_node *node, struct kith_effects *effects,
                   bool missed);
    bool (*is_merged)(const struct kith_round_edge *edge);
    /* Where the model of edge `e` for round `number` belongs. */
    uint32_t (*edge_inbox)(const struct kith_node *node, uint32_t e,
                           uint64_t number);
    /* MODEL and READY; `edge` is the sender's in the round at hand, or NULL. */
    void (*model)(struct kith_node *node, struct kith_effects *effects,
                  struct kith_round_edge *edge, kith_id from,
                  const struct kith_message *message);
    void (*ready)(struct kith_node *node, struct kith_effects *effects,
                  struct kith_round_edge *edge, kith_id from, uint64_t number);
    /* ACK, ABORT and PROBE; `edge` is NULL unless it is open in that round. */
    void (*ack)(struct kith_node *node, struct kith_round_edge *edge);
    void (*aborted)(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge, kith_id from,
                    uint64_t number);
    void (*probe)(struct kith_node *node, struct kith_effects *effects,
                  struct kith_round_edge *edge, kith_id from, uint64_t number);
    /* A model comes again that was merged already. */
    void (*confirm)(struct kith_node *node, struct kith_effects *effects,
                    kith_id from, uint64_t number);
    /* REQUEST for a model that came too early; NULL: none is sent again. */
    void (*resend)(const struct kith_node *node, struct kith_effects *effects,
                   const struct kith_round_edge *edge);
    /* Any message of this edge's peer was heard; NULL: nothing follows. */
    void (*heard)(struct kith_node *node, struct kith_effects *effects,
                  struct kith_round_edge *edge);
    /* An open edge: there is no message for it; what can be said or done by
     * now; the deadline (false: it is in doubt). */
    void (*unsent)(struct kith_node *node, struct kith_effects *effects,
                   struct kith_round_edge *edge);
    void (*advance)(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge);
    bool (*settle)(struct kith_node *node, struct kith_effects *effects,
                   struct kith_round_edge *edge);
    /* The link to `peer` broke; `edge` as for ACK. */
    void (*edge_down)(struct kith_node *node, struct kith_effects *effects,
                      struct kith_round_edge *edge, kith_id peer);
};
extern const struct kith_mode kith_mode_exchange, kith_mode_mutual,
    kith_mode_cast, kith_mode_mailbox;

/* The handlers of node.c that all modes of rounds have. */
#define KITH_ROUND_HANDLERS                                                    \
    .is_open = kith_round_is_open, .schedule = kith_round_schedule,            \
    .message = kith_round_message, .wake = kith_round_wake,                    \
    .link_down = kith_round_link_down, .peer_left = kith_round_peer_left,      \
    .leave = kith_round_leave, .inbox = kith_round_inbox,                      \
    .deadline = kith_round_deadline, .is_finished = kith_round_is_finished

/* ---- node.c. Effects are appended, bounded by KITH_ASSERT. */

void kith_node_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_exchange *exchange, kith_id peer,
                    uint64_t value, double sum);
/* `peer` broke the protocol with a message of this kind. */
void kith_node_bad(struct kith_node *node, struct kith_effects *effects,
                   const struct kith_exchange *exchange, kith_id peer,
                   const struct kith_message *message);
/* A message that goes out, to be written where it stays: the simulator says
 * millions of them a second. */
static inline struct kith_message *kith_node_send(struct kith_effects *effects,
                                                  kith_id to)
{
    KITH_ASSERT(effects->send_count < KITH_EFFECT_SENDS);
    struct kith_send *send = &effects->sends[effects->send_count++];
    send->to = to;
    return &send->message;
}
/* Nothing of this slot may be sent any more. */
void kith_node_cancel(struct kith_effects *effects, uint32_t slot);
/* Until an answer to a REQUEST, to a MODEL is overdue. */
kith_ns kith_node_control_timeout(const struct kith_node *node, uint32_t tries);
kith_ns kith_node_turn_timeout(const struct kith_node *node, uint32_t tries);
/* The worker is free: it gets this item, `step` is filled in. */
void kith_node_work(struct kith_node *node, struct kith_effects *effects,
                    uint32_t owner, struct kith_work work);
/* Scalars of a MODEL are sane, all of them, and its values are finite. */
bool kith_node_sane(const struct kith_node *node,
                    const struct kith_message *model);
static inline kith_ns kith_node_earliest(kith_ns a, kith_ns b)
{
    return a < b ? a : b;
}
static inline bool kith_node_has(const struct kith_node *node,
                                 enum kith_algorithm_flag flag)
{
    return node->config->algorithm->flags & flag;
}

/* ---- suspects.c */

/* Left out for a while: it did not answer, or said BYE. */
void kith_node_suspect(struct kith_node *node, struct kith_effects *effects,
                       kith_id peer, kith_ns span_ns);
/* A suspect that held an exchange which we answer and let it lapse: until the
 * span is over it is answered BUSY, and no message of its own ends that. */
void kith_node_charge(struct kith_node *node, struct kith_effects *effects,
                      kith_id peer, kith_ns span_ns);
bool kith_node_is_charged(const struct kith_node *node, kith_id peer);
bool kith_node_is_suspect(const struct kith_node *node, kith_id peer);
/* It was heard: unless it is charged, it is a suspect no more. */
void kith_node_forgive(struct kith_node *node, kith_id peer);
/* Those whose span is not over; how many. */
uint32_t kith_node_suspects(struct kith_node *node,
                            kith_id suspects[KITH_SUSPECTS_MAX]);

/* ---- exchange.c */

/* Handlers of kith_mode_exchange that a round's call. */
bool kith_exchange_schedule(struct kith_node *node,
                            struct kith_effects *effects);
void kith_exchange_worked(struct kith_node *node, struct kith_effects *effects,
                          uint32_t index, enum kith_work_kind kind);
void kith_exchange_message(struct kith_node *node, struct kith_effects *effects,
                           kith_id from, const struct kith_message *message);
void kith_exchange_wake(struct kith_node *node, struct kith_effects *effects);
void kith_exchange_link_down(struct kith_node *node,
                             struct kith_effects *effects, kith_id peer);
uint32_t kith_exchange_inbox(const struct kith_node *node, kith_id from,
                             const struct kith_message *model);
kith_ns kith_exchange_deadline(const struct kith_node *node);
bool kith_exchange_is_quiet(const struct kith_node *node);
bool kith_exchange_is_finished(const struct kith_node *node);

void kith_exchange_init(struct kith_node *node);
/* Holds after every event. */
void kith_exchange_check(const struct kith_node *node);
/* A pull is answered, which may carry far more than what was measured. */
bool kith_exchange_is_pulled(const struct kith_node *node);
/* Says `kind` about an exchange to its other side. */
void kith_exchange_tell(const struct kith_node *node,
                        struct kith_effects *effects,
                        const struct kith_exchange *exchange,
                        enum kith_message_kind kind);
/* Answers a message about an exchange that is not in the table (any more). */
void kith_exchange_reply(const struct kith_node *node,
                         struct kith_effects *effects, kith_id to,
                         const struct kith_message *about,
                         enum kith_message_kind kind);
/* Puts the item that this exchange waits for into the effects. */
void kith_exchange_work(struct kith_node *node, struct kith_effects *effects,
                        struct kith_exchange *exchange,
                        enum kith_work_kind kind);
void kith_exchange_undone(struct kith_node *node, struct kith_effects *effects,
                          const struct kith_exchange *exchange);
/* The model that a MODEL brought may be merged; false: it is refused. */
bool kith_exchange_take(struct kith_node *node, struct kith_effects *effects,
                        struct kith_exchange *exchange,
                        const struct kith_message *message);
/* Its slots are free again. */
void kith_exchange_end(struct kith_effects *effects,
                       struct kith_exchange *exchange);
/* Asks again over a new link, soon but not at once. */
void kith_exchange_hurry(const struct kith_node *node,
                         struct kith_exchange *exchange);
uint32_t kith_exchange_index(const struct kith_node *node,
                             const struct kith_exchange *exchange);

static inline bool kith_exchange_is_ours(const struct kith_node *node,
                                         const struct kith_exchange *exchange)
{
    return exchange < &node->exchanges[KITH_INITIATED_MAX];
}

/* What travels: the initiator's model, the responder's; a push splits its share
 * off x, which must come back if it never arrives. */
static inline bool kith_exchange_gives(const struct kith_exchange *exchange)
{
    return exchange->pattern != KITH_PATTERN_PULL;
}
static inline bool kith_exchange_brings(const struct kith_exchange *exchange)
{
    return exchange->pattern != KITH_PATTERN_PUSH;
}
static inline bool kith_exchange_is_push(const struct kith_exchange *exchange)
{
    return !kith_exchange_brings(exchange);
}

/* One side of an exchange: what exchange.c calls for a record of the table. */
struct kith_exchange_side {
    /* The item that it waits for, KITH_WORK_COUNT: none. */
    enum kith_work_kind (*due)(const struct kith_exchange *exchange);
    void (*worked)(struct kith_node *node, struct kith_effects *effects,
                   struct kith_exchange *exchange, enum kith_work_kind kind);
    /* `exchange` is NULL where the message is about none of the table. */
    void (*message)(struct kith_node *node, struct kith_effects *effects,
                    struct kith_exchange *exchange, kith_id from,
                    const struct kith_message *message);
    void (*wake)(struct kith_node *node, struct kith_effects *effects,
                 struct kith_exchange *exchange);
    void (*link_down)(struct kith_node *node, struct kith_effects *effects,
                      struct kith_exchange *exchange);
    uint8_t awaits_model; /* the state in which a MODEL may come */
};
extern const struct kith_exchange_side kith_initiator, kith_responder;

/* exchange_initiator.c: asks a partner, drawn by the topology. */
void kith_exchange_open(struct kith_node *node, struct kith_effects *effects,
                        enum kith_pattern pattern);
/* A restarted peer, or one whose own step went non-finite, pulls a neighbour's
 * model before it trains on. */
void kith_exchange_adopt(struct kith_node *node, struct kith_effects *effects);

/* ---- What a round's message asks again and again. */

static inline const struct kith_round_list *
kith_round_list_of(const struct kith_node *node, uint64_t number)
{
    return &node->round->lists[number & node->mode->list_mask];
}

/* The open round's list, or the next one's. */
static inline const struct kith_round_list *
kith_round_current(const struct kith_node *node)
{
    return kith_round_list_of(node, node->round->round);
}

/* By halves, without a branch: the last one that is not above `peer`. */
static inline struct kith_round_edge *
kith_round_find(const struct kith_round_list *list, kith_id peer)
{
    const kith_id *at = list->peers;
    for (uint32_t count = list->count, half; count > 1; count -= half) {
        half = count / 2;
        at = at[half] <= peer ? at + half : at;
    }
    return list->count > 0 && *at == peer ? &list->edges[at - list->peers]
                                          : NULL;
}

/* Of an edge's two ends, is it ours that decides? */
static inline bool kith_edge_decides(const struct kith_node *node, kith_id peer)
{
    return node->self < peer;
}

/* Its peer has closed the round at hand, or will never open it. */
static inline bool kith_edge_is_past(const struct kith_node *node,
                                     const struct kith_round_edge *edge)
{
    return edge->said > node->round->round;
}

/* Our snapshot is taken: neither closed nor about to open. */
static inline bool kith_round_has_begun(const struct kith_node *node)
{
    return node->round->state == ROUND_OPEN ||
           node->round->state == ROUND_MERGE;
}

/* It is undecided, in the round at hand. `edge` may be NULL. */
static inline bool kith_edge_is_open(const struct kith_node *node,
                                     const struct kith_round_edge *edge,
                                     uint64_t number)
{
    return edge != NULL && number == node->round->round &&
           node->round->state == ROUND_OPEN && edge->decision == EDGE_OPEN;
}

/* ---- round_neighbours.c */

/* The first round of the trigger after so many own steps. */
uint64_t kith_round_after(const struct kith_node *node, uint64_t steps);
/* The first of a trigger's rounds, from this one on. */
uint64_t kith_round_begins(const struct kith_node *node, uint64_t number);
/* Between two rounds of one trigger. */
bool kith_round_is_within(const struct kith_node *node);
/* Will there be a round of that number before our share is done? */
bool kith_round_comes(const struct kith_node *node, uint64_t number);
size_t kith_round_size(const struct kith_node_config *config);
void kith_round_init(struct kith_node *node, void *memory);
/* Go on with round `number`: nothing that came for another one is kept. */
void kith_round_jump(struct kith_node *node, uint64_t number);
/* The list of `number` in the place of the one two rounds before. */
void kith_round_list_fill(struct kith_node *node, uint64_t number);
void kith_round_set_down(struct kith_node *node, kith_id peer);
/* It let a round lapse: after two it is left out. */
void kith_round_count_silent(struct kith_node *node,
                             struct kith_effects *effects, kith_id peer);
/* Where the graph changes, a neighbour of a later round may be far ahead: its
 * model is discarded, and asked for again as soon as there is an inbox. */
void kith_round_note_early(struct kith_node *node, kith_id peer,
                           uint64_t number);
/* The outcome of the open round is kept for late queries. */
void kith_round_remember(struct kith_node *node);
/* A later round has taken its place there: nobody can say. */
bool kith_round_is_forgotten(const struct kith_node *node, uint64_t number);
bool kith_round_was_committed(const struct kith_node *node, kith_id peer,
                              uint64_t number);

/* ---- round_rejoin.c */

/* Any message: its sender is alive, and in that round. */
void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said);
/* The open round is over. Was anybody missing? */
bool kith_round_review(struct kith_node *node);
/* Go on where two others are, if they are further than the next round. */
void kith_round_catch_up(struct kith_node *node, struct kith_effects *effects);
/* Go on with round `number`, and tell those that wait for us in ours. */
void kith_round_rejoin(struct kith_node *node, struct kith_effects *effects,
                       uint64_t number);
/* Where models came too early: there is an inbox for them now, or their round
 * is left out. */
void kith_round_ask_early(struct kith_node *node, struct kith_effects *effects);

/* ---- round_edge.c */

void kith_round_tell(const struct kith_node *node, struct kith_effects *effects,
                     kith_id peer, enum kith_message_kind kind,
                     uint64_t number);
/* Decides whether this round has a message for it. */
void kith_edge_plan(const struct kith_node *node, struct kith_round_edge *edge);
/* Its message goes out, if there is one. */
void kith_edge_open(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge);
void kith_edge_send(const struct kith_node *node, struct kith_effects *effects,
                    const struct kith_round_edge *edge);
/* An open edge ends: what came over it is merged, or it is left out. */
void kith_edge_commit(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_drop(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge);
/* It takes no part in this round, which is nobody's failure. */
void kith_edge_leave_out(struct kith_node *node, struct kith_effects *effects,
                         struct kith_round_edge *edge);
void kith_edge_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_round_edge *edge, double sum);
/* Advances an edge of the open round, as its mode does. */
void kith_edge_advance(struct kith_node *node, struct kith_effects *effects,
                       struct kith_round_edge *edge);
void kith_edge_advance_all(struct kith_node *node,
                           struct kith_effects *effects);
/* An edge's index in its list, which names its slots. */
uint32_t kith_edge_index(const struct kith_round_list *list,
                         const struct kith_round_edge *edge);

/* ---- round_cast.c: what a mailbox's edges do, too. */

void kith_cast_unsent(struct kith_node *node, struct kith_effects *effects,
                      struct kith_round_edge *edge);
bool kith_cast_settle(struct kith_node *node, struct kith_effects *effects,
                      struct kith_round_edge *edge);
void kith_cast_ack(struct kith_node *node, struct kith_round_edge *edge);
void kith_cast_abort(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge, kith_id from,
                     uint64_t number);
void kith_cast_probe(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge, kith_id from,
                     uint64_t number);
void kith_cast_confirm(struct kith_node *node, struct kith_effects *effects,
                       kith_id from, uint64_t number);
void kith_cast_edge_down(struct kith_node *node, struct kith_effects *effects,
                         struct kith_round_edge *edge, kith_id peer);

/* ---- round.c */

/* Handlers of every mode of rounds: KITH_ROUND_HANDLERS, and */
bool kith_round_is_open(const struct kith_node *node);
bool kith_round_schedule(struct kith_node *node, struct kith_effects *effects);
void kith_round_message(struct kith_node *node, struct kith_effects *effects,
                        kith_id from, const struct kith_message *message);
void kith_round_wake(struct kith_node *node, struct kith_effects *effects);
void kith_round_link_down(struct kith_node *node, struct kith_effects *effects,
                          kith_id peer);
void kith_round_peer_left(struct kith_node *node, struct kith_effects *effects,
                          kith_id peer);
void kith_round_leave(struct kith_node *node, struct kith_effects *effects);
uint32_t kith_round_inbox(const struct kith_node *node, kith_id from,
                          const struct kith_message *model);
kith_ns kith_round_deadline(const struct kith_node *node);
bool kith_round_is_quiet(const struct kith_node *node);
bool kith_round_is_finished(const struct kith_node *node);
/* those of modes that training waits for. */
void kith_round_open(struct kith_node *node, struct kith_effects *effects);
bool kith_round_holds(const struct kith_node *node);
void kith_round_close(struct kith_node *node, struct kith_effects *effects);
bool kith_round_is_committed(const struct kith_round_edge *edge);
uint32_t kith_round_edge_inbox(const struct kith_node *node, uint32_t e,
                               uint64_t number);
/* The next round's list is filled, and opened if it is of the same trigger. */
void kith_round_go_on(struct kith_node *node, struct kith_effects *effects,
                      bool catches_up);
/* Stores a model that came, and returns its edge; NULL: it was refused. */
struct kith_round_edge *kith_round_take(struct kith_node *node,
                                        struct kith_effects *effects,
                                        struct kith_round_edge *edge,
                                        kith_id from,
                                        const struct kith_message *message);
/* The model is in its inbox, or was refused by the gate. */
bool kith_round_store(struct kith_node *node, struct kith_effects *effects,
                      struct kith_round_edge *edge, uint32_t inbox,
                      const struct kith_message *message);
void kith_round_try_close(struct kith_node *node, struct kith_effects *effects);
void kith_round_worked(struct kith_node *node, struct kith_effects *effects,
                       enum kith_work_kind kind);
/* Holds after every event. */
void kith_round_check(const struct kith_node *node);

#endif
