/* The exchange this peer initiates.
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
#include "src/protocol/core/node_state.h"

#include <string.h>

static void ask(struct kith_node *node, kith_ns now_ns,
                struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    active->state = ACTIVE_ASKED;
    active->tries = active->probes = 0;
    active->since_ns = now_ns;
    active->deadline_ns =
        now_ns +
        kith_estimate_timeout(&node->control, KITH_TIMEOUT_INITIAL_NS, 0);
    kith_node_mark(node, effects, KITH_MARK_OPENED, active, active->edge.peer,
                   active->pattern, 0);
    kith_node_tell(node, effects, active, true, KITH_MESSAGE_REQUEST);
}

/* Of a graph that changes. A peer that adopts tries others, should its
 * neighbours of one round have crashed with it. */
static uint64_t graph_round(const struct kith_node *node)
{
    return node->round != NULL  ? node->round->round + node->draws
           : node->attempts > 0 ? node->attempts - 1
                                : 0;
}

/* Draw a partner, leaving suspects out. False when alone. */
static bool draw(struct kith_node *node, kith_ns now_ns)
{
    struct kith_exchange *active = &node->active;
    kith_id avoid[KITH_SUSPECTS_MAX + 1];
    uint32_t count = 0;
    const uint32_t now_ms = (uint32_t)(now_ns / KITH_MS);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++) {
        struct kith_suspect *suspect = &node->suspects[i];
        if (suspect->peer == KITH_NOBODY)
            continue;
        if ((int32_t)(suspect->until_ms - now_ms) <= 0)
            suspect->peer = KITH_NOBODY;
        else
            avoid[count++] = suspect->peer;
    }
    if (active->edge.peer != KITH_NOBODY)
        avoid[count++] = active->edge.peer;

    /* The stream's position is kept, not its state: 8 bytes in place of 48. */
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_PARTNER, node->self);
    rng.block = node->draws;
    active->edge.peer = kith_topology_partner(
        node->config->topology, node->self, graph_round(node), &rng, avoid,
        count, &active->edge.weight);
    node->draws++;
    return active->edge.peer != KITH_NOBODY;
}

void kith_active_open(struct kith_node *node, enum kith_pattern pattern,
                      kith_ns now_ns, struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    KITH_ASSERT(active->state == ACTIVE_IDLE);
    memset(active, 0, sizeof *active);
    active->deadline_ns = KITH_NEVER;
    active->edge.peer = KITH_NOBODY;
    active->edge.sent = KITH_SLOT_ACTIVE_SENT;
    active->edge.inbox = KITH_SLOT_ACTIVE_INBOX;
    active->pattern = (uint8_t)pattern;
    const bool found = draw(node, now_ns);
    if (pattern != KITH_PATTERN_PULL)
        kith_node_mark(node, effects, KITH_MARK_ATTEMPT, NULL,
                       active->edge.peer, node->attempts, 0);
    if (!found) {
        node->adopting = false; /* alone: nobody to adopt from */
        return;
    }
    active->counter = node->next_counter++;
    active->incarnation = node->incarnation;
    node->outcomes <<= 1;
    node->retries_left =
        (uint8_t)(node->config->retries < UINT8_MAX ? node->config->retries
                                                    : UINT8_MAX);
    if (pattern == KITH_PATTERN_SWAP)
        active->state = ACTIVE_SNAPSHOT;
    else
        ask(node, now_ns, effects);
}

static void finish(struct kith_node *node, kith_ns now_ns,
                   struct kith_effects *effects, bool merged)
{
    struct kith_exchange *active = &node->active;
    kith_node_cancel(effects, KITH_SLOT_ACTIVE_SENT);
    if (merged) {
        node->outcomes |= 1;
        node->done++;
    } else {
        node->failed++;
    }
    kith_node_mark(node, effects, merged ? KITH_MARK_DONE : KITH_MARK_FAILED,
                   active, active->edge.peer, 0, 0);
    active->state = ACTIVE_IDLE;
    /* Where everybody averages all the time donors are free for moments only:
     * adopt() asks again after a while, a longer one each time. */
    active->deadline_ns = !merged && active->pattern == KITH_PATTERN_PULL
                              ? now_ns + (KITH_PULL_WAIT_NS << node->pulls)
                              : KITH_NEVER;
}

/* This partner will not do; the snapshot still serves for another one. */
static void refuse(struct kith_node *node, kith_ns now_ns,
                   struct kith_effects *effects)
{
    if (node->retries_left > 0 && !node->leaving) {
        const kith_id before = node->active.edge.peer;
        node->retries_left--;
        if (draw(node, now_ns) && node->active.edge.peer != before) {
            ask(node, now_ns, effects);
            return;
        }
        node->active.edge.peer = before;
    }
    finish(node, now_ns, effects, false);
}

static void send_model(struct kith_node *node, kith_ns now_ns,
                       struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    active->state = ACTIVE_SENT;
    active->tries = 0;
    active->since_ns = now_ns;
    active->deadline_ns = now_ns + kith_node_turn_timeout(node, 0);
    if (active->pattern != KITH_PATTERN_PULL)
        kith_node_tell(node, effects, active, true, KITH_MESSAGE_MODEL);
}

static void abort_exchange(struct kith_node *node, kith_ns now_ns,
                           struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    kith_node_cancel(effects, KITH_SLOT_ACTIVE_SENT);
    kith_node_tell(node, effects, active, true, KITH_MESSAGE_ABORT);
    if (active->pattern == KITH_PATTERN_PULL) {
        finish(node, now_ns, effects,
               false); /* nothing was given: nothing in doubt */
        return;
    }
    active->state = ACTIVE_ABORTING;
    active->tries = 0;
    active->deadline_ns =
        now_ns +
        kith_estimate_timeout(&node->control, KITH_TIMEOUT_INITIAL_NS, 0);
}

/* The other side holds nothing of this exchange. */
static void gone(struct kith_node *node, kith_ns now_ns,
                 struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->state == ACTIVE_ASKED) {
        refuse(node, now_ns, effects);
    } else if (active->pattern == KITH_PATTERN_PUSH) {
        kith_node_cancel(effects, KITH_SLOT_ACTIVE_SENT);
        active->state = ACTIVE_UNDO;
        active->deadline_ns = KITH_NEVER;
    } else {
        finish(node, now_ns, effects, false);
    }
}

bool kith_active_schedule(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    enum kith_work_kind kind;
    switch ((enum active_state)active->state) {
    case ACTIVE_SNAPSHOT:
    case ACTIVE_SPLIT:
        kind = KITH_WORK_SNAPSHOT;
        break;
    case ACTIVE_MERGE:
        kind = active->pattern == KITH_PATTERN_PULL ? KITH_WORK_ADOPT
                                                    : KITH_WORK_MERGE;
        break;
    case ACTIVE_UNDO:
        kind = KITH_WORK_UNDO;
        break;
    case ACTIVE_IDLE:
    case ACTIVE_ASKED:
    case ACTIVE_SENT:
    case ACTIVE_ABORTING:
    default:
        return false;
    }
    active->running = true;
    kith_node_work(
        node, effects, OWNER_ACTIVE, kind, (enum kith_pattern)active->pattern,
        kith_exchange_number(active, node->self), &active->edge, 1, false);
    return true;
}

void kith_active_worked(struct kith_node *node, enum kith_work_kind kind,
                        kith_ns now_ns, struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    KITH_ASSERT(active->running);
    active->running = false;
    if (kind == KITH_WORK_SNAPSHOT && active->state == ACTIVE_SNAPSHOT) {
        ask(node, now_ns, effects);
    } else if (kind == KITH_WORK_SNAPSHOT) {
        kith_node_mark(node, effects, KITH_MARK_SPLIT, active,
                       active->edge.peer, 0, active->edge.delta_sum);
        send_model(node, now_ns, effects);
    } else if (kind == KITH_WORK_UNDO) {
        node->undone++;
        kith_node_mark(node, effects, KITH_MARK_UNDONE, active,
                       active->edge.peer, 0, -active->edge.delta_sum);
        finish(node, now_ns, effects, false);
    } else {
        KITH_ASSERT(active->state == ACTIVE_MERGE);
        kith_node_mark(node, effects,
                       kind == KITH_WORK_ADOPT ? KITH_MARK_ADOPTED
                                               : KITH_MARK_MERGED,
                       active, active->edge.peer, 0, active->edge.delta_sum);
        if (kind == KITH_WORK_ADOPT) {
            node->adopting = false;
            node->pulls = 0;
        }
        kith_node_tell(node, effects, active, true, KITH_MESSAGE_ACK);
        finish(node, now_ns, effects, true);
    }
}

/* "What became of it?" about an exchange that is over on this side. */
static void answer_probe(struct kith_node *node, kith_id from,
                         const struct kith_message *message,
                         struct kith_effects *effects)
{
    struct kith_message *answer = kith_node_send(effects, from);
    *answer = (struct kith_message){.kind = KITH_MESSAGE_ABORTED,
                                    .pattern = message->pattern,
                                    .id = message->id,
                                    .mine = true,
                                    .step = node->steps,
                                    .slot = KITH_SLOT_NONE};
    const uint64_t age = node->next_counter - 1 - message->id.counter;
    if (message->id.incarnation == node->incarnation && age < KITH_OUTCOMES)
        answer->kind = (node->outcomes >> age & 1) != 0 ? KITH_MESSAGE_ACK
                                                        : KITH_MESSAGE_ABORT;
}

static void step_accept(struct kith_node *node, kith_ns now_ns,
                        struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->state == ACTIVE_ASKED) {
        kith_estimate_add(&node->control, now_ns - active->since_ns);
        if (active->pattern == KITH_PATTERN_PUSH) {
            active->state = ACTIVE_SPLIT;
            active->deadline_ns = KITH_NEVER;
        } else {
            send_model(node, now_ns, effects);
        }
    } else if (active->state == ACTIVE_SENT) { /* alive and still waiting */
        if (++active->probes > KITH_PROBES_MAX)
            abort_exchange(node, now_ns, effects);
        else
            active->tries = 0;
    }
}

static void step_busy(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->state != ACTIVE_ASKED)
        return;
    node->refused++;
    kith_node_mark(node, effects, KITH_MARK_REFUSED, active, active->edge.peer,
                   0, 0);
    refuse(node, now_ns, effects);
}

/* The other side has added what was pushed. */
static void step_ack(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->pattern != KITH_PATTERN_PUSH ||
        (active->state != ACTIVE_SENT && active->state != ACTIVE_ABORTING))
        return;
    if (active->state == ACTIVE_SENT)
        kith_estimate_add(&node->turn, now_ns - active->since_ns);
    kith_node_tell(node, effects, active, true, KITH_MESSAGE_ACK);
    finish(node, now_ns, effects, true);
}

static void step_model(struct kith_node *node,
                       const struct kith_message *message, kith_ns now_ns,
                       struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->state != ACTIVE_SENT || active->pattern == KITH_PATTERN_PUSH) {
        node->late++;
        return;
    }
    if (message->slot != KITH_SLOT_ACTIVE_INBOX ||
        !kith_node_sane(node, message)) {
        node->gated++;
        kith_node_mark(node, effects, KITH_MARK_GATED, active,
                       active->edge.peer, 0, 0);
        abort_exchange(node, now_ns, effects);
        return;
    }
    kith_estimate_add(&node->turn, now_ns - active->since_ns);
    memcpy(active->edge.scalars_received, message->scalars,
           sizeof message->scalars);
    if (active->pattern == KITH_PATTERN_PULL && message->step > node->steps &&
        node->round != NULL) {
        /* Rounds are numbered by steps: take the donor's place in them. */
        node->steps = message->step < node->config->steps ? message->step
                                                          : node->config->steps;
        kith_round_rejoin(node, effects, kith_round_after(node, message->step));
    }
    active->state = ACTIVE_MERGE;
    active->deadline_ns = KITH_NEVER;
}

void kith_active_message(struct kith_node *node, kith_id from,
                         const struct kith_message *message, kith_ns now_ns,
                         struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    const bool current = active->state != ACTIVE_IDLE &&
                         active->edge.peer == from &&
                         active->counter == message->id.counter &&
                         active->incarnation == message->id.incarnation;
    if (!current) {
        if (message->kind == KITH_MESSAGE_PROBE)
            answer_probe(node, from, message, effects);
        else
            node->late++;
        return;
    }
    const enum active_state state = (enum active_state)active->state;
    switch (message->kind) {
    case KITH_MESSAGE_ACCEPT:
        step_accept(node, now_ns, effects);
        break;
    case KITH_MESSAGE_BUSY:
        step_busy(node, now_ns, effects);
        break;
    case KITH_MESSAGE_MODEL:
        step_model(node, message, now_ns, effects);
        break;
    case KITH_MESSAGE_ACK:
        step_ack(node, now_ns, effects);
        break;
    case KITH_MESSAGE_ABORTED:
        if (state == ACTIVE_ASKED || state == ACTIVE_SENT ||
            state == ACTIVE_ABORTING)
            gone(node, now_ns, effects);
        break;
    case KITH_MESSAGE_PROBE:
        if (state == ACTIVE_ABORTING)
            kith_node_tell(node, effects, active, true, KITH_MESSAGE_ABORT);
        else if (state == ACTIVE_SENT)
            kith_node_tell(node, effects, active, true, KITH_MESSAGE_PROBE);
        break;
    case KITH_MESSAGE_REQUEST:
    case KITH_MESSAGE_READY:
    case KITH_MESSAGE_ABORT:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        node->bad++;
        kith_node_mark(node, effects, KITH_MARK_BAD, active, from,
                       message->kind, 0);
        break;
    }
}

/* Nobody answers: the neighbour is dead as far as this exchange goes. */
static void give_up(struct kith_node *node, kith_ns now_ns,
                    struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    kith_node_suspect(node, effects, active->edge.peer, now_ns,
                      kith_node_turn_timeout(node, KITH_TRIES_MAX));
    if (active->pattern == KITH_PATTERN_PUSH) {
        node->torn++;
        kith_node_mark(node, effects, KITH_MARK_TORN, active, active->edge.peer,
                       0, active->edge.delta_sum);
    }
    finish(node, now_ns, effects, false);
}

/* Training waits for a pull, so a donor that only ever answers "soon" must not
 * hold it: nothing is in doubt, another donor can be asked. */
static bool pull_is_late(const struct kith_node *node, kith_ns now_ns)
{
    const struct kith_exchange *active = &node->active;
    return active->pattern == KITH_PATTERN_PULL &&
           now_ns - active->since_ns >= kith_node_turn_timeout(node, 2);
}

void kith_active_wake(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    switch ((enum active_state)active->state) {
    case ACTIVE_ASKED:
        kith_node_suspect(node, effects, active->edge.peer, now_ns,
                          kith_node_turn_timeout(node, 2));
        kith_node_tell(node, effects, active, true, KITH_MESSAGE_ABORT);
        refuse(node, now_ns, effects);
        break;
    case ACTIVE_SENT:
        if (++active->tries > KITH_TRIES_MAX || pull_is_late(node, now_ns)) {
            abort_exchange(node, now_ns, effects);
        } else {
            kith_node_tell(node, effects, active, true, KITH_MESSAGE_PROBE);
            active->deadline_ns =
                now_ns + kith_node_turn_timeout(node, active->tries);
        }
        break;
    case ACTIVE_ABORTING:
        if (++active->tries > KITH_TRIES_MAX) {
            give_up(node, now_ns, effects);
        } else {
            kith_node_tell(node, effects, active, true, KITH_MESSAGE_ABORT);
            active->deadline_ns =
                now_ns + kith_estimate_timeout(&node->control,
                                               KITH_TIMEOUT_INITIAL_NS,
                                               active->tries);
        }
        break;
    case ACTIVE_IDLE:
    case ACTIVE_SNAPSHOT:
    case ACTIVE_SPLIT:
    case ACTIVE_MERGE:
    case ACTIVE_UNDO:
    default:
        active->deadline_ns = KITH_NEVER;
    }
}

void kith_active_down(struct kith_node *node, kith_id peer, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_exchange *active = &node->active;
    if (active->state == ACTIVE_IDLE || active->edge.peer != peer)
        return;
    if (active->state == ACTIVE_ASKED) {
        kith_node_suspect(node, effects, peer, now_ns,
                          kith_node_turn_timeout(node, 2));
        refuse(node, now_ns, effects);
    } else if (active->state == ACTIVE_SENT ||
               active->state == ACTIVE_ABORTING) {
        /* Ask again over a new link, soon but not at once. */
        const kith_ns soon = now_ns + (KITH_TIMEOUT_MIN_NS << active->tries);
        if (soon < active->deadline_ns)
            active->deadline_ns = soon;
    }
}
