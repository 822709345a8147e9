/* Rounds that nobody waits for, and who goes on with them.
 *
 * Who is done goes on averaging as long as others train, or its model would
 * stay as old as that and the last ones would be alone. A broadcast of one who
 * trains is a generation of its own, above all that it has heard of from those
 * who are done; who is done passes each generation on once, in a round of its
 * own, under the same number:
 *
 *   training   number <- max(number, generation + 1) at the opening
 *   done       a round for a generation above the last one it passed on
 *
 * Only steps make generations, so this ends with the last step, whatever the
 * graph, and nobody needs to know who is still at work. While all are in step
 * nobody's number changes. */
#include "src/protocol/core/node_state.h"

/* No honest generation comes near; a liar's cannot make numbers wrap. */
#define GENERATIONS_MAX (UINT64_MAX / 2)

/* Of its two inboxes the one that does not hold what came last; never one that
 * is being merged. */
uint32_t kith_mailbox_inbox(const struct kith_node *node, uint32_t e)
{
    const struct kith_round *round = node->round;
    const struct kith_round_edge *edge = &kith_round_list_of(node, 0)->edges[e];
    const uint8_t free = edge->held ^ 1;
    if (round->running && round->state == ROUND_MERGE && edge->merging == free)
        return KITH_SLOT_NONE;
    return kith_slot_inbox(e, free);
}

static bool is_done(const struct kith_node *node, uint64_t steps)
{
    return steps >= node->config->steps;
}

void kith_mailbox_hear(struct kith_node *node,
                       const struct kith_message *message)
{
    struct kith_round *round = node->round;
    const uint64_t number = message->id.counter;
    const bool counts =
        is_done(node, node->steps) || is_done(node, message->step);
    if (counts && number < GENERATIONS_MAX && number >= round->generations)
        round->generations = number + 1;
}

/* Its inbox was being merged. The next one is newer; but its sender's round
 * must not stand open until the deadline, with all its triggers skipped. */
void kith_mailbox_discard(struct kith_node *node, kith_id from,
                          const struct kith_message *message,
                          struct kith_effects *effects)
{
    kith_mailbox_hear(node, message);
    kith_round_tell(node, effects, from, KITH_MESSAGE_READY,
                    message->id.counter);
}

void kith_mailbox_catch_up(struct kith_node *node)
{
    struct kith_round *round = node->round;
    round->passing = false;
    round->passed = round->generations;
    if (round->generations > round->round)
        round->round = round->generations;
}

bool kith_mailbox_is_due(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    return round != NULL && !node->leaving && !node->trigger_due &&
           is_done(node, node->steps) && round->generations > round->passed;
}

void kith_mailbox_pass_on(struct kith_node *node, kith_ns now_ns,
                          struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    if (!kith_mailbox_is_due(node) || round->state != ROUND_CLOSED)
        return;
    round->passing = true;
    round->passed = round->generations;
    round->round = round->generations - 1;
    kith_round_open(node, now_ns, effects);
}
