/* Rounds with all neighbours of a graph that may change from round to round.
 *
 *   CLOSED -> SNAPSHOT -> OPEN -> MERGE -> CLOSED       mutual, cast
 *   CLOSED -> SNAPSHOT -> MERGE -> OPEN -> CLOSED       mailbox
 *
 * The merge of all committed edges is one item against one snapshot:
 *
 *   x <- x + sum_j W_ij (received_j - sent)
 *
 * This file holds what all modes share: the states, the items, the deadline;
 * messages stand in round_message.c.
 * How an edge is committed or left out is its mode's: round_mutual.c,
 * round_cast.c, round_mailbox.c.
 *
 * Source: Lian et al., NIPS 2017 (D-PSGD). */
#include "src/protocol/core/round.h"

#include <string.h>

#include "kith/bucket.h"

/* Cycles in a row of which nothing came. */
#define BARREN 4u
#define BARREN_MAX 10u

/* Checked after every event, as for exchanges. */
void kith_round_check(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(!kith_round_is_running(node) ||
                round->state == ROUND_SNAPSHOT || round->state == ROUND_MERGE);
    KITH_ASSERT(round->state != ROUND_CLOSED ||
                round->deadline_ns == KITH_NEVER);
    KITH_ASSERT(list->round == round->round || node->mode->list_mask == 0);
    KITH_ASSERT(round->passed <= round->generations);
    KITH_ASSERT(!round->deserted || node->mode->says_round);
}

bool kith_round_is_open(const struct kith_node *node)
{
    KITH_ASSERT(node->round->state <= ROUND_MERGE);
    return node->round->state != ROUND_CLOSED;
}

/* Training waits before the next round may open (x <- W x - eta g), or before
 * anything else may be done (x <- W (x - eta g)). */
bool kith_round_holds(const struct kith_node *node)
{
    KITH_ASSERT(node->config->algorithm->wait != KITH_WAIT_NO);
    return kith_round_is_open(node) &&
           (node->trigger_due ||
            node->config->algorithm->wait == KITH_WAIT_STRICT);
}

bool kith_round_is_committed(const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision <= EDGE_DROPPED);
    return edge->flags & EDGE_RECEIVED && edge->decision == EDGE_COMMITTED;
}

bool kith_round_is_quiet(const struct kith_node *node)
{
    KITH_ASSERT(kith_round_is_running(node) <= kith_round_is_open(node));
    return !kith_round_is_open(node);
}

/* A round that only passes on what others sent does not keep a peer that is
 * done. */
bool kith_round_is_finished(const struct kith_node *node)
{
    KITH_ASSERT(!node->round->passing || node->mode->list_mask == 0);
    return !kith_round_is_open(node) || node->round->passing;
}

kith_ns kith_round_deadline(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->state != ROUND_CLOSED ||
                round->deadline_ns == KITH_NEVER);
    return round->deadline_ns == KITH_NEVER
               ? KITH_NEVER
               : kith_node_earliest(round->deadline_ns, round->speak_ns);
}

/* Buckets of the open cycle whose rounds are over. */
static uint32_t shared(const struct kith_node *node)
{
    const uint32_t phases = kith_round_phases(node);
    KITH_ASSERT(phases % node->config->buckets == 0);
    return (uint32_t)(node->round->round % phases /
                      (phases / node->config->buckets));
}

/* The snapshot is an item of its own, so a round opens at a step boundary. */
static void reopen(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED && !kith_round_is_running(node));
    round->left_out = 0;
    round->merged = false;
    round->state = ROUND_SNAPSHOT;
}

/* Nothing came of so many cycles, and at most one neighbour says that it is
 * further: a cycle is opened at every second trigger, then at every fourth,
 * ...; otherwise its numbers would grow as fast as it trains. */
static bool pauses(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->barren <= BARREN_MAX);
    return round->barren > BARREN && round->second <= round->round &&
           !(round->noted & NOTED_JUMP) &&
           node->attempts % (UINT64_C(1) << (round->barren - BARREN)) != 0;
}

void kith_round_open(struct kith_node *node)
{
    struct kith_round *round = node->round;
    kith_node_mark(node, KITH_MARK_ATTEMPT, NULL, KITH_NOBODY, node->attempts,
                   0);
    if (kith_round_phases(node) > 1) {
        kith_round_list_review(node);
        if (round->barren > BARREN && !(round->noted & NOTED_JUMP))
            kith_round_turn_back(node);
    }
    reopen(node);
    round->opened_ns = round->triggered_ns = node->now_ns;
    if (node->config->topology->kind->is_static &&
        kith_round_current(node)->count == 0 &&
        node->config->algorithm->finish == NULL)
        round->state = ROUND_CLOSED; /* alone, and nothing of its own to do */
    round->deserted = kith_round_phases(node) > 1 &&
                      (pauses(node) || kith_round_is_deserted(node));
    if (round->deserted) {
        round->state = ROUND_CLOSED; /* a mean of one */
        kith_node_mark(node, KITH_MARK_ROUND, NULL, KITH_NOBODY, round->round,
                       0);
    }
    round->noted &= (uint8_t) ~(NOTED_JUMP | NOTED_GIVEN);
}

/* Nothing came of the cycle that has just ended, nobody took anything, and
 * nobody is known to be further: it does not count, or who is alone would soon
 * be cycles ahead of those that are on their way to it. */
static bool is_in_vain(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    return kith_round_phases(node) > 1 && kith_round_is_first(node) &&
           round->barren > 1 && round->furthest < round->round;
}

void kith_round_go_on(struct kith_node *node, bool catches_up)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    /* A neighbour may be in the next round already: its model needs an
     * inbox. */
    if (!round->deserted && is_in_vain(node))
        kith_round_jump(node, round->round - kith_round_phases(node));
    else if (!round->deserted)
        kith_round_list_fill(node, round->round + 1);
    else if (!node->config->topology->kind->is_static)
        kith_round_list_review(node);
    /* Join the others, or stay behind for ever: of a cycle they may have been
     * missing in any round. */
    if (catches_up || (kith_round_phases(node) > 1 && round->wary > 0))
        kith_round_catch_up(node);
    kith_round_ask_early(node);
    /* A cycle is one exchange: nothing is trained within it. */
    if (!kith_round_is_first(node) && node->presence != LEAVING)
        reopen(node);
}

/* The open round is over. Was anybody missing? */
static bool review(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool is_static = node->config->topology->kind->is_static;
    bool missed = false;
    for (uint32_t e = 0; e < list->count; e++) {
        const struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision != EDGE_DROPPED)
            continue;
        missed |= !is_static || !(edge->flags & EDGE_DOWN);
    }
    KITH_ASSERT(round->wary <= KITH_WARY_ROUNDS);
    if (missed)
        round->wary = KITH_WARY_ROUNDS;
    else if (round->wary > 0)
        round->wary--;
    return missed;
}

/* The outcome is remembered before the lists move on: a neighbour in doubt
 * will ask for it. */
void kith_round_close(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(kith_round_has_begun(node) && !kith_round_is_running(node));
    const bool missed = review(node);
    kith_round_remember(node);
    kith_node_cancel(node, KITH_SLOT_ROUND_SENT);
    kith_node_mark(node, KITH_MARK_ROUND, NULL, KITH_NOBODY, round->round, 0);
    kith_round_time(node);
    round->state = ROUND_CLOSED;
    round->deadline_ns = KITH_NEVER;
    /* Who is alone counts no rounds: it takes less time for them than those
     * that wait for each other, and its numbers would become implausible. */
    round->round += !round->deserted;
    if (round->barren < BARREN_MAX && kith_round_is_first(node))
        round->barren++;
    if (node->mode->closed != NULL)
        node->mode->closed(node, missed);
}

/* How long a round takes. Who let one lapse says nothing of that (Karn's rule),
 * and who was waited for until its link went down does not, but the others do,
 * else one liar would keep us from ever measuring it. Where
 * neighbours change those others may be faster than all that come, and nobody
 * is met again soon: the next round is given longer, whoever is in it. */
static void measure(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const bool changes = !node->config->topology->kind->is_static &&
                         kith_round_phases(node) == 1;
    struct kith_estimate *estimate =
        kith_round_is_first(node) && !kith_round_is_large(node) ? &node->turn
                                                                : &round->later;
    const bool measured = estimate->mean_us != 0;
    KITH_ASSERT(round->came_ns <= node->now_ns);
    const bool lapsed = (round->left_out & LEFT_LATE) != 0;
    if (lapsed && changes && round->patience < KITH_PATIENCE_MAX)
        round->patience++;
    if (round->came_ns == 0 || (lapsed && changes && measured))
        return;
    if (!lapsed)
        round->patience = 0;
    /* Who was asked for came later than that: the others in time count. */
    const bool asked = (round->noted & NOTED_QUESTION) != 0;
    if (asked && round->prompt_ns == 0)
        return;
    const kith_ns until_ns = asked                  ? round->prompt_ns
                             : round->left_out != 0 ? round->came_ns
                                                    : node->now_ns;
    kith_estimate_add(estimate, until_ns - round->opened_ns);
}

void kith_round_try_close(struct kith_node *node)
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
        /* One edge is enough for a merge; a round without any is over as it
         * is. */
        committed |= edge->decision == EDGE_COMMITTED;
    }
    KITH_ASSERT(!kith_round_is_running(node));
    const bool merges = committed || node->config->algorithm->finish != NULL;
    round->deadline_ns = KITH_NEVER;
    measure(node);
    if (merges && !round->merged)
        round->state = ROUND_MERGE;
    else
        kith_round_close(node);
}

/* ---- Work items. */

/* The slot of what is sent over edge `e`: one snapshot for all, or its own. */
static uint32_t sent_slot(const struct kith_node *node, uint32_t e)
{
    KITH_ASSERT(e < KITH_DEGREE_MAX);
    return kith_node_has(node, KITH_SENDS_EDGE_MESSAGES) ? kith_slot_outbox(e)
                                                         : KITH_SLOT_ROUND_SENT;
}

/* The edges of an item are the node's memory: the worker writes into them
 * what it found. */
static void put_work(struct kith_node *node, enum kith_work_kind kind,
                     uint32_t count)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(!kith_round_is_running(node) && count <= KITH_DEGREE_MAX);
    kith_node_work(node, OWNER_ROUND,
                   (struct kith_work){.kind = kind,
                                      .pattern = KITH_PATTERN_ROUND,
                                      .round = round->round,
                                      .edges = round->work,
                                      .edge_count = count});
}

static void schedule_snapshot(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool shared = sent_slot(node, 0) == KITH_SLOT_ROUND_SENT;
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        kith_edge_plan(node, edge);
        if (!shared && edge->flags & EDGE_MADE)
            round->work[count++] =
                (struct kith_work_edge){.peer = edge->peer,
                                        .weight = edge->share,
                                        .sent = sent_slot(node, e),
                                        .inbox = KITH_SLOT_NONE};
    }
    /* One snapshot for all, though nobody may be there to send it to:
     * `finish` reads it. */
    if (shared)
        round->work[count++] =
            (struct kith_work_edge){.peer = KITH_NOBODY,
                                    .sent = KITH_SLOT_ROUND_SENT,
                                    .inbox = KITH_SLOT_NONE};
    put_work(node, KITH_WORK_SNAPSHOT, count);
}

static void schedule_merge(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_MERGE && !round->merged);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (!node->mode->is_merged(edge))
            continue;
        const uint32_t sent = sent_slot(node, e);
        struct kith_work_edge *work = &round->work[count++];
        /* What comes meanwhile goes into the other inbox. */
        edge->merging = edge->held;
        *work = (struct kith_work_edge){
            .peer = edge->peer,
            .weight = edge->weight,
            .sent = sent == KITH_SLOT_ROUND_SENT || edge->flags & EDGE_MADE
                        ? sent
                        : KITH_SLOT_NONE,
            .inbox = kith_slot_inbox(e, edge->held)};
        memcpy(work->scalars_received, edge->scalars,
               sizeof work->scalars_received);
    }
    if (count < list->count)
        round->work[count].peer = KITH_NOBODY; /* step_merged reads so far */
    put_work(node, KITH_WORK_MERGE, count);
}

/* Of a step in parts the rounds at hand are one bucket's: is it there? Those
 * that are open before the first one is are the step before's. */
static bool is_complete(const struct kith_node *node)
{
    const struct kith_node_config *config = node->config;
    KITH_ASSERT(node->round->complete == 0 || node->round->part > 0);
    return node->round->complete == 0 ||
           kith_bucket_at(config->buckets, config->urgent, shared(node)) <
               node->round->complete;
}

void kith_round_trained(struct kith_node *node,
                        const struct kith_work_result *result)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(result->finite || !result->is_part);
    KITH_ASSERT(result->complete <= node->config->buckets);
    round->part = result->is_part ? round->part + 1 : 0;
    round->complete = result->is_part ? result->complete : 0;
    round->needs = result->needs;
}

/* A step in parts waits for what the next of them needs. */
bool kith_round_holds_training(const struct kith_node *node)
{
    KITH_ASSERT(node->round->part == 0 || node->config->buckets > 1);
    return node->config->buckets > 1
               ? kith_round_is_open(node) && shared(node) < node->round->needs
               : kith_round_holds(node);
}

bool kith_round_schedule(struct kith_node *node)
{
    KITH_ASSERT(!kith_round_is_running(node));
    const uint8_t state = node->round->state;
    if (state == ROUND_SNAPSHOT && is_complete(node))
        schedule_snapshot(node);
    else if (state == ROUND_MERGE)
        schedule_merge(node);
    return kith_round_is_running(node);
}

/* In a cycle those that wait for us ask. */
static kith_ns speaks_at(const struct kith_node *node)
{
    KITH_ASSERT(node->round->state != ROUND_CLOSED);
    return kith_round_phases(node) > 1 ? KITH_NEVER
                                       : node->now_ns + kith_late_wait(node, 0);
}

/* Our snapshot is taken. */
static void step_snapshot(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    /* The time until our own snapshot was taken is not the neighbours'. */
    round->opened_ns = node->now_ns;
    round->came_ns = 0;
    round->longer = 0;
    round->noted &= (uint8_t)~NOTED_QUESTION;
    round->deadline_ns = kith_late_deadline(node);
    round->speak_ns = speaks_at(node);
    if (kith_round_is_first(node))
        kith_edge_ask_again(node);
    for (uint32_t e = 0; e < list->count; e++)
        kith_edge_open(node, &list->edges[e]);
    round->deserted =
        kith_round_phases(node) == 1 && kith_round_is_deserted(node);
    node->mode->opened(node);
}

static void step_merged(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_MERGE);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        const struct kith_work_edge *work = &round->work[count];
        /* Items keep the order of the list, so one pass finds each edge's
         * result. */
        if (work->peer != edge->peer)
            continue;
        count++;
        node->gated += work->refused;
        kith_edge_mark(node, work->refused ? KITH_MARK_GATED : KITH_MARK_MERGED,
                       edge, work->delta_sum);
    }
    round->merged = true;
    node->mode->merged(node);
}

void kith_round_worked(struct kith_node *node, enum kith_work_kind kind)
{
    KITH_ASSERT(kith_round_is_open(node));
    KITH_ASSERT(kind == KITH_WORK_SNAPSHOT || kind == KITH_WORK_MERGE);
    (kind == KITH_WORK_SNAPSHOT ? step_snapshot : step_merged)(node);
}

/* ---- The deadline, links, the end. */

static void set_down(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(node->round->lists[0].count <= KITH_DEGREE_MAX);
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge =
            kith_round_find(&node->round->lists[k], peer);
        if (edge != NULL)
            edge->flags |= EDGE_DOWN;
    }
}

/* It let a round lapse: after two it is left out, in a cycle for the rest of
 * it, which would wait for it again and again, and after two cycles without a
 * word until it is heard. It may be a neighbour again in a later round only. */
static void count_silent(struct kith_node *node,
                         const struct kith_round_edge *late)
{
    const bool in_cycle = kith_round_phases(node) > 1;
    bool down = in_cycle && kith_late_is_silent(node, late);
    KITH_ASSERT(late->peer != node->self);
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge =
            kith_round_find(&node->round->lists[k], late->peer);
        if (edge == NULL || (!in_cycle && ++edge->silent < 2))
            continue;
        edge->flags |= EDGE_DOWN;
        down |= !in_cycle;
    }
    if (down && !node->config->topology->kind->is_static)
        kith_node_suspect(node, late->peer,
                          kith_node_turn_timeout(node, KITH_TRIES_MAX));
}

/* Waited for in vain again and again: it is left out for a while, whatever it
 * says. */
static void give_up(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    set_down(node, peer);
    kith_node_warn(node, peer,
                   kith_node_turn_timeout(node, KITH_PATIENCE_MAX - 2),
                   kith_node_turn_timeout(node, KITH_PATIENCE_MAX + 2));
}

void kith_round_lapse(struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision != EDGE_OPEN);
    node->round->left_out |= LEFT_LATE;
    const bool vain = kith_late_lapse(node, edge);
    count_silent(node, edge);
    if (vain)
        give_up(node, edge->peer);
}

/* The edge did not end in time: it is left out (false: it is in doubt). */
static bool settle(struct kith_node *node, struct kith_round_edge *edge)
{
    /* Each edge is settled on its own: one silent neighbour costs its own
     * weight alone. */
    const bool settled = node->mode->settle(node, edge);
    KITH_ASSERT(settled == (edge->decision != EDGE_OPEN));
    if (settled)
        kith_round_lapse(node, edge);
    return settled;
}

/* Edges that are open at the deadline: who is missing is asked whether it
 * comes, and waited for if it says so; the others are left out, or asked about
 * while they are in doubt. */
static void settle_all(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    bool doubts = false, asks = false, waits = false;
    const kith_ns came_ns = round->came_ns;
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    round->deadline_ns = KITH_NEVER;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision != EDGE_OPEN)
            continue;
        if (kith_late_asks(node, edge))
            asks = true;
        else if (kith_late_waits(node, edge))
            waits = true;
        else
            doubts |= !settle(node, edge);
    }
    round->came_ns = came_ns; /* what lapses was not in time */
    /* Who is asked what became of an exchange answers at once, so that all of
     * its doubt takes no longer than it was waited for: nor may those that wait
     * for us. */
    if (doubts)
        round->deadline_ns =
            node->now_ns + kith_late_wait(node, 0) / KITH_TRIES_MAX;
    else if (asks)
        round->deadline_ns = node->now_ns + kith_late_answer(node);
    else if (waits)
        round->deadline_ns = node->now_ns + kith_late_longer(node);
    kith_round_try_close(node);
}

/* Those that have our model wait for the next one while we wait for others:
 * they are told that we are here. */
static void speak(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    round->speak_ns = node->now_ns + kith_late_wait(node, 0);
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++)
        if (list->edges[e].decision != EDGE_OPEN &&
            !(list->edges[e].flags & EDGE_DOWN))
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_PROBE,
                            round->round);
}

void kith_round_wake(struct kith_node *node)
{
    if (node->now_ns >= node->round->deadline_ns) {
        node->round->stopped_ns += node->now_ns - node->round->deadline_ns;
        settle_all(node);
    }
    if (kith_round_phases(node) == 1 && node->now_ns >= node->round->speak_ns)
        speak(node);
    KITH_ASSERT(kith_round_deadline(node) > node->now_ns);
}

void kith_round_peer_left(struct kith_node *node, kith_id peer)
{
    struct kith_round_edge *edge =
        kith_round_find(kith_round_current(node), peer);
    const bool open = kith_edge_is_open(node, edge, node->round->round);
    KITH_ASSERT(edge == NULL || edge->peer == peer);
    set_down(node, peer);
    kith_round_forget(node, peer);
    node->round->left_out |= open ? LEFT_LOST : 0;
    node->mode->edge_down(node, open ? edge : NULL, peer);
    if (open)
        kith_round_try_close(node);
}

void kith_round_leave(struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(node->presence == LEAVING);
    if (node->round->state == ROUND_SNAPSHOT && !is_complete(node))
        node->round->state = ROUND_CLOSED; /* it never will be */
    for (uint32_t e = 0; e < list->count; e++)
        if (!(list->edges[e].flags & EDGE_DOWN))
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_BYE,
                            node->round->round);
    settle_all(node); /* as at the deadline */
    kith_cast_leave(node);
}
