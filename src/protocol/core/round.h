/* Rounds with all neighbours: the state of a round and of its edges.
 *
 *   round.c             states, from opening to closing
 *   round_work.c        its items: snapshot, merge, what buckets wait for
 *   round_settle.c      the deadline, lost links, leaving
 *   round_message.c     what comes in, and where it belongs
 *   round_mutual.c      both ends of an edge merge or neither does
 *   round_cast.c        each message goes one way, whatever comes back
 *   round_mailbox.c     training never waits; what came last is merged
 *   round_edge.c        one neighbour of a round
 *   round_neighbours.c  the neighbours, and how past rounds ended
 *   round_late.c        how long it waits for one that was late
 *   round_rejoin.c      catching up after crashes and partitions */
#ifndef KITH_PROTOCOL_CORE_ROUND_H
#define KITH_PROTOCOL_CORE_ROUND_H

#include "src/protocol/core/mode.h"
#include "src/protocol/core/node_state.h"

/* Past outcomes kept for a late PROBE: one bit each. */
#define KITH_OUTCOMES 64u

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
    EDGE_COMES = 1u << 8,       /* down, and heard on its way to us */
    EDGE_ASKED = 1u << 9,       /* at the deadline: does it still come? */
    EDGE_COMING = 1u << 10,     /* it says so */
    EDGE_AGAIN = 1u << 11,      /* as in the round before, where they change */
};

/* One neighbour of one round. */
struct kith_round_edge {
    double weight;                    /* of what comes from it */
    double share;                     /* of x that goes to it */
    double split;                     /* what that took from the sum of x */
    double scalars[KITH_SCALARS_MAX]; /* received */
    uint64_t said;                    /* the furthest round it spoke of */
    uint64_t began;                   /* that when the open round began */
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

/* A peer that let rounds lapse. */
struct kith_round_late {
    uint64_t who;     /* twice its rank; and 1: it was to bring something */
    uint64_t trigger; /* the last one that it let lapse */
    uint64_t out;     /* the trigger in whose cycle it is left out */
    kith_ns since_ns; /* the first one opened; 0: it was heard since */
    kith_ns spare_ns; /* until then it is not waited for on its word */
    uint8_t lapses;
    uint8_t vain;  /* in a row, none in time */
    uint8_t brief; /* the same, while it was waited for less */
};
#define KITH_LATE_MAX 16u
/* Deadlines are doubled so often at most, and within the bound on waiting. */
#define KITH_PATIENCE_MAX 6
/* Larger numbers are nobody's, so that none can wrap. */
#define KITH_ROUND_NUMBER_MAX (UINT64_C(1) << 62)
/* Rounds after one that somebody was missing in: where neighbours change, those
 * that still think that we are dead show up one by one. */
#define KITH_WARY_ROUNDS 16u

enum round_state {
    ROUND_CLOSED,   /* nothing open */
    ROUND_SNAPSHOT, /* due to open: our snapshot is being taken */
    ROUND_OPEN,     /* models are under way */
    ROUND_MERGE,    /* every edge is decided */
};

/* An edge that a round waited for: out at the deadline, or with its link. */
enum { LEFT_LATE = 1u << 0, LEFT_LOST = 1u << 1 };

/* We jumped here, in place of the next round; who was missing at the deadline
 * was asked; what was given for the last round was taken, and nothing given. */
enum { NOTED_JUMP = 1u << 0, NOTED_QUESTION = 1u << 1, NOTED_GIVEN = 1u << 2 };

struct kith_round {
    uint64_t round;    /* open, or next to open */
    uint32_t part;     /* TRAIN items done of the step at hand; 0: none is */
    uint32_t complete; /* buckets of its gradient, after one of them */
    uint32_t needs; /* buckets shared before its next item; UINT32_MAX: all */
    kith_ns triggered_ns, opened_ns, deadline_ns;
    kith_ns came_ns;   /* the last model that was in time; 0: none */
    kith_ns speak_ns;  /* it waits so long that others take it for dead */
    kith_ns prompt_ns; /* the last one before anybody was asked */
    kith_ns ask_ns;    /* who is left out may have answered by then */
    uint64_t asked;    /* the trigger at which it was asked last */
    uint8_t state;
    bool merged;      /* mailbox: this round's merge is done */
    bool passing;     /* mailbox: it passes on what a peer in training sent */
    bool deserted;    /* nobody takes part, nobody is known to be further */
    bool asks;        /* those that are left out whether they are there */
    uint8_t left_out; /* LEFT_LATE | LEFT_LOST: so were edges of it */
    uint8_t noted;    /* NOTED_JUMP | NOTED_QUESTION */
    uint8_t patience; /* rounds in a row that lapsed, where neighbours change */
    uint8_t barren;   /* cycles in a row of which nothing came */
    uint8_t wary;     /* rounds in which what is missing is asked for */
    uint8_t chases;   /* in a row after which it was not met */
    uint8_t misleads; /* of the same peer in a row */
    uint8_t longer;   /* so often the open round's deadline was doubled */
    uint32_t early_count;
    uint32_t fewest; /* neighbours of a round that had some; 0: none had */
    struct kith_round_list lists[2];
    struct kith_work_edge *work; /* (degree), gathered for each item */
    uint64_t share;              /* rounds of all steps */
    uint64_t start;              /* the round that this incarnation began in */
    uint64_t donor;              /* whose model is pulled is in this round */
    kith_ns begun_ns, closed_ns; /* START; work done when the last one closed */
    kith_ns stopped_ns;          /* woken so long after deadlines */
    struct kith_estimate period; /* work between closings */
    struct kith_estimate later;  /* of a cycle's rounds but for its first, and
                                  * of those that are large beside others */
    /* Claims that were plausible when said: the furthest one, and the furthest
     * of anybody else. */
    uint64_t furthest, second;
    kith_id furthest_by;
    kith_id led_by;                   /* whose word the last jump followed */
    kith_id misled_by;                /* nobody was where it said */
    kith_id chased;                   /* followed last on its word alone */
    uint64_t chased_at, misled_until; /* triggers: of that; not believed */
    uint64_t behind; /* claims of rounds before ours: the furthest one */
    uint64_t met;    /* the last round that brought a model */
    uint64_t generations, passed; /* mailbox: above those heard, passed on */
    /* Models that came more than a round too early: there was no inbox. */
    struct kith_round_claim early[KITH_EARLY_MAX]; /* (early_count) */
    struct kith_round_late late[KITH_LATE_MAX];
    struct kith_round_outcome outcomes[KITH_OUTCOMES]; /* round % OUTCOMES */
};

/* ---- What a round's message asks again and again. */

static inline const struct kith_round_list *
kith_round_list_of(const struct kith_node *node, uint64_t number)
{
    return &node->round->lists[number & node->mode->list_mask];
}

/* Its work item is out. */
static inline bool kith_round_is_running(const struct kith_node *node)
{
    KITH_ASSERT(node->owner != OWNER_ROUND || node->round != NULL);
    return node->owner == OWNER_ROUND;
}

/* TRAIN items done of a step that goes on; 0: the next one begins a step. */
static inline uint32_t kith_round_part(const struct kith_node *node)
{
    KITH_ASSERT(node->round == NULL || node->round->part == 0 ||
                node->round->complete <= node->config->buckets);
    return node->round != NULL ? node->round->part : 0;
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
    KITH_ASSERT(node->self != peer);
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
    KITH_ASSERT(node->round->state <= ROUND_MERGE);
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

/* Rounds of a trigger, in which training does not go on. */
uint32_t kith_round_phases(const struct kith_node *node);
/* The first round of the trigger after so many own steps. */
uint64_t kith_round_after(const struct kith_node *node, uint64_t steps);
/* The first of a trigger's rounds, from this one on. */
uint64_t kith_round_begins(const struct kith_node *node, uint64_t number);
/* A cycle's first round waits for those that still train, too. */
static inline bool kith_round_is_first(const struct kith_node *node)
{
    const uint64_t number = node->round->round;
    KITH_ASSERT(kith_round_begins(node, number) >= number);
    return kith_round_begins(node, number) == number;
}
/* Everybody meets everybody every so often: such a round takes as much longer
 * as it has more neighbours. */
static inline bool kith_round_is_large(const struct kith_node *node)
{
    KITH_ASSERT(node->round->fewest <= KITH_DEGREE_MAX);
    return node->round->fewest > 0 &&
           kith_round_current(node)->count / 4 > node->round->fewest;
}
/* Nobody takes part in the round that has just opened, or in the cycle that is
 * about to, and nobody is known to be further. */
bool kith_round_is_deserted(const struct kith_node *node);
/* Where neighbours change they are left out as long as they are suspected. */
void kith_round_list_review(struct kith_node *node);
/* Will there be a round of that number before our share is done? */
bool kith_round_comes(const struct kith_node *node, uint64_t number);
size_t kith_round_size(const struct kith_node_config *config);
void kith_round_init(struct kith_node *node, void *memory);
/* Go on with round `number`: nothing that came for another one is kept. */
void kith_round_jump(struct kith_node *node, uint64_t number);
/* The list of `number` in the place of the one two rounds before. */
void kith_round_list_fill(struct kith_node *node, uint64_t number);
/* The outcome of the open round is kept for late queries. */
void kith_round_remember(struct kith_node *node);
/* A later round has taken its place there: nobody can say. */
bool kith_round_is_forgotten(const struct kith_node *node, uint64_t number);
bool kith_round_was_committed(const struct kith_node *node, kith_id peer,
                              uint64_t number);

/* ---- round_late.c */

/* Until the round that opens is overdue, in its trigger's time. */
kith_ns kith_late_deadline(const struct kith_node *node);
/* From now on: a deadline that is doubled so often; until a question is
 * answered; the deadline once more, twice as long as the last time. */
kith_ns kith_late_wait(const struct kith_node *node, uint32_t doublings);
kith_ns kith_late_answer(const struct kith_node *node);
kith_ns kith_late_longer(struct kith_node *node);
/* Until the rest of the trigger's rounds is over, where nobody trains. */
kith_ns kith_late_rest(const struct kith_node *node);
/* It is missing at the deadline: asked whether it comes; it says so, and is
 * waited for. */
bool kith_late_asks(struct kith_node *node, struct kith_round_edge *edge);
bool kith_late_waits(const struct kith_node *node,
                     struct kith_round_edge *edge);
/* Of the deadline of a round with it. */
uint32_t kith_late_doublings(const struct kith_node *node,
                             const struct kith_round_edge *edge);
/* It let the open round lapse. Again, in spite of all patience? */
bool kith_late_lapse(struct kith_node *node,
                     const struct kith_round_edge *edge);
/* It is left out of a round; of the cycle at hand: the rest goes on without it.
 */
void kith_late_leave_out(struct kith_node *node,
                         const struct kith_round_edge *edge);
bool kith_late_is_out(const struct kith_node *node, kith_id peer);
/* Two triggers in a row, and not a word since the first one. */
bool kith_late_is_silent(const struct kith_node *node,
                         const struct kith_round_edge *edge);
/* It is on its way, in a round that is closed here. */
void kith_late_hear(struct kith_node *node, kith_id peer);
/* The open round has what was due from it. */
void kith_late_in_time(struct kith_node *node,
                       const struct kith_round_edge *edge);

/* ---- round_rejoin.c */

/* Who is alone waits where it is for those that are on their way. */
bool kith_round_is_awaited(const struct kith_node *node, uint64_t said);
/* Any message: its sender is alive, and in that round. */
void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said);
/* Nobody goes for a while where it alone says that it is. */
bool kith_round_is_misled_by(const struct kith_node *node, kith_id by);
/* The link broke: what it said is void. */
void kith_round_forget(struct kith_node *node, kith_id peer);
/* No honest peer is in a later round by now, as far as our own clock says. */
uint64_t kith_round_plausible(const struct kith_node *node);
/* A round was closed: how long one takes. */
void kith_round_time(struct kith_node *node);
/* Nobody is where we were led to: back to the others. */
void kith_round_turn_back(struct kith_node *node);
/* Go on where another one is, if that is further than the next round. */
void kith_round_catch_up(struct kith_node *node);
/* Would that be so? */
bool kith_round_is_left_behind(const struct kith_node *node);
/* Go on with round `number`, and tell those that wait for us in ours. */
void kith_round_rejoin(struct kith_node *node, uint64_t number);
/* The donor's place: its steps, and the next of its rounds that begins a cycle.
 * Who has closed rounds of its own goes back in none. */
void kith_round_take_place(struct kith_node *node, uint64_t steps);
/* Where models came too early: there is an inbox for them now, or their round
 * is left out. */
void kith_round_ask_early(struct kith_node *node);

/* ---- round_edge.c */

void kith_round_tell(const struct kith_node *node, kith_id peer,
                     enum kith_message_kind kind, uint64_t number);
/* Decides whether this round has a message for it. */
void kith_edge_plan(const struct kith_node *node, struct kith_round_edge *edge);
/* Are those that are left out asked in the cycle that begins? */
void kith_edge_ask_again(struct kith_node *node);
/* Its message goes out, if there is one. */
void kith_edge_open(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_send(const struct kith_node *node,
                    const struct kith_round_edge *edge);
/* An open edge ends: what came over it is merged, or it is left out. */
void kith_edge_commit(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_drop(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_mark(struct kith_node *node, enum kith_mark_kind kind,
                    const struct kith_round_edge *edge, double sum);
/* Advances an edge of the open round, as its mode does. */
void kith_edge_advance(struct kith_node *node, struct kith_round_edge *edge);
void kith_edge_advance_all(struct kith_node *node);
/* An edge's index in its list, which names its slots. */
uint32_t kith_edge_index(const struct kith_round_list *list,
                         const struct kith_round_edge *edge);

/* ---- round_cast.c: what a mailbox's edges do, too. */

void kith_cast_unsent(struct kith_node *node, struct kith_round_edge *edge);
bool kith_cast_settle(struct kith_node *node, struct kith_round_edge *edge);
void kith_cast_ready(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number);
void kith_cast_abort(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number);
void kith_cast_probe(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number);
void kith_cast_confirm(struct kith_node *node, kith_id from, uint64_t number);
/* No round opens any more: what was given to us for the next one is merged. */
void kith_cast_leave(struct kith_node *node);
void kith_cast_edge_down(struct kith_node *node, struct kith_round_edge *edge,
                         kith_id peer);

/* ---- round.c, round_work.c, round_settle.c, round_message.c */

/* The handlers of node.c that all modes of rounds have. */
#define KITH_ROUND_HANDLERS                                                    \
    .is_open = kith_round_is_open, .schedule = kith_round_schedule,            \
    .message = kith_round_message, .wake = kith_round_wake,                    \
    .peer_left = kith_round_peer_left, .leave = kith_round_leave,              \
    .inbox = kith_round_inbox, .deadline = kith_round_deadline,                \
    .is_finished = kith_round_is_finished

/* Those of modes that training waits for. */
#define KITH_WAITED_HANDLERS                                                   \
    .trigger = kith_round_open, .defers_trigger = kith_round_holds,            \
    .holds_training = kith_round_holds_training,                               \
    .is_quiet = kith_round_is_quiet, .list_mask = 1, .says_round = true,       \
    .merged = kith_round_close, .is_merged = kith_round_is_committed,          \
    .edge_inbox = kith_round_edge_inbox, .resend = kith_edge_send
/* Those of modes whose messages go one way. */
#define KITH_CAST_HANDLERS                                                     \
    .ready = kith_cast_ready, .aborted = kith_cast_abort,                      \
    .probe = kith_cast_probe, .confirm = kith_cast_confirm,                    \
    .unsent = kith_cast_unsent, .settle = kith_cast_settle,                    \
    .edge_down = kith_cast_edge_down

/* Handlers of every mode of rounds: KITH_ROUND_HANDLERS, and */
bool kith_round_is_open(const struct kith_node *node);
bool kith_round_schedule(struct kith_node *node);
void kith_round_message(struct kith_node *node, kith_id from,
                        const struct kith_message *message);
void kith_round_wake(struct kith_node *node);
void kith_round_peer_left(struct kith_node *node, kith_id peer);
void kith_round_leave(struct kith_node *node);
uint32_t kith_round_inbox(const struct kith_node *node, kith_id from,
                          const struct kith_message *model);
kith_ns kith_round_deadline(const struct kith_node *node);
bool kith_round_is_quiet(const struct kith_node *node);
bool kith_round_is_finished(const struct kith_node *node);
/* those of modes that training waits for. */
void kith_round_open(struct kith_node *node);
bool kith_round_holds(const struct kith_node *node);
bool kith_round_holds_training(const struct kith_node *node);
void kith_round_close(struct kith_node *node);
bool kith_round_is_committed(const struct kith_round_edge *edge);
uint32_t kith_round_edge_inbox(const struct kith_node *node, uint32_t e,
                               uint64_t number);
/* The next round's list is filled, and opened if it is of the same trigger. */
void kith_round_go_on(struct kith_node *node, bool catches_up);
/* Stores a model that came, and returns its edge; NULL: it was refused. */
struct kith_round_edge *kith_round_take(struct kith_node *node,
                                        struct kith_round_edge *edge,
                                        kith_id from,
                                        const struct kith_message *message);
/* The model is in its inbox, or was refused by the gate. */
bool kith_round_store(struct kith_node *node, struct kith_round_edge *edge,
                      uint32_t inbox, const struct kith_message *message);
void kith_round_try_close(struct kith_node *node);
/* An edge that was waited for ended without a merge: its peer is charged. */
void kith_round_lapse(struct kith_node *node,
                      const struct kith_round_edge *edge);
void kith_round_worked(struct kith_node *node, enum kith_work_kind kind);
/* Of a step in parts the rounds at hand are one bucket's: is it there? */
bool kith_round_is_complete(const struct kith_node *node);
/* TRAIN is done, of a step whose gradient goes out in buckets. */
void kith_round_trained(struct kith_node *node,
                        const struct kith_work_result *result);
/* Holds after every event. */
void kith_round_check(const struct kith_node *node);

#endif
