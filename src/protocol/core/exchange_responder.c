/* The side of an exchange that is asked.
 *
 *   swap  IDLE -> ACCEPTED (snapshot) -> SENT -> MERGE -> MERGED -> IDLE
 *         or ACCEPTED -> MERGE_BOTH, where their model is here before our next
 *         step boundary
 *   push  IDLE -> ACCEPTED -> MERGE -> MERGED -> IDLE
 *   pull  IDLE -> ACCEPTED (snapshot) -> MERGED -> IDLE
 *   doubt MERGED -> UNDO -> IDLE on ABORT, -> IDLE (torn) without an answer
 *
 * What this side does counts: once it has merged the exchange took place,
 * unless the initiator says ABORT. Snapshot, inbox and delta are kept until its
 * final ACK, so the answer can be repeated and the half taken back. */
#include "src/protocol/core/node_state.h"

/* TCP sends a lost packet again after 200 ms and a round trip. Nobody is
 * charged for that. */
#define RESENT_NS (4 * KITH_TIMEOUT_MIN_NS)

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
                                                       message->id.counter) &&
           (message->pattern != KITH_PATTERN_SWAP ||
            (message->overlap >= 1 &&
             message->overlap <= kith_exchange_count(node)));
}

static uint32_t answered_slot(const struct kith_node *node, uint32_t index)
{
    KITH_ASSERT(index % 2 == 1 && index < kith_exchange_count(node));
    return KITH_SLOT_ANSWERED_SENT + KITH_SLOTS_PER_EXCHANGE * (index / 2);
}

void kith_exchange_prepare(struct kith_node *node)
{
    KITH_ASSERT(node->owner == OWNER_TRAIN);
    KITH_ASSERT(node->config->algorithm->pattern == KITH_PATTERN_SWAP);
    node->prepared = 0;
    if ((uint16_t)(node->steps - node->asked_step) > KITH_PREPARES_STEPS)
        return;
    for (uint32_t i = 1; i < kith_exchange_count(node); i += 2)
        if (node->exchanges[i].state == RESPONDER_IDLE) {
            node->prepared = i & 15u;
            node->exchanges[i].edge.sent = answered_slot(node, i);
            node->effects->work.edges = &node->exchanges[i].edge;
            node->effects->work.edge_count = 1;
            return;
        }
}

/* Two that ask each other at once would both be refused: the lower rank's
 * question stands. */
static bool yields(const struct kith_node *node,
                   const struct kith_exchange *exchange, kith_id from)
{
    KITH_ASSERT(from != node->self);
    return exchange->state == INITIATOR_ASKED &&
           exchange->pattern == KITH_PATTERN_SWAP &&
           exchange->edge.peer == from && node->self > from;
}

/* Is an exchange of ours going its way? What became of one that is in doubt,
 * its partner dead or worse, may take seconds to learn. */
static bool asks(const struct kith_node *node, kith_id from)
{
    KITH_ASSERT(node->exchange_limit == 1);
    for (uint32_t mask = node->exchange_mask & KITH_EXCHANGES_OURS;
         mask != 0;) {
        const struct kith_exchange *exchange =
            &node->exchanges[kith_exchange_next(&mask)];
        if (exchange->state != INITIATOR_IDLE &&
            exchange->state < INITIATOR_ABORTING && exchange->tries == 0 &&
            exchange->probes == 0 && !yields(node, exchange, from))
            return true;
    }
    return false;
}

/* A free record, unless an algorithm wants its exchanges one at a time. */
static struct kith_exchange *take_record(struct kith_node *node, kith_id from)
{
    if (kith_node_has(node, KITH_NEEDS_EXCLUSIVE_EXCHANGE) && asks(node, from))
        return NULL;
    if (node->prepared > 0)
        return &node->exchanges[node->prepared];
    for (uint32_t i = 1; i < kith_exchange_count(node); i += 2)
        if (node->exchanges[i].state == RESPONDER_IDLE)
            return &node->exchanges[i];
    return NULL;
}

/* Our snapshot of a swap is taken: it leaves before their model is merged. */
static void send_snapshot(const struct kith_node *node,
                          struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->pattern == KITH_PATTERN_SWAP);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_MODEL);
    if (exchange->state == RESPONDER_ACCEPTED)
        exchange->state = RESPONDER_SENT;
}

/* The record is theirs: its slots follow from its place in the table. */
static void begin(struct kith_node *node, struct kith_exchange *exchange,
                  kith_id from, const struct kith_message *message)
{
    const uint32_t index = (uint32_t)(exchange - node->exchanges);
    const uint32_t sent_slot = answered_slot(node, index);
    node->exchange_mask |= (uint8_t)(1u << index);
    exchange->state = RESPONDER_ACCEPTED;
    exchange->pattern = message->pattern & 7u;
    exchange->counter = message->id.counter;
    exchange->incarnation = message->id.incarnation;
    exchange->tries = 0;
    exchange->probes = 0;
    exchange->overlap = 0;
    exchange->running = exchange->abort_due = false;
    exchange->broken = exchange->acked = false;
    exchange->edge.peer = from;
    exchange->edge.sent = sent_slot;
    exchange->edge.inbox =
        sent_slot + KITH_SLOT_ANSWERED_INBOX - KITH_SLOT_ANSWERED_SENT;
    exchange->edge.weight = 0.5;
    exchange->since_ns = node->now_ns;
    /* A pull may carry more: it counts from here on. Who let a record lapse
     * is given less time, where it is known how long a turn takes. */
    const bool brief =
        node->turn.mean_us > 0 && kith_node_is_warned(node, from);
    const kith_ns turn_ns = kith_node_turn_timeout(node, brief ? 0 : 1);
    exchange->deadline_ns =
        node->now_ns + (turn_ns > RESENT_NS ? turn_ns : RESENT_NS);
    /* The same weight on both sides, whatever the graph: the two halves must
     * be exact opposites. */
    if (message->pattern == KITH_PATTERN_SWAP) {
        const uint32_t own = kith_exchange_overlap(node);
        (void)kith_exchange_weigh(
            node, exchange, own > message->overlap ? own : message->overlap);
        node->asked_step = (uint16_t)node->steps;
    }
}

/* Nobody has more than half of the records, where there are more than one, nor
 * two swaps of a pair that makes one at a time. */
static bool holds_share(const struct kith_node *node, kith_id from,
                        enum kith_pattern pattern)
{
    uint32_t held = 0;
    KITH_ASSERT(from != node->self);
    for (uint32_t mask = node->exchange_mask & KITH_EXCHANGES_THEIRS;
         mask != 0;) {
        const struct kith_exchange *exchange =
            &node->exchanges[kith_exchange_next(&mask)];
        held +=
            exchange->state != RESPONDER_IDLE && exchange->edge.peer == from;
    }
    return held > 0 && (held >= node->exchange_limit / 2u ||
                        (pattern == KITH_PATTERN_SWAP &&
                         kith_exchange_is_single(node, from)));
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
    struct kith_exchange *exchange = take_record(node, from);
    const bool is_charged = kith_node_is_charged(node, from);
    const bool is_other =
        exchange == NULL || (message->pattern != KITH_PATTERN_PULL &&
                             kith_turn_is_others(node, from));
    if (is_other && !is_charged)
        kith_turn_refused(node, from);
    if (is_other || node->presence != HERE || node->adopting || is_charged ||
        holds_share(node, from, message->pattern)) {
        kith_exchange_reply(node, from, message, KITH_MESSAGE_BUSY);
        return;
    }
    const bool ready = exchange == &node->exchanges[node->prepared];
    if (ready)
        node->prepared = 0;
    begin(node, exchange, from, message);
    kith_turn_served(node, from);
    node->served++;
    kith_node_mark(node, KITH_MARK_SERVING, exchange, from, message->pattern,
                   0);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ACCEPT);
    if (ready && message->pattern == KITH_PATTERN_SWAP)
        send_snapshot(node, exchange);
}

/* Their model is to come. */
static bool awaits_model(const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state <= RESPONDER_UNDO);
    return kith_exchange_gives(exchange) &&
           (kith_responder.awaits_model >> exchange->state & 1u) != 0;
}

/* Nothing of it is out, and nothing was merged. */
static bool is_waiting(const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    return (kith_responder.awaits_model >> exchange->state & 1u) != 0 &&
           !exchange->running;
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
    exchange->abort_due = false;
    if (merged && exchange->pattern == KITH_PATTERN_SWAP) {
        kith_node_cancel(node, exchange->edge.sent);
        exchange->state = RESPONDER_UNDO;
        exchange->deadline_ns = KITH_NEVER;
    } else if (merged && !kith_exchange_brings(exchange)) {
        /* What was added stays: its sender learns that it arrived. */
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
    } else if (exchange->state != RESPONDER_UNDO) {
        kith_turn_given_up(node, exchange);
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORTED);
        kith_exchange_end(node, exchange);
    }
}

static void step_model(struct kith_node *node, struct kith_exchange *exchange,
                       const struct kith_message *message)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    if (!awaits_model(exchange))
        return;
    const bool weighed = exchange->pattern != KITH_PATTERN_SWAP ||
                         kith_exchange_weigh(node, exchange, message->overlap);
    if (!weighed)
        kith_node_bad(node, exchange, exchange->edge.peer, message);
    /* A model that is not finite ends the exchange before anything was
     * merged: neither side has moved here. */
    if (weighed && kith_exchange_take(node, exchange, message))
        exchange->state = exchange->state == RESPONDER_ACCEPTED &&
                                  kith_exchange_brings(exchange) &&
                                  !exchange->running
                              ? RESPONDER_MERGE_BOTH
                              : RESPONDER_MERGE;
    else
        step_abort(node, exchange);
}

/* A pulled model is a copy of x at the next step boundary; a swap and a push
 * merge what came. */
static enum kith_work_kind due(const struct kith_exchange *exchange)
{
    const unsigned state = exchange->state;
    KITH_ASSERT(state <= RESPONDER_UNDO);
    if (state == RESPONDER_ACCEPTED && kith_exchange_brings(exchange))
        return KITH_WORK_SNAPSHOT;
    return state == RESPONDER_MERGE || state == RESPONDER_MERGE_BOTH
               ? KITH_WORK_MERGE
           : state == RESPONDER_UNDO ? KITH_WORK_UNDO
                                     : KITH_WORK_COUNT;
}

/* What the initiator waits for: our model, and that its own was merged. */
static void tell_answer(const struct kith_node *node,
                        const struct kith_exchange *exchange, bool model)
{
    KITH_ASSERT(exchange->state == RESPONDER_MERGED);
    if (model && kith_exchange_brings(exchange))
        kith_exchange_tell(node, exchange, KITH_MESSAGE_MODEL);
    if (kith_exchange_gives(exchange))
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
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
    if (kind == KITH_WORK_SNAPSHOT && exchange->pattern == KITH_PATTERN_SWAP) {
        send_snapshot(node, exchange);
        (void)kith_exchange_weigh(node, exchange, exchange->overlap);
        if (exchange->abort_due)
            step_abort(node, exchange);
        return;
    }
    const bool model = exchange->state != RESPONDER_MERGE;
    if (kind == KITH_WORK_MERGE)
        kith_node_mark(node, KITH_MARK_MERGED, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
    exchange->state = RESPONDER_MERGED;
    exchange->tries = 0;
    /* From now on the initiator owes us an ACK. */
    exchange->since_ns = node->now_ns;
    exchange->deadline_ns = node->now_ns + kith_node_turn_timeout(node, 1);
    if (exchange->abort_due)
        step_abort(node, exchange);
    else
        tell_answer(node, exchange, model);
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

/* Over a link that stood all the time our model cannot be lost, so it is
 * under way: it is sent twice only after a break. An ACK is short and may be
 * repeated. */
static void step_probe(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    const bool broken = exchange->broken;
    if (exchange->state == RESPONDER_MERGED &&
        (broken || kith_exchange_gives(exchange))) {
        exchange->broken = false; /* the answer may be lost: say it again */
        tell_answer(node, exchange, broken);
    } else {
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ACCEPT);
    }
}

/* No honest initiator says what it did: nothing more is begun with it. */
static void forfeit(struct kith_node *node, struct kith_exchange *exchange)
{
    kith_node_charge(node, exchange->edge.peer,
                     kith_node_turn_timeout(node, KITH_TRIES_MAX));
    tear(node, exchange);
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
        kith_node_came_late(node, message);
        kith_exchange_reply(node, from, message, KITH_MESSAGE_ABORTED);
        return;
    }
    const bool merged = exchange != NULL && exchange->state == RESPONDER_MERGED;
    switch (kind) {
    case KITH_MESSAGE_REQUEST:
        if (exchange == NULL)
            step_request(node, from, message);
        else if (exchange->state == RESPONDER_ACCEPTED ||
                 exchange->state == RESPONDER_SENT)
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
        if (merged) /* in place of its ACK: it forfeits the record */
            forfeit(node, exchange);
        break;
    }
}

/* The initiator is silent after our half was merged. */
static void wake_merged(struct kith_node *node, struct kith_exchange *exchange)
{
    const bool overslept = kith_exchange_overslept(node, exchange);
    KITH_ASSERT(exchange->tries <= KITH_TRIES_MAX);
    if (exchange->tries < KITH_TRIES_MAX) {
        exchange->tries++;
        kith_exchange_tell(node, exchange, KITH_MESSAGE_PROBE);
        exchange->deadline_ns =
            node->now_ns + kith_node_turn_timeout(node, exchange->tries);
        /* Silent over a link that stands: nothing more is begun with it, nor
         * what of it is still under way taken for something new. */
        if (exchange->tries == 2 && !exchange->broken && !overslept)
            kith_node_charge(node, exchange->edge.peer,
                             kith_node_turn_timeout(node, 2));
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
    if (is_waiting(exchange) && kith_exchange_gives(exchange)) {
        /* Their model never came. They learn it when they ask. */
        if (!kith_exchange_overslept(node, exchange))
            kith_exchange_warn(node, exchange);
        kith_exchange_end(node, exchange);
    } else if (exchange->state == RESPONDER_MERGED) {
        wake_merged(node, exchange);
    } else if (exchange->running) {
        exchange->deadline_ns = node->now_ns + KITH_TIMEOUT_MIN_NS;
    } else { /* our own worker is late */
        exchange->deadline_ns = KITH_NEVER;
    }
}

static void link_down(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != RESPONDER_IDLE);
    if (is_waiting(exchange)) {
        kith_turn_given_up(node, exchange);
        kith_exchange_end(node, exchange);
    } else if (exchange->state != RESPONDER_MERGED) {
        exchange->broken = true; /* our model may be lost */
    } else {
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
    .is_due = 1u << RESPONDER_ACCEPTED | 1u << RESPONDER_MERGE |
              1u << RESPONDER_MERGE_BOTH | 1u << RESPONDER_UNDO,
    .awaits_model = 1u << RESPONDER_ACCEPTED | 1u << RESPONDER_SENT,
    .is_ahead = 1u << RESPONDER_ACCEPTED | 1u << RESPONDER_SENT |
                1u << RESPONDER_MERGE | 1u << RESPONDER_MERGE_BOTH,
    .holds_sent = 1u << RESPONDER_SENT | 1u << RESPONDER_MERGE |
                  1u << RESPONDER_MERGED | 1u << RESPONDER_UNDO,
    .holds_inbox = 1u << RESPONDER_MERGE | 1u << RESPONDER_MERGE_BOTH |
                   1u << RESPONDER_MERGED | 1u << RESPONDER_UNDO,
};
