/* Partners of two-party exchanges: who is asked, and who is dialled ahead.
 *
 * The draws of a peer are one stream, and a draw is a function of its position
 * and of who is left out. Where any two peers may meet those who are left out
 * are passed over instead, so that the next draws are known before they are
 * made. */
#include "src/protocol/core/round.h"

/* The round whose graph partners are drawn from, where it changes. A peer that
 * adopts tries others, should its neighbours of one round have crashed with
 * it. */
static uint64_t graph_round(const struct kith_node *node)
{
    KITH_ASSERT(node->round == NULL || node->adopting);
    return node->round != NULL  ? node->round->round + node->draws
           : node->attempts > 0 ? node->attempts - 1
                                : 0;
}

/* Partners of swaps that are under way, which would gain little from another
 * one; how many. */
static uint32_t partners(const struct kith_node *node,
                         const struct kith_exchange *exchange, kith_id *list)
{
    uint32_t count = 0;
    for (uint32_t mask = node->exchange_mask; mask != 0;) {
        const struct kith_exchange *other =
            &node->exchanges[kith_exchange_next(&mask)];
        if (other != exchange && other->state != KITH_EXCHANGE_IDLE)
            list[count++] = other->edge.peer;
    }
    KITH_ASSERT(count < KITH_OVERLAP_MAX);
    return count;
}

/* A second swap with one that is asked once at a time. */
static bool repeats(const struct kith_node *node,
                    const struct kith_exchange *exchange)
{
    KITH_ASSERT(exchange->edge.peer != KITH_NOBODY);
    for (uint32_t mask = node->exchange_mask & KITH_EXCHANGES_OURS;
         mask != 0;) {
        const struct kith_exchange *other =
            &node->exchanges[kith_exchange_next(&mask)];
        if (other != exchange && other->state != INITIATOR_IDLE &&
            other->edge.peer == exchange->edge.peer)
            return exchange->pattern == KITH_PATTERN_SWAP &&
                   kith_exchange_is_single(node, other->edge.peer);
    }
    return false;
}

/* Who is drawn at this position of the stream, which is kept in place of the
 * stream's state: 8 bytes for 48. */
static kith_id drawn_at(const struct kith_node *node, uint32_t position,
                        const kith_id *avoid, uint32_t count, double *weight)
{
    KITH_ASSERT(count <= KITH_AVOID_MAX);
    struct kith_rng rng;
    kith_rng_init(&rng, node->config->seed, KITH_STREAM_PARTNER, node->self);
    rng.block = position;
    *weight = 0.5;
    if (node->round != NULL && node->config->topology->kind->directed)
        return kith_topology_donor(node->config->topology, node->self,
                                   graph_round(node), &rng, avoid, count);
    return kith_topology_partner(node->config->topology, node->self,
                                 graph_round(node), &rng, avoid, count, weight);
}

static bool meets_anybody(const struct kith_node *node)
{
    KITH_ASSERT(node->self < node->config->topology->peers);
    return kith_topology_is_any_pair(node->config->topology->kind);
}

bool kith_exchange_is_in(const kith_id *list, uint32_t count, kith_id id)
{
    KITH_ASSERT(count <= KITH_AVOID_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

/* The partner of `ahead` draws from now, where there will be a trigger for it:
 * nobody is dialled who is not to be asked. */
static void dial_ahead(const struct kith_node *node, uint32_t ahead)
{
    const struct kith_node_config *config = node->config;
    struct kith_effects *effects = node->effects;
    double weight;
    KITH_ASSERT(ahead < KITH_DIALS_AHEAD);
    if (!meets_anybody(node) || effects->dial_count == KITH_DIALS_AHEAD ||
        node->steps >= config->steps ||
        (config->steps - node->steps) / config->every <= ahead)
        return;
    const kith_id peer = drawn_at(node, node->draws + ahead, NULL, 0, &weight);
    if (peer != KITH_NOBODY && !kith_node_is_suspect(node, peer))
        effects->dials[effects->dial_count++] = peer;
}

void kith_exchange_start(struct kith_node *node)
{
    KITH_ASSERT(node->draws == 0);
    for (uint32_t i = 0; i < KITH_DIALS_AHEAD; i++)
        dial_ahead(node, i);
}

bool kith_exchange_draw(struct kith_node *node, struct kith_exchange *exchange)
{
    kith_id avoid[KITH_SUSPECTS_MAX + 1 + KITH_OVERLAP_MAX];
    uint32_t count = kith_node_suspects(node, avoid);
    /* The partner that has just refused is not asked twice in a row. */
    if (exchange->edge.peer != KITH_NOBODY)
        avoid[count++] = exchange->edge.peer;
    count += partners(node, exchange, avoid + count);
    if (exchange->pattern == KITH_PATTERN_SWAP) {
        exchange->edge.peer = kith_turn_owed(node, avoid, count);
        exchange->edge.weight = 0.5;
        if (exchange->edge.peer != KITH_NOBODY) {
            node->draws++;
            return !repeats(node, exchange);
        }
    }

    /* Where any two may meet, whoever is left out is passed over: the next one
     * was dialled ahead, too. */
    uint32_t passes = meets_anybody(node) ? KITH_DIALS_AHEAD : 0;
    /* In some rounds of a graph a peer may have no neighbour at all. */
    uint32_t rounds = node->round != NULL ? KITH_OUTCOMES : 0;
    do {
        exchange->edge.peer =
            drawn_at(node, node->draws, avoid, passes > 0 ? 0 : count,
                     &exchange->edge.weight);
        node->draws++;
        dial_ahead(node, KITH_DIALS_AHEAD - 1);
    } while (exchange->edge.peer == KITH_NOBODY
                 ? rounds-- > 0
                 : passes-- > 0 &&
                       kith_exchange_is_in(avoid, count, exchange->edge.peer));
    KITH_ASSERT(exchange->edge.peer != node->self);
    KITH_ASSERT(exchange->edge.weight >= 0 && exchange->edge.weight <= 1);
    return exchange->edge.peer != KITH_NOBODY && !repeats(node, exchange);
}
