/* Rounds over undirected edges: both ends of an edge merge, or neither does.
 *
 * An edge commits on its own, the lower rank deciding:
 *
 *   both     MODEL(r) at once
 *   higher   READY   "I hold your model"
 *   lower    ACK     "I hold yours too: merge", or ABORT at its deadline
 *
 * An edge that is not committed is left out on both ends, so its weight goes to
 * self on both ends and the sum is kept. Only a READY without an answer is in
 * doubt: PROBE, and torn when nobody answers.
 *
 * Source: Lian et al., NIPS 2017 (D-PSGD). */
#include "src/protocol/core/round.h"

/* Our end may still leave it out without asking the other one. */
static bool is_ours_to_drop(const struct kith_node *node,
                            const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    return kith_edge_decides(node, edge->peer) ||
           !(edge->flags & EDGE_TOLD_READY);
}

static void opened(struct kith_node *node)
{
    KITH_ASSERT(!kith_round_is_running(node));
    /* Models of this round may be here already. */
    node->round->state = ROUND_OPEN;
    const struct kith_round_list *list = kith_round_current(node);
    for (uint32_t e = 0; e < list->count; e++)
        if (list->edges[e].flags & EDGE_GIVEN_UP &&
            list->edges[e].decision == EDGE_OPEN)
            kith_edge_drop(node, &list->edges[e]);
    kith_edge_advance_all(node);
    kith_round_try_close(node);
}

static void advance(struct kith_node *node, struct kith_round_edge *edge)
{
    const uint64_t number = node->round->round;
    KITH_ASSERT((edge->flags & (EDGE_IN | EDGE_OUT)) == (EDGE_IN | EDGE_OUT));
    if (!(edge->flags & EDGE_RECEIVED))
        return;
    /* The higher rank says once that it holds the model; the lower one
     * commits when it holds both. */
    if (!kith_edge_decides(node, edge->peer)) {
        if (!(edge->flags & EDGE_TOLD_READY))
            kith_round_tell(node, edge->peer, KITH_MESSAGE_READY, number);
        edge->flags |= EDGE_TOLD_READY;
    } else if (edge->flags & EDGE_HEARD_READY) {
        kith_round_tell(node, edge->peer, KITH_MESSAGE_ACK, number);
        kith_edge_commit(node, edge);
    }
}

static void step_model(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, const struct kith_message *message)
{
    KITH_ASSERT(message->pattern == KITH_PATTERN_ROUND);
    edge = kith_round_take(node, edge, from, message);
    if (edge != NULL && message->id.counter == node->round->round)
        kith_edge_advance(node, edge);
}

/* What this side knows about an older round, for a late query; without an
 * answer the asker marks the edge torn. */
static void answer_query(struct kith_node *node, kith_id from, uint64_t number)
{
    KITH_ASSERT(kith_edge_decides(node, from));
    const struct kith_round_edge *edge =
        number == node->round->round
            ? kith_round_find(kith_round_current(node), from)
            : NULL;
    const bool committed = edge != NULL && kith_round_has_begun(node)
                               ? edge->decision == EDGE_COMMITTED
                               : kith_round_was_committed(node, from, number);
    if (edge == NULL && kith_round_is_forgotten(node, number))
        return;
    kith_round_tell(node, from,
                    committed ? KITH_MESSAGE_ACK : KITH_MESSAGE_ABORT, number);
}

static void step_ready(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, uint64_t number)
{
    KITH_ASSERT(edge == NULL || edge->peer == from);
    if (kith_edge_is_open(node, edge, number)) {
        edge->flags |= EDGE_HEARD_READY;
        kith_edge_advance(node, edge);
    } else if (number <= node->round->round && kith_edge_decides(node, from)) {
        answer_query(node, from, number);
    }
}

/* Without our READY it cannot be about this round: an ACK out of order
 * changes nothing. */
static void step_ack(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    if (edge->flags & EDGE_TOLD_READY)
        kith_edge_commit(node, edge);
}

static void step_abort(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, uint64_t number)
{
    KITH_ASSERT(edge == NULL ||
                (edge->peer == from && kith_edge_is_open(node, edge, number)));
    if (edge != NULL)
        kith_edge_drop(node, edge);
}

static void step_probe(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, uint64_t number)
{
    KITH_ASSERT(edge == NULL || edge->peer == from);
    const uint64_t at = node->round->round;
    if (kith_edge_decides(node, from) && edge == NULL && number <= at &&
        (number < at || kith_round_has_begun(node)))
        answer_query(node, from, number);
    else
        kith_round_tell(node, from,
                        (edge == NULL && number < at) ||
                                !kith_round_comes(node, number)
                            ? KITH_MESSAGE_ABORT
                            : KITH_MESSAGE_ACCEPT,
                        number);
}

static void confirm(struct kith_node *node, kith_id from, uint64_t number)
{
    KITH_ASSERT(number <= node->round->round);
    if (kith_edge_decides(node, from))
        kith_round_tell(node, from, KITH_MESSAGE_ACK, number);
}

static bool settle(struct kith_node *node, struct kith_round_edge *edge)
{
    const uint64_t number = node->round->round;
    KITH_ASSERT(edge->tries <= KITH_TRIES_MAX);
    if (is_ours_to_drop(node, edge)) {
        kith_round_tell(node, edge->peer, KITH_MESSAGE_ABORT, number);
    } else if (edge->tries < KITH_TRIES_MAX) {
        edge->tries++;
        kith_round_tell(node, edge->peer, KITH_MESSAGE_PROBE, number);
        return false;
    } else {
        /* They may have merged our model; we cannot know. Our half is 0. */
        node->torn++;
        kith_edge_mark(node, KITH_MARK_TORN, edge, 0);
    }
    kith_edge_drop(node, edge);
    return true;
}

/* What came for a round that has not begun here: its sender leaves the edge
 * out, or comes back as another incarnation with another model. */
static void forget_early(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(node->mode->list_mask == 1);
    for (unsigned k = kith_round_has_begun(node); k < 2; k++) {
        struct kith_round_edge *edge = kith_round_find(
            kith_round_list_of(node, node->round->round + k), peer);
        if (edge != NULL)
            edge->flags &= ~(uint32_t)EDGE_RECEIVED;
    }
}

static void edge_down(struct kith_node *node, struct kith_round_edge *edge,
                      kith_id peer)
{
    KITH_ASSERT(edge == NULL || edge->peer == peer);
    forget_early(node, peer);
    if (edge == NULL)
        return;
    if (is_ours_to_drop(node, edge))
        kith_edge_drop(node, edge);
    else
        node->round->deadline_ns = kith_node_earliest(
            node->round->deadline_ns, node->now_ns + KITH_TIMEOUT_MIN_NS);
}

const struct kith_mode kith_mode_mutual = {
    KITH_ROUND_HANDLERS,      KITH_WAITED_HANDLERS,
    .opened = opened,         .closed = kith_round_go_on,
    .model = step_model,      .ready = step_ready,
    .ack = step_ack,          .aborted = step_abort,
    .probe = step_probe,      .confirm = confirm,
    .unsent = kith_edge_drop, .advance = advance,
    .settle = settle,         .edge_down = edge_down,
};
