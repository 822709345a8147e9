/* The side of an exchange that is asked.
 *
 *   swap  IDLE -> ACCEPTED -> MERGE -> MERGED -> IDLE
 *   push  IDLE -> ACCEPTED -> MERGE -> MERGED -> IDLE
 *   pull  IDLE -> ACCEPTED (snapshot) -> MERGED -> IDLE
 *   doubt MERGED -> UNDO -> IDLE on ABORT, -> IDLE (torn) without an answer
 *
 * Our half is applied first; snapshot, inbox and delta are kept until the
 * initiator's ACK, so the answer can be repeated and the half taken back. */
#include "src/protocol/core/node_state.h"

/* A pattern that this algorithm answers, of the size that it would have. */
static bool is_welcome(const struct kith_node *node,
                       const struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_REQUEST);
    const enum kith_pattern own = node->config->algorithm->pattern;
    /* A pull is answered by every algorithm that communicates, since any
     * peer may have to start over. */
    if (own == KITH_PATTERN_NONE)
        return false; /* not even a pull: the worker has no slots for it */
    return (message->pattern == KITH_PATTERN_PULL ||
            (message->pattern == own && own != KITH_PATTERN_ROUND)) &&
           message->payload_bytes == kith_node_payload(node->config,
                                                       message->pattern,
                                                       message->id.counter);
}

/* A free record, unless an algorithm wants its exchanges one at a time. */
static struct kith_exchange *take_record(struct kith_node *node)
{
    KITH_ASSERT(!node->exchanges[0].running || node->owner >= OWNER_EXCHANGE);
    if (kith_node_has(node, KITH_NEEDS_EXCLUSIVE_EXCHANGE) &&
        !kith_exchange_is_finished(node))
        return NULL;
    for (uint32_t i = KITH_INITIATED_MAX; i < KITH_EXCHANGES_MAX; i++)
        if (node->exchanges[i].state == RESPONDER_IDLE) {
            node->exchange_mask |= (uint8_t)(1u << i);
            return &node->exchanges[i];
        }
    return NULL;
}

static void step_request(struct kith_node *node, kith_id from,
                         const struct kith_message *message)
{
    KITH_ASSERT(message->mine);
    if (!is_welcome(node, message)) {
        kith_node_bad(node, NULL, from, message);
        kith_exchange_reply(node, from, message, KITH_MESSAGE_BUSY);
        return;
    }
    struct kith_exchange *exchange = take_record(node);
    if (exchange == NULL || node->leaving || node->adopting ||
        kith_node_is_charged(node, from)) {
        kith_exchange_reply(node, from, message, KITH_MESSAGE_BUSY);
        return;
    }
    /* The weight of a pair is one half, whatever the graph: the two halves
     * must be exact opposites. */
    *exchange =
        (struct kith_exchange){.state = RESPONDER_ACCEPTED,
                               .pattern = message->pattern & 15u,
                               .counter = message->id.counter,
                               .incarnation = message->id.incarnation,
                               .edge = {.peer = from,
                                        .sent = KITH_SLOT_ANSWERED_SENT,
                                        .inbox = KITH_SLOT_ANSWERED_INBOX,
                                        .weight = 0.5},
                               .since_ns = node->now_ns};
    /* A pull may carry more: it counts from here on. */
    exchange->deadline_ns = node->now_ns + kith_node_turn_timeout(node, 1);
    node->served++;
    kith_node_mark(node, KITH_MARK_SERVING, exchange, from, message->pattern,
                   0);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ACCEPT);
}

static void step_model(struct kith_node *node, struct kith_exchange *exchange,
                       const struct kith_message *message)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    if (exchange->state != RESPONDER_ACCEPTED || !kith_exchange_gives(exchange))
        return;
    /* A model that is not finite ends the exchange before anything was
     * merged: neither side has moved. */
    if (kith_exchange_take(node, exchange, message)) {
        exchange->state = RESPONDER_MERGE;
    } else {
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORTED);
        kith_exchange_end(node, exchange);
    }
}

/* The initiator wants it taken back. */
static void step_abort(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    /* The item cannot be stopped; when it is done there is something to take
     * back. */
    if (exchange->running) {
        exchange->abort_due = true;
        return;
    }
    const bool merged = exchange->state == RESPONDER_MERGED;
    if (merged && exchange->pattern == KITH_PATTERN_SWAP) {
        kith_node_cancel(node, exchange->edge.sent);
        exchange->state = RESPONDER_UNDO;
        exchange->deadline_ns = KITH_NEVER;
    } else if (merged && !kith_exchange_brings(exchange)) {
        /* What was added stays: its sender learns that it arrived. */
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
    } else if (exchange->state != RESPONDER_UNDO) {
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORTED);
        kith_exchange_end(node, exchange);
    }
}

/* A pulled model is a copy of x at the next step boundary; a swap and a push
 * merge what came. */
static enum kith_work_kind due(const struct kith_exchange *exchange)
{
    const unsigned state = exchange->state;
    KITH_ASSERT(state <= RESPONDER_UNDO);
    if (state == RESPONDER_ACCEPTED && !kith_exchange_gives(exchange))
        return KITH_WORK_SNAPSHOT;
    return state == RESPONDER_MERGE  ? KITH_WORK_MERGE
           : state == RESPONDER_UNDO ? KITH_WORK_UNDO
                                     : KITH_WORK_COUNT;
}

/* What the initiator waits for: that its push was added, or our model. */
static void tell_answer(const struct kith_node *node,
                        const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == RESPONDER_MERGED);
    kith_exchange_tell(node, exchange,
                       kith_exchange_brings(exchange) ? KITH_MESSAGE_MODEL
                                                      : KITH_MESSAGE_ACK);
}

static void worked(struct kith_node *node, struct kith_exchange *exchange,
                   enum kith_work_kind kind)
{
    KITH_ASSERT(!exchange->running);
    if (kind == KITH_WORK_UNDO) {
        kith_exchange_undone(node, exchange);
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORTED);
        kith_exchange_end(node, exchange);
        return;
    }
    if (kind == KITH_WORK_MERGE)
        kith_node_mark(node, KITH_MARK_MERGED, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
    exchange->state = RESPONDER_MERGED;
    exchange->tries = 0;
    /* From now on the initiator owes us an ACK. */
    exchange->since_ns = node->now_ns;
    exchange->deadline_ns = node->now_ns + kith_node_turn_timeout(node, 1);
    if (exchange->abort_due) {
        exchange->abort_due = false;
        step_abort(node, exchange);
        return;
    }
    tell_answer(node, exchange);
}

/* Our half stays in the model although the other side may not have its own. */
static void tear(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == RESPONDER_MERGED);
    if (kith_exchange_gives(exchange)) {
        node->torn++;
        kith_node_mark(node, KITH_MARK_TORN, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
    }
    kith_exchange_end(node, exchange);
}

/* Over a link that stood all the time our answer cannot be lost, so it is
 * under way: the model is sent twice only after a break. An ACK is short and
 * may be repeated. */
static void step_probe(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    if (exchange->state == RESPONDER_MERGED &&
        (exchange->broken || !kith_exchange_brings(exchange))) {
        exchange->broken = false; /* the answer may be lost: say it again */
        tell_answer(node, exchange);
    } else {
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ACCEPT);
    }
}

static void step_message(struct kith_node *node, struct kith_exchange *exchange,
                         kith_id from, const struct kith_message *message)
{
    KITH_ASSERT(message->mine);
    const enum kith_message_kind kind = message->kind;
    if (exchange == NULL &&
        (kind == KITH_MESSAGE_MODEL || kind == KITH_MESSAGE_ABORT ||
         kind == KITH_MESSAGE_PROBE)) {
        /* It is over, or was never answered. */
        kith_exchange_reply(node, from, message, KITH_MESSAGE_ABORTED);
        return;
    }
    const bool merged = exchange != NULL && exchange->state == RESPONDER_MERGED;
    switch (kind) {
    case KITH_MESSAGE_REQUEST:
        if (exchange == NULL)
            step_request(node, from, message);
        else if (exchange->state == RESPONDER_ACCEPTED)
            kith_exchange_tell(node, exchange, KITH_MESSAGE_ACCEPT);
        break;
    case KITH_MESSAGE_MODEL:
        step_model(node, exchange, message);
        break;
    case KITH_MESSAGE_ACK:
        if (merged) {
            kith_node_mark(node, KITH_MARK_DONE, exchange, from, 0, 0);
            kith_exchange_end(node, exchange);
        }
        break;
    case KITH_MESSAGE_ABORT:
        step_abort(node, exchange);
        break;
    case KITH_MESSAGE_ABORTED: /* a restarted initiator does not know */
        if (merged)
            tear(node, exchange);
        break;
    case KITH_MESSAGE_PROBE:
        step_probe(node, exchange);
        break;
    case KITH_MESSAGE_ACCEPT:
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_READY:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        kith_node_bad(node, NULL, from, message);
        break;
    }
}

/* The initiator is silent after our half was merged. */
static void wake_merged(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->tries <= KITH_TRIES_MAX);
    if (exchange->tries < KITH_TRIES_MAX) {
        exchange->tries++;
        kith_exchange_tell(node, exchange, KITH_MESSAGE_PROBE);
        exchange->deadline_ns =
            node->now_ns + kith_node_turn_timeout(node, exchange->tries);
        return;
    }
    /* Silent over a link that stands, or gone? A restarted peer must not find
     * itself charged for its death. */
    const kith_ns span_ns = kith_node_turn_timeout(node, KITH_TRIES_MAX);
    if (exchange->broken)
        kith_node_suspect(node, exchange->edge.peer, span_ns);
    else
        kith_node_charge(node, exchange->edge.peer, span_ns);
    tear(node, exchange);
}

/* A record is held for a bounded time, whatever the initiator does. */
static void wake(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->deadline_ns <= node->now_ns);
    if (exchange->state == RESPONDER_ACCEPTED && !exchange->running) {
        /* Their model never came. They learn it when they ask. */
        kith_node_charge(node, exchange->edge.peer,
                         kith_node_turn_timeout(node, KITH_TRIES_MAX));
        kith_exchange_end(node, exchange);
    } else if (exchange->state == RESPONDER_MERGED) {
        wake_merged(node, exchange);
    } else {
        exchange->deadline_ns = KITH_NEVER;
    }
}

static void link_down(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    if (exchange->state == RESPONDER_ACCEPTED && !exchange->running) {
        kith_exchange_end(node, exchange);
    } else if (exchange->state == RESPONDER_MERGED) {
        /* Our half stands; the initiator asks over the next link. */
        exchange->broken = true;
        kith_exchange_hurry(node, exchange);
    }
}

const struct kith_exchange_side kith_responder = {
    .due = due,
    .worked = worked,
    .message = step_message,
    .wake = wake,
    .link_down = link_down,
    .awaits_model = RESPONDER_ACCEPTED,
};
