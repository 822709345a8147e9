/* Messages of a round: whose inbox a model has, what comes too early, and which
 * handler of the mode hears the rest.
 *
 * A neighbour may be a round ahead, so there are inboxes of two rounds; a model
 * that came sooner is noted and asked for again when its round opens. */
#include "src/protocol/core/round.h"

#include <string.h>

uint32_t kith_round_edge_inbox(const struct kith_node *node, uint32_t e,
                               uint64_t number)
{
    const struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_list_of(node, number);
    const struct kith_round_edge *edge = &list->edges[e];
    KITH_ASSERT(e < list->count);
    if (edge->flags & EDGE_RECEIVED || list->round != number ||
        !kith_round_comes(node, number))
        return KITH_SLOT_NONE;
    /* An edge that is decided takes nothing more: its inbox may be read by a
     * merge. */
    const bool open =
        number > round->round || !kith_round_has_begun(node) ||
        (round->state == ROUND_OPEN && edge->decision == EDGE_OPEN);
    return open ? kith_slot_inbox(e, number) : KITH_SLOT_NONE;
}

uint32_t kith_round_inbox(const struct kith_node *node, kith_id from,
                          const struct kith_message *model)
{
    const uint64_t number = model->id.counter;
    const struct kith_round_list *list = kith_round_list_of(node, number);
    const struct kith_round_edge *edge = kith_round_find(list, from);
    KITH_ASSERT(edge == NULL || edge->peer == from);
    if (edge == NULL || !(edge->flags & EDGE_IN))
        return KITH_SLOT_NONE;
    return node->mode->edge_inbox(node, kith_edge_index(list, edge), number);
}

/* What came over this edge cannot be merged. */
static void gate(struct kith_node *node, struct kith_round_edge *edge,
                 uint64_t number)
{
    KITH_ASSERT(edge->peer != node->self);
    node->gated++;
    kith_edge_mark(node, KITH_MARK_GATED, edge, 0);
    kith_round_tell(node, edge->peer, KITH_MESSAGE_ABORT, number);
    if (kith_edge_is_open(node, edge, number) &&
        !(edge->flags & EDGE_TOLD_READY))
        kith_edge_drop(node, edge);
    else if (number > node->round->round || !kith_round_has_begun(node))
        edge->flags |= EDGE_GIVEN_UP; /* left out when its round opens */
}

bool kith_round_store(struct kith_node *node, struct kith_round_edge *edge,
                      uint32_t inbox, const struct kith_message *message)
{
    KITH_ASSERT(edge->flags & EDGE_IN);
    KITH_ASSERT(message->slot != KITH_SLOT_NONE);
    if (message->slot != inbox || !kith_node_sane(node, message)) {
        gate(node, edge, message->id.counter);
        return false;
    }
    memcpy(edge->scalars, message->scalars, sizeof message->scalars);
    /* Kept for the books: a restarted sender names its exchanges anew. */
    edge->incarnation = message->id.incarnation;
    edge->flags |= EDGE_RECEIVED;
    node->round->barren = 0;
    edge->held = (inbox - KITH_SLOT_ROUND_EDGES) % KITH_SLOTS_PER_EDGE & 1u;
    return true;
}

/* Where the graph changes, a neighbour of a later round may be far ahead: its
 * model is discarded, and asked for again as soon as there is an inbox. */
static void note_early(struct kith_node *node, kith_id peer, uint64_t number)
{
    struct kith_round *round = node->round;
    uint32_t at = 0;
    KITH_ASSERT(number > round->round + 1 && number <= KITH_ROUND_NUMBER_MAX);
    while (at < round->early_count && round->early[at].peer != peer)
        at++;
    if (at == KITH_EARLY_MAX)
        return; /* that round does without it */
    round->early[at] = (struct kith_round_claim){.round = number, .peer = peer};
    if (at == round->early_count)
        round->early_count++;
}

/* A model that has no place: one that came twice may be merged already. Where
 * there is one by now, for a round closed while it was under way, it is asked
 * for again. */
static void refuse(struct kith_node *node, const struct kith_round_edge *edge,
                   kith_id from, const struct kith_message *message)
{
    const uint64_t number = message->id.counter, at = node->round->round;
    KITH_ASSERT(edge == NULL || edge->peer == from);
    node->late++;
    /* Noted once, asked for when its round comes: otherwise a fast
     * neighbour's model would be lost for good. */
    if (number > at + 1 && number <= KITH_ROUND_NUMBER_MAX)
        note_early(node, from, number);
    if (kith_node_inbox(node, from, message) != KITH_SLOT_NONE)
        kith_round_tell(node, from, KITH_MESSAGE_REQUEST, number);
    else if (edge != NULL && edge->flags & EDGE_RECEIVED)
        return;
    else if (number <= at && kith_round_was_committed(node, from, number))
        node->mode->confirm(node, from, number);
    else if (number <= at || !kith_round_comes(node, number))
        kith_round_tell(node, from, KITH_MESSAGE_ABORT, number);
}

struct kith_round_edge *kith_round_take(struct kith_node *node,
                                        struct kith_round_edge *edge,
                                        kith_id from,
                                        const struct kith_message *message)
{
    const uint64_t number = message->id.counter, at = node->round->round;
    const struct kith_round_list *list = kith_round_list_of(node, number);
    KITH_ASSERT(edge == NULL || edge->peer == from);
    /* Two rounds have inboxes, that at hand and the next one. */
    if (number != at)
        edge = number == at + 1 ? kith_round_find(list, from) : NULL;
    /* It may have been decided without it while it came. */
    if (edge == NULL || !(edge->flags & EDGE_IN) ||
        message->slot == KITH_SLOT_NONE ||
        node->mode->edge_inbox(node, kith_edge_index(list, edge), number) ==
            KITH_SLOT_NONE) {
        refuse(node, edge, from, message);
        return NULL;
    }
    const uint32_t inbox = kith_slot_inbox(kith_edge_index(list, edge), number);
    return kith_round_store(node, edge, inbox, message) ? edge : NULL;
}

/* A REQUEST: our model came too early, now there is room; or too late. */
static void step_request(struct kith_node *node,
                         const struct kith_round_edge *edge, kith_id from,
                         uint64_t number)
{
    KITH_ASSERT(edge == NULL || edge->decision == EDGE_OPEN);
    if (edge != NULL && node->mode->resend != NULL &&
        (edge->flags & (EDGE_MADE | EDGE_HEARD_READY)) == EDGE_MADE)
        node->mode->resend(node, edge);
    else if (number < node->round->round)
        kith_round_tell(node, from, KITH_MESSAGE_ABORT, number);
}

void kith_round_message(struct kith_node *node, kith_id from,
                        const struct kith_message *message)
{
    const struct kith_mode *mode = node->mode;
    struct kith_round_edge *known =
        kith_round_find(kith_round_current(node), from);
    KITH_ASSERT(known == NULL || known->peer == from);
    /* Of a pair the lower rank is the initiator in both directions; any
     * other claim is a fault of the sender's. */
    if (message->mine == kith_edge_decides(node, from) ||
        (known == NULL && node->config->topology->kind->is_static)) {
        kith_node_bad(node, NULL, from, message);
        return;
    }
    kith_round_hear(node, from, message->step);
    const uint64_t number = message->id.counter;
    struct kith_round_edge *edge =
        kith_edge_is_open(node, known, number) ? known : NULL;
    const bool awaited = kith_edge_is_open(node, known, node->round->round) &&
                         node->round->longer > 0;
    switch (message->kind) {
    case KITH_MESSAGE_MODEL:
        mode->model(node, known, from, message);
        break;
    case KITH_MESSAGE_READY:
        mode->ready(node, known, from, number);
        break;
    case KITH_MESSAGE_ACK:
        if (edge != NULL && mode->ack != NULL)
            mode->ack(node, edge);
        break;
    case KITH_MESSAGE_ABORT:
        mode->aborted(node, edge, from, number);
        break;
    case KITH_MESSAGE_PROBE:
        mode->probe(node, edge, from, number);
        break;
    case KITH_MESSAGE_REQUEST:
        step_request(node, edge, from, number);
        break;
    case KITH_MESSAGE_ACCEPT: /* it was asked whether it comes */
        if (!node->mode->says_round)
            kith_node_bad(node, NULL, from, message);
        else if (edge != NULL)
            edge->flags |= EDGE_COMING;
        break;
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_ABORTED:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        kith_node_bad(node, NULL, from, message);
        break;
    }
    if (mode->heard != NULL && known != NULL)
        mode->heard(node, known);
    /* It was waited for on its word, and took it back. */
    if (awaited && known->decision == EDGE_DROPPED) {
        known->flags |= EDGE_COMING;
        kith_round_lapse(node, known);
    }
    kith_round_try_close(node);
}
