/* Whose turn it is where more ask than can be answered.
 *
 * Peers in step may find us serving the same ones for ever. So there are turns:
 *
 *   owed    it was refused three times, for want of a record or in favour of
 *           others, since it had one
 *   had     it had one in this turn: while somebody is owed one it is refused
 *
 * A turn ends when nobody is owed a record any more, or when they should have
 * asked by now: the more often others did meanwhile, the fewer neighbours they
 * have. Where they have few beside us they surely will, but may be SLOWEST
 * times as slow as those that ask; who has not asked by then is owed nothing.
 * Whoever gave its record up, because the word was lost that it had one, is
 * owed another one, once a turn. And of those that are owed one we ask one,
 * where we swap: peers that make one exchange at a time, and ask, answer
 * nobody.
 *
 * A bit for each rank modulo 32: those that share one take turns, too.
 * Test: unit/test_swarm_pairs.c. */
#include "src/protocol/core/node_state.h"

#define SLOWEST 10u
#define AT_ONCE_NS (KITH_TIMEOUT_MIN_NS / 16)
#define AT_ONCE_MAX 16u

static uint32_t bit_of(kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    return UINT32_C(1) << peer % 32;
}

static uint32_t owed(const struct kith_node *node)
{
    KITH_ASSERT(node->self < node->config->topology->peers);
    return node->refused_low & node->refused_high & ~node->had;
}

/* A count of 0 to 3 by peer, in two words. */
void kith_turn_refused(struct kith_node *node, kith_id from)
{
    const uint32_t bit =
        bit_of(from) & ~(node->refused_low & node->refused_high);
    node->refused_high |= node->refused_low & bit;
    node->refused_low ^= bit;
    KITH_ASSERT(((node->refused_low | node->refused_high) & bit_of(from)) != 0);
}

void kith_turn_served(struct kith_node *node, kith_id peer)
{
    const uint32_t bit = bit_of(peer);
    KITH_ASSERT(peer != node->self);
    node->refused_low &= ~bit;
    node->refused_high &= ~bit;
    if (owed(node) == 0) {
        node->had = node->had_again = 0;
        node->at_once = 0;
    }
    node->had |= bit;
    node->passed = 0;
    KITH_ASSERT((owed(node) & bit) == 0);
}

/* At once, as where what had stalled comes in one piece: that costs it nothing,
 * a few times a turn, for a liar could hold a record so. */
void kith_turn_given_up(struct kith_node *node,
                        const struct kith_exchange *exchange)
{
    const kith_ns held_ns = node->now_ns - exchange->since_ns;
    uint32_t bit = bit_of(exchange->edge.peer);
    KITH_ASSERT(exchange->edge.peer != node->self);
    const struct kith_topology_kind *kind = node->config->topology->kind;
    if (!kind->is_static && !kith_topology_is_any_pair(kind))
        return; /* it asks somebody else next */
    if (held_ns < AT_ONCE_NS && node->at_once < AT_ONCE_MAX) {
        node->at_once++;
    } else {
        bit &= ~node->had_again;
        node->had_again |= bit;
    }
    node->had &= ~bit;
    node->passed = 0;
    node->refused_low |= bit;
    node->refused_high |= bit;
}

/* So often those that had a record are refused in favour of others, or others
 * are asked. */
static uint32_t patience(const struct kith_node *node, kith_id peer)
{
    const struct kith_topology *topology = node->config->topology;
    const uint32_t theirs = kith_topology_degree(topology, peer);
    const uint32_t ratio =
        theirs > 0 ? kith_topology_degree(topology, node->self) / theirs : 1;
    KITH_ASSERT(peer != node->self);
    return ratio > 1 ? SLOWEST * ratio : ratio;
}

/* They should have had it by now: another turn. */
static bool is_over(struct kith_node *node, kith_id peer)
{
    const uint32_t most = patience(node, peer);
    KITH_ASSERT(owed(node) != 0);
    if (node->passed < most && node->passed < UINT8_MAX) {
        node->passed++;
        return false;
    }
    if (most > 1) {
        node->refused_low &= node->had;
        node->refused_high &= node->had;
    }
    node->had = node->had_again = 0;
    node->passed = node->at_once = 0;
    return true;
}

bool kith_turn_is_others(struct kith_node *node, kith_id from)
{
    KITH_ASSERT(from != node->self);
    return (node->had & bit_of(from)) != 0 && owed(node) != 0 &&
           !is_over(node, from);
}

kith_id kith_turn_owed(struct kith_node *node, const kith_id *avoid,
                       uint32_t count)
{
    const struct kith_topology *topology = node->config->topology;
    const uint32_t mask = owed(node);
    if (mask == 0 || !topology->kind->is_static)
        return KITH_NOBODY;
    kith_id links[KITH_LINKS_MAX];
    const uint32_t most =
        kith_topology_links(topology, node->self, links, KITH_LINKS_MAX);
    KITH_ASSERT(most <= KITH_LINKS_MAX || most == KITH_LINKS_ANY);
    for (uint32_t i = 0; most != KITH_LINKS_ANY && i < most; i++) {
        const kith_id peer = links[(node->draws + i) % most];
        if ((mask & bit_of(peer)) != 0 &&
            !kith_exchange_is_in(avoid, count, peer)) {
            (void)is_over(node, peer); /* it may be busy each time */
            return peer;
        }
    }
    return KITH_NOBODY;
}
