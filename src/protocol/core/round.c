/* Rounds with all neighbours of a graph that may change from round to round.
 *
 *   CLOSED -> SNAPSHOT -> OPEN -> MERGE -> CLOSED
 *
 * An undirected edge commits on its own, the lower rank deciding:
 *
 *   both     MODEL(r) at once
 *   higher   READY   "I hold your model"
 *   lower    ACK     "I hold yours too: merge", or ABORT at its deadline
 *
 * An edge that is not committed is left out on both ends, so its weight goes to
 * self on both ends and the sum is kept. Only a READY without an answer is in
 * doubt: PROBE, and torn when nobody answers. The merge of all committed edges
 * is one item against one snapshot:
 *
 *   x <- x + sum_j W_ij (received_j - sent)
 *
 * A directed edge has one model and one READY, which ends it on either side: a
 * peer that waits for nobody's READY could run ahead of its readers' inboxes.
 *
 * Mailbox: a round on which training never waits. Merged is what came last from
 * each neighbour, of whatever round.
 *
 *   CLOSED -> SNAPSHOT -> MERGE -> OPEN (until all hold our model) -> CLOSED
 *
 * Source: Lian et al., NIPS 2017 (D-PSGD); Bornstein et al., ICLR 2023 (SWIFT).
 */
#include "src/protocol/core/node_state.h"

#include <string.h>

/* Deadlines are doubled so often at most. */
#define PATIENCE_MAX 5

static void reopen(struct kith_round *round)
{
    round->lapsed = false;
    round->merged = false;
    round->state = ROUND_SNAPSHOT;
}

static void close_round(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const bool missed = kith_round_review(node);
    kith_round_remember(node);
    kith_node_cancel(effects, KITH_SLOT_ROUND_SENT);
    kith_node_mark(node, effects, KITH_MARK_ROUND, NULL, KITH_NOBODY,
                   round->round, 0);
    round->state = ROUND_CLOSED;
    round->deadline_ns = KITH_NEVER;
    round->round++;
    if (kith_round_is_mailbox(node))
        return; /* its one list keeps what came */
    kith_round_list_fill(node, round->round + 1);
    if (missed) /* join the others, or trail for ever */
        kith_round_catch_up(node, effects);
    kith_round_ask_early(node, effects);
    /* A cycle is one exchange: nothing is trained within it. */
    if (kith_round_is_within(node) && !node->leaving)
        reopen(round);
}

static void try_close(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    bool committed = false;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++) {
        const struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision == EDGE_OPEN)
            return;
        committed |= edge->decision == EDGE_COMMITTED;
    }
    const bool merges = committed || node->config->algorithm->finish != NULL;
    round->deadline_ns = KITH_NEVER;
    /* A round that somebody let lapse says nothing of how long one takes
     * (Karn's rule): the next one is given longer. */
    if (round->lapsed && round->patience < PATIENCE_MAX)
        round->patience++;
    if (!round->lapsed && committed)
        kith_estimate_add(&node->turn, now_ns - round->opened_ns);
    if (!round->lapsed)
        round->patience = 0;
    if (merges && !round->merged)
        round->state = ROUND_MERGE;
    else
        close_round(node, effects);
}

void kith_round_open(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    kith_node_mark(node, effects, KITH_MARK_ATTEMPT, NULL, KITH_NOBODY,
                   node->attempts, 0);
    reopen(round);
    round->opened_ns = now_ns;
    if (node->config->topology->kind->is_static &&
        kith_round_current(node)->count == 0 &&
        node->config->algorithm->finish == NULL)
        round->state = ROUND_CLOSED; /* alone, and nothing of its own to do */
}

static void schedule_snapshot(struct kith_node *node,
                              struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool per_edge =
        node->config->algorithm->flags & KITH_SENDS_EDGE_MESSAGES;
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        edge->made = edge->out && !edge->down && !kith_edge_is_past(node, edge);
        if (!per_edge || !edge->made)
            continue;
        round->work[count++] =
            (struct kith_work_edge){.peer = edge->peer,
                                    .weight = edge->share,
                                    .sent = kith_slot_outbox(e),
                                    .inbox = KITH_SLOT_NONE};
    }
    if (!per_edge)
        round->work[count++] =
            (struct kith_work_edge){.peer = KITH_NOBODY,
                                    .sent = KITH_SLOT_ROUND_SENT,
                                    .inbox = KITH_SLOT_NONE};
    kith_node_work(node, effects, OWNER_ROUND, KITH_WORK_SNAPSHOT,
                   KITH_PATTERN_ROUND, round->round, round->work, count, false);
}

/* Mailbox: what came last stays, and is merged again where nothing newer did,
 * as long as its sender is alive: it would hold us back for ever. */
static bool is_merged(const struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    return edge->have &&
           (kith_round_is_mailbox(node) ? !edge->down
                                        : edge->decision == EDGE_COMMITTED);
}

static void schedule_merge(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool per_edge =
        node->config->algorithm->flags & KITH_SENDS_EDGE_MESSAGES;
    const bool mailbox = kith_round_is_mailbox(node);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (!is_merged(node, edge))
            continue;
        struct kith_work_edge *work = &round->work[count++];
        edge->merging = edge->held;
        *work = (struct kith_work_edge){
            .peer = edge->peer,
            .weight = edge->weight,
            .sent = !per_edge    ? KITH_SLOT_ROUND_SENT
                    : edge->made ? kith_slot_outbox(e)
                                 : KITH_SLOT_NONE,
            .inbox = kith_slot_inbox(e, mailbox ? edge->held : round->round)};
        memcpy(work->scalars_received, edge->scalars,
               sizeof work->scalars_received);
    }
    if (count < list->count)
        round->work[count].peer = KITH_NOBODY; /* `merged` reads so far */
    kith_node_work(node, effects, OWNER_ROUND, KITH_WORK_MERGE,
                   KITH_PATTERN_ROUND, round->round, round->work, count, false);
}

bool kith_round_schedule(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    if (round->running ||
        (round->state != ROUND_SNAPSHOT && round->state != ROUND_MERGE))
        return false;
    round->running = true;
    if (round->state == ROUND_SNAPSHOT)
        schedule_snapshot(node, effects);
    else
        schedule_merge(node, effects);
    return true;
}

static kith_ns deadline_of(const struct kith_node *node, kith_ns now_ns)
{
    const kith_ns fixed = node->config->round_deadline_ns;
    return fixed == KITH_NEVER ? KITH_NEVER
           : fixed > 0
               ? now_ns + fixed
               : now_ns + kith_node_turn_timeout(node, node->round->patience);
}

/* Our snapshot is taken. */
static void opened(struct kith_node *node, kith_ns now_ns,
                   struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    round->opened_ns = now_ns;
    round->deadline_ns = deadline_of(node, now_ns);
    for (uint32_t e = 0; e < list->count; e++)
        kith_edge_open(node, effects, &list->edges[e]);
    if (kith_round_is_mailbox(node)) {
        round->state = ROUND_MERGE;
        return;
    }
    round->state = ROUND_OPEN;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (edge->gone && edge->decision == EDGE_OPEN)
            kith_edge_lapse(node, effects, edge);
        kith_round_ask(node, effects, edge);
        kith_edge_advance(node, effects, edge);
    }
    try_close(node, now_ns, effects);
}

static void merged(struct kith_node *node, kith_ns now_ns,
                   struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        const struct kith_work_edge *work = &round->work[count];
        if (work->peer != edge->peer)
            continue;
        count++;
        node->gated += work->refused;
        kith_edge_mark(node, effects,
                       work->refused ? KITH_MARK_GATED : KITH_MARK_MERGED, edge,
                       work->delta_sum);
    }
    round->merged = true;
    if (!kith_round_is_mailbox(node)) {
        close_round(node, effects);
        return;
    }
    round->state = ROUND_OPEN;
    for (uint32_t e = 0; e < list->count; e++)
        kith_edge_advance(node, effects, &list->edges[e]);
    try_close(node, now_ns, effects);
}

void kith_round_worked(struct kith_node *node, enum kith_work_kind kind,
                       kith_ns now_ns, struct kith_effects *effects)
{
    KITH_ASSERT(node->round->running);
    node->round->running = false;
    if (kind == KITH_WORK_SNAPSHOT)
        opened(node, now_ns, effects);
    else
        merged(node, now_ns, effects);
}

/* What this side knows about an older round, for one who still asks; who hears
 * nothing writes it off. */
static void answer_past(struct kith_node *node, struct kith_effects *effects,
                        kith_id peer, uint64_t number)
{
    const struct kith_round *round = node->round;
    const struct kith_round_edge *edge =
        number == round->round ? kith_round_find(kith_round_current(node), peer)
                               : NULL;
    const bool committed = edge != NULL && round->state != ROUND_CLOSED &&
                                   round->state != ROUND_SNAPSHOT
                               ? edge->decision == EDGE_COMMITTED
                               : kith_round_was_committed(node, peer, number);
    if (edge == NULL && kith_round_is_forgotten(node, number))
        return;
    kith_round_tell(node, effects, peer,
                    committed ? KITH_MESSAGE_ACK : KITH_MESSAGE_ABORT, number);
}

static void gate(struct kith_node *node, struct kith_round_edge *edge,
                 uint64_t number, struct kith_effects *effects)
{
    const struct kith_round *round = node->round;
    node->gated++;
    kith_edge_mark(node, effects, KITH_MARK_GATED, edge, 0);
    kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_ABORT, number);
    if (number == round->round && round->state == ROUND_OPEN &&
        edge->decision == EDGE_OPEN && !edge->told_ready)
        kith_edge_drop(node, effects, edge);
}

/* A model that has no place: one that came twice may be merged already. Where
 * there is one by now, for a round closed while it was under way, it is asked
 * for again. */
static void refuse_model(struct kith_node *node, kith_id from, uint64_t number,
                         const struct kith_round_edge *edge,
                         struct kith_effects *effects)
{
    const bool over = number <= node->round->round;
    const bool committed = over && kith_round_was_committed(node, from, number);
    if (edge != NULL && edge->have)
        return;
    if (committed && kith_round_is_one_way(node))
        kith_round_tell(node, effects, from, KITH_MESSAGE_READY, number);
    else if (committed && kith_edge_decides(node, from))
        kith_round_tell(node, effects, from, KITH_MESSAGE_ACK, number);
    else if (!committed && (over || !kith_round_comes(node, number)))
        kith_round_tell(node, effects, from, KITH_MESSAGE_ABORT, number);
}

static void step_model(struct kith_node *node, kith_id from,
                       struct kith_round_edge *known,
                       const struct kith_message *message,
                       struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const uint64_t number = message->id.counter;
    const bool mailbox = kith_round_is_mailbox(node);
    const bool at_hand = mailbox || number == round->round;
    const bool due = at_hand || number == round->round + 1;
    struct kith_round_edge *edge =
        at_hand ? known
        : due   ? kith_round_find(kith_round_list_of(node, number), from)
                : NULL;
    if (edge == NULL || !edge->in || message->slot == KITH_SLOT_NONE) {
        node->late++;
        if (!due && number > round->round && number <= round->most)
            kith_round_note_early(node, from, number);
        if (mailbox && edge != NULL)
            kith_mailbox_discard(node, from, message, effects);
        else if (!mailbox &&
                 kith_node_inbox(node, from, message) != KITH_SLOT_NONE)
            kith_round_tell(node, effects, from, KITH_MESSAGE_REQUEST, number);
        else if (!mailbox)
            refuse_model(node, from, number, edge, effects);
        return;
    }
    const uint32_t e =
        (uint32_t)(edge - kith_round_list_of(node, number)->edges);
    if (message->slot != kith_slot_inbox(e, mailbox ? !edge->held : number) ||
        !kith_node_sane(node, message)) {
        gate(node, edge, number, effects);
        return;
    }
    memcpy(edge->scalars, message->scalars, sizeof message->scalars);
    edge->incarnation = message->id.incarnation;
    edge->have = true;
    edge->held ^= 1;
    if (mailbox)
        kith_mailbox_hear(node, message);
    if (!kith_edge_is_mutual(node, edge))
        kith_round_tell(node, effects, from, KITH_MESSAGE_READY, number);
    if (number == round->round)
        kith_edge_advance(node, effects, edge);
}

static void step_ready(struct kith_node *node, kith_id from,
                       struct kith_round_edge *edge, uint64_t number,
                       struct kith_effects *effects)
{
    const struct kith_round *round = node->round;
    const bool undecided = edge != NULL && number == round->round &&
                           round->state == ROUND_OPEN &&
                           edge->decision == EDGE_OPEN;
    const bool early = edge != NULL && number == round->round &&
                       round->state == ROUND_MERGE &&
                       kith_round_is_mailbox(node);
    if (undecided || early) {
        edge->heard_ready = true;
        kith_edge_advance(node, effects, edge);
    } else if (number <= round->round && kith_edge_decides(node, from) &&
               !kith_round_is_one_way(node)) {
        answer_past(node, effects, from, number);
    }
}

static void bad(struct kith_node *node, kith_id from,
                const struct kith_message *message,
                struct kith_effects *effects)
{
    node->bad++;
    kith_node_mark(node, effects, KITH_MARK_BAD, NULL, from, message->kind, 0);
}

void kith_round_message(struct kith_node *node, kith_id from,
                        const struct kith_message *message, kith_ns now_ns,
                        struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    struct kith_round_edge *known =
        round != NULL ? kith_round_find(kith_round_current(node), from) : NULL;
    if (round == NULL || message->mine == kith_edge_decides(node, from) ||
        (known == NULL && node->config->topology->kind->is_static)) {
        bad(node, from, message, effects);
        return;
    }
    kith_round_hear(node, from, message->step);
    const uint64_t number = message->id.counter;
    struct kith_round_edge *edge =
        number == round->round && round->state == ROUND_OPEN ? known : NULL;
    const bool undecided = edge != NULL && edge->decision == EDGE_OPEN;
    switch (message->kind) {
    case KITH_MESSAGE_MODEL:
        step_model(node, from, known, message, effects);
        break;
    case KITH_MESSAGE_READY:
        step_ready(node, from, known, number, effects);
        break;
    case KITH_MESSAGE_ACK:
        if (undecided && edge->told_ready && kith_edge_is_mutual(node, edge))
            kith_edge_commit(node, edge);
        break;
    case KITH_MESSAGE_ABORT:
        if (undecided && kith_edge_is_mutual(node, edge))
            kith_edge_drop(node, effects, edge);
        else if (undecided)
            kith_edge_lapse(node, effects, edge);
        else
            kith_round_note_gone(node, from, number);
        break;
    case KITH_MESSAGE_PROBE:
        if (kith_round_is_one_way(node))
            kith_round_answer(node, effects, from, number);
        else if (kith_edge_decides(node, from) && !undecided &&
                 number <= round->round)
            answer_past(node, effects, from, number);
        break;
    case KITH_MESSAGE_REQUEST: /* it came too early: now there is room */
        if (undecided && edge->made && !edge->heard_ready &&
            !kith_round_is_mailbox(node))
            kith_edge_send(node, effects, edge);
        else if (number < round->round)
            kith_round_tell(node, effects, from, KITH_MESSAGE_ABORT, number);
        break;
    case KITH_MESSAGE_ACCEPT:
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_ABORTED:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        bad(node, from, message, effects);
        break;
    }
    kith_round_heed(node, effects, known);
    try_close(node, now_ns, effects);
}

/* Leave this edge out, or ask about it while it is in doubt. */
static bool settle(struct kith_node *node, struct kith_effects *effects,
                   struct kith_round_edge *edge)
{
    if (!kith_edge_is_mutual(node, edge)) {
        if (edge->out && !edge->heard_ready) /* it need not wait for us */
            kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_ABORT,
                            node->round->round);
        kith_edge_lapse(node, effects, edge);
        return true;
    }
    if (kith_edge_decides(node, edge->peer) || !edge->told_ready) {
        kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_ABORT,
                        node->round->round);
        kith_edge_drop(node, effects, edge);
        return true;
    }
    if (++edge->tries <= KITH_TRIES_MAX) {
        kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_PROBE,
                        node->round->round);
        return false;
    }
    /* They may have merged our model; we cannot know. Our half is 0. */
    node->torn++;
    kith_edge_mark(node, effects, KITH_MARK_TORN, edge, 0);
    kith_edge_drop(node, effects, edge);
    return true;
}

void kith_round_wake(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    uint32_t doubts = 0;
    round->deadline_ns = KITH_NEVER;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision != EDGE_OPEN)
            continue;
        const bool settled = settle(node, effects, edge);
        round->lapsed |= settled;
        if (settled)
            kith_round_count_silent(node, effects, edge->peer, now_ns);
        else
            doubts = edge->tries > doubts ? edge->tries : doubts;
    }
    if (doubts > 0)
        round->deadline_ns =
            now_ns +
            kith_estimate_timeout(&node->turn, KITH_TIMEOUT_INITIAL_NS, doubts);
    try_close(node, now_ns, effects);
}

/* What came for a round that has not begun here: its sender leaves the edge
 * out, or comes back as another incarnation with another model. */
static void forget(struct kith_node *node, kith_id peer)
{
    const struct kith_round *round = node->round;
    const bool begun =
        round->state == ROUND_OPEN || round->state == ROUND_MERGE;
    for (unsigned k = begun; k < 2; k++) {
        struct kith_round_edge *edge =
            kith_round_find(kith_round_list_of(node, round->round + k), peer);
        if (edge != NULL && kith_edge_is_mutual(node, edge))
            edge->have = false;
    }
}

void kith_round_down(struct kith_node *node, kith_id peer,
                     struct kith_effects *effects, kith_ns now_ns)
{
    struct kith_round *round = node->round;
    struct kith_round_edge *edge =
        kith_round_find(kith_round_current(node), peer);
    kith_round_set_down(node, peer);
    forget(node, peer);
    if (edge == NULL || round->state != ROUND_OPEN ||
        edge->decision != EDGE_OPEN)
        return;
    if (!kith_edge_is_mutual(node, edge))
        kith_edge_lapse(node, effects, edge);
    else if (kith_edge_decides(node, peer) || !edge->told_ready)
        kith_edge_drop(node, effects, edge);
    else if (now_ns + KITH_TIMEOUT_MIN_NS < round->deadline_ns)
        round->deadline_ns = now_ns + KITH_TIMEOUT_MIN_NS;
    try_close(node, now_ns, effects);
}

void kith_round_leave(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    const struct kith_round_list *list = kith_round_current(node);
    for (uint32_t e = 0; e < list->count; e++)
        if (!list->edges[e].down)
            kith_round_tell(node, effects, list->edges[e].peer,
                            KITH_MESSAGE_BYE, node->round->round);
    kith_round_wake(node, now_ns, effects); /* as at the deadline */
}
