/* One neighbour's part in a round: what it is told, how it ends. */
#include "src/protocol/core/round.h"

#include <string.h>

/* A neighbour that is left out is asked every so many triggers. */
#define ASK_AGAIN 8u

/* Where we are, for a peer that fell behind: whose place will be its donor's is
 * nowhere yet. */
static uint64_t place(const struct kith_node *node)
{
    KITH_ASSERT(node->mode->says_round);
    return node->adopting && node->round->closed_ns == 0 ? 0
                                                         : node->round->round;
}

static struct kith_message *say(const struct kith_node *node, kith_id peer,
                                enum kith_message_kind kind, uint64_t number)
{
    KITH_ASSERT(peer != node->self && peer < node->config->topology->peers);
    struct kith_message *message = kith_node_send(node, peer);
    *message = (struct kith_message){
        .kind = kind,
        .pattern = KITH_PATTERN_ROUND,
        .id = {.counter = number},
        .mine = kith_edge_decides(node, peer),
        .step = node->mode->says_round ? place(node) : node->steps,
        .slot = KITH_SLOT_NONE,
    };
    /* A message that takes mass out of x is an exchange, its sender's. */
    if (kith_node_has(node, KITH_SPLITS_MASS))
        message->id.incarnation = node->incarnation;
    return message;
}

/* Everything but a model fits into one record. */
void kith_round_tell(const struct kith_node *node, kith_id peer,
                     enum kith_message_kind kind, uint64_t number)
{
    KITH_ASSERT(kind != KITH_MESSAGE_MODEL);
    (void)say(node, peer, kind, number);
}

uint32_t kith_edge_index(const struct kith_round_list *list,
                         const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge >= list->edges && edge < list->edges + list->count);
    return (uint32_t)(edge - list->edges);
}

/* What the snapshot made for this edge; stands until the merge. */
static const struct kith_work_edge *made_for(const struct kith_node *node,
                                             const struct kith_round_edge *edge)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(edge->flags & EDGE_MADE);
    /* Items are packed: an edge without a message has none. */
    uint32_t at = 0;
    if (kith_node_has(node, KITH_SENDS_EDGE_MESSAGES))
        for (uint32_t e = 0; &list->edges[e] < edge; e++)
            at += (list->edges[e].flags & EDGE_MADE) != 0;
    return &node->round->work[at];
}

void kith_edge_send(const struct kith_node *node,
                    const struct kith_round_edge *edge)
{
    const uint64_t number = node->round->round;
    const struct kith_work_edge *made = made_for(node, edge);
    struct kith_message *message =
        say(node, edge->peer, KITH_MESSAGE_MODEL, number);
    KITH_ASSERT(made->sent != KITH_SLOT_NONE);
    /* Some rounds carry whole models, most a slice. */
    message->payload_bytes =
        kith_node_payload(node->config, KITH_PATTERN_ROUND, number);
    message->slot = made->sent;
    message->scalar_count = node->config->algorithm->scalar_count;
    memcpy(message->scalars, made->scalars_sent, sizeof message->scalars);
}

/* A mutual edge's exchange is named by the end that decides; a message that
 * takes mass out of x is an exchange of its sender, who books its loss. */
void kith_edge_mark(struct kith_node *node, enum kith_mark_kind kind,
                    const struct kith_round_edge *edge, double sum)
{
    const bool ours = kind == KITH_MARK_SPLIT || kind == KITH_MARK_TORN;
    const bool splits = kith_node_has(node, KITH_SPLITS_MASS);
    kith_node_mark(node, kind, NULL, edge->peer, node->round->round, sum);
    KITH_ASSERT(node->effects->mark_count > 0);
    struct kith_mark *mark =
        &node->effects->marks[node->effects->mark_count - 1];
    mark->id.counter = node->round->round;
    mark->initiator = splits ? ours : kith_edge_decides(node, edge->peer);
    if (splits)
        mark->id.incarnation = ours ? node->incarnation : edge->incarnation;
}

void kith_edge_commit(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    edge->decision = EDGE_COMMITTED;
    node->round->barren = 0;
    if (edge->flags & EDGE_IN) {
        node->round->met = node->round->round;
        node->round->behind = 0;
        node->round->came_ns = node->now_ns;
        if (edge->peer == node->round->chased)
            node->round->chased = KITH_NOBODY;
    }
    kith_late_in_time(node, edge);
    node->done += kith_edge_decides(node, edge->peer);
}

/* Counted where it is marked, at each end that got nothing: the other one may
 * be away, and a count by the lower rank alone would not see it then. */
void kith_edge_drop(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    edge->decision = EDGE_DROPPED;
    node->failed++;
    kith_edge_mark(node, KITH_MARK_FAILED, edge, 0);
}

void kith_edge_advance(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->peer != node->self);
    if (kith_edge_is_open(node, edge, node->round->round))
        node->mode->advance(node, edge);
}

void kith_edge_advance_all(struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(node->round->state == ROUND_OPEN);
    for (uint32_t e = 0; e < list->count; e++)
        kith_edge_advance(node, &list->edges[e]);
}

void kith_edge_plan(const struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    if ((edge->flags & (EDGE_OUT | EDGE_DOWN)) == EDGE_OUT &&
        !kith_edge_is_past(node, edge))
        edge->flags |= EDGE_MADE;
    else
        edge->flags &= ~(uint32_t)EDGE_MADE;
}

/* Questions alone could fill the queue of a slow link. */
void kith_edge_ask_again(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    /* Every eighth might be one that is skipped each time. */
    round->asks = node->attempts >= round->asked + ASK_AGAIN &&
                  node->now_ns >= round->ask_ns;
    if (!round->asks)
        return;
    round->asked = node->attempts;
    round->ask_ns = node->now_ns + kith_node_turn_timeout(node, 0);
}

/* One that waits for us in this round says nothing of it: who is alone, and so
 * stays in it, asks for its model. */
static enum kith_message_kind question(const struct kith_node *node,
                                       const struct kith_round_edge *edge)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(edge->flags & EDGE_DOWN);
    if (node->mode->resend == NULL || !(edge->flags & EDGE_IN))
        return KITH_MESSAGE_PROBE;
    for (uint32_t e = 0; e < list->count; e++)
        if (!(list->edges[e].flags & EDGE_DOWN))
            return KITH_MESSAGE_PROBE;
    return KITH_MESSAGE_REQUEST;
}

void kith_edge_open(struct kith_node *node, struct kith_round_edge *edge)
{
    const bool splits = kith_node_has(node, KITH_SPLITS_MASS);
    KITH_ASSERT(!kith_round_has_begun(node));
    if (!kith_node_has(node, KITH_SENDS_EDGE_MESSAGES))
        kith_edge_plan(node, edge); /* what is shared suits the last moment */
    edge->tries = 0;
    edge->began = edge->said;
    edge->flags &= ~(uint32_t)(EDGE_TOLD_READY | EDGE_HEARD_READY | EDGE_ASKED |
                               EDGE_COMING);
    edge->decision = EDGE_OPEN;
    const bool made = edge->flags & EDGE_MADE;
    edge->split = made ? made_for(node, edge)->delta_sum : 0;
    if (made && splits)
        kith_edge_mark(node, KITH_MARK_SPLIT, edge, edge->split);
    /* What has left x is sent though the link is down: it may be repaired. */
    if (made && (splits || !(edge->flags & EDGE_DOWN)))
        kith_edge_send(node, edge);
    else
        node->mode->unsent(node, edge);
    if (edge->flags & EDGE_DOWN)
        kith_late_leave_out(node, edge);
    /* Once where it is met in every round of a cycle. */
    if (edge->flags & EDGE_AGAIN && !kith_round_is_first(node))
        return;
    /* Two that have left each other out would do so for good. */
    if (edge->flags & EDGE_DOWN && node->round->asks)
        kith_round_tell(node, edge->peer, question(node, edge),
                        node->round->round);
    /* Without a word one that is further would leave us out soon. */
    else if (!(edge->flags & EDGE_DOWN) && kith_edge_is_past(node, edge))
        kith_round_tell(node, edge->peer, KITH_MESSAGE_PROBE,
                        node->round->round);
}
