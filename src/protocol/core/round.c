/* Rounds with all neighbours of a graph that may change from round to round.
 *
 *   CLOSED -> SNAPSHOT -> OPEN -> MERGE -> CLOSED       mutual, cast
 *   CLOSED -> SNAPSHOT -> MERGE -> OPEN -> CLOSED       mailbox
 *
 * The merge of all committed edges is one item against one snapshot:
 *
 *   x <- x + sum_j W_ij (received_j - sent)
 *
 * This file holds the states, from opening to closing; items stand in
 * round_work.c, the deadline in round_settle.c, messages in round_message.c.
 * How an edge is committed or left out is its mode's: round_mutual.c,
 * round_cast.c, round_mailbox.c.
 *
 * Source: Lian et al., NIPS 2017 (D-PSGD). */
#include "src/protocol/core/round.h"

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
