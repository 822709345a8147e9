/* Rounds whose messages go one way: over directed edges, or because what is
 * sent leaves x (push-sum), so that each message is an exchange of its own.
 *
 *   sender     MODEL(r)            over when READY is heard, or given up
 *   receiver   READY on receipt    merges what came by its deadline
 *
 * A peer that waits for nobody's READY could run ahead of its readers' inboxes,
 * so a round ends when ours arrived and theirs did. What split off x and may
 * not have arrived is torn: it is not ours any more.
 *
 * After a round in which somebody was missing the next ones are wary: a model
 * that is due is asked for,
 *
 *   PROBE(r)    "where are you?"
 *   ABORT(r)    "further", "my share is done" or "there is none for you"
 *
 * and a sender whose model is under way says ACCEPT (round_late.c). Undirected
 * edges need no such question: our own model asks it. */
#include "src/protocol/core/round.h"

/* A one-way edge that lapses: what came of it is merged all the same. */
static void lapse(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    if (kith_node_has(node, KITH_SPLITS_MASS) &&
        (edge->flags & (EDGE_MADE | EDGE_HEARD_READY)) == EDGE_MADE) {
        node->torn++;
        kith_edge_mark(node, KITH_MARK_TORN, edge, edge->split);
    }
    if (edge->flags & EDGE_RECEIVED && edge->flags & EDGE_IN)
        kith_edge_commit(node, edge);
    else
        kith_edge_drop(node, edge);
}

void kith_cast_unsent(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    if (edge->flags & EDGE_RECEIVED)
        /* It came before the link broke, or its sender went on. */
        lapse(node, edge);
    else if (edge->flags & (EDGE_DOWN | EDGE_OUT) ||
             kith_edge_is_past(node, edge))
        kith_edge_drop(node, edge);
}

/* Its model is to come. */
static bool is_due(const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    return edge->decision == EDGE_OPEN &&
           (edge->flags & (EDGE_IN | EDGE_RECEIVED)) == EDGE_IN;
}

/* Where somebody was missing lately: will the model that is due come? */
static void ask(struct kith_node *node, const struct kith_round_edge *edge)
{
    KITH_ASSERT(node->round->wary <= KITH_WARY_ROUNDS);
    if (node->round->wary > 0 && is_due(edge))
        kith_round_tell(node, edge->peer, KITH_MESSAGE_PROBE,
                        node->round->round);
}

static void opened(struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(!kith_round_is_running(node));
    node->round->state = ROUND_OPEN;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (edge->flags & EDGE_GIVEN_UP && edge->decision == EDGE_OPEN)
            lapse(node, edge);
        ask(node, edge);
        kith_edge_advance(node, edge);
    }
    kith_round_try_close(node);
}

/* Is there a share that was given to us for this round to come? */
static bool is_given(const struct kith_node *node, uint64_t number)
{
    const struct kith_round_list *list = kith_round_list_of(node, number);
    bool given = false;
    for (uint32_t e = 0; e < list->count; e++)
        given |= (list->edges[e].flags & EDGE_RECEIVED) != 0;
    KITH_ASSERT(!kith_round_has_begun(node));
    return given && kith_node_has(node, KITH_SPLITS_MASS);
}

/* The round to come is merged, and ours is not given in it: those that wait for
 * it learn that. */
static void take_given(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_CLOSED);
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        edge->flags &= ~(uint32_t)EDGE_MADE;
        edge->decision =
            edge->flags & EDGE_RECEIVED ? EDGE_COMMITTED : EDGE_DROPPED;
        if (edge->flags & EDGE_OUT && node->presence != LEAVING &&
            !kith_edge_is_past(node, edge))
            kith_round_tell(node, edge->peer, KITH_MESSAGE_ABORT, round->round);
    }
    round->deserted = false; /* it counts */
    round->noted |= NOTED_GIVEN;
    round->merged = false;
    round->state = ROUND_MERGE;
}

void kith_cast_leave(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(node->presence == LEAVING);
    if (node->mode != &kith_mode_cast || round->state != ROUND_CLOSED)
        return;
    if (!is_given(node, round->round)) {
        if (!is_given(node, round->round + 1))
            return;
        round->round++;
        kith_round_list_fill(node, round->round + 1);
    }
    take_given(node);
}

static void closed(struct kith_node *node, bool missed)
{
    KITH_ASSERT(node->round->state == ROUND_CLOSED);
    /* What is given to us is not left behind: it is taken first. */
    const bool given = is_given(node, node->round->round);
    kith_round_go_on(node, missed && !given);
    if (node->presence == LEAVING)
        kith_cast_leave(node);
    else if (missed && given && !(node->round->noted & NOTED_GIVEN) &&
             kith_round_is_left_behind(node)) /* not twice in a row */
        take_given(node);
}

static void advance(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    const bool ours =
        !(edge->flags & EDGE_OUT) || edge->flags & EDGE_HEARD_READY;
    const bool theirs = !(edge->flags & EDGE_IN) || edge->flags & EDGE_RECEIVED;
    if (ours && theirs)
        kith_edge_commit(node, edge);
}

static void step_model(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, const struct kith_message *message)
{
    const uint64_t number = message->id.counter;
    KITH_ASSERT(message->pattern == KITH_PATTERN_ROUND);
    edge = kith_round_take(node, edge, from, message);
    if (edge == NULL)
        return;
    kith_round_tell(node, from, KITH_MESSAGE_READY, number);
    if (number == node->round->round)
        kith_edge_advance(node, edge);
}

/* A mailbox may hear it while its own round is being merged. */
void kith_cast_ready(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number)
{
    KITH_ASSERT(edge == NULL || edge->peer == from);
    if (edge == NULL || number != node->round->round ||
        !kith_round_has_begun(node))
        return;
    edge->flags |= EDGE_HEARD_READY;
    kith_edge_advance(node, edge);
}

void kith_cast_abort(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number)
{
    const uint64_t at = node->round->round;
    KITH_ASSERT(edge == NULL || edge->peer == from);
    if (edge != NULL) {
        lapse(node, edge);
        return;
    }
    /* Its sender is further and has given up a round that has not begun. */
    if (number != at + 1 && (number != at || kith_round_has_begun(node)))
        return;
    edge = kith_round_find(kith_round_list_of(node, number), from);
    if (edge != NULL && !(edge->flags & EDGE_RECEIVED))
        edge->flags |= EDGE_GIVEN_UP;
}

void kith_cast_probe(struct kith_node *node, struct kith_round_edge *edge,
                     kith_id from, uint64_t number)
{
    const uint64_t at = node->round->round;
    KITH_ASSERT(edge == NULL || edge->peer == from);
    const bool begun = number == at && kith_round_has_begun(node);
    if (begun)
        edge = kith_round_find(kith_round_current(node), from);
    /* Something of ours is under way to it, or of its own to us. */
    const bool comes =
        edge != NULL && (edge->flags & EDGE_MADE || is_due(edge));
    /* Numbers of a mailbox say nothing of who is further: any answer will do.
     */
    if (number < at || (begun && !comes) || !node->mode->says_round ||
        !kith_round_comes(node, number))
        kith_round_tell(node, from, KITH_MESSAGE_ABORT, number);
    else
        kith_round_tell(node, from, KITH_MESSAGE_ACCEPT, number);
}

void kith_cast_confirm(struct kith_node *node, kith_id from, uint64_t number)
{
    KITH_ASSERT(number <= node->round->round);
    kith_round_tell(node, from, KITH_MESSAGE_READY, number);
}

/* Any message says how far its sender is; an edge to a peer that is further is
 * over. */
static void heard(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->peer != node->self);
    if (kith_edge_is_open(node, edge, node->round->round) &&
        kith_edge_is_past(node, edge))
        lapse(node, edge);
}

bool kith_cast_settle(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    if ((edge->flags & (EDGE_OUT | EDGE_HEARD_READY)) == EDGE_OUT)
        /* It need not wait for us. */
        kith_round_tell(node, edge->peer, KITH_MESSAGE_ABORT,
                        node->round->round);
    lapse(node, edge);
    return true;
}

void kith_cast_edge_down(struct kith_node *node, struct kith_round_edge *edge,
                         kith_id peer)
{
    KITH_ASSERT(edge == NULL || edge->peer == peer);
    if (edge != NULL)
        lapse(node, edge);
}

const struct kith_mode kith_mode_cast = {
    KITH_ROUND_HANDLERS, KITH_WAITED_HANDLERS, KITH_CAST_HANDLERS,
    .opened = opened,    .closed = closed,     .model = step_model,
    .heard = heard,      .advance = advance,
};
