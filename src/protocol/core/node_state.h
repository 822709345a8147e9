/* The node's own state, shared by the files of this folder.
 *
 *   node.c      events, training, what runs next
 *   active.c    exchanges this peer initiates
 *   served.c    exchanges others initiate with it
 *   round.c     rounds with all neighbours
 *   round_edge.c   one neighbour of them
 *   round_list.c   who they are
 *   round_catch.c  finding back together
 *   mailbox.c      where nobody waits for them
 *   round_trip.c  deadlines from measured round trips */
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
/* Outcomes an initiator remembers for a late PROBE: one bit each. */
#define KITH_OUTCOMES 64u
/* A restarted peer gives up adopting after this many failed pulls; after the
 * n-th it waits 2^n times this, three seconds in all. */
#define KITH_PULLS_MAX 8u
/* What the last step began may take so long when a peer is told to leave; its
 * driver waits twice that. */
#define KITH_LEAVE_NS (500 * KITH_MS)
#define KITH_PULL_WAIT_NS (KITH_TIMEOUT_MIN_NS / 8)

enum active_state {
    ACTIVE_IDLE,
    ACTIVE_SNAPSHOT, /* swap: our snapshot is being taken, before the asking */
    ACTIVE_ASKED,    /* REQUEST sent */
    ACTIVE_SPLIT,    /* push: accepted, our share is being split off */
    ACTIVE_SENT,     /* MODEL sent, or a pull accepted: an answer is due */
    ACTIVE_MERGE,    /* their model is in the inbox, to be merged */
    ACTIVE_ABORTING, /* ABORT sent, to be acknowledged */
    ACTIVE_UNDO,     /* push: never arrived, our share comes back */
};

enum served_state {
    SERVED_IDLE,
    SERVED_ACCEPTED, /* ACCEPT sent, their MODEL is due (pull: snapshot) */
    SERVED_MERGE,    /* their model is in the inbox, to be merged */
    SERVED_MERGED,   /* our half is done and answered: ACK is due */
    SERVED_UNDO,     /* ABORT came after the merge */
};

/* One two-party exchange as seen from one side. */
struct kith_exchange {
    kith_ns deadline_ns, since_ns; /* of this phase */
    uint64_t counter;
    uint32_t incarnation; /* of the initiator */
    uint8_t state, pattern, tries, probes;
    bool running;   /* its work item is out */
    bool abort_due; /* ABORT came while its work item was out */
    bool broken;    /* the link broke after our answer left */
    struct kith_work_edge edge;
};

struct kith_suspect {
    kith_id peer;
    uint32_t until_ms;
};

enum edge_decision { EDGE_OPEN, EDGE_COMMITTED, EDGE_DROPPED };

/* One neighbour of one round. */
struct kith_round_edge {
    double weight;                    /* of what comes from it */
    double share;                     /* of x that goes to it */
    double split;                     /* what that took from the sum of x */
    double scalars[KITH_SCALARS_MAX]; /* received */
    uint64_t said;                    /* the furthest round it spoke of */
    kith_id peer;
    uint32_t incarnation; /* whose model it is */
    uint8_t decision;
    uint8_t tries;    /* PROBEs in doubt */
    uint8_t silent;   /* rounds dropped since it was last heard */
    bool out, in;     /* we send, it sends */
    bool made;        /* there is a message for it in this round */
    bool have;        /* its model is in the inbox */
    bool told_ready;  /* we said READY, so it may commit */
    bool heard_ready; /* it holds our model */
    bool down;        /* left out until it is heard again */
    bool gone; /* directed: its sender gave this round up before it began */
    /* Mailbox: which of its inboxes holds what came last, and which one is
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

/* How a round that was opened ended, for one who still asks. */
struct kith_round_past {
    uint64_t round, committed; /* bit e: edge e of that round was */
};

/* A peer says that it is in a round. */
struct kith_round_claim {
    uint64_t round;
    kith_id peer;
};
#define KITH_EARLY_MAX 16u
/* Rounds after one that somebody was missing in: where neighbours change, those
 * who still think that we are dead show up one by one. */
#define KITH_WARY_ROUNDS 16u

struct kith_round {
    uint64_t round; /* open, or next to open */
    kith_ns opened_ns, deadline_ns;
    uint8_t state;
    bool running;
    bool merged;      /* mailbox: this round's merge is done */
    bool lapsed;      /* an edge of it was left out at the deadline */
    bool passing;     /* mailbox: it passes on what one who trains sent */
    uint8_t patience; /* rounds in a row that lapsed */
    uint8_t wary;     /* rounds in which what is missing is asked for */
    bool endless;     /* more of them than can be counted */
    uint32_t early_count;
    struct kith_round_list lists[2];
    struct kith_work_edge *work; /* (degree), gathered for each item */
    uint64_t share;              /* rounds of all steps */
    uint64_t most; /* no peer can honestly be beyond: one takes a step or
                      more */
    struct kith_round_claim furthest[2]; /* of two peers */
    uint64_t generations, passed; /* mailbox: above those heard, passed on */
    /* Models that came more than a round too early: there was no inbox. */
    struct kith_round_claim early[KITH_EARLY_MAX]; /* (early_count) */
    struct kith_round_past past[KITH_OUTCOMES]; /* by round % KITH_OUTCOMES */
};
enum round_state {
    ROUND_CLOSED,   /* nothing open */
    ROUND_SNAPSHOT, /* due to open: our snapshot is being taken */
    ROUND_OPEN,     /* models are under way */
    ROUND_MERGE,    /* every edge is decided */
};

/* Which part of the node the item that is out belongs to. */
enum owner {
    OWNER_NONE,
    OWNER_TRAIN,
    OWNER_ACTIVE,
    OWNER_SERVED,
    OWNER_ROUND,
    OWNER_SAVE
};

/* What every event asks for stands in front. */
struct kith_node {
    const struct kith_node_config *config;
    struct kith_round *round; /* NULL unless the pattern is ROUND */
    uint64_t steps;
    kith_ns save_ns;    /* next SAVE */
    kith_ns leave_ns;   /* told to leave: until then the last round ends */
    kith_ns blocked_ns; /* training held back since, KITH_NEVER: it is not */
    kith_id self;
    uint8_t owner;
    uint8_t retries_left;
    uint8_t pulls; /* failed pulls while adopting */
    uint8_t
        charged; /* bit s: suspects[s] wasted our time, see kith_node_charge */
    bool started, leaving, adopting, trigger_due, saving_due;
    struct kith_suspect suspects[KITH_SUSPECTS_MAX];
    struct kith_exchange active, served;
    struct kith_estimate control, turn; /* REQUEST -> ACCEPT; MODEL -> answer */
    kith_ns waited_ns;
    uint64_t next_counter; /* of our next exchange */
    uint64_t outcomes;     /* bit k: exchange next_counter - 1 - k merged */
    uint32_t draws;        /* partners drawn: the position in that stream */
    uint32_t incarnation;
    uint32_t attempts, skipped, refused, done, failed, torn, serving, bad,
        gated, undone, late;
};

/* Effects: appended here, bounded by KITH_ASSERT. */
void kith_node_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_exchange *exchange, kith_id peer,
                    uint64_t value, double sum);
/* Says `kind` about an exchange to its other side. */
void kith_node_tell(const struct kith_node *node, struct kith_effects *effects,
                    const struct kith_exchange *exchange, bool mine,
                    enum kith_message_kind kind);
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
void kith_node_suspect(struct kith_node *node, struct kith_effects *effects,
                       kith_id peer, kith_ns now_ns, kith_ns span_ns);
/* A suspect that held our served exchange and let it lapse: until the span is
 * over it is answered BUSY, and no message of its own ends that. */
void kith_node_charge(struct kith_node *node, struct kith_effects *effects,
                      kith_id peer, kith_ns now_ns, kith_ns span_ns);
bool kith_node_is_charged(const struct kith_node *node, kith_id peer,
                          kith_ns now_ns);
void kith_node_forgive(struct kith_node *node, kith_id peer);
/* Bits per slot for which nothing may be sent any more. */
void kith_node_cancel(struct kith_effects *effects, enum kith_slot slot);
kith_ns kith_node_turn_timeout(const struct kith_node *node, uint32_t tries);
void kith_node_work(struct kith_node *node, struct kith_effects *effects,
                    enum owner owner, enum kith_work_kind kind,
                    enum kith_pattern pattern, uint64_t round,
                    struct kith_work_edge *edges, uint32_t edge_count,
                    bool snapshot_first);

/* A number that both sides of an exchange know and no other exchange has. */
static inline uint64_t
kith_exchange_number(const struct kith_exchange *exchange, kith_id initiator)
{
    return ((uint64_t)initiator << 44 ^ (uint64_t)exchange->incarnation << 36) +
           exchange->counter;
}

/* ---- What a message asks again and again. */

/* Training goes on whatever the round does. */
static inline bool kith_round_is_mailbox(const struct kith_node *node)
{
    return node->config->algorithm->wait == KITH_WAIT_NO;
}

/* What is sent leaves x: each message is an exchange, its sender's. */
static inline bool kith_round_splits(const struct kith_node *node)
{
    return node->config->algorithm->flags & KITH_SPLITS_MASS;
}

/* Each model goes its own way, whatever comes back. */
static inline bool kith_round_is_one_way(const struct kith_node *node)
{
    return kith_round_is_mailbox(node) || kith_round_splits(node) ||
           node->config->topology->kind->directed;
}

/* The open round's list, or the next one's. A mailbox has one for all. */
static inline const struct kith_round_list *
kith_round_list_of(const struct kith_node *node, uint64_t number)
{
    return &node->round->lists[kith_round_is_mailbox(node) ? 0 : number & 1];
}

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

/* Of a mutual edge's two ends, is it ours that decides? */
static inline bool kith_edge_decides(const struct kith_node *node, kith_id peer)
{
    return node->self < peer;
}

/* Both ends commit or neither does. */
static inline bool kith_edge_is_mutual(const struct kith_node *node,
                                       const struct kith_round_edge *edge)
{
    return edge->in && edge->out && !kith_round_is_one_way(node);
}

/* Its peer has closed the round at hand, or will never open it. */
static inline bool kith_edge_is_past(const struct kith_node *node,
                                     const struct kith_round_edge *edge)
{
    return !kith_round_is_mailbox(node) && edge->said > node->round->round;
}

/* Scalars of a MODEL are sane, all of them. */
bool kith_node_sane(const struct kith_node *node,
                    const struct kith_message *model);

/* active.c */
void kith_active_open(struct kith_node *node, enum kith_pattern pattern,
                      kith_ns now_ns, struct kith_effects *effects);
bool kith_active_schedule(struct kith_node *node, struct kith_effects *effects);
void kith_active_worked(struct kith_node *node, enum kith_work_kind kind,
                        kith_ns now_ns, struct kith_effects *effects);
void kith_active_message(struct kith_node *node, kith_id from,
                         const struct kith_message *message, kith_ns now_ns,
                         struct kith_effects *effects);
void kith_active_wake(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects);
void kith_active_down(struct kith_node *node, kith_id peer, kith_ns now_ns,
                      struct kith_effects *effects);

/* served.c */
bool kith_served_schedule(struct kith_node *node, struct kith_effects *effects);
void kith_served_worked(struct kith_node *node, enum kith_work_kind kind,
                        kith_ns now_ns, struct kith_effects *effects);
void kith_served_message(struct kith_node *node, kith_id from,
                         const struct kith_message *message, kith_ns now_ns,
                         struct kith_effects *effects);
void kith_served_wake(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects);
void kith_served_down(struct kith_node *node, kith_id peer, kith_ns now_ns,
                      struct kith_effects *effects);

/* round_list.c */
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
                             struct kith_effects *effects, kith_id peer,
                             kith_ns now_ns);
/* Where the graph changes, a neighbour of a later round may be far ahead: its
 * model is discarded, and asked for again as soon as there is an inbox. */
void kith_round_note_early(struct kith_node *node, kith_id peer,
                           uint64_t number);
/* How the open round stands goes into the memory of past ones. */
void kith_round_remember(struct kith_node *node);
/* A later round has taken its place there: nobody can say. */
bool kith_round_is_forgotten(const struct kith_node *node, uint64_t number);
bool kith_round_was_committed(const struct kith_node *node, kith_id peer,
                              uint64_t number);

uint32_t kith_round_inbox(const struct kith_node *node, kith_id from,
                          const struct kith_message *model);

/* round_catch.c */
/* Any message: its sender is alive, and in that round. */
void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said);
/* A one-way edge to a peer that is further is over; NULL: there is none. */
void kith_round_heed(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge);
/* The open round is over. Was anybody missing? */
bool kith_round_review(struct kith_node *node);
/* Go on where two others are, if they are further than the next round. */
void kith_round_catch_up(struct kith_node *node, struct kith_effects *effects);
/* Go on with round `number`, and tell those who wait for us in ours. */
void kith_round_rejoin(struct kith_node *node, struct kith_effects *effects,
                       uint64_t number);
/* Where somebody was missing lately: will this model come? */
void kith_round_ask(struct kith_node *node, struct kith_effects *effects,
                    const struct kith_round_edge *edge);
void kith_round_answer(struct kith_node *node, struct kith_effects *effects,
                       kith_id from, uint64_t number);
/* Where models came too early: there is an inbox for them now, or their round
 * is left out. */
void kith_round_ask_early(struct kith_node *node, struct kith_effects *effects);
/* A directed edge of a round that has not begun here: its sender is further and
 * has given it up. */
void kith_round_note_gone(struct kith_node *node, kith_id from,
                          uint64_t number);

/* mailbox.c */
uint32_t kith_mailbox_inbox(const struct kith_node *node, uint32_t e);
/* A model came. */
void kith_mailbox_hear(struct kith_node *node,
                       const struct kith_message *message);
/* One came for which there was no inbox. */
void kith_mailbox_discard(struct kith_node *node, kith_id from,
                          const struct kith_message *message,
                          struct kith_effects *effects);
/* A trigger fired: its round is a new generation. */
void kith_mailbox_catch_up(struct kith_node *node);
/* Our share is done, and there is something to pass on. */
bool kith_mailbox_is_due(const struct kith_node *node);
void kith_mailbox_pass_on(struct kith_node *node, kith_ns now_ns,
                          struct kith_effects *effects);

/* round_edge.c */
void kith_round_tell(const struct kith_node *node, struct kith_effects *effects,
                     kith_id peer, enum kith_message_kind kind,
                     uint64_t number);
/* Its message goes out, if there is one. */
void kith_edge_open(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge);
void kith_edge_send(const struct kith_node *node, struct kith_effects *effects,
                    const struct kith_round_edge *edge);
/* Says or does what can be done by now. */
void kith_edge_advance(struct kith_node *node, struct kith_effects *effects,
                       struct kith_round_edge *edge);
void kith_edge_commit(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_drop(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge);
/* A one-way edge that lapses: what came of it is merged all the same. What we
 * gave away may have arrived; it is not ours any more. */
void kith_edge_lapse(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge);
void kith_edge_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_round_edge *edge, double sum);

/* round.c */
/* A trigger fired: open the next round as soon as the last one is closed. */
void kith_round_open(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects);
bool kith_round_schedule(struct kith_node *node, struct kith_effects *effects);
void kith_round_worked(struct kith_node *node, enum kith_work_kind kind,
                       kith_ns now_ns, struct kith_effects *effects);
void kith_round_message(struct kith_node *node, kith_id from,
                        const struct kith_message *message, kith_ns now_ns,
                        struct kith_effects *effects);
void kith_round_wake(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects);
void kith_round_down(struct kith_node *node, kith_id peer,
                     struct kith_effects *effects, kith_ns now_ns);
/* Tell the neighbours, and settle what is open as at its deadline. */
void kith_round_leave(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects);

#endif
