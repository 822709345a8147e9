/* One peer's protocol: events in, effects out.
 *
 * The worker runs one item at a time. Whenever it is free, `schedule` picks the
 * next one: what a neighbour waits for first, then our own exchange, then the
 * trigger that the last step left behind, then a save, then the next step. So
 * merges and replies happen at step boundaries and nothing is ever locked.
 *
 * What an exchange or a round does is its mode's (struct kith_mode). */
#include "src/protocol/core/round.h"

#include <string.h>

_Static_assert(sizeof(struct kith_node) + 2 * sizeof(struct kith_exchange) <=
                   416,
               "an idle peer must stay small: a million of them fit a machine");
_Static_assert(KITH_SLOT_ROUND_EDGES <= 32, "slots below it have cancel bits");

/* The round follows the node in one block of memory. */
static size_t aligned(size_t bytes)
{
    _Static_assert(_Alignof(struct kith_round) <= 8,
                   "what memory is aligned to");
    return (bytes + 7u) & ~(size_t)7u;
}

/* Records of each side. Where exchanges carry state of the algorithm, or part
 * of a sum, one at a time is what its paper allows. A peer of `local` neither
 * asks nor answers. */
static uint8_t exchange_limit(const struct kith_node_config *config)
{
    const struct kith_algorithm *algorithm = config->algorithm;
    KITH_ASSERT(config->exchanges <= KITH_EXCHANGES_LIMIT);
    if (algorithm->pattern == KITH_PATTERN_NONE)
        return 0;
    return algorithm->pattern != KITH_PATTERN_SWAP ||
                   algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE ||
                   config->exchanges == 0
               ? 1
               : (uint8_t)config->exchanges;
}

/* The node with its table of exchanges. */
static size_t own_size(const struct kith_node_config *config)
{
    return aligned(sizeof(struct kith_node) +
                   2 * exchange_limit(config) * sizeof(struct kith_exchange));
}

/* Asked for by the driver, which owns the memory. */
size_t kith_node_size(const struct kith_node_config *config)
{
    KITH_ASSERT(config->topology->peers >= 1);
    return own_size(config) + kith_round_size(config);
}

/* A round's mode follows from what its algorithm does and its graph allows. */
static const struct kith_mode *mode_of(const struct kith_node_config *config)
{
    const struct kith_algorithm *algorithm = config->algorithm;
    KITH_ASSERT(algorithm->pattern != KITH_PATTERN_PULL);
    if (algorithm->pattern != KITH_PATTERN_ROUND)
        return &kith_mode_exchange;
    if (algorithm->wait == KITH_WAIT_NO)
        return &kith_mode_mailbox;
    return algorithm->flags & KITH_SPLITS_MASS ||
                   config->topology->kind->directed
               ? &kith_mode_cast
               : &kith_mode_mutual;
}

struct kith_node *kith_node_init(void *memory,
                                 const struct kith_node_config *config,
                                 kith_id self, uint32_t incarnation,
                                 uint64_t resume_step, bool adopt)
{
    KITH_ASSERT(config->every >= 1);
    KITH_ASSERT(self < config->topology->peers);
    struct kith_node *node = memory;
    memset(memory, 0, kith_node_size(config));
    node->config = config;
    node->mode = mode_of(config);
    node->self = self;
    node->incarnation = incarnation;
    node->exchange_limit = exchange_limit(config) & 15u;
    node->steps = resume_step;
    node->adopting = adopt && kith_node_communicates(node);
    /* Until START the node only listens. */
    node->owner = OWNER_UNSTARTED;
    node->next_counter = KITH_ASKS;
    node->save_ns = KITH_NEVER;
    node->blocked_ns = node->leave_ns = KITH_NEVER;
    kith_exchange_init(node);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        node->suspects[i].peer = KITH_NOBODY;
    if (config->algorithm->pattern == KITH_PATTERN_ROUND)
        kith_round_init(node, (char *)memory + own_size(config));
    return node;
}

/* A mark names the exchange that it is about, so that the books of both
 * sides can be joined. */
void kith_node_mark(struct kith_node *node, enum kith_mark_kind kind,
                    const struct kith_exchange *exchange, kith_id peer,
                    uint64_t value, double sum)
{
    KITH_ASSERT(node->effects->mark_count < KITH_EFFECT_MARKS);
    struct kith_mark *mark = &node->effects->marks[node->effects->mark_count++];
    *mark = (struct kith_mark){
        .kind = kind, .peer = peer, .value = value, .sum = sum};
    if (exchange != NULL) {
        mark->id.counter = exchange->counter;
        mark->id.incarnation = exchange->incarnation;
        mark->initiator = kith_exchange_is_ours(node, exchange);
    }
}

void kith_node_bad(struct kith_node *node, const struct kith_exchange *exchange,
                   kith_id peer, const struct kith_message *message)
{
    KITH_ASSERT(peer != node->self);
    node->bad++;
    kith_node_mark(node, KITH_MARK_BAD, exchange, peer, message->kind, 0);
}

/* The slots of edges have no bit: they are cancelled with the snapshot of
 * their round. */
void kith_node_cancel(const struct kith_node *node, uint32_t slot)
{
    KITH_ASSERT(slot > KITH_SLOT_LIVE && slot < KITH_SLOT_ROUND_EDGES);
    node->effects->cancel |= 1u << slot;
}

/* Never asserted: these numbers are a peer's. */
bool kith_node_sane(const struct kith_node *node,
                    const struct kith_message *model)
{
    const struct kith_node_config *config = node->config;
    KITH_ASSERT(model->slot != KITH_SLOT_NONE);
    for (uint32_t i = 0; i < model->scalar_count; i++)
        if (!kith_algorithm_is_sane(config->algorithm, config->topology->peers,
                                    model->scalars[i]))
            return false;
    return model->finite;
}

uint64_t kith_node_payload(const struct kith_node_config *config,
                           enum kith_pattern pattern, uint64_t number)
{
    if (pattern == KITH_PATTERN_PULL && config->model_bytes > 0)
        return config->model_bytes;
    return pattern == KITH_PATTERN_ROUND &&
                   !kith_algorithm_is_whole(config->algorithm, config->topology,
                                            config->period, number)
               ? config->slice_bytes
               : config->payload_bytes;
}

/* Whether training is held back, for how long in all. */
static void block(struct kith_node *node, bool blocked)
{
    KITH_DEBUG_ASSERT(node->blocked_ns == KITH_NEVER ||
                      node->blocked_ns <= node->now_ns);
    if (blocked && node->blocked_ns == KITH_NEVER)
        node->blocked_ns = node->now_ns;
    if (!blocked && node->blocked_ns != KITH_NEVER) {
        node->waited_ns += node->now_ns - node->blocked_ns;
        node->blocked_ns = KITH_NEVER;
    }
}

/* Opens what is due: a pull, the trigger's exchange or round, what a mailbox
 * passes on. True where there may be an item for it. */
static bool open_due(struct kith_node *node)
{
    KITH_DEBUG_ASSERT(node->owner == OWNER_NONE && node->presence != LEAVING);
    const bool due = node->adopting || node->trigger_due;
    if (node->adopting)
        kith_exchange_adopt(node);
    if (node->trigger_due)
        kith_trigger_fire(node);
    if (node->mode->idle != NULL)
        node->mode->idle(node);
    return due || node->mode->idle != NULL;
}

/* What a neighbour waits for. */
static bool schedule_exchange(struct kith_node *node)
{
    KITH_ASSERT(node->owner == OWNER_NONE);
    return (node->exchange_mask != 0 && kith_exchange_schedule(node)) ||
           (node->mode->schedule != NULL && node->mode->schedule(node));
}

static void schedule(struct kith_node *node)
{
    const struct kith_mode *mode = node->mode;
    if (node->owner != OWNER_NONE || schedule_exchange(node))
        return;
    if (node->presence == HERE && open_due(node) && schedule_exchange(node))
        return;
    KITH_ASSERT(!node->effects->has_work);
    if (node->saving_due) {
        node->saving_due = false;
        kith_node_work(node, OWNER_SAVE,
                       (struct kith_work){.kind = KITH_WORK_SAVE});
        return;
    }
    /* A peer whose share is done answers others and waits for nobody; one that
     * pauses ends what is open. */
    if (node->presence != HERE || kith_node_share_done(node)) {
        block(node, false);
        return;
    }
    /* A step that has begun goes on: rounds may be open for it. */
    const uint32_t part = kith_round_part(node);
    const bool held =
        (part == 0 && node->adopting) ||
        (mode->holds_training != NULL && mode->holds_training(node));
    block(node, held);
    if (held)
        return;
    kith_node_work(node, OWNER_TRAIN,
                   (struct kith_work){.kind = KITH_WORK_TRAIN, .part = part});
    if (node->config->prepares &&
        node->config->algorithm->pattern == KITH_PATTERN_SWAP)
        kith_exchange_prepare(node);
}

static void mark_step(struct kith_node *node, enum kith_mark_kind kind)
{
    kith_node_mark(node, kind, NULL, KITH_NOBODY, node->steps, 0);
}

static void step_trained(struct kith_node *node,
                         const struct kith_work_result *result)
{
    KITH_ASSERT(result->kind == KITH_WORK_TRAIN);
    const bool first = node->round == NULL || node->round->complete == 0;
    if (node->round != NULL && node->config->buckets > 1)
        kith_round_trained(node, result);
    if (!result->is_part) {
        node->steps++;
        mark_step(node, KITH_MARK_STEP);
    }
    /* Its own model is lost: the next one is a neighbour's, unless it has an
     * earlier one of its own. */
    if (!result->finite && !result->recovered) {
        mark_step(node, KITH_MARK_NONFINITE);
        node->adopting =
            kith_node_communicates(node) && node->config->topology->peers > 1;
        node->pulls = 0;
    } else if (first &&
               (!result->is_part ||
                (node->round != NULL && node->round->complete > 0)) &&
               kith_trigger_is_due(node)) {
        node->trigger_due = true; /* the first bucket can be sent, or all */
    }
    if (result->is_part)
        return;
    if (node->config->save_period_ns > 0 && node->now_ns >= node->save_ns) {
        node->saving_due = true;
        node->save_ns = node->now_ns + node->config->save_period_ns;
    }
    if (kith_node_share_done(node))
        mark_step(node, KITH_MARK_FINISHED);
}

/* What the worker refused. Of a round each edge says so itself. */
static void gate(struct kith_node *node, uint32_t owner)
{
    KITH_ASSERT(owner < OWNER_EXCHANGE + kith_exchange_count(node));
    if (owner < OWNER_EXCHANGE)
        return;
    const struct kith_exchange *exchange =
        &node->exchanges[owner - OWNER_EXCHANGE];
    KITH_ASSERT(exchange->edge.peer != node->self);
    if (!exchange->edge.refused)
        return;
    node->gated++;
    kith_node_mark(node, KITH_MARK_GATED, exchange, exchange->edge.peer, 0, 0);
}

/* The owner is cleared first, so that what follows may start the next item. */
static void step_worked(struct kith_node *node,
                        const struct kith_work_result *result)
{
    const uint32_t owner = node->owner;
    KITH_DEBUG_ASSERT(owner < OWNER_EXCHANGE + kith_exchange_count(node));
    KITH_ASSERT(owner > OWNER_UNSTARTED); /* WORK_DONE without work */
    node->owner = OWNER_NONE;
    node->prepared = 0;
    if (result->recovered)
        mark_step(node, KITH_MARK_RECOVERED);
    if (result->kind == KITH_WORK_MERGE)
        gate(node, owner);
    if (owner == OWNER_TRAIN)
        step_trained(node, result);
    else if (owner == OWNER_ROUND)
        kith_round_worked(node, result->kind);
    else if (owner >= OWNER_EXCHANGE)
        kith_exchange_worked(node, owner - OWNER_EXCHANGE, result->kind);
}

static void step_message(struct kith_node *node, kith_id from,
                         const struct kith_message *message)
{
    /* The driver names senders by their certificate; no graph has such a
     * peer. */
    if (from >= node->config->topology->peers || from == node->self) {
        node->bad++;
        return;
    }
    /* Whatever it says, it is alive. */
    const bool round =
        message->pattern == KITH_PATTERN_ROUND && node->round != NULL;
    if (!round || !kith_round_is_awaited(node, message->step))
        kith_node_forgive(node, from);
    if (message->kind != KITH_MESSAGE_BYE) {
        if (round)
            node->mode->message(node, from, message);
        else
            kith_exchange_message(node, from, message);
        return;
    }
    kith_node_suspect(node, from, KITH_TIMEOUT_MAX_NS);
    if (node->mode->peer_left != NULL)
        node->mode->peer_left(node, from);
}

static void step_started(struct kith_node *node)
{
    KITH_ASSERT(node->owner == OWNER_UNSTARTED);
    node->owner = OWNER_NONE;
    if (node->round != NULL)
        node->round->begun_ns = node->now_ns;
    if (node->config->save_period_ns > 0)
        node->save_ns = node->now_ns + node->config->save_period_ns;
    if (kith_node_share_done(node)) {
        node->adopting = false; /* its model is the end of its work */
        mark_step(node, KITH_MARK_FINISHED);
    }
    if (kith_node_communicates(node))
        kith_exchange_start(node);
}

/* Holds after every event, whatever peers and driver did. */
static void check(const struct kith_node *node)
{
    KITH_DEBUG_ASSERT(!node->effects->has_work ||
                      node->owner > OWNER_UNSTARTED);
    KITH_ASSERT(node->presence != LEAVING || !node->trigger_due);
    KITH_ASSERT(node->waited_ns <= node->now_ns);
    if (node->round != NULL)
        kith_round_check(node);
}

static kith_ns deadline(struct kith_node *node)
{
    kith_ns deadline_ns = node->leave_ns;
    if (node->exchange_mask != 0)
        deadline_ns =
            kith_node_earliest(deadline_ns, kith_exchange_deadline(node));
    if (node->mode->deadline != NULL)
        deadline_ns =
            kith_node_earliest(deadline_ns, node->mode->deadline(node));
    KITH_DEBUG_ASSERT(deadline_ns > node->now_ns);
    return deadline_ns;
}

void kith_node_step(struct kith_node *node, const struct kith_event *event,
                    struct kith_effects *effects)
{
    const struct kith_mode *mode = node->mode;
    /* A driver's clock never runs back; that of a recorded file might. */
    if (event->now_ns > node->now_ns)
        node->now_ns = event->now_ns;
    KITH_ASSERT(node->effects == NULL); /* not within another event */
    node->effects = effects;
    effects->send_count = effects->mark_count = effects->cancel = 0;
    effects->has_work = false;
    effects->dial_count = 0;
    switch (event->kind) {
    case KITH_EVENT_START:
        step_started(node);
        break;
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LINK_UP:
        break;
    case KITH_EVENT_MESSAGE:
        step_message(node, event->from, event->message);
        break;
    case KITH_EVENT_LINK_DOWN:
        if (node->exchange_mask != 0)
            kith_exchange_link_down(node, event->from);
        if (mode->peer_left != NULL)
            mode->peer_left(node, event->from);
        break;
    case KITH_EVENT_WORK_DONE:
        step_worked(node, event->result);
        break;
    case KITH_EVENT_LEAVE:
        node->leave_ns = node->now_ns + kith_node_leave_time(node);
        break;
    case KITH_EVENT_PAUSE:
    case KITH_EVENT_GO_ON:
        if (node->presence != LEAVING)
            node->presence = event->kind == KITH_EVENT_PAUSE ? PAUSED : HERE;
        break;
    }
    /* Deadlines after the event: what it brought may have met one that is
     * due. */
    if (node->exchange_mask != 0)
        kith_exchange_wake(node);
    if (mode->wake != NULL)
        mode->wake(node);
    if (node->leave_ns != KITH_NEVER)
        kith_presence_leave(node);
    schedule(node);
    effects->deadline_ns = deadline(node);
    check(node);
    node->effects = NULL;
}

uint32_t kith_node_needed(const struct kith_node *node)
{
    return kith_exchange_needed(node);
}

struct kith_settled kith_node_settled(const struct kith_node *responder,
                                      const struct kith_node *initiator,
                                      struct kith_exchange_id id)
{
    return kith_exchange_settled(responder, initiator, id);
}

uint32_t kith_node_inbox(const struct kith_node *node, kith_id from,
                         const struct kith_message *model)
{
    if (from == node->self ||
        model->payload_bytes != kith_node_payload(node->config, model->pattern,
                                                  model->id.counter) ||
        model->scalar_count != node->config->algorithm->scalar_count)
        return KITH_SLOT_NONE;
    const uint32_t slot =
        model->pattern == KITH_PATTERN_ROUND && node->round != NULL
            ? node->mode->inbox(node, from, model)
            : kith_exchange_inbox(node, from, model);
    KITH_ASSERT(slot == KITH_SLOT_NONE || kith_slot_is_inbox(slot));
    return slot;
}

void kith_node_counters(const struct kith_node *node,
                        struct kith_node_counters *counters)
{
    *counters = (struct kith_node_counters){
        .steps = node->steps,
        .rounds = node->round != NULL ? node->round->round : 0,
        .waited_ns = node->waited_ns,
#define KITH_X(name) .name = node->name,
        KITH_NODE_COUNTS(KITH_X)
#undef KITH_X
    };
}
