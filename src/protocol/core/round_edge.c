/* One neighbour's part in a round: what it is told, how it ends. */
#include "src/protocol/core/node_state.h"

#include <string.h>

static struct kith_message *say(const struct kith_node *node,
                                struct kith_effects *effects, kith_id peer,
                                enum kith_message_kind kind, uint64_t number)
{
    struct kith_message *message = kith_node_send(effects, peer);
    *message = (struct kith_message){
        .kind = kind,
        .pattern = KITH_PATTERN_ROUND,
        .id = {.counter = number,
               .incarnation = kith_round_splits(node) ? node->incarnation : 0},
        .mine = kith_edge_decides(node, peer),
        /* Where we are, for one who fell behind. */
        .step = kith_round_is_mailbox(node) ? node->steps : node->round->round,
        .slot = KITH_SLOT_NONE,
    };
    return message;
}

void kith_round_tell(const struct kith_node *node, struct kith_effects *effects,
                     kith_id peer, enum kith_message_kind kind, uint64_t number)
{
    (void)say(node, effects, peer, kind, number);
}

/* What the snapshot made for this edge; stands until the merge. */
static const struct kith_work_edge *made_for(const struct kith_node *node,
                                             const struct kith_round_edge *edge)
{
    const struct kith_round_list *list = kith_round_current(node);
    uint32_t at = 0;
    if (node->config->algorithm->flags & KITH_SENDS_EDGE_MESSAGES)
        for (uint32_t e = 0; &list->edges[e] < edge; e++)
            at += list->edges[e].made;
    return &node->round->work[at];
}

void kith_edge_send(const struct kith_node *node, struct kith_effects *effects,
                    const struct kith_round_edge *edge)
{
    const struct kith_round *round = node->round;
    const struct kith_algorithm *algorithm = node->config->algorithm;
    const struct kith_work_edge *made = made_for(node, edge);
    struct kith_message *message =
        say(node, effects, edge->peer, KITH_MESSAGE_MODEL, round->round);
    message->payload_bytes =
        kith_node_payload(node->config, KITH_PATTERN_ROUND, round->round);
    message->slot = made->sent;
    message->scalar_count = algorithm->scalar_count;
    memcpy(message->scalars, made->scalars_sent, sizeof message->scalars);
}

void kith_edge_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_round_edge *edge, double sum)
{
    kith_node_mark(node, effects, kind, NULL, edge->peer, node->round->round,
                   sum);
    struct kith_mark *mark = &effects->marks[effects->mark_count - 1];
    const bool ours = kind == KITH_MARK_SPLIT || kind == KITH_MARK_TORN;
    mark->id.counter = node->round->round;
    mark->initiator =
        kith_round_splits(node) ? ours : kith_edge_decides(node, edge->peer);
    if (kith_round_splits(node))
        mark->id.incarnation = ours ? node->incarnation : edge->incarnation;
}

void kith_edge_drop(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge)
{
    edge->decision = EDGE_DROPPED;
    if (kith_edge_decides(node, edge->peer))
        node->failed++;
    kith_edge_mark(node, effects, KITH_MARK_FAILED, edge, 0);
}

void kith_edge_commit(struct kith_node *node, struct kith_round_edge *edge)
{
    edge->decision = EDGE_COMMITTED;
    if (kith_edge_decides(node, edge->peer))
        node->done++;
}

void kith_edge_lapse(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge)
{
    if (kith_round_splits(node) && edge->made && !edge->heard_ready) {
        node->torn++;
        kith_edge_mark(node, effects, KITH_MARK_TORN, edge, edge->split);
    }
    if (edge->in && edge->have)
        kith_edge_commit(node, edge);
    else
        kith_edge_drop(node, effects, edge);
}

/* A directed edge is over where ours arrived and theirs did. */
static void advance_directed(struct kith_node *node,
                             struct kith_round_edge *edge)
{
    const bool ours = !edge->out || edge->heard_ready;
    const bool theirs = !edge->in || edge->have || kith_round_is_mailbox(node);
    if (ours && theirs)
        kith_edge_commit(node, edge);
}

void kith_edge_advance(struct kith_node *node, struct kith_effects *effects,
                       struct kith_round_edge *edge)
{
    const struct kith_round *round = node->round;
    if (round->state != ROUND_OPEN || edge->decision != EDGE_OPEN)
        return;
    if (!kith_edge_is_mutual(node, edge)) {
        advance_directed(node, edge);
    } else if (edge->have && !kith_edge_decides(node, edge->peer)) {
        if (!edge->told_ready)
            kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_READY,
                            round->round);
        edge->told_ready = true;
    } else if (edge->have && edge->heard_ready) {
        kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_ACK,
                        round->round);
        kith_edge_commit(node, edge);
    }
}

void kith_edge_open(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge)
{
    const bool past = kith_edge_is_past(node, edge);
    if (!(node->config->algorithm->flags & KITH_SENDS_EDGE_MESSAGES))
        edge->made = edge->out && !edge->down && !past;
    edge->tries = 0;
    edge->told_ready = false;
    edge->heard_ready = false;
    edge->decision = EDGE_OPEN;
    edge->split = edge->made ? made_for(node, edge)->delta_sum : 0;
    if (edge->made && kith_round_splits(node))
        kith_edge_mark(node, effects, KITH_MARK_SPLIT, edge, edge->split);
    if (edge->made && (!edge->down || kith_round_splits(node))) {
        kith_edge_send(node, effects, edge);
    } else if (edge->have && kith_round_is_one_way(node)) {
        /* It came before the link broke, or its sender went on. */
        kith_edge_lapse(node, effects, edge);
    } else if (edge->down || edge->out || past) {
        edge->decision = EDGE_DROPPED;
        kith_edge_mark(node, effects, KITH_MARK_FAILED, edge, 0);
    }
}
