/* When a peer begins an exchange or a round of its own: after which steps, and
 * what becomes of a trigger that finds one open. */
#include "src/protocol/core/round.h"

/* Every H steps, with probability p; where there is one exchange at a time, by
 * chance alone: peers in step would all ask and none answer. Half of its
 * exchanges a peer asks for. */
bool kith_trigger_is_due(const struct kith_node *node)
{
    const struct kith_node_config *config = node->config;
    if (!kith_node_communicates(node) || node->presence == LEAVING)
        return false;
    const bool exclusive = kith_node_has(node, KITH_NEEDS_EXCLUSIVE_EXCHANGE);
    if (node->steps % config->every != 0 && !exclusive)
        return false;
    double chance = config->chance == 0 ? 1 : config->chance;
    KITH_DEBUG_ASSERT(chance > 0 && chance <= 1);
    if (exclusive)
        chance /= 2.0 * config->every;
    if (chance >= 1)
        return true;
    /* The draw is a function of the step, so that a replay needs no state of
     * the stream. */
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_TRIGGER, node->self);
    rng.block = (uint32_t)node->steps;
    return kith_rng_double(&rng) < chance;
}

void kith_trigger_skip(struct kith_node *node,
                       const struct kith_exchange *instead)
{
    KITH_ASSERT(node->skipped < node->attempts);
    node->skipped++;
    kith_node_mark(node, KITH_MARK_SKIPPED, instead, instead->edge.peer, 0, 0);
}

/* The trigger of the step just done. Where one is open still it is skipped, or
 * waits until training may go on. */
void kith_trigger_fire(struct kith_node *node)
{
    KITH_ASSERT(node->trigger_due && node->presence != LEAVING);
    const struct kith_mode *mode = node->mode;
    if (mode->defers_trigger != NULL && mode->defers_trigger(node))
        return;
    node->trigger_due = false;
    /* Counted though it may be skipped: mixing is measured per trigger. */
    node->attempts++;
    if (mode->is_open(node)) {
        kith_node_mark(node, KITH_MARK_ATTEMPT, NULL, KITH_NOBODY,
                       node->attempts, 0);
        kith_trigger_skip(node, &node->exchanges[0]);
    } else {
        mode->trigger(node);
    }
}
