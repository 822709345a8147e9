/* Rounds that nobody waits for, and how peers whose share is done go on.
 *
 * Merged is what came last from each neighbour, of whatever round; training
 * goes on. A peer whose share of steps is done goes on averaging as long as
 * others train, or its model would stay as old as that and the last ones would
 * be alone. A broadcast of a peer in training is a generation of its own, above
 * all that it has heard of from those that are done; a peer that is done passes
 * each generation on once, in a round of its own, under the same number:
 *
 *   training   number <- max(number, generation + 1) at the opening
 *   done       a round for a generation above the last one it passed on
 *
 * Only steps make generations, so this ends with the last step, whatever the
 * graph, and nobody needs to know which peers are still at work. While all are
 * in step nobody's number changes.
 *
 * Source: Bornstein et al., ICLR 2023 (SWIFT). */
#include "src/protocol/core/round.h"

static bool is_done(const struct kith_node *node, uint64_t steps)
{
    return steps >= node->config->steps;
}

/* Our share is done, and there is something to pass on. */
static bool is_due(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->passed <= round->generations);
    return node->presence != LEAVING && !node->trigger_due &&
           is_done(node, node->steps) && round->generations > round->passed;
}

static bool is_quiet(const struct kith_node *node)
{
    KITH_ASSERT(node->config->algorithm->wait == KITH_WAIT_NO);
    return kith_round_is_quiet(node) && !is_due(node);
}

/* Its round is a new generation. */
static void trigger(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    round->passing = false;
    round->passed = round->generations;
    if (round->generations > round->round)
        round->round = round->generations;
    kith_round_open(node);
}

static void pass_on(struct kith_node *node)
{
    struct kith_round *round = node->round;
    if (!is_due(node) || round->state != ROUND_CLOSED)
        return;
    round->passing = true;
    round->passed = round->generations;
    round->round = round->generations - 1;
    kith_round_open(node);
    KITH_ASSERT(!is_due(node));
}

static void opened(struct kith_node *node)
{
    KITH_ASSERT(!node->round->merged);
    node->round->state = ROUND_MERGE;
}

/* Those that we only read from would never hear that we are back. */
static void ask(const struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(node->round->wary <= KITH_WARY_ROUNDS);
    for (uint32_t e = 0; node->round->wary > 0 && e < list->count; e++)
        if ((list->edges[e].flags & (EDGE_IN | EDGE_OUT)) == EDGE_IN)
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_PROBE,
                            node->round->round);
}

static void merged(struct kith_node *node)
{
    KITH_ASSERT(node->round->merged);
    node->round->state = ROUND_OPEN;
    ask(node);
    kith_edge_advance_all(node);
    kith_round_try_close(node);
}

/* What came last stays, and is merged again where nothing newer did, as long as
 * its sender is alive: it would hold us back for ever. */
static bool is_merged(const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->held <= 1);
    return (edge->flags & (EDGE_RECEIVED | EDGE_DOWN)) == EDGE_RECEIVED;
}

/* Of its two inboxes the one that does not hold what came last; never one that
 * is being merged. */
static uint32_t edge_inbox(const struct kith_node *node, uint32_t e,
                           uint64_t number)
{
    const struct kith_round *round = node->round;
    const struct kith_round_edge *edge = &round->lists[0].edges[e];
    const uint8_t other = edge->held ^ 1;
    (void)number;
    KITH_ASSERT(e < round->lists[0].count);
    if (kith_round_is_running(node) && round->state == ROUND_MERGE &&
        edge->merging == other)
        return KITH_SLOT_NONE;
    return kith_slot_inbox(e, other);
}

static void hear(struct kith_node *node, const struct kith_message *message)
{
    struct kith_round *round = node->round;
    const uint64_t number = message->id.counter;
    const bool counts =
        is_done(node, node->steps) || is_done(node, message->step);
    /* A liar's number would stop all passing on: honest ones are below it. */
    if (counts && number <= kith_round_plausible(node) &&
        number >= round->generations)
        round->generations = number + 1;
    KITH_ASSERT(round->generations <= KITH_ROUND_NUMBER_MAX + 1);
}

static void step_model(struct kith_node *node, struct kith_round_edge *edge,
                       kith_id from, const struct kith_message *message)
{
    const uint64_t number = message->id.counter;
    KITH_ASSERT(edge != NULL && edge->peer == from); /* the graph is static */
    const bool lost =
        !(edge->flags & EDGE_IN) || message->slot == KITH_SLOT_NONE;
    node->late += lost;
    if (!lost &&
        !kith_round_store(
            node, edge,
            kith_slot_inbox(kith_edge_index(&node->round->lists[0], edge),
                            edge->held ^ 1u),
            message))
        return;
    /* Where its inbox was being merged the next one is newer; but its sender's
     * round must not stand open until the deadline, with all its triggers
     * skipped. */
    hear(node, message);
    kith_round_tell(node, from, KITH_MESSAGE_READY, number);
    if (!lost && number == node->round->round)
        kith_edge_advance(node, edge);
}

/* It is over where ours arrived; theirs may come at any time. */
static void advance(struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    if (!(edge->flags & EDGE_OUT) || edge->flags & EDGE_HEARD_READY)
        kith_edge_commit(node, edge);
}

const struct kith_mode kith_mode_mailbox = {
    KITH_ROUND_HANDLERS, KITH_CAST_HANDLERS,     .trigger = trigger,
    .idle = pass_on,     .is_quiet = is_quiet,   .opened = opened,
    .merged = merged,    .is_merged = is_merged, .edge_inbox = edge_inbox,
    .model = step_model, .advance = advance,
};
