/* Rounds with all neighbours (D-PSGD).
 *
 *   CLOSED -> SNAPSHOT -> OPEN -> MERGE -> CLOSED
 *
 * Each edge commits on its own, the lower rank deciding:
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
 * Source: Lian et al., NIPS 2017 (D-PSGD). */
#include "src/core/private.h"

#include <string.h>

size_t kith_round_size(const struct kith_node_config *config)
{
    if (config->algorithm->pattern != KITH_PATTERN_ROUND)
        return 0;
    size_t degree = 0;
    kith_id neighbours[KITH_DEGREE_MAX];
    for (kith_id i = 0; i < config->topology->peers; i++) {
        const size_t count =
            kith_topology_neighbours(config->topology, i, 0, neighbours, NULL);
        degree = count > degree ? count : degree;
    }
    return sizeof(struct kith_round) +
           degree *
               (sizeof(struct kith_work_edge) + sizeof(struct kith_round_edge));
}

void kith_round_init(struct kith_node *node, void *memory)
{
    struct kith_round *round = memory;
    kith_id neighbours[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    node->round = round;
    round->edge_count = kith_topology_neighbours(
        node->config->topology, node->self, 0, neighbours, weights);
    round->deadline_ns = KITH_NEVER;
    round->round = node->steps / node->config->every;
    round->work = (struct kith_work_edge *)(round + 1);
    round->edges = (struct kith_round_edge *)(round->work + round->edge_count);
    for (uint32_t e = 0; e < round->edge_count; e++) {
        round->edges[e].peer = neighbours[e];
        round->edges[e].weight = weights[e];
    }
}

static struct kith_round_edge *find(const struct kith_node *node, kith_id peer)
{
    const struct kith_round *round = node->round;
    for (uint32_t e = 0; e < round->edge_count; e++)
        if (round->edges[e].peer == peer)
            return &round->edges[e];
    return NULL;
}

static uint32_t inbox(const struct kith_round *round,
                      const struct kith_round_edge *edge, uint64_t number)
{
    return KITH_SLOT_ROUND_INBOX + 2u * (uint32_t)(edge - round->edges) +
           (uint32_t)(number & 1u);
}

static bool decides(const struct kith_node *node,
                    const struct kith_round_edge *edge)
{
    return node->self < edge->peer;
}

static void tell(const struct kith_node *node, struct kith_effects *effects,
                 const struct kith_round_edge *edge,
                 enum kith_message_kind kind, uint64_t number)
{
    const bool carries = kind == KITH_MESSAGE_MODEL;
    struct kith_message message = {
        .kind = kind,
        .pattern = KITH_PATTERN_ROUND,
        .id = {.counter = number},
        .mine = decides(node, edge),
        .step = node->round->round, /* where we are, for one who fell behind */
        .payload_bytes = carries ? node->config->payload_bytes : 0,
        .slot = carries ? KITH_SLOT_ROUND_SENT : KITH_SLOT_NONE,
    };
    if (carries) {
        message.scalar_count = node->config->algorithm->scalar_count;
        memcpy(message.scalars, node->round->work[0].scalars_sent,
               sizeof message.scalars);
    }
    kith_node_send(effects, edge->peer, &message);
}

static void mark_edge(struct kith_node *node, struct kith_effects *effects,
                      enum kith_mark_kind kind,
                      const struct kith_round_edge *edge, double sum)
{
    kith_node_mark(node, effects, kind, NULL, edge->peer, node->round->round,
                   sum);
    struct kith_mark *mark = &effects->marks[effects->mark_count - 1];
    mark->id.counter = node->round->round;
    mark->initiator = decides(node, edge);
}

static void drop(struct kith_node *node, struct kith_effects *effects,
                 struct kith_round_edge *edge)
{
    edge->decision = EDGE_DROPPED;
    if (decides(node, edge))
        node->failed++;
    mark_edge(node, effects, KITH_MARK_FAILED, edge, 0);
}

static void commit(struct kith_node *node, struct kith_round_edge *edge)
{
    edge->decision = EDGE_COMMITTED;
    edge->outcomes |= 1;
    if (decides(node, edge))
        node->done++;
}

/* The earliest round that a live neighbour claims to be in: one liar cannot
 * send us further than the others are. 0 when all are silent. */
static uint64_t least_said(const struct kith_round *round)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t e = 0; e < round->edge_count; e++)
        if (!round->edges[e].down && round->edges[e].said < least)
            least = round->edges[e].said;
    return least == UINT64_MAX ? 0 : least;
}

static void close_round(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    bool any = false;
    for (uint32_t e = 0; e < round->edge_count; e++) {
        any |= round->edges[e].decision == EDGE_COMMITTED;
        round->edges[e].have[round->round & 1] = false;
    }
    kith_node_cancel(effects, KITH_SLOT_ROUND_SENT);
    kith_node_mark(node, effects, KITH_MARK_ROUND, NULL, KITH_NOBODY,
                   round->round, 0);
    round->round++;
    const uint64_t ahead = any ? round->round : least_said(round);
    if (ahead > round->round) {
        /* Everybody is further: join them instead of trailing for ever. */
        round->round = ahead;
        for (uint32_t e = 0; e < round->edge_count; e++)
            round->edges[e].have[0] = round->edges[e].have[1] = false;
    }
    round->state = ROUND_CLOSED;
    round->deadline_ns = KITH_NEVER;
}

static void try_close(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    bool committed = false;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < round->edge_count; e++) {
        if (round->edges[e].decision == EDGE_OPEN)
            return;
        committed |= round->edges[e].decision == EDGE_COMMITTED;
    }
    round->deadline_ns = KITH_NEVER;
    if (committed) {
        kith_estimate_add(&node->turn, now_ns - round->opened_ns);
        round->state = ROUND_MERGE;
    } else {
        close_round(node, effects);
    }
}

static void advance(struct kith_node *node, struct kith_effects *effects,
                    struct kith_round_edge *edge)
{
    const struct kith_round *round = node->round;
    if (round->state != ROUND_OPEN || edge->decision != EDGE_OPEN ||
        !edge->have[round->round & 1])
        return;
    if (!decides(node, edge)) {
        if (!edge->told_ready)
            tell(node, effects, edge, KITH_MESSAGE_READY, round->round);
        edge->told_ready = true;
    } else if (edge->heard_ready) {
        tell(node, effects, edge, KITH_MESSAGE_ACK, round->round);
        commit(node, edge);
    }
}

void kith_round_open(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    kith_node_mark(node, effects, KITH_MARK_ATTEMPT, NULL, KITH_NOBODY,
                   node->attempts, 0);
    if (round->edge_count == 0)
        return;
    round->state = ROUND_SNAPSHOT;
    round->opened_ns = now_ns;
}

bool kith_round_schedule(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    if (round == NULL || round->running)
        return false;
    if (round->state == ROUND_SNAPSHOT) {
        round->running = true;
        round->work[0] = (struct kith_work_edge){.peer = KITH_NOBODY,
                                                 .sent = KITH_SLOT_ROUND_SENT,
                                                 .inbox = KITH_SLOT_NONE};
        kith_node_work(node, effects, OWNER_ROUND, KITH_WORK_SNAPSHOT,
                       KITH_PATTERN_ROUND, round->work, 1, false);
        return true;
    }
    if (round->state != ROUND_MERGE)
        return false;
    uint32_t count = 0;
    for (uint32_t e = 0; e < round->edge_count; e++) {
        const struct kith_round_edge *edge = &round->edges[e];
        if (edge->decision != EDGE_COMMITTED)
            continue;
        struct kith_work_edge *work = &round->work[count++];
        *work =
            (struct kith_work_edge){.peer = edge->peer,
                                    .weight = edge->weight,
                                    .sent = KITH_SLOT_ROUND_SENT,
                                    .inbox = inbox(round, edge, round->round)};
        memcpy(work->scalars_received, edge->scalars[round->round & 1],
               sizeof work->scalars_received);
    }
    round->running = true;
    kith_node_work(node, effects, OWNER_ROUND, KITH_WORK_MERGE,
                   KITH_PATTERN_ROUND, round->work, count, false);
    return true;
}

static void opened(struct kith_node *node, kith_ns now_ns,
                   struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const kith_ns fixed = node->config->round_deadline_ns;
    round->state = ROUND_OPEN;
    round->opened_ns = now_ns;
    round->deadline_ns = fixed == KITH_NEVER ? KITH_NEVER
                         : fixed > 0         ? now_ns + fixed
                                     : now_ns + kith_node_turn_timeout(node, 0);
    for (uint32_t e = 0; e < round->edge_count; e++) {
        struct kith_round_edge *edge = &round->edges[e];
        edge->outcomes <<= 1;
        edge->tries = 0;
        edge->told_ready = edge->heard_ready = false;
        edge->decision = EDGE_OPEN;
        if (edge->down) {
            edge->decision = EDGE_DROPPED;
            mark_edge(node, effects, KITH_MARK_FAILED, edge, 0);
            continue;
        }
        tell(node, effects, edge, KITH_MESSAGE_MODEL, round->round);
        advance(node, effects, edge);
    }
    try_close(node, now_ns, effects);
}

void kith_round_worked(struct kith_node *node, enum kith_work_kind kind,
                       kith_ns now_ns, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->running);
    round->running = false;
    if (kind == KITH_WORK_SNAPSHOT) {
        opened(node, now_ns, effects);
        return;
    }
    uint32_t count = 0;
    for (uint32_t e = 0; e < round->edge_count; e++)
        if (round->edges[e].decision == EDGE_COMMITTED)
            mark_edge(node, effects, KITH_MARK_MERGED, &round->edges[e],
                      round->work[count++].delta_sum);
    close_round(node, effects);
}

/* What this side knows about an older round, for one who still asks. */
static void answer_past(struct kith_node *node, struct kith_effects *effects,
                        const struct kith_round_edge *edge, uint64_t number)
{
    const struct kith_round *round = node->round;
    /* outcomes bit 0 is the round opened last: `round` itself while it is
     * open, the one before it once it is closed. */
    const uint64_t last =
        round->state == ROUND_OPEN || round->state == ROUND_MERGE
            ? round->round
            : round->round - 1;
    const uint64_t age = last - number;
    const bool committed =
        age < KITH_OUTCOMES && (edge->outcomes >> age & 1) != 0;
    tell(node, effects, edge, committed ? KITH_MESSAGE_ACK : KITH_MESSAGE_ABORT,
         number);
}

static void step_model(struct kith_node *node, struct kith_round_edge *edge,
                       const struct kith_message *message,
                       struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const uint64_t number = message->id.counter;
    const bool due = number == round->round || number == round->round + 1;
    if (!due || message->slot == KITH_SLOT_NONE) {
        node->late++;
        if (number <= round->round)
            tell(node, effects, edge, KITH_MESSAGE_ABORT, number);
        return;
    }
    if (message->slot != inbox(round, edge, number) ||
        !kith_node_sane(node, message)) {
        node->gated++;
        mark_edge(node, effects, KITH_MARK_GATED, edge, 0);
        tell(node, effects, edge, KITH_MESSAGE_ABORT, number);
        if (number == round->round && round->state == ROUND_OPEN &&
            edge->decision == EDGE_OPEN && !edge->told_ready)
            drop(node, effects, edge);
        return;
    }
    memcpy(edge->scalars[number & 1], message->scalars,
           sizeof message->scalars);
    edge->have[number & 1] = true;
    advance(node, effects, edge);
}

void kith_round_message(struct kith_node *node, kith_id from,
                        const struct kith_message *message, kith_ns now_ns,
                        struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    struct kith_round_edge *edge = round == NULL ? NULL : find(node, from);
    if (edge == NULL || message->mine == decides(node, edge)) {
        node->bad++;
        kith_node_mark(node, effects, KITH_MARK_BAD, NULL, from, message->kind,
                       0);
        return;
    }
    edge->down = false;
    edge->silent = 0;
    if (message->step > edge->said && message->step <= node->config->steps)
        edge->said = message->step; /* a round is at least one step */
    const uint64_t number = message->id.counter;
    const bool now_open = number == round->round && round->state == ROUND_OPEN;
    const bool undecided = now_open && edge->decision == EDGE_OPEN;
    switch (message->kind) {
    case KITH_MESSAGE_MODEL:
        step_model(node, edge, message, effects);
        break;
    case KITH_MESSAGE_READY:
        if (undecided && decides(node, edge)) {
            edge->heard_ready = true;
            advance(node, effects, edge);
        } else if (number <= round->round && decides(node, edge)) {
            answer_past(node, effects, edge, number);
        }
        break;
    case KITH_MESSAGE_ACK:
        if (undecided && edge->told_ready)
            commit(node, edge);
        break;
    case KITH_MESSAGE_ABORT:
        if (undecided)
            drop(node, effects, edge);
        break;
    case KITH_MESSAGE_PROBE:
        if (decides(node, edge) && !undecided && number <= round->round)
            answer_past(node, effects, edge, number);
        break;
    case KITH_MESSAGE_REQUEST:
    case KITH_MESSAGE_ACCEPT:
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_ABORTED:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        node->bad++;
        kith_node_mark(node, effects, KITH_MARK_BAD, NULL, from, message->kind,
                       0);
        break;
    }
    try_close(node, now_ns, effects);
}

/* Leave this edge out, or ask about it while it is in doubt. */
static bool settle(struct kith_node *node, struct kith_effects *effects,
                   struct kith_round_edge *edge)
{
    if (decides(node, edge) || !edge->told_ready) {
        tell(node, effects, edge, KITH_MESSAGE_ABORT, node->round->round);
        drop(node, effects, edge);
        return true;
    }
    if (++edge->tries <= KITH_TRIES_MAX) {
        tell(node, effects, edge, KITH_MESSAGE_PROBE, node->round->round);
        return false;
    }
    /* They may have merged our model; we cannot know. Our half is 0. */
    node->torn++;
    mark_edge(node, effects, KITH_MARK_TORN, edge, 0);
    drop(node, effects, edge);
    return true;
}

void kith_round_wake(struct kith_node *node, kith_ns now_ns,
                     struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    uint32_t doubts = 0;
    round->deadline_ns = KITH_NEVER;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < round->edge_count; e++) {
        struct kith_round_edge *edge = &round->edges[e];
        if (edge->decision != EDGE_OPEN)
            continue;
        if (!settle(node, effects, edge)) {
            doubts = edge->tries > doubts ? edge->tries : doubts;
        } else if (++edge->silent >= 2) {
            edge->down = true;
        }
    }
    if (doubts > 0)
        round->deadline_ns =
            now_ns +
            kith_estimate_timeout(&node->turn, KITH_TIMEOUT_INITIAL_NS, doubts);
    try_close(node, now_ns, effects);
}

void kith_round_down(struct kith_node *node, kith_id peer,
                     struct kith_effects *effects, kith_ns now_ns)
{
    struct kith_round *round = node->round;
    struct kith_round_edge *edge = find(node, peer);
    if (edge == NULL)
        return;
    edge->down = true;
    if (round->state != ROUND_OPEN || edge->decision != EDGE_OPEN)
        return;
    if (decides(node, edge) || !edge->told_ready)
        drop(node, effects, edge);
    else if (now_ns + KITH_TIMEOUT_MIN_NS < round->deadline_ns)
        round->deadline_ns = now_ns + KITH_TIMEOUT_MIN_NS;
    try_close(node, now_ns, effects);
}

void kith_round_leave(struct kith_node *node, kith_ns now_ns,
                      struct kith_effects *effects)
{
    const struct kith_round *round = node->round;
    for (uint32_t e = 0; e < round->edge_count; e++)
        if (!round->edges[e].down)
            tell(node, effects, &round->edges[e], KITH_MESSAGE_BYE,
                 round->round);
    kith_round_wake(node, now_ns, effects); /* as at the deadline */
}

uint32_t kith_round_inbox(const struct kith_node *node, kith_id from,
                          const struct kith_message *model)
{
    const struct kith_round *round = node->round;
    const struct kith_round_edge *edge =
        round == NULL ? NULL : find(node, from);
    const uint64_t number = model->id.counter;
    if (edge == NULL || edge->have[number & 1])
        return KITH_SLOT_NONE;
    if (number == round->round)
        return round->state == ROUND_MERGE || (round->state == ROUND_OPEN &&
                                               edge->decision != EDGE_OPEN)
                   ? KITH_SLOT_NONE
                   : inbox(round, edge, number);
    return number == round->round + 1 ? inbox(round, edge, number)
                                      : KITH_SLOT_NONE;
}
