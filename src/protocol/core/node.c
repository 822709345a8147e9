/* One peer's protocol: events in, effects out.
 *
 * The worker runs one item at a time. Whenever it is free, `schedule` picks the
 * next one: what a neighbour waits for first, then our own exchange, then the
 * trigger that the last step left behind, then a save, then the next step. So
 * merges and replies happen at step boundaries and nothing is ever locked. */
#include "src/protocol/core/node_state.h"

#include <string.h>

_Static_assert(sizeof(struct kith_node) <= 384,
               "an idle peer must stay small: a million of them fit a machine");
_Static_assert(KITH_SUSPECTS_MAX <= 8, "suspects have a bit each in charged");
_Static_assert(KITH_SLOT_ROUND_EDGES <= 32, "slots below it have cancel bits");

static size_t aligned(size_t bytes)
{
    return (bytes + 7u) & ~(size_t)7u;
}

size_t kith_node_size(const struct kith_node_config *config)
{
    return aligned(sizeof(struct kith_node)) + kith_round_size(config);
}

/* A peer of `local` neither asks nor answers, not even for a first model: its
 * worker has no room for one. */
static bool communicates(const struct kith_node *node)
{
    return node->config->algorithm->pattern != KITH_PATTERN_NONE;
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
    node->self = self;
    node->incarnation = incarnation;
    node->steps = resume_step;
    node->adopting = adopt && communicates(node);
    node->next_counter = 1;
    node->save_ns = KITH_NEVER;
    node->blocked_ns = node->leave_ns = KITH_NEVER;
    node->active.deadline_ns = node->served.deadline_ns = KITH_NEVER;
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        node->suspects[i].peer = KITH_NOBODY;
    if (config->algorithm->pattern == KITH_PATTERN_ROUND)
        kith_round_init(node, (char *)memory + aligned(sizeof *node));
    return node;
}

void kith_node_mark(struct kith_node *node, struct kith_effects *effects,
                    enum kith_mark_kind kind,
                    const struct kith_exchange *exchange, kith_id peer,
                    uint64_t value, double sum)
{
    KITH_ASSERT(effects->mark_count < KITH_EFFECT_MARKS);
    struct kith_mark *mark = &effects->marks[effects->mark_count++];
    *mark = (struct kith_mark){
        .kind = kind, .peer = peer, .value = value, .sum = sum};
    if (exchange != NULL) {
        mark->id.counter = exchange->counter;
        mark->id.incarnation = exchange->incarnation;
        mark->initiator = exchange == &node->active;
    }
}

void kith_node_tell(const struct kith_node *node, struct kith_effects *effects,
                    const struct kith_exchange *exchange, bool mine,
                    enum kith_message_kind kind)
{
    struct kith_message *message = kith_node_send(effects, exchange->edge.peer);
    const bool carries = kind == KITH_MESSAGE_MODEL;
    const bool sized = carries || kind == KITH_MESSAGE_REQUEST;
    *message = (struct kith_message){
        .kind = kind,
        .pattern = (enum kith_pattern)exchange->pattern,
        .id = {.counter = exchange->counter,
               .incarnation = exchange->incarnation},
        .mine = mine,
        .step = node->steps,
        .payload_bytes =
            sized ? kith_node_payload(node->config,
                                      (enum kith_pattern)exchange->pattern,
                                      exchange->counter)
                  : 0,
        .slot = carries ? exchange->edge.sent : KITH_SLOT_NONE,
    };
    if (carries) {
        message->scalar_count = node->config->algorithm->scalar_count;
        memcpy(message->scalars, exchange->edge.scalars_sent,
               sizeof message->scalars);
    }
}

void kith_node_cancel(struct kith_effects *effects, enum kith_slot slot)
{
    effects->cancel |= 1u << slot;
}

void kith_node_suspect(struct kith_node *node, struct kith_effects *effects,
                       kith_id peer, kith_ns now_ns, kith_ns span_ns)
{
    struct kith_suspect *place = &node->suspects[0];
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++) {
        struct kith_suspect *at = &node->suspects[i];
        if (at->peer == peer || at->peer == KITH_NOBODY) {
            place = at;
            break;
        }
        if ((int32_t)(at->until_ms - place->until_ms) < 0)
            place = at;
    }
    if (place->peer != peer)
        node->charged &= (uint8_t) ~(1u << (place - node->suspects));
    place->peer = peer;
    place->until_ms = (uint32_t)((now_ns + span_ns) / KITH_MS);
    kith_node_mark(node, effects, KITH_MARK_SUSPECT, NULL, peer, 0, 0);
}

static bool charge_bit(const struct kith_node *node, size_t i)
{
    return (node->charged >> i & 1u) != 0;
}

void kith_node_charge(struct kith_node *node, struct kith_effects *effects,
                      kith_id peer, kith_ns now_ns, kith_ns span_ns)
{
    kith_node_suspect(node, effects, peer, now_ns, span_ns);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer)
            node->charged |= (uint8_t)(1u << i);
}

bool kith_node_is_charged(const struct kith_node *node, kith_id peer,
                          kith_ns now_ns)
{
    const uint32_t now_ms = (uint32_t)(now_ns / KITH_MS);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer && charge_bit(node, i))
            return (int32_t)(node->suspects[i].until_ms - now_ms) > 0;
    return false;
}

void kith_node_forgive(struct kith_node *node, kith_id peer)
{
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer && !charge_bit(node, i))
            node->suspects[i].peer = KITH_NOBODY;
}

bool kith_node_sane(const struct kith_node *node,
                    const struct kith_message *model)
{
    const struct kith_node_config *config = node->config;
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
                   !kith_algorithm_is_whole(config->period, number)
               ? config->slice_bytes
               : config->payload_bytes;
}

/* A pull may carry far more than the exchanges that were measured. */
static bool pulls(const struct kith_node *node)
{
    return node->config->model_bytes > node->config->payload_bytes &&
           (node->adopting || (node->served.state != SERVED_IDLE &&
                               node->served.pattern == KITH_PATTERN_PULL));
}

kith_ns kith_node_turn_timeout(const struct kith_node *node, uint32_t tries)
{
    static const struct kith_estimate unknown;
    const struct kith_node_config *config = node->config;
    const bool pull = pulls(node);
    const uint64_t bits =
        8 * (pull ? config->model_bytes : config->payload_bytes);
    const kith_ns initial =
        2 * KITH_TIMEOUT_INITIAL_NS +
        (kith_ns)(bits / (KITH_INITIAL_BITS_PER_S / 1000u)) * KITH_MS;
    return kith_estimate_timeout(pull ? &unknown : &node->turn, initial, tries);
}

void kith_node_work(struct kith_node *node, struct kith_effects *effects,
                    enum owner owner, enum kith_work_kind kind,
                    enum kith_pattern pattern, uint64_t round,
                    struct kith_work_edge *edges, uint32_t edge_count,
                    bool snapshot_first)
{
    KITH_ASSERT(node->owner == OWNER_NONE);
    KITH_ASSERT(!effects->has_work);
    node->owner = (uint8_t)owner;
    effects->has_work = true;
    effects->work = (struct kith_work){.kind = kind,
                                       .pattern = pattern,
                                       .snapshot_first = snapshot_first,
                                       .step = node->steps,
                                       .round = round,
                                       .edges = edges,
                                       .edge_count = edge_count};
}

static bool share_done(const struct kith_node *node)
{
    return node->steps >= node->config->steps;
}

/* Before the next round may open, or before anything else may be done. */
static bool waits_for_round(const struct kith_node *node)
{
    return node->round != NULL && node->round->state != ROUND_CLOSED &&
           !kith_round_is_mailbox(node) &&
           (node->trigger_due ||
            node->config->algorithm->wait == KITH_WAIT_STRICT);
}

static bool is_outstanding(const struct kith_node *node)
{
    return node->round != NULL ? node->round->state != ROUND_CLOSED
                               : node->active.state != ACTIVE_IDLE;
}

/* One exchange at a time: what is answered first. */
static bool is_engaged(const struct kith_node *node)
{
    return node->config->algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE &&
           node->served.state != SERVED_IDLE;
}

/* The trigger of the step just done. A round waits until the last one is
 * closed; an exchange still outstanding makes the trigger pass. */
static void fire(struct kith_node *node, kith_ns now_ns,
                 struct kith_effects *effects)
{
    if (!node->trigger_due || waits_for_round(node) || is_engaged(node))
        return;
    node->trigger_due = false;
    node->attempts++;
    if (is_outstanding(node)) {
        node->skipped++;
        kith_node_mark(node, effects, KITH_MARK_ATTEMPT, NULL, KITH_NOBODY,
                       node->attempts, 0);
        kith_node_mark(node, effects, KITH_MARK_SKIPPED, &node->active,
                       node->active.edge.peer, 0, 0);
    } else if (node->round != NULL) {
        kith_mailbox_catch_up(node);
        kith_round_open(node, now_ns, effects);
    } else {
        kith_active_open(node, node->config->algorithm->pattern, now_ns,
                         effects);
    }
}

/* A restarted peer, or one whose own step went non-finite, takes a
 * neighbour's model before it trains on. */
static void adopt(struct kith_node *node, kith_ns now_ns,
                  struct kith_effects *effects)
{
    if (!node->adopting || node->active.state != ACTIVE_IDLE)
        return;
    if (node->pulls >= KITH_PULLS_MAX) {
        node->adopting = false;
        return;
    }
    if (node->active.deadline_ns != KITH_NEVER)
        return; /* between two pulls */
    node->pulls++;
    kith_active_open(node, KITH_PATTERN_PULL, now_ns, effects);
}

static void block(struct kith_node *node, bool blocked, kith_ns now_ns)
{
    if (blocked && node->blocked_ns == KITH_NEVER)
        node->blocked_ns = now_ns;
    if (!blocked && node->blocked_ns != KITH_NEVER) {
        node->waited_ns += now_ns - node->blocked_ns;
        node->blocked_ns = KITH_NEVER;
    }
}

/* What is idle has no work: most steps find it so, and call nothing. */
static bool own_turn(struct kith_node *node, struct kith_effects *effects)
{
    return (node->active.state != ACTIVE_IDLE &&
            kith_active_schedule(node, effects)) ||
           (node->round != NULL && kith_round_schedule(node, effects));
}

static void schedule(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    if (node->owner != OWNER_NONE || !node->started)
        return;
    if (node->served.state != SERVED_IDLE &&
        kith_served_schedule(node, effects))
        return;
    if (own_turn(node, effects))
        return;
    if (!node->leaving) {
        adopt(node, now_ns, effects);
        fire(node, now_ns, effects);
        if (kith_mailbox_is_due(node))
            kith_mailbox_pass_on(node, now_ns, effects);
        if (own_turn(node, effects))
            return;
    }
    if (node->saving_due) {
        node->saving_due = false;
        kith_node_work(node, effects, OWNER_SAVE, KITH_WORK_SAVE,
                       KITH_PATTERN_NONE, 0, NULL, 0, false);
        return;
    }
    if (node->leaving || share_done(node)) {
        block(node, false, now_ns);
        return;
    }
    const bool held = node->adopting || waits_for_round(node);
    block(node, held, now_ns);
    if (!held)
        kith_node_work(node, effects, OWNER_TRAIN, KITH_WORK_TRAIN,
                       KITH_PATTERN_NONE, 0, NULL, 0, false);
}

/* Every H steps, with probability p; where there is one exchange at a time, by
 * chance alone: peers in step would all ask and none answer. Half of its
 * exchanges a peer asks for. */
static bool triggers(const struct kith_node *node)
{
    const struct kith_node_config *config = node->config;
    const bool exclusive =
        config->algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE;
    double chance = config->chance == 0 ? 1 : config->chance;
    if (exclusive)
        chance /= 2.0 * config->every;
    if (node->leaving || !communicates(node) ||
        (node->steps % config->every != 0 && !exclusive))
        return false;
    if (chance >= 1)
        return true;
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_TRIGGER, node->self);
    rng.block = (uint32_t)node->steps;
    return kith_rng_double(&rng) < chance;
}

static void step_trained(struct kith_node *node,
                         const struct kith_work_result *result, kith_ns now_ns,
                         struct kith_effects *effects)
{
    node->steps++;
    kith_node_mark(node, effects, KITH_MARK_STEP, NULL, KITH_NOBODY,
                   node->steps, 0);
    if (!result->finite) {
        kith_node_mark(node, effects, KITH_MARK_NONFINITE, NULL, KITH_NOBODY,
                       node->steps, 0);
        node->adopting =
            communicates(node) && node->config->topology->peers > 1;
        node->pulls = 0;
    } else if (triggers(node)) {
        node->trigger_due = true;
    }
    if (node->config->save_period_ns > 0 && now_ns >= node->save_ns) {
        node->saving_due = true;
        node->save_ns = now_ns + node->config->save_period_ns;
    }
    if (share_done(node))
        kith_node_mark(node, effects, KITH_MARK_FINISHED, NULL, KITH_NOBODY,
                       node->steps, 0);
}

static void step_worked(struct kith_node *node, const struct kith_event *event,
                        struct kith_effects *effects)
{
    const struct kith_work_result *result = event->result;
    const enum owner owner = (enum owner)node->owner;
    node->owner = OWNER_NONE;
    switch (owner) {
    case OWNER_TRAIN:
        step_trained(node, result, event->now_ns, effects);
        break;
    case OWNER_ACTIVE:
        kith_active_worked(node, result->kind, event->now_ns, effects);
        break;
    case OWNER_SERVED:
        kith_served_worked(node, result->kind, event->now_ns, effects);
        break;
    case OWNER_ROUND:
        kith_round_worked(node, result->kind, event->now_ns, effects);
        break;
    case OWNER_SAVE:
        break;
    case OWNER_NONE:
        KITH_ASSERT(owner != OWNER_NONE); /* WORK_DONE without work */
    }
}

static void step_message(struct kith_node *node, const struct kith_event *event,
                         struct kith_effects *effects)
{
    const struct kith_message *message = event->message;
    const kith_id from = event->from;
    if (from >= node->config->topology->peers || from == node->self) {
        node->bad++;
        return;
    }
    kith_node_forgive(node, from);
    if (message->kind == KITH_MESSAGE_BYE) {
        kith_node_suspect(node, effects, from, event->now_ns,
                          KITH_TIMEOUT_MAX_NS);
        if (node->round != NULL)
            kith_round_down(node, from, effects, event->now_ns);
    } else if (message->pattern == KITH_PATTERN_ROUND) {
        kith_round_message(node, from, message, event->now_ns, effects);
    } else if (message->mine) {
        kith_served_message(node, from, message, event->now_ns, effects);
    } else {
        kith_active_message(node, from, message, event->now_ns, effects);
    }
}

static void wake(struct kith_node *node, kith_ns now_ns,
                 struct kith_effects *effects)
{
    if (now_ns >= node->active.deadline_ns)
        kith_active_wake(node, now_ns, effects);
    if (now_ns >= node->served.deadline_ns)
        kith_served_wake(node, now_ns, effects);
    if (node->round != NULL && now_ns >= node->round->deadline_ns)
        kith_round_wake(node, now_ns, effects);
}

static void leave(struct kith_node *node, kith_ns now_ns,
                  struct kith_effects *effects)
{
    node->leave_ns = KITH_NEVER;
    node->leaving = true;
    node->trigger_due = false;
    if (node->round != NULL)
        kith_round_leave(node, now_ns, effects);
}

/* Where all have done their steps all are told to leave, and the round that the
 * last step began is still open: who gave it up at once would take it from its
 * neighbours. */
static void leave_in_time(struct kith_node *node, kith_ns now_ns,
                          struct kith_effects *effects)
{
    if (node->leave_ns != KITH_NEVER &&
        (now_ns >= node->leave_ns || node->round == NULL || !share_done(node) ||
         kith_node_finished(node)))
        leave(node, now_ns, effects);
}

static kith_ns earliest(kith_ns a, kith_ns b)
{
    return a < b ? a : b;
}

void kith_node_step(struct kith_node *node, const struct kith_event *event,
                    struct kith_effects *effects)
{
    effects->send_count = effects->mark_count = effects->cancel = 0;
    effects->has_work = false;
    const kith_ns now_ns = event->now_ns;
    switch (event->kind) {
    case KITH_EVENT_START:
        KITH_ASSERT(!node->started);
        node->started = true;
        if (node->config->save_period_ns > 0)
            node->save_ns = now_ns + node->config->save_period_ns;
        if (share_done(node)) {
            node->adopting = false; /* its model is the end of its work */
            kith_node_mark(node, effects, KITH_MARK_FINISHED, NULL, KITH_NOBODY,
                           node->steps, 0);
        }
        break;
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LINK_UP:
        break;
    case KITH_EVENT_MESSAGE:
        step_message(node, event, effects);
        break;
    case KITH_EVENT_LINK_DOWN:
        kith_active_down(node, event->from, now_ns, effects);
        kith_served_down(node, event->from, now_ns, effects);
        if (node->round != NULL)
            kith_round_down(node, event->from, effects, now_ns);
        break;
    case KITH_EVENT_WORK_DONE:
        step_worked(node, event, effects);
        break;
    case KITH_EVENT_LEAVE:
        node->leave_ns = now_ns + KITH_LEAVE_NS;
        break;
    }
    wake(node, now_ns, effects);
    leave_in_time(node, now_ns, effects);
    schedule(node, now_ns, effects);
    effects->deadline_ns =
        earliest(node->leave_ns,
                 earliest(node->active.deadline_ns, node->served.deadline_ns));
    if (node->round != NULL)
        effects->deadline_ns =
            earliest(effects->deadline_ns, node->round->deadline_ns);
}

uint32_t kith_node_inbox(const struct kith_node *node, kith_id from,
                         const struct kith_message *model)
{
    if (model->payload_bytes != kith_node_payload(node->config, model->pattern,
                                                  model->id.counter) ||
        model->scalar_count != node->config->algorithm->scalar_count)
        return KITH_SLOT_NONE;
    if (model->pattern == KITH_PATTERN_ROUND)
        return kith_round_inbox(node, from, model);
    const struct kith_exchange *exchange =
        model->mine ? &node->served : &node->active;
    const uint8_t due = model->mine ? SERVED_ACCEPTED : ACTIVE_SENT;
    const bool carries = exchange->pattern == KITH_PATTERN_SWAP ||
                         exchange->pattern == (model->mine ? KITH_PATTERN_PUSH
                                                           : KITH_PATTERN_PULL);
    if (exchange->state != due || !carries || exchange->running ||
        exchange->edge.peer != from || exchange->counter != model->id.counter ||
        exchange->incarnation != model->id.incarnation)
        return KITH_SLOT_NONE;
    return model->mine ? KITH_SLOT_SERVED_INBOX : KITH_SLOT_ACTIVE_INBOX;
}

void kith_node_counters(const struct kith_node *node,
                        struct kith_node_counters *counters)
{
    *counters = (struct kith_node_counters){
        .steps = node->steps,
        .attempts = node->attempts,
        .skipped = node->skipped,
        .refused = node->refused,
        .done = node->done,
        .failed = node->failed,
        .torn = node->torn,
        .served = node->serving,
        .bad = node->bad,
        .gated = node->gated,
        .undone = node->undone,
        .rounds = node->round != NULL ? node->round->round : 0,
        .late = node->late,
        .waited_ns = node->waited_ns,
    };
}

bool kith_node_quiet(const struct kith_node *node)
{
    return node->active.state == ACTIVE_IDLE &&
           node->served.state == SERVED_IDLE && !node->trigger_due &&
           (node->round == NULL || node->round->state == ROUND_CLOSED) &&
           !kith_mailbox_is_due(node);
}

bool kith_node_finished(const struct kith_node *node)
{
    return share_done(node) && !node->trigger_due &&
           node->owner != OWNER_TRAIN && node->active.state == ACTIVE_IDLE &&
           (node->round == NULL || node->round->state == ROUND_CLOSED ||
            node->round->passing);
}
