/* The side of an exchange that asks.
 *
 *   swap  IDLE -> SNAPSHOT -> ASKED -> SENT -> MERGE -> IDLE
 *   push  IDLE -> ASKED -> SPLIT -> SENT -> IDLE
 *   pull  IDLE -> ASKED -> SENT -> MERGE -> IDLE
 *   doubt SENT -> ABORTING -> IDLE, or -> UNDO -> IDLE (push)
 *
 * A swap's snapshot is taken before anybody is asked, at the very step that
 * pulled the trigger: the model can leave as soon as the ACCEPT is here,
 * without waiting for another step boundary, and a BUSY costs one copy. A push
 * splits its mass only once it is accepted, because a split must be undone.
 *
 * Nothing is applied here before the other side has applied its half, so until
 * MERGE this side can always give up; what is in doubt is the other's half. */
#include "src/protocol/core/round.h"

static void ask(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != INITIATOR_SENT);
    /* A partner that was asked before may have used up tries. */
    exchange->state = INITIATOR_ASKED;
    exchange->tries = 0;
    exchange->probes = 0;
    exchange->since_ns = node->now_ns;
    exchange->deadline_ns = node->now_ns + kith_node_control_timeout(node, 0);
    kith_node_mark(node, KITH_MARK_OPENED, exchange, exchange->edge.peer,
                   exchange->pattern, 0);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_REQUEST);
}

/* The round whose graph partners are drawn from, where it changes. A peer that
 * adopts tries others, should its neighbours of one round have crashed with
 * it. */
static uint64_t graph_round(const struct kith_node *node)
{
    KITH_ASSERT(node->round == NULL || node->adopting);
    return node->round != NULL  ? node->round->round + node->draws
           : node->attempts > 0 ? node->attempts - 1
                                : 0;
}

/* Draw a partner, leaving suspects out. False when alone. */
static bool draw(struct kith_node *node, struct kith_exchange *exchange)
{
    kith_id avoid[KITH_SUSPECTS_MAX + 1];
    uint32_t count = kith_node_suspects(node, avoid);
    /* The partner that has just refused is not asked twice in a row. */
    if (exchange->edge.peer != KITH_NOBODY)
        avoid[count++] = exchange->edge.peer;

    /* The stream's position is kept, not its state: 8 bytes in place of 48. */
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_PARTNER, node->self);
    rng.block = node->draws;
    exchange->edge.peer = kith_topology_partner(
        node->config->topology, node->self, graph_round(node), &rng, avoid,
        count, &exchange->edge.weight);
    node->draws++;
    KITH_ASSERT(exchange->edge.peer != node->self);
    KITH_ASSERT(exchange->edge.weight >= 0 && exchange->edge.weight <= 1);
    return exchange->edge.peer != KITH_NOBODY;
}

void kith_exchange_open(struct kith_node *node, enum kith_pattern pattern)
{
    uint32_t index = 0;
    while (index < KITH_INITIATED_MAX &&
           node->exchanges[index].state != INITIATOR_IDLE)
        index++;
    KITH_ASSERT(index < KITH_INITIATED_MAX); /* is_open(): one is free */
    struct kith_exchange *exchange = &node->exchanges[index];
    node->exchange_mask |= (uint8_t)(1u << index);
    const uint32_t retries = node->config->retries;
    *exchange =
        (struct kith_exchange){.deadline_ns = KITH_NEVER,
                               .pattern = pattern & 15u,
                               .edge = {.peer = KITH_NOBODY,
                                        .sent = KITH_SLOT_INITIATED_SENT,
                                        .inbox = KITH_SLOT_INITIATED_INBOX}};
    const bool found = draw(node, exchange);
    /* A pull has no trigger behind it, so it is no attempt. */
    if (pattern != KITH_PATTERN_PULL)
        kith_node_mark(node, KITH_MARK_ATTEMPT, NULL, exchange->edge.peer,
                       node->attempts, 0);
    if (!found) {
        node->adopting = false; /* alone: nobody to adopt from */
        return;
    }
    exchange->counter = node->next_counter++;
    exchange->incarnation = node->incarnation;
    exchange->retries = (uint8_t)(retries < UINT8_MAX ? retries : UINT8_MAX);
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

/* The outcome is kept for the responder, which may have missed our last
 * message and will ask. */
static void finish(struct kith_node *node, struct kith_exchange *exchange,
                   bool merged)
{
    node->outcomes |= merged;
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
    if (exchange->retries > 0 && !node->leaving) {
        const kith_id before = exchange->edge.peer;
        /* A BUSY or a silent partner costs a request, not a trigger; without
         * a bound a crowded cluster would only ask. */
        exchange->retries--;
        if (draw(node, exchange) && exchange->edge.peer != before) {
            ask(node, exchange);
            return;
        }
        exchange->edge.peer = before;
    }
    finish(node, exchange, false);
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
    KITH_ASSERT(exchange->state == INITIATOR_SENT);
    kith_node_cancel(node, exchange->edge.sent);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
    if (!kith_exchange_gives(exchange)) {
        finish(node, exchange, false); /* nothing is in doubt */
        return;
    }
    exchange->state = INITIATOR_ABORTING;
    exchange->tries = 0;
    exchange->deadline_ns = node->now_ns + kith_node_control_timeout(node, 0);
}

/* The other side holds nothing of this exchange. */
static void step_aborted(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != INITIATOR_IDLE);
    if (exchange->state == INITIATOR_ASKED) {
        try_another(node, exchange);
    } else if (exchange->state != INITIATOR_SENT &&
               exchange->state != INITIATOR_ABORTING) {
        return;
        /* Our share has left x and did not arrive: it comes back, or the sum
         * would shrink. */
    } else if (!kith_exchange_brings(exchange)) {
        kith_node_cancel(node, exchange->edge.sent);
        exchange->state = INITIATOR_UNDO;
        exchange->deadline_ns = KITH_NEVER;
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

/* Our half comes last, so the ACK tells the responder that both have moved. */
static void merged(struct kith_node *node, struct kith_exchange *exchange,
                   bool adopted)
{
    KITH_ASSERT(exchange->state == INITIATOR_MERGE);
    KITH_ASSERT(adopted == !kith_exchange_gives(exchange));
    kith_node_mark(node, adopted ? KITH_MARK_ADOPTED : KITH_MARK_MERGED,
                   exchange, exchange->edge.peer, 0, exchange->edge.delta_sum);
    if (adopted) {
        node->adopting = false;
        node->pulls = 0;
    }
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
    finish(node, exchange, true);
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
    } else {
        merged(node, exchange, kind == KITH_WORK_ADOPT);
    }
}

/* "What became of it?" about an exchange that is over on this side. */
static void answer_probe(struct kith_node *node, kith_id from,
                         const struct kith_message *message)
{
    KITH_ASSERT(!message->mine);
    /* A counter from the future wraps around to a great age, and gets the
     * answer for one that is forgotten. */
    const uint64_t age = node->next_counter - 1 - message->id.counter;
    enum kith_message_kind kind = KITH_MESSAGE_ABORTED;
    if (message->id.incarnation == node->incarnation && age < KITH_OUTCOMES)
        kind = (node->outcomes >> age & 1) != 0 ? KITH_MESSAGE_ACK
                                                : KITH_MESSAGE_ABORT;
    kith_exchange_reply(node, from, message, kind);
}

/* The first ACCEPT answers the REQUEST; a later one answers a PROBE: "still
 * at work", which may be said so often and no more. */
static void step_accept(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->probes <= KITH_PROBES_MAX);
    if (exchange->state == INITIATOR_ASKED) {
        kith_estimate_add(&node->control, node->now_ns - exchange->since_ns);
        /* The split waits for the worker; no deadline, for it is our own
         * step that is awaited. */
        if (!kith_exchange_brings(exchange)) {
            exchange->state = INITIATOR_SPLIT;
            exchange->deadline_ns = KITH_NEVER;
        } else {
            send_model(node, exchange);
        }
    } else if (exchange->state == INITIATOR_SENT) { /* alive, still waiting */
        if (exchange->probes == KITH_PROBES_MAX) {
            abort_exchange(node, exchange);
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
    node->refused++;
    kith_node_mark(node, KITH_MARK_REFUSED, exchange, exchange->edge.peer, 0,
                   0);
    try_another(node, exchange);
}

/* The other side has added what was pushed. */
static void step_ack(struct kith_node *node, struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->since_ns <= node->now_ns);
    if (!!kith_exchange_brings(exchange) ||
        (exchange->state != INITIATOR_SENT &&
         exchange->state != INITIATOR_ABORTING))
        return;
    /* An ACK that crosses our ABORT says nothing of how long a turn takes. */
    if (exchange->state == INITIATOR_SENT)
        kith_estimate_add(&node->turn, node->now_ns - exchange->since_ns);
    kith_exchange_tell(node, exchange, KITH_MESSAGE_ACK);
    finish(node, exchange, true);
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
    kith_estimate_add(&node->turn, node->now_ns - exchange->since_ns);
    if (!kith_exchange_gives(exchange) && message->step > node->steps &&
        node->round != NULL) {
        /* Rounds are numbered by steps: take the donor's place in them. */
        node->steps = message->step < node->config->steps ? message->step
                                                          : node->config->steps;
        kith_round_rejoin(node, kith_round_after(node, message->step));
    }
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
        return;
    }
    switch (message->kind) {
    case KITH_MESSAGE_ACCEPT:
        step_accept(node, exchange);
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
        if (exchange->state == INITIATOR_ABORTING)
            kith_exchange_tell(node, exchange, KITH_MESSAGE_ABORT);
        else if (exchange->state == INITIATOR_SENT)
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
    KITH_ASSERT(exchange->state == INITIATOR_ABORTING);
    kith_node_suspect(node, exchange->edge.peer,
                      kith_node_turn_timeout(node, KITH_TRIES_MAX));
    if (!kith_exchange_brings(exchange)) {
        /* Whether the share arrived nobody can say: it is written off. */
        node->torn++;
        kith_node_mark(node, KITH_MARK_TORN, exchange, exchange->edge.peer, 0,
                       exchange->edge.delta_sum);
    }
    finish(node, exchange, false);
}

/* Training waits for a pull, so a donor that only ever answers "soon" must not
 * hold it: nothing is in doubt, another donor can be asked. */
static bool pull_is_late(const struct kith_node *node,
                         const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_SENT);
    return !kith_exchange_gives(exchange) &&
           node->now_ns - exchange->since_ns >= kith_node_turn_timeout(node, 2);
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
        if (exchange->tries == KITH_TRIES_MAX || pull_is_late(node, exchange)) {
            abort_exchange(node, exchange);
        } else {
            /* Waiting longer each time: a slow peer is not asked more often
             * than it can answer. */
            exchange->tries++;
            kith_exchange_tell(node, exchange, KITH_MESSAGE_PROBE);
            exchange->deadline_ns =
                node->now_ns + kith_node_turn_timeout(node, exchange->tries);
        }
        break;
    case INITIATOR_ABORTING:
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
               exchange->state == INITIATOR_ABORTING) {
        kith_exchange_hurry(node, exchange);
    }
}

const struct kith_exchange_side kith_initiator = {
    .due = due,
    .worked = worked,
    .message = step_message,
    .wake = wake,
    .link_down = link_down,
    .awaits_model = INITIATOR_SENT,
};
