/* The side of an exchange that asks.
 *
 *   swap  IDLE -> SNAPSHOT -> ASKED -> SENT -> MERGE -> MERGED -> IDLE
 *   push  IDLE -> ASKED -> SPLIT -> SENT -> IDLE
 *   pull  IDLE -> ASKED -> SENT -> MERGE -> IDLE
 *   doubt SENT -> ABORTING -> IDLE, or -> UNDO -> IDLE (push)
 *         MERGED -> RECALLING -> UNDO -> IDLE
 *
 * A swap's snapshot is taken before anybody is asked, at the very step that
 * pulled the trigger: the model can leave as soon as the ACCEPT is here,
 * without waiting for another step boundary, and a BUSY costs one copy. A push
 * splits its mass only once it is accepted, because a split must be undone.
 *
 * Both models of a swap travel at once, and each side merges at its own next
 * step boundary. Whether the exchange took place is the responder's word: its
 * ACK, or ABORTED, upon which this side takes its own half back. The final ACK
 * of this side tells the responder that nobody will ask again. */
#include "src/protocol/core/round.h"

static void ask(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != INITIATOR_SENT);
    /* A partner that was asked before may have used up tries. */
    exchange->state = INITIATOR_ASKED;
    exchange->tries = 0;
    exchange->probes = 0;
    exchange->overlap = kith_exchange_overlap(node) & 15u;
    exchange->since_ns = node->now_ns;
    exchange->deadline_ns = node->now_ns + kith_node_control_timeout(node, 0);
    kith_node_mark(node, KITH_MARK_OPENED, exchange, exchange->edge.peer,
                   exchange->pattern, 0);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_REQUEST);
}

void kith_exchange_open(struct kith_node *node, enum kith_pattern pattern)
{
    uint32_t index = 0;
    while (index < kith_exchange_count(node) &&
           node->exchanges[index].state != INITIATOR_IDLE)
        index += 2;
    KITH_ASSERT(index < kith_exchange_count(node)); /* is_open(): one is free */
    const uint32_t slots = KITH_SLOTS_PER_EXCHANGE * (index / 2);
    struct kith_exchange *exchange = &node->exchanges[index];
    node->exchange_mask |= (uint8_t)(1u << index);
    const uint32_t retries = node->config->retries;
    /* Not the donor again that has just made nothing of it. */
    const bool again = pattern == KITH_PATTERN_PULL && node->pulls > 1;
    *exchange = (struct kith_exchange){
        .deadline_ns = KITH_NEVER,
        .pattern = pattern & 7u,
        .edge = {.peer = again ? exchange->edge.peer : KITH_NOBODY,
                 .sent = KITH_SLOT_INITIATED_SENT + slots,
                 .inbox = KITH_SLOT_INITIATED_INBOX + slots}};
    const bool found = kith_exchange_draw(node, exchange);
    /* A pull has no trigger behind it, so it is no attempt. */
    if (pattern != KITH_PATTERN_PULL)
        kith_node_mark(node, KITH_MARK_ATTEMPT, NULL,
                       found ? exchange->edge.peer : KITH_NOBODY,
                       node->attempts, 0);
    if (!found) {
        node->adopting = false; /* alone: nobody to adopt from */
        if (pattern != KITH_PATTERN_PULL)
            kith_trigger_skip(node, exchange);
        return;
    }
    exchange->counter = node->next_counter;
    node->next_counter += KITH_ASKS;
    exchange->incarnation = node->incarnation;
    exchange->retries =
        (retries < KITH_RETRIES_MAX ? retries : KITH_RETRIES_MAX) & 31u;
    /* Bit 0 is that of the exchange just opened, failed until it is merged. */
    node->outcomes <<= 1;
    if (pattern == KITH_PATTERN_SWAP)
        exchange->state = INITIATOR_SNAPSHOT;
    else
        ask(node, exchange);
}

void kith_exchange_adopt(struct kith_node *node)
{
    const struct kith_exchange *exchange = &node->exchanges[0];
    KITH_ASSERT(node->adopting && node->pulls <= KITH_PULLS_MAX);
    if (exchange->state != INITIATOR_IDLE)
        return;
    if (node->pulls == KITH_PULLS_MAX) {
        node->adopting = false;
    } else if (exchange->deadline_ns == KITH_NEVER) { /* no pause now */
        node->pulls++;
        kith_exchange_open(node, KITH_PATTERN_PULL);
    }
}

/* Exchanges opened since. Of all that are asked in one exchange only the last
 * ever gets our model, so one outcome serves them all. */
static uint64_t age_of(const struct kith_node *node, uint64_t counter)
{
    KITH_ASSERT(node->next_counter % KITH_ASKS == 0);
    return node->next_counter / KITH_ASKS - 1 - counter / KITH_ASKS;
}

/* The outcome is kept for the responder, which may have missed our last
 * message and will ask. */
static void finish(struct kith_node *node, struct kith_exchange *exchange,
                   bool merged)
{
    const uint64_t age = age_of(node, exchange->counter);
    if (age < KITH_OUTCOMES)
        node->outcomes |= (uint64_t)merged << age;
    node->done += merged;
    node->failed += !merged;
    kith_node_mark(node, merged ? KITH_MARK_DONE : KITH_MARK_FAILED, exchange,
                   exchange->edge.peer, 0, 0);
    kith_exchange_end(node, exchange);
    /* Busy peers rarely accept a pull; the next one is asked after a delay that
     * grows. */
    if (!merged && !kith_exchange_gives(exchange))
        exchange->deadline_ns =
            node->now_ns + (KITH_PULL_WAIT_NS << node->pulls);
    KITH_ASSERT(exchange->state == INITIATOR_IDLE);
}

/* This partner will not do; the snapshot still serves for another one. */
static void try_another(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_ASKED);
    if (exchange->retries > 0 && node->presence != LEAVING &&
        !kith_exchange_defers(node)) {
        const kith_id before = exchange->edge.peer;
        /* A BUSY or a silent partner costs a request, not a trigger; without
         * a bound a crowded cluster would only ask. */
        exchange->retries--;
        /* What is still under way about the last one is not about this. */
        exchange->counter++;
        KITH_ASSERT(exchange->counter % KITH_ASKS != 0);
        if (kith_exchange_draw(node, exchange) &&
            exchange->edge.peer != before) {
            ask(node, exchange);
            return;
        }
        exchange->edge.peer = before;
    }
    finish(node, exchange, false);
    if (kith_exchange_gives(exchange))
        kith_exchange_listen(node, exchange);
}

static void send_model(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_ASKED ||
                exchange->state == INITIATOR_SPLIT);
    exchange->state = INITIATOR_SENT;
    exchange->tries = 0;
    /* A pull has nothing to send; its turn begins with the ACCEPT. */
    exchange->since_ns = node->now_ns;
    exchange->deadline_ns = node->now_ns + kith_node_turn_timeout(node, 0);
    if (kith_exchange_gives(exchange))
        kith_exchange_tell(node, exchange, KITH_MESSAGE_MODEL);
}

/* Given up by us. A responder that has merged our model must take it back,
 * or say that it never did: hence ABORTING. */
static void abort_exchange(struct kith_node *node,
                           struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_SENT ||
                exchange->state == INITIATOR_MERGED);
    kith_node_cancel(node, exchange->edge.sent);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
    if (!kith_exchange_gives(exchange)) {
        finish(node, exchange, false); /* nothing is in doubt */
        return;
    }
    exchange->state = exchange->state == INITIATOR_MERGED ? INITIATOR_RECALLING
                                                          : INITIATOR_ABORTING;
    exchange->tries = 0;
    exchange->deadline_ns = node->now_ns + kith_node_control_timeout(node, 0);
}

/* It took the record and made nothing of it: it is not asked for a while. Of a
 * push our share may have been lost on its way. */
static void give_up_on(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->edge.peer != KITH_NOBODY);
    if (kith_exchange_brings(exchange) &&
        (kith_exchange_gives(exchange) || node->pulls > 1))
        kith_exchange_warn(node, exchange);
    /* Training waits for a pull, and those that ask us do: one that lapses
     * counts for four. */
    if (!kith_exchange_gives(exchange))
        for (unsigned k = 1; k < 4 && node->pulls < KITH_PULLS_MAX; k++)
            node->pulls++;
    abort_exchange(node, exchange);
}

static void take_back(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(!exchange->running);
    kith_node_cancel(node, exchange->edge.sent);
    exchange->state = INITIATOR_UNDO;
    exchange->deadline_ns = KITH_NEVER;
}

/* The other side holds nothing of this exchange. */
static void step_aborted(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != INITIATOR_IDLE);
    if (exchange->state == INITIATOR_ASKED) {
        try_another(node, exchange);
    } else if (exchange->running) {
        /* The item cannot be stopped; when it is done there is something to
         * take back, but of a pull: what we adopt has cost nobody anything. */
        exchange->abort_due =
            exchange->state == INITIATOR_MERGE && kith_exchange_gives(exchange);
    } else if (exchange->state == INITIATOR_MERGED ||
               exchange->state == INITIATOR_RECALLING) {
        take_back(node, exchange);
    } else if (exchange->state != INITIATOR_SENT &&
               exchange->state != INITIATOR_MERGE &&
               exchange->state != INITIATOR_ABORTING) {
        return;
        /* Our share has left x and did not arrive: it comes back, or the sum
         * would shrink. */
    } else if (!kith_exchange_brings(exchange)) {
        take_back(node, exchange);
    } else {
        finish(node, exchange, false);
    }
}

static enum kith_work_kind due(const struct kith_exchange *exchange)
{
    const unsigned state = exchange->state;
    KITH_ASSERT(state <= INITIATOR_UNDO);
    if (state == INITIATOR_SNAPSHOT || state == INITIATOR_SPLIT)
        return KITH_WORK_SNAPSHOT;
    if (state == INITIATOR_MERGE)
        return kith_exchange_gives(exchange) ? KITH_WORK_MERGE
                                             : KITH_WORK_ADOPT;
    return state == INITIATOR_UNDO ? KITH_WORK_UNDO : KITH_WORK_COUNT;
}

/* Both sides have moved: the responder may forget the exchange. */
static void complete(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(!exchange->abort_due);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
    if (exchange->pattern == KITH_PATTERN_SWAP)
        kith_turn_served(node, exchange->edge.peer);
    finish(node, exchange, true);
}

static void adopted(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_MERGE);
    kith_node_mark(node, KITH_MARK_ADOPTED, exchange, exchange->edge.peer, 0,
                   exchange->edge.delta_sum);
    node->adopting = false;
    complete(node, exchange);
}

static void merged(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_MERGE);
    kith_node_mark(node, KITH_MARK_MERGED, exchange, exchange->edge.peer, 0,
                   exchange->edge.delta_sum);
    if (exchange->abort_due) {
        exchange->abort_due = false;
        take_back(node, exchange);
    } else if (exchange->acked) {
        complete(node, exchange);
    } else {
        exchange->state = INITIATOR_MERGED;
        exchange->tries = 0;
        exchange->deadline_ns = node->now_ns + kith_node_turn_timeout(node, 0);
    }
}

static void worked(struct kith_node *node, struct kith_exchange *exchange,
                   enum kith_work_kind kind)
{
    KITH_ASSERT(!exchange->running);
    if (exchange->state == INITIATOR_SNAPSHOT) {
        ask(node, exchange);
    } else if (exchange->state == INITIATOR_SPLIT) {
        kith_node_mark(node, KITH_MARK_SPLIT, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
        send_model(node, exchange);
    } else if (kind == KITH_WORK_UNDO) {
        kith_exchange_undone(node, exchange);
        finish(node, exchange, false);
    } else if (kind == KITH_WORK_ADOPT) {
        adopted(node, exchange);
    } else {
        merged(node, exchange);
    }
}

/* A counter from the future wraps around to a great age. */
static bool is_remembered(const struct kith_node *node,
                          struct kith_exchange_id id)
{
    return id.incarnation == node->incarnation &&
           age_of(node, id.counter) < KITH_OUTCOMES;
}

bool kith_exchange_is_completed(const struct kith_node *node,
                                struct kith_exchange_id id)
{
    return is_remembered(node, id) &&
           (node->outcomes >> age_of(node, id.counter) & 1) != 0;
}

/* "What became of it?" about an exchange that is over on this side. */
static void answer_probe(struct kith_node *node, kith_id from,
                         const struct kith_message *message)
{
    KITH_ASSERT(!message->mine);
    const enum kith_message_kind kind =
        !is_remembered(node, message->id)               ? KITH_MESSAGE_ABORTED
        : kith_exchange_is_completed(node, message->id) ? KITH_MESSAGE_ACK
                                                        : KITH_MESSAGE_ABORT;
    kith_exchange_reply(node, from, message, kind);
}

/* The first ACCEPT answers the REQUEST; a later one answers a PROBE: "still
 * at work", which may be said so often and no more. */
static void step_accept(struct kith_node *node, struct kith_exchange *exchange,
                        const struct kith_message *message)
{
    KITH_ASSERT(exchange->probes <= KITH_PROBES_MAX);
    if (!kith_exchange_gives(exchange) && node->round != NULL)
        node->round->donor = message->step;
    if (exchange->state == INITIATOR_ASKED) {
        if (exchange->pattern == KITH_PATTERN_SWAP &&
            !kith_exchange_weigh(node, exchange, message->overlap)) {
            kith_node_bad(node, exchange, exchange->edge.peer, message);
            kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
            try_another(node, exchange);
            return;
        }
        kith_estimate_add(&node->control, node->now_ns - exchange->since_ns);
        node->late_answers = 0;
        /* The split waits for the worker; no deadline, for it is our own
         * step that is awaited. */
        if (!kith_exchange_brings(exchange)) {
            exchange->state = INITIATOR_SPLIT;
            exchange->deadline_ns = KITH_NEVER;
        } else {
            send_model(node, exchange);
        }
    } else if (exchange->state == INITIATOR_SENT ||
               exchange->state == INITIATOR_MERGED) { /* still at work */
        if (exchange->probes == KITH_PROBES_MAX) {
            give_up_on(node, exchange);
        } else {
            exchange->probes++;
            exchange->tries = 0;
        }
    }
}

static void step_busy(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->edge.peer != KITH_NOBODY);
    if (exchange->state != INITIATOR_ASKED)
        return;
    node->late_answers = 0;
    node->refused++;
    kith_node_mark(node, KITH_MARK_REFUSED, exchange, exchange->edge.peer, 0,
                   0);
    try_another(node, exchange);
}

/* The other side has added what was pushed, or merged its half of a swap. */
static void step_ack(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->since_ns <= node->now_ns);
    const bool sent = exchange->state == INITIATOR_SENT;
    if (exchange->pattern == KITH_PATTERN_SWAP) {
        const bool merged = exchange->state == INITIATOR_MERGED;
        const bool early = sent || exchange->state == INITIATOR_MERGE;
        /* Its model left with its ACCEPT; this is what answers ours. */
        if (merged || (early && !exchange->acked))
            kith_node_turn_took(node, exchange->since_ns);
        /* That model may still be under way; control frames overtake it. */
        exchange->acked = early;
        if (merged)
            complete(node, exchange);
    } else if (!kith_exchange_brings(exchange) &&
               (sent || exchange->state == INITIATOR_ABORTING)) {
        /* An ACK that crosses our ABORT says nothing of how long a turn takes.
         */
        if (sent)
            kith_node_turn_took(node, exchange->since_ns);
        complete(node, exchange);
    }
}

static void step_model(struct kith_node *node, struct kith_exchange *exchange,
                       const struct kith_message *message)
{
    KITH_ASSERT(exchange->since_ns <= node->now_ns);
    if (exchange->state != INITIATOR_SENT || !kith_exchange_brings(exchange)) {
        node->late++;
        return;
    }
    if (!kith_exchange_take(node, exchange, message)) {
        abort_exchange(node, exchange);
        return;
    }
    if (!kith_exchange_gives(exchange) && node->round != NULL)
        kith_round_take_place(node, message->step);
    /* No deadline either: the worker is ours. */
    exchange->state = INITIATOR_MERGE;
}

static void step_message(struct kith_node *node, struct kith_exchange *exchange,
                         kith_id from, const struct kith_message *message)
{
    KITH_ASSERT(!message->mine);
    if (exchange == NULL) {
        if (message->kind == KITH_MESSAGE_PROBE)
            answer_probe(node, from, message);
        else
            node->late++;
        kith_node_came_late(node, message);
        /* Given up too early, and so no measure of how long an answer takes:
         * the next ones are waited for twice as long. */
        if ((message->kind == KITH_MESSAGE_ACCEPT ||
             message->kind == KITH_MESSAGE_BUSY) &&
            node->late_answers < KITH_TRIES_MAX)
            node->late_answers++;
        return;
    }
    switch (message->kind) {
    case KITH_MESSAGE_ACCEPT:
        step_accept(node, exchange, message);
        break;
    case KITH_MESSAGE_BUSY:
        step_busy(node, exchange);
        break;
    case KITH_MESSAGE_MODEL:
        step_model(node, exchange, message);
        break;
    case KITH_MESSAGE_ACK:
        step_ack(node, exchange);
        break;
    case KITH_MESSAGE_ABORTED:
        step_aborted(node, exchange);
        break;
    case KITH_MESSAGE_PROBE:
        if (exchange->state == INITIATOR_ABORTING ||
            exchange->state == INITIATOR_RECALLING)
            kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
        else if (exchange->state == INITIATOR_SENT ||
                 exchange->state == INITIATOR_MERGED)
            kith_exchange_tell(node, exchange, KITH_MESSAGE_PROBE);
        break;
    case KITH_MESSAGE_REQUEST:
    case KITH_MESSAGE_READY:
    case KITH_MESSAGE_ABORT:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        kith_node_bad(node, exchange, from, message);
        break;
    }
}

/* Nobody answers: the neighbour is dead as far as this exchange goes. */
static void give_up(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_ABORTING ||
                exchange->state == INITIATOR_RECALLING);
    kith_node_suspect(node, exchange->edge.peer,
                      kith_node_turn_timeout(node, KITH_TRIES_MAX));
    if (exchange->state == INITIATOR_RECALLING) {
        /* Should it have merged, it will ask, and take its half back, too. */
        take_back(node, exchange);
        return;
    }
    if (!kith_exchange_brings(exchange)) {
        /* Whether the share arrived nobody can say: it is written off. */
        node->torn++;
        kith_node_mark(node, KITH_MARK_TORN, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
    }
    finish(node, exchange, false);
}

/* Whoever only ever answers "soon" must not hold a record of the table: four
 * times as long as the slowest turn should take is enough. Where no turn was
 * measured yet patience is a probe's. Training waits for a pull: where the
 * first one takes long another neighbour is asked, before anybody is waited for
 * longer or charged; and who says that it has not sent it yet is waited for
 * less. */
static bool is_late(const struct kith_node *node,
                    const struct kith_exchange *exchange)
{
    const uint32_t doublings = kith_exchange_gives(exchange) ? 2
                               : node->pulls <= 1            ? 0
                               : exchange->probes > 0        ? 1
                                                             : 2;
    KITH_ASSERT(exchange->deadline_ns <= node->now_ns);
    return kith_exchange_brings(exchange) &&
           !kith_exchange_overslept(node, exchange) &&
           (!kith_exchange_gives(exchange) || node->turn.mean_us > 0) &&
           node->now_ns - exchange->since_ns >=
               kith_node_turn_timeout(node, doublings);
}

/* No answer to a REQUEST, over a link that stands or one that broke. */
static void suspect_silent(struct kith_node *node,
                           const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_ASKED);
    kith_node_suspect(node, exchange->edge.peer,
                      kith_node_turn_timeout(node, 2));
}

static void wake(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->deadline_ns <= node->now_ns);
    switch ((enum initiator_state)exchange->state) {
    case INITIATOR_ASKED:
        suspect_silent(node, exchange);
        kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
        try_another(node, exchange);
        break;
    case INITIATOR_SENT:
    case INITIATOR_MERGED:
        if (exchange->tries == KITH_TRIES_MAX) {
            abort_exchange(node, exchange);
        } else if (is_late(node, exchange)) {
            give_up_on(node, exchange);
        } else {
            /* Waiting longer each time: a slow peer is not asked more often
             * than it can answer. A pull is over soon. */
            exchange->tries++;
            kith_exchange_tell(node, exchange, KITH_MESSAGE_PROBE);
            exchange->deadline_ns =
                node->now_ns +
                kith_node_turn_timeout(
                    node, kith_exchange_gives(exchange) ? exchange->tries : 0);
        }
        break;
    case INITIATOR_ABORTING:
    case INITIATOR_RECALLING:
        if (exchange->tries == KITH_TRIES_MAX) {
            give_up(node, exchange);
        } else {
            exchange->tries++;
            kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
            exchange->deadline_ns =
                node->now_ns + kith_node_control_timeout(node, exchange->tries);
        }
        break;
    case INITIATOR_IDLE: /* the pause between two pulls is over */
    case INITIATOR_SNAPSHOT:
    case INITIATOR_SPLIT:
    case INITIATOR_MERGE:
    case INITIATOR_UNDO:
        exchange->deadline_ns = KITH_NEVER;
        break;
    }
}

static void link_down(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != INITIATOR_IDLE);
    if (exchange->state == INITIATOR_ASKED) {
        suspect_silent(node, exchange);
        try_another(node, exchange);
    } else if (exchange->state == INITIATOR_SENT ||
               exchange->state == INITIATOR_MERGED ||
               exchange->state == INITIATOR_ABORTING ||
               exchange->state == INITIATOR_RECALLING) {
        kith_exchange_hurry(node, exchange);
    }
}

const struct kith_exchange_side kith_initiator = {
    .due = due,
    .worked = worked,
    .message = step_message,
    .wake = wake,
    .link_down = link_down,
    .is_due = 1u << INITIATOR_SNAPSHOT | 1u << INITIATOR_SPLIT |
              1u << INITIATOR_MERGE | 1u << INITIATOR_UNDO,
    .awaits_model = 1u << INITIATOR_SENT,
    .is_ahead = 1u << INITIATOR_SNAPSHOT | 1u << INITIATOR_ASKED |
                1u << INITIATOR_SENT | 1u << INITIATOR_MERGE,
    .holds_sent = 1u << INITIATOR_ASKED | 1u << INITIATOR_SPLIT |
                  1u << INITIATOR_SENT | 1u << INITIATOR_MERGE |
                  1u << INITIATOR_MERGED | 1u << INITIATOR_ABORTING |
                  1u << INITIATOR_RECALLING | 1u << INITIATOR_UNDO,
    .holds_inbox = 1u << INITIATOR_MERGE | 1u << INITIATOR_MERGED |
                   1u << INITIATOR_RECALLING | 1u << INITIATOR_UNDO,
};
