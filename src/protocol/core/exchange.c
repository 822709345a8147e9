/* Two-party exchanges: the table of those under way.
 *
 *   swap   both models travel, both sides end with the mix
 *   push   a share of the initiator's x goes one way
 *   pull   a peer that starts over adopts the responder's model
 *
 * Each record of the table is one exchange seen from one side; what that side
 * does stands in exchange_initiator.c and exchange_responder.c. This file finds
 * the record that an event is about. A peer whose model another one waits for
 * serves first, so records that it answers come before those it initiates. */
#include "src/protocol/core/mode.h"
#include "src/protocol/core/round.h"

#include <string.h>

/* A member is charged for so many times as long as it held a record, and for
 * CHARGE_NS at least: what is under way of it is not taken for something new.
 */
#define CHARGED 9
#define CHARGE_NS (40 * KITH_TIMEOUT_MIN_NS)

_Static_assert(OWNER_EXCHANGE + 2 * KITH_EXCHANGES_LIMIT <= UINT8_MAX,
               "the owner of an item names its exchange in one byte");

/* The place in the table decides the side: no record needs a field for it,
 * and an idle peer stays small. */
static const struct kith_exchange_side *side_of(const struct kith_node *node,
                                                uint32_t index)
{
    KITH_ASSERT(index < kith_exchange_count(node));
    return index % 2 == 0 ? &kith_initiator : &kith_responder;
}

void kith_exchange_init(struct kith_node *node)
{
    KITH_ASSERT(node->owner == OWNER_UNSTARTED);
    for (uint32_t i = 0; i < kith_exchange_count(node); i++)
        node->exchanges[i].deadline_ns = KITH_NEVER;
}

/* The one of this side with `peer` that has this number, or
 * KITH_EXCHANGE_NONE. */
static uint32_t record_of(const struct kith_node *node, uint32_t side,
                          kith_id peer, struct kith_exchange_id id)
{
    KITH_ASSERT(peer != node->self);
    for (uint32_t mask = node->exchange_mask & side; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        const struct kith_exchange *exchange = &node->exchanges[i];
        if (exchange->state != KITH_EXCHANGE_IDLE &&
            exchange->edge.peer == peer && exchange->counter == id.counter &&
            exchange->incarnation == id.incarnation)
            return i;
    }
    return KITH_EXCHANGE_NONE;
}

/* The one that `message` of `from` is about. */
static uint32_t find(const struct kith_node *node, kith_id from,
                     const struct kith_message *message)
{
    return record_of(
        node, message->mine ? KITH_EXCHANGES_THEIRS : KITH_EXCHANGES_OURS, from,
        message->id);
}

/* Neighbours of whichever end has more; of a graph that changes, many. */
static uint32_t degree_of(const struct kith_node *node, kith_id peer)
{
    const struct kith_topology *topology = node->config->topology;
    KITH_ASSERT(peer < topology->peers);
    if (kith_topology_is_any_pair(topology->kind) || !topology->kind->is_static)
        return UINT32_MAX;
    const uint32_t own = kith_topology_degree(topology, node->self);
    const uint32_t other = kith_topology_degree(topology, peer);
    return own > other ? own : other;
}

/* A peer of few neighbours: 4 is where measurements of both kinds meet. */
enum { FEW = 4 };

bool kith_exchange_is_single(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    return node->exchange_limit > 1 && degree_of(node, peer) <= FEW;
}

/* 1 / (1 + m): Metropolis weights of the graph of exchanges under way. With
 * more than one a side exchanges are longer under way, and where a peer has
 * many to choose from half as much is better; where it has few, what takes time
 * is that a value passes from neighbour to neighbour, and more of it serves.
 * Of that there is a bound: where r exchanges a step merge what is D steps old,
 *
 *   m = r D,   x_i <- x_i + w sum_r (x_j - x_i)(t - D),   2 r w < pi / (2 D)
 *
 * else neighbours that differ in sign swing ever wider: w m < pi / 4. Test:
 * test_overlap. */
#define SHARE_OF_MANY 0.5
#define SHARE_OF_FEW 0.7

double kith_exchange_weight(const struct kith_node *node, kith_id peer,
                            uint32_t overlap)
{
    KITH_ASSERT(overlap >= 1 && overlap <= kith_exchange_count(node));
    if (node->exchange_limit == 1 || overlap == 1)
        return 1.0 / (1.0 + overlap);
    return (degree_of(node, peer) > FEW ? SHARE_OF_MANY : SHARE_OF_FEW) /
           overlap;
}

bool kith_exchange_weigh(const struct kith_node *node,
                         struct kith_exchange *exchange, uint32_t overlap)
{
    KITH_ASSERT(exchange->pattern == KITH_PATTERN_SWAP);
    if (overlap < 1 || overlap > kith_exchange_count(node))
        return false;
    exchange->overlap = overlap & 15u;
    /* The edge is the worker's until its item is done. */
    if (!exchange->running)
        exchange->edge.weight =
            kith_exchange_weight(node, exchange->edge.peer, overlap);
    return true;
}

uint32_t kith_exchange_overlap(const struct kith_node *node)
{
    uint32_t count = 0;
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        const struct kith_exchange *exchange = &node->exchanges[i];
        count += exchange->pattern == KITH_PATTERN_SWAP &&
                 (side_of(node, i)->is_ahead >> exchange->state & 1u) != 0;
    }
    KITH_ASSERT(count <= KITH_OVERLAP_MAX);
    return count;
}

void kith_exchange_warn(struct kith_node *node,
                        const struct kith_exchange *exchange)
{
    const kith_ns held_ns = node->now_ns - exchange->since_ns;
    KITH_ASSERT(exchange->edge.peer != KITH_NOBODY && held_ns >= 0);
    const kith_ns long_ns =
        CHARGED * held_ns < CHARGE_NS
            ? CHARGE_NS
            : kith_node_earliest(CHARGED * held_ns, KITH_TIMEOUT_MAX_NS);
    kith_node_warn(
        node, exchange->edge.peer,
        kith_node_earliest(2 * held_ns + KITH_TIMEOUT_MIN_NS, long_ns),
        long_ns);
}

/* A donor's steps say nothing of its round: who is alone counts none. */
static bool is_place(const struct kith_node *node, enum kith_pattern pattern,
                     enum kith_message_kind kind)
{
    KITH_ASSERT(pattern != KITH_PATTERN_ROUND);
    return pattern == KITH_PATTERN_PULL && kind == KITH_MESSAGE_ACCEPT &&
           node->round != NULL && node->mode->says_round;
}

void kith_exchange_tell(const struct kith_node *node,
                        const struct kith_exchange *exchange,
                        enum kith_message_kind kind)
{
    KITH_ASSERT(exchange->state != KITH_EXCHANGE_IDLE);
    KITH_ASSERT(exchange->edge.peer != node->self);
    const enum kith_pattern pattern = (enum kith_pattern)exchange->pattern;
    const bool carries = kind == KITH_MESSAGE_MODEL;
    /* Only what announces a transfer says how long it is; the receiver
     * refuses a length that its own configuration does not have. */
    const bool sized = carries || kind == KITH_MESSAGE_REQUEST;
    /* The initiator's MODEL says which ACCEPT it heard: one may be stale. */
    const bool ours = kith_exchange_is_ours(node, exchange);
    const bool weighs = pattern == KITH_PATTERN_SWAP &&
                        (kind == KITH_MESSAGE_REQUEST ||
                         kind == KITH_MESSAGE_ACCEPT || (carries && ours));
    struct kith_message *message = kith_node_send(node, exchange->edge.peer);
    *message = (struct kith_message){
        .kind = kind,
        .pattern = pattern,
        .id = {.counter = exchange->counter,
               .incarnation = exchange->incarnation},
        .mine = ours,
        .step =
            is_place(node, pattern, kind) ? node->round->round : node->steps,
        .payload_bytes =
            sized ? kith_node_payload(node->config, pattern, exchange->counter)
                  : 0,
        .overlap = weighs ? exchange->overlap : 0,
        .slot = carries ? exchange->edge.sent : KITH_SLOT_NONE,
    };
    /* Scalars belong to the snapshot: those of x may have changed since. */
    if (carries) {
        message->scalar_count = node->config->algorithm->scalar_count;
        memcpy(message->scalars, exchange->edge.scalars_sent,
               sizeof message->scalars);
    }
}

/* Every field is taken from the question, so that an answer can be given by
 * a peer that remembers nothing of the exchange. */
void kith_exchange_reply(const struct kith_node *node, kith_id to,
                         const struct kith_message *about,
                         enum kith_message_kind kind)
{
    KITH_ASSERT(kind != KITH_MESSAGE_MODEL && kind != KITH_MESSAGE_REQUEST);
    *kith_node_send(node, to) = (struct kith_message){.kind = kind,
                                                      .pattern = about->pattern,
                                                      .id = about->id,
                                                      .mine = !about->mine,
                                                      .step = node->steps,
                                                      .slot = KITH_SLOT_NONE};
}

/* Puts the item that exchange `index` waits for into the effects. The index
 * names the owner of the item, which outlives any pointer that a copy of the
 * node would hold. */
static void put_work(struct kith_node *node, uint32_t index,
                     enum kith_work_kind kind)
{
    struct kith_exchange *exchange = &node->exchanges[index];
    const kith_id initiator = kith_exchange_is_ours(node, exchange)
                                  ? node->self
                                  : exchange->edge.peer;
    /* One item at a time: whatever comes meanwhile about this exchange is
     * noted and acted upon when the item is done. */
    KITH_ASSERT(!exchange->running);
    exchange->running = true;
    kith_node_work(
        node, OWNER_EXCHANGE + index,
        (struct kith_work){
            .kind = kind,
            .pattern = (enum kith_pattern)exchange->pattern,
            /* Where both are due, our snapshot is what the merge began with.
             */
            .snapshot_first =
                index % 2 == 1 && exchange->state == RESPONDER_MERGE_BOTH,
            /* A number that both sides know and no other exchange has: whoever
             * is asked after others gets the snapshot that was made for the
             * first of them. */
            .round = ((uint64_t)initiator << 44 ^
                      (uint64_t)exchange->incarnation << 36) +
                     exchange->counter / KITH_ASKS,
            .edges = &exchange->edge,
            .edge_count = 1});
}

void kith_exchange_undone(struct kith_node *node,
                          const struct kith_exchange *exchange)
{
    KITH_ASSERT(!exchange->running);
    /* The delta was added once and is taken out once, so the books of both
     * sides balance at 0. */
    node->undone++;
    kith_node_mark(node, KITH_MARK_UNDONE, exchange, exchange->edge.peer, 0,
                   -exchange->edge.delta_sum);
}

/* The inbox that the driver was given when the header came must still be
 * ours: the exchange may have ended while the bytes were under way. */
bool kith_exchange_take(struct kith_node *node, struct kith_exchange *exchange,
                        const struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_MODEL);
    if (message->slot != exchange->edge.inbox ||
        !kith_node_sane(node, message)) {
        node->gated++;
        kith_node_mark(node, KITH_MARK_GATED, exchange, exchange->edge.peer, 0,
                       0);
        return false;
    }
    memcpy(exchange->edge.scalars_received, message->scalars,
           sizeof message->scalars);
    exchange->deadline_ns = KITH_NEVER;
    return true;
}

void kith_exchange_end(const struct kith_node *node,
                       struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state != KITH_EXCHANGE_IDLE);
    KITH_ASSERT(!exchange->running);
    /* The snapshot may still be under way to a peer that does not need it
     * any more; its slot is used by the next exchange. */
    kith_node_cancel(node, exchange->edge.sent);
    exchange->state = KITH_EXCHANGE_IDLE;
    exchange->deadline_ns = KITH_NEVER;
}

bool kith_exchange_overslept(const struct kith_node *node,
                             const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->deadline_ns <= node->now_ns);
    return node->now_ns - exchange->deadline_ns > KITH_TIMEOUT_MIN_NS;
}

void kith_exchange_listen(struct kith_node *node,
                          struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->state == INITIATOR_IDLE);
    const kith_ns asked_ns = node->now_ns - exchange->since_ns;
    if (!kith_node_has(node, KITH_NEEDS_EXCLUSIVE_EXCHANGE) ||
        asked_ns < KITH_MS)
        return;
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_TRIGGER,
                  UINT64_C(1) << 32 | node->self);
    rng.block = (uint32_t)exchange->counter;
    exchange->deadline_ns =
        node->now_ns + 1 +
        (kith_ns)kith_rng_below(&rng, (uint32_t)(2 * asked_ns / KITH_US)) *
            KITH_US;
}

/* At once would be too soon: a link that broke is dialled again first, and a
 * peer that restarts takes a moment. */
void kith_exchange_hurry(const struct kith_node *node,
                         struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->tries <= KITH_TRIES_MAX);
    exchange->deadline_ns = kith_node_earliest(
        exchange->deadline_ns,
        node->now_ns + (KITH_TIMEOUT_MIN_NS << exchange->tries));
}

bool kith_exchange_is_pulled(const struct kith_node *node)
{
    for (uint32_t mask = node->exchange_mask & KITH_EXCHANGES_THEIRS;
         mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        if (node->exchanges[i].state != KITH_EXCHANGE_IDLE &&
            !kith_exchange_gives(&node->exchanges[i]))
            return true;
    }
    return false;
}

/* Records of a side that are in use. */
static uint32_t used(const struct kith_node *node, uint32_t side)
{
    uint32_t used = 0;
    KITH_ASSERT(node->exchange_mask >> kith_exchange_count(node) == 0);
    for (uint32_t mask = node->exchange_mask & side; mask != 0;)
        used += node->exchanges[kith_exchange_next(&mask)].state !=
                KITH_EXCHANGE_IDLE;
    return used;
}

/* How many this peer has initiated that are under way. */
static uint32_t initiated(const struct kith_node *node)
{
    return used(node, KITH_EXCHANGES_OURS);
}

/* With more than one record a trigger is skipped only when all are taken; with
 * one also while its peer listens after a refusal. */
static bool is_open(const struct kith_node *node)
{
    return initiated(node) == node->exchange_limit ||
           (node->exchange_limit == 1 &&
            node->exchanges[0].deadline_ns != KITH_NEVER);
}

bool kith_exchange_is_finished(const struct kith_node *node)
{
    return initiated(node) == 0;
}

bool kith_exchange_is_quiet(const struct kith_node *node)
{
    for (uint32_t mask = node->exchange_mask; mask != 0;)
        if (node->exchanges[kith_exchange_next(&mask)].state !=
            KITH_EXCHANGE_IDLE)
            return false;
    return true;
}

bool kith_exchange_defers(const struct kith_node *node)
{
    KITH_ASSERT(node->round == NULL || node->adopting);
    return kith_node_has(node, KITH_NEEDS_EXCLUSIVE_EXCHANGE) &&
           used(node, KITH_EXCHANGES_THEIRS) > 0;
}

static void trigger(struct kith_node *node)
{
    KITH_ASSERT(!is_open(node));
    kith_exchange_open(node, node->config->algorithm->pattern);
}

/* The item that a record of this side waits for. */
static enum kith_work_kind due(const struct kith_exchange *exchange,
                               const struct kith_exchange_side *side)
{
    KITH_DEBUG_ASSERT((side->is_due & 1u << KITH_EXCHANGE_IDLE) == 0);
    return (side->is_due >> exchange->state & 1u) != 0 ? side->due(exchange)
                                                       : KITH_WORK_COUNT;
}

/* The item of a record of this side, if one waits for its item. */
static bool put_due(struct kith_node *node, uint32_t records,
                    const struct kith_exchange_side *side)
{
    KITH_ASSERT(node->owner == OWNER_NONE);
    for (uint32_t mask = node->exchange_mask & records; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        const enum kith_work_kind kind = due(&node->exchanges[i], side);
        if (kind == KITH_WORK_COUNT)
            continue;
        put_work(node, i, kind);
        return true;
    }
    return false;
}

bool kith_exchange_schedule(struct kith_node *node)
{
    KITH_ASSERT(!node->effects->has_work);
    return put_due(node, KITH_EXCHANGES_THEIRS, &kith_responder) ||
           put_due(node, KITH_EXCHANGES_OURS, &kith_initiator);
}

void kith_exchange_worked(struct kith_node *node, uint32_t index,
                          enum kith_work_kind kind)
{
    struct kith_exchange *exchange = &node->exchanges[index];
    KITH_ASSERT(index < kith_exchange_count(node) && exchange->running);
    exchange->running = false;
    side_of(node, index)->worked(node, exchange, kind);
}

void kith_exchange_message(struct kith_node *node, kith_id from,
                           const struct kith_message *message)
{
    /* Rounds are for algorithms that have them; their peers never send one
     * here. */
    if (message->pattern == KITH_PATTERN_ROUND) {
        kith_node_bad(node, NULL, from, message);
        return;
    }
    const struct kith_exchange_side *side =
        message->mine ? &kith_responder : &kith_initiator;
    const uint32_t index = find(node, from, message);
    side->message(node,
                  index != KITH_EXCHANGE_NONE ? &node->exchanges[index] : NULL,
                  from, message);
}

void kith_exchange_wake(struct kith_node *node)
{
    /* What the event at hand has set is later than now. */
    if (node->now_ns < node->exchange_ns)
        return;
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        struct kith_exchange *exchange = &node->exchanges[i];
        if (node->now_ns < exchange->deadline_ns)
            continue;
        /* Each wake moves its own deadline, or the driver would wake the node
         * for ever. */
        side_of(node, i)->wake(node, exchange);
        KITH_ASSERT(exchange->deadline_ns > node->now_ns);
    }
}

void kith_exchange_link_down(struct kith_node *node, kith_id peer)
{
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        if (node->exchanges[i].state != KITH_EXCHANGE_IDLE &&
            node->exchanges[i].edge.peer == peer)
            side_of(node, i)->link_down(node, &node->exchanges[i]);
    }
}

uint32_t kith_exchange_inbox(const struct kith_node *node, kith_id from,
                             const struct kith_message *model)
{
    const uint32_t index = find(node, from, model);
    if (index == KITH_EXCHANGE_NONE)
        return KITH_SLOT_NONE;
    const struct kith_exchange *exchange = &node->exchanges[index];
    if ((side_of(node, index)->awaits_model >> exchange->state & 1u) == 0)
        return KITH_SLOT_NONE;
    /* In a push nothing comes back, in a pull nothing goes there: a model
     * that travels the wrong way has no inbox. */
    const bool carries = model->mine ? kith_exchange_gives(exchange)
                                     : kith_exchange_brings(exchange);
    KITH_ASSERT(kith_slot_is_inbox(exchange->edge.inbox));
    return carries ? exchange->edge.inbox : KITH_SLOT_NONE;
}

/* Slots go by exchanges, a snapshot and an inbox each. One that is in no use
 * needs none, but for what is prepared. */
uint32_t kith_exchange_needed(const struct kith_node *node)
{
    const uint32_t sent = 1u << KITH_SLOT_INITIATED_SENT;
    uint32_t needed = node->prepared > 0 ? sent << 2 * node->prepared : 0;
    KITH_ASSERT(node->exchange_mask >> kith_exchange_count(node) == 0);
    KITH_ASSERT(node->prepared == 0 ||
                node->prepared < kith_exchange_count(node));
    _Static_assert(KITH_SLOT_ANSWERED_SENT == KITH_SLOT_INITIATED_SENT + 2 &&
                       KITH_SLOTS_PER_EXCHANGE == 4,
                   "exchange i has slots 1 + 2 i and 2 + 2 i");
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        const struct kith_exchange *exchange = &node->exchanges[i];
        const struct kith_exchange_side *side = side_of(node, i);
        if ((side->holds_sent >> exchange->state & 1u) != 0 ||
            exchange->running)
            needed |= sent << 2 * i;
        if ((side->holds_inbox >> exchange->state & 1u) != 0)
            needed |= sent << (2 * i + 1);
    }
    return needed;
}

static uint32_t slots_of(const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->edge.sent < KITH_SLOT_ROUND_SENT &&
                exchange->edge.inbox < KITH_SLOT_ROUND_SENT);
    return 1u << exchange->edge.sent | 1u << exchange->edge.inbox;
}

/* A completed exchange is never aborted: its initiator answers what it is asked
 * about it with ACK, or has forgotten it, and then the responder's half stays,
 * torn. Whoever had a link break may yet be asked for its model again. */
struct kith_settled kith_exchange_settled(const struct kith_node *responder,
                                          const struct kith_node *initiator,
                                          struct kith_exchange_id id)
{
    struct kith_settled settled = {.by_ns = KITH_NEVER};
    KITH_ASSERT(responder->config == initiator->config);
    KITH_ASSERT(responder->self != initiator->self);
    const uint32_t answered =
        record_of(responder, KITH_EXCHANGES_THEIRS, initiator->self, id);
    const uint32_t initiated =
        record_of(initiator, KITH_EXCHANGES_OURS, responder->self, id);
    if (answered == KITH_EXCHANGE_NONE)
        return settled;
    const struct kith_exchange *theirs = &responder->exchanges[answered];
    if (theirs->state != RESPONDER_MERGED || theirs->broken ||
        theirs->pattern != KITH_PATTERN_SWAP)
        return settled;
    if (initiated == KITH_EXCHANGE_NONE) {
        if (kith_exchange_is_completed(initiator, id))
            settled.answered = slots_of(theirs);
        return settled;
    }
    const struct kith_exchange *ours = &initiator->exchanges[initiated];
    if (ours->state != INITIATOR_MERGED)
        return settled;
    KITH_ASSERT(!ours->acked && ours->deadline_ns != KITH_NEVER);
    return (struct kith_settled){.answered = slots_of(theirs),
                                 .initiated = slots_of(ours),
                                 .by_ns = ours->deadline_ns};
}

/* Asked for after every event, and so the place for what holds then: cheaper
 * than a check in each of the many places that change a record, and it covers
 * their combinations. */
kith_ns kith_exchange_deadline(struct kith_node *node)
{
    kith_ns first_ns = KITH_NEVER;
    uint32_t over = 0;
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const uint32_t i = kith_exchange_next(&mask);
        const struct kith_exchange *exchange = &node->exchanges[i];
        first_ns = kith_node_earliest(first_ns, exchange->deadline_ns);
        if (exchange->state == KITH_EXCHANGE_IDLE) {
            if (exchange->deadline_ns == KITH_NEVER)
                over |= 1u << i;
            continue;
        }
        KITH_ASSERT(exchange->running == (node->owner == OWNER_EXCHANGE + i));
        /* Either an item is due or out, or a deadline ends this phase. */
        KITH_ASSERT(exchange->deadline_ns != KITH_NEVER || exchange->running ||
                    due(exchange, side_of(node, i)) != KITH_WORK_COUNT);
        KITH_ASSERT(exchange->tries <= KITH_TRIES_MAX);
    }
    node->exchange_mask &= (uint8_t)~over;
    node->exchange_ns = first_ns;
    return first_ns;
}

const struct kith_mode kith_mode_exchange = {
    .trigger = trigger,
    .is_open = is_open,
    .defers_trigger = kith_exchange_defers,
};
