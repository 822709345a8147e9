/* How long a node waits for an answer: from what turns took (round_trip.c), and
 * before any was measured from the bytes. */
#include "src/protocol/core/round.h"

/* A REQUEST is answered at once, between two steps: what it takes is the
 * network's alone. */
kith_ns kith_node_control_timeout(const struct kith_node *node, uint32_t tries)
{
    KITH_ASSERT(tries <= KITH_TRIES_MAX);
    return kith_estimate_timeout(&node->control, KITH_TIMEOUT_INITIAL_NS,
                                 tries + node->late_answers);
}

/* A pull may carry far more than the exchanges that were measured. */
static bool pulls(const struct kith_node *node)
{
    KITH_ASSERT(node->pulls <= KITH_PULLS_MAX);
    return node->config->model_bytes > node->config->payload_bytes &&
           (node->adopting || kith_exchange_is_pulled(node));
}

kith_ns kith_node_first_timeout(const struct kith_node *node)
{
    const struct kith_node_config *config = node->config;
    const uint64_t bits =
        8 * (pulls(node) ? config->model_bytes : config->payload_bytes);
    const kith_ns first_ns =
        2 * KITH_TIMEOUT_INITIAL_NS +
        (kith_ns)(bits / (KITH_INITIAL_BITS_PER_S / 1000u)) * KITH_MS;
    KITH_ASSERT(first_ns > 0);
    return first_ns;
}

kith_ns kith_node_turn_timeout(const struct kith_node *node, uint32_t tries)
{
    static const struct kith_estimate unknown;
    /* Training waits for a pull. */
    const uint32_t late = node->adopting ? 0 : node->late_turns;
    return kith_estimate_timeout(pulls(node) ? &unknown : &node->turn,
                                 kith_node_first_timeout(node), tries + late);
}

void kith_node_turn_took(struct kith_node *node, kith_ns since_ns)
{
    KITH_ASSERT(since_ns <= node->now_ns);
    kith_estimate_add(&node->turn, node->now_ns - since_ns);
    node->late_turns = 0;
}

void kith_node_came_late(struct kith_node *node,
                         const struct kith_message *message)
{
    KITH_ASSERT(node->late_turns <= KITH_TRIES_MAX);
    if (message->kind == KITH_MESSAGE_MODEL &&
        node->late_turns < KITH_TRIES_MAX)
        node->late_turns++;
}
