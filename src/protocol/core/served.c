/* The exchange somebody else initiated with this peer.
 *
 *   swap  IDLE -> ACCEPTED -> MERGE -> MERGED -> IDLE
 *   push  IDLE -> ACCEPTED -> MERGE -> MERGED -> IDLE
 *   pull  IDLE -> ACCEPTED (snapshot) -> MERGED -> IDLE
 *   doubt MERGED -> UNDO -> IDLE on ABORT, -> IDLE (torn) when nobody answers
 *
 * Our half is applied first; snapshot, inbox and delta are kept until the
 * initiator's ACK, so the answer can be repeated and the half taken back. */
#include "src/protocol/core/node_state.h"

#include <string.h>

static void free_served(struct kith_node *node, struct kith_effects *effects)
{
    kith_node_cancel(effects, KITH_SLOT_SERVED_SENT);
    node->served.state = SERVED_IDLE;
    node->served.deadline_ns = KITH_NEVER;
}

/* Answers a message about an exchange that is not ours (any more). */
static void reply(const struct kith_node *node, kith_id to,
                  const struct kith_message *about, enum kith_message_kind kind,
                  struct kith_effects *effects)
{
    *kith_node_send(effects, to) =
        (struct kith_message){.kind = kind,
                              .pattern = about->pattern,
                              .id = about->id,
                              .mine = false,
                              .step = node->steps,
                              .slot = KITH_SLOT_NONE};
}

static bool welcome(const struct kith_node *node,
                    const struct kith_message *message)
{
    const enum kith_pattern own = node->config->algorithm->pattern;
    if (own == KITH_PATTERN_NONE)
        return false; /* not even a pull: the worker has no slots for it */
    return message->pattern == KITH_PATTERN_PULL ||
           (message->pattern == own && own != KITH_PATTERN_ROUND);
}

static void step_request(struct kith_node *node, kith_id from,
                         const struct kith_message *message, kith_ns now_ns,
                         struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (!welcome(node, message) ||
        message->payload_bytes != kith_node_payload(node->config,
                                                    message->pattern,
                                                    message->id.counter)) {
        node->bad++;
        kith_node_mark(node, effects, KITH_MARK_BAD, NULL, from, message->kind,
                       0);
        reply(node, from, message, KITH_MESSAGE_BUSY, effects);
        return;
    }
    const bool engaged =
        node->config->algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE &&
        node->active.state != ACTIVE_IDLE;
    if (served->state != SERVED_IDLE || engaged || node->leaving ||
        node->adopting || kith_node_is_charged(node, from, now_ns)) {
        reply(node, from, message, KITH_MESSAGE_BUSY, effects);
        return;
    }
    memset(served, 0, sizeof *served);
    served->state = SERVED_ACCEPTED;
    served->pattern = (uint8_t)message->pattern;
    served->counter = message->id.counter;
    served->incarnation = message->id.incarnation;
    served->edge.peer = from;
    served->edge.sent = KITH_SLOT_SERVED_SENT;
    served->edge.inbox = KITH_SLOT_SERVED_INBOX;
    served->edge.weight = 0.5;
    served->since_ns = now_ns;
    served->deadline_ns = now_ns + kith_node_turn_timeout(node, 1);
    node->serving++;
    kith_node_mark(node, effects, KITH_MARK_SERVING, served, from,
                   message->pattern, 0);
    kith_node_tell(node, effects, served, false, KITH_MESSAGE_ACCEPT);
}

static void step_model(struct kith_node *node, kith_id from,
                       const struct kith_message *message,
                       struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (served->state != SERVED_ACCEPTED ||
        served->pattern == KITH_PATTERN_PULL)
        return;
    if (message->slot != KITH_SLOT_SERVED_INBOX ||
        !kith_node_sane(node, message)) {
        node->gated++;
        kith_node_mark(node, effects, KITH_MARK_GATED, served, from, 0, 0);
        kith_node_tell(node, effects, served, false, KITH_MESSAGE_ABORTED);
        free_served(node, effects);
        return;
    }
    memcpy(served->edge.scalars_received, message->scalars,
           sizeof message->scalars);
    served->state = SERVED_MERGE;
    served->deadline_ns = KITH_NEVER;
}

/* The initiator wants it taken back. */
static void step_abort(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (served->running) {
        served->abort_due = true;
        return;
    }
    if (served->state == SERVED_MERGED &&
        served->pattern == KITH_PATTERN_SWAP) {
        kith_node_cancel(effects, KITH_SLOT_SERVED_SENT);
        served->state = SERVED_UNDO;
        served->deadline_ns = KITH_NEVER;
        return;
    }
    if (served->state == SERVED_UNDO)
        return; /* on its way */
    /* A push that was added stays: its sender learns that it arrived. */
    const bool kept =
        served->state == SERVED_MERGED && served->pattern == KITH_PATTERN_PUSH;
    kith_node_tell(node, effects, served, false,
                   kept ? KITH_MESSAGE_ACK : KITH_MESSAGE_ABORTED);
    if (!kept)
        free_served(node, effects);
}

bool kith_served_schedule(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    const enum kith_pattern pattern = (enum kith_pattern)served->pattern;
    enum kith_work_kind kind = KITH_WORK_MERGE;
    if (served->state == SERVED_UNDO)
        kind = KITH_WORK_UNDO;
    else if (served->state == SERVED_ACCEPTED && pattern == KITH_PATTERN_PULL)
        kind = KITH_WORK_SNAPSHOT;
    else if (served->state != SERVED_MERGE)
        return false;
    served->running = true;
    kith_node_work(node, effects, OWNER_SERVED, kind, pattern,
                   kith_exchange_number(served, served->edge.peer),
                   &served->edge, 1,
                   kind == KITH_WORK_MERGE && pattern == KITH_PATTERN_SWAP);
    return true;
}

void kith_served_worked(struct kith_node *node, enum kith_work_kind kind,
                        kith_ns now_ns, struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    KITH_ASSERT(served->running);
    served->running = false;
    if (kind == KITH_WORK_UNDO) {
        node->undone++;
        kith_node_mark(node, effects, KITH_MARK_UNDONE, served,
                       served->edge.peer, 0, -served->edge.delta_sum);
        kith_node_tell(node, effects, served, false, KITH_MESSAGE_ABORTED);
        free_served(node, effects);
        return;
    }
    if (kind == KITH_WORK_MERGE)
        kith_node_mark(node, effects, KITH_MARK_MERGED, served,
                       served->edge.peer, 0, served->edge.delta_sum);
    served->state = SERVED_MERGED;
    served->tries = 0;
    served->since_ns = now_ns;
    served->deadline_ns = now_ns + kith_node_turn_timeout(node, 1);
    if (served->abort_due) {
        served->abort_due = false;
        step_abort(node, effects);
        return;
    }
    kith_node_tell(node, effects, served, false,
                   served->pattern == KITH_PATTERN_PUSH ? KITH_MESSAGE_ACK
                                                        : KITH_MESSAGE_MODEL);
}

/* Our half stays in the model although the other side may not have its own. */
static void tear(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (served->pattern != KITH_PATTERN_PULL) {
        node->torn++;
        kith_node_mark(node, effects, KITH_MARK_TORN, served, served->edge.peer,
                       0, served->edge.delta_sum);
    }
    free_served(node, effects);
}

static void step_probe(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    const bool pushed = served->pattern == KITH_PATTERN_PUSH;
    if (served->state == SERVED_MERGED && (served->broken || pushed)) {
        served->broken = false; /* the answer may be lost: say it again */
        kith_node_tell(node, effects, served, false,
                       pushed ? KITH_MESSAGE_ACK : KITH_MESSAGE_MODEL);
        return;
    }
    kith_node_tell(node, effects, served, false, KITH_MESSAGE_ACCEPT);
}

void kith_served_message(struct kith_node *node, kith_id from,
                         const struct kith_message *message, kith_ns now_ns,
                         struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    const bool current = served->state != SERVED_IDLE &&
                         served->edge.peer == from &&
                         served->counter == message->id.counter &&
                         served->incarnation == message->id.incarnation;
    switch (message->kind) {
    case KITH_MESSAGE_REQUEST:
        if (!current)
            step_request(node, from, message, now_ns, effects);
        else if (served->state == SERVED_ACCEPTED)
            kith_node_tell(node, effects, served, false, KITH_MESSAGE_ACCEPT);
        break;
    case KITH_MESSAGE_MODEL:
        if (current)
            step_model(node, from, message, effects);
        else
            reply(node, from, message, KITH_MESSAGE_ABORTED, effects);
        break;
    case KITH_MESSAGE_ACK:
        if (current && served->state == SERVED_MERGED) {
            kith_node_mark(node, effects, KITH_MARK_DONE, served, from, 0, 0);
            free_served(node, effects);
        }
        break;
    case KITH_MESSAGE_ABORT:
        if (current)
            step_abort(node, effects);
        else
            reply(node, from, message, KITH_MESSAGE_ABORTED, effects);
        break;
    case KITH_MESSAGE_ABORTED: /* a restarted initiator does not know */
        if (current && served->state == SERVED_MERGED)
            tear(node, effects);
        break;
    case KITH_MESSAGE_PROBE:
        if (current)
            step_probe(node, effects);
        else
            reply(node, from, message, KITH_MESSAGE_ABORTED, effects);
        break;
    case KITH_MESSAGE_ACCEPT:
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_READY:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        node->bad++;
        kith_node_mark(node, effects, KITH_MARK_BAD, NULL, from, message->kind,
                       0);
        break;
    }
}

void kith_served_wake(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (served->running) {
        served->deadline_ns = KITH_NEVER;
    } else if (served->state == SERVED_ACCEPTED) {
        /* Their model never came. They learn it when they ask. */
        kith_node_charge(node, effects, served->edge.peer, now_ns,
                         kith_node_turn_timeout(node, KITH_TRIES_MAX));
        free_served(node, effects);
    } else if (served->state == SERVED_MERGED) {
        if (++served->tries > KITH_TRIES_MAX) {
            /* Silent over a link that stands, or gone? A restarted peer must
             * not find itself charged for its death. */
            const kith_ns span_ns =
                kith_node_turn_timeout(node, KITH_TRIES_MAX);
            if (served->broken)
                kith_node_suspect(node, effects, served->edge.peer, now_ns,
                                  span_ns);
            else
                kith_node_charge(node, effects, served->edge.peer, now_ns,
                                 span_ns);
            tear(node, effects);
        } else {
            kith_node_tell(node, effects, served, false, KITH_MESSAGE_PROBE);
            served->deadline_ns =
                now_ns + kith_node_turn_timeout(node, served->tries);
        }
    } else {
        served->deadline_ns = KITH_NEVER;
    }
}

void kith_served_down(struct kith_node *node, kith_id peer, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_exchange *served = &node->served;
    if (served->state == SERVED_IDLE || served->edge.peer != peer)
        return;
    if (served->state == SERVED_ACCEPTED && !served->running) {
        free_served(node, effects);
    } else if (served->state == SERVED_MERGED) {
        served->broken = true;
        const kith_ns soon = now_ns + (KITH_TIMEOUT_MIN_NS << served->tries);
        if (soon < served->deadline_ns)
            served->deadline_ns = soon;
    }
}
