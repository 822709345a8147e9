/* Whose turn it is where more ask than can be answered.
 *
 * Peers in step may find us serving the same ones for ever. So there are turns:
 *
 *   owed    it was refused three times, for want of a record or in favour of
 *           others, since it had one
 *   had     it is among those that had one last: while somebody is owed one it
 *           is refused
 *
 * Those that had one are remembered in three groups, a third of all that ask
 * in each; when nobody is owed a record any more, or the newest group is a
 * third, the oldest one may have another. So whoever is first among its third
 * now, and last the next time, waits for four thirds of them; three take turns
 * in a fixed order.
 *
 * A turn also ends when they should have asked by now: the more often others
 * did meanwhile, the fewer neighbours they have. Where they have few beside us
 * they surely will, but may be SLOWEST times as slow as those that ask; who has
 * not asked by then is owed nothing. Whoever gave its record up, because the
 * word was lost that it had one, is owed another one, once a turn. And of those
 * that are owed one we ask one, where we swap: peers that make one exchange at
 * a time, and ask, answer nobody.
 *
 * A bit for each rank modulo 32: those that share one take turns, too.
 * Test: unit/test_swarm_pairs.c, unit/test_node_turns.c. */
#include "src/protocol/core/node_state.h"

#define GROUPS 3u
#define SLOWEST 10u
#define AT_ONCE_NS (KITH_TIMEOUT_MIN_NS / 16)
#define AT_ONCE_MAX 16u

static uint32_t bit_of(kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    return UINT32_C(1) << peer % 32;
}

static uint32_t had(const struct kith_node *node)
{
    KITH_ASSERT(node->self < node->config->topology->peers);
    return node->had_low | node->had_high;
}

/* Of the three groups, 3 in two bits. */
static uint32_t newest(const struct kith_node *node)
{
    KITH_ASSERT(node->group < GROUPS);
    return node->had_low & node->had_high;
}

static uint32_t owed(const struct kith_node *node)
{
    KITH_ASSERT(node->self < node->config->topology->peers);
    return node->refused_low & node->refused_high & ~had(node);
}

static uint32_t count_of(uint32_t mask)
{
    uint32_t count = 0;
    for (; mask != 0; mask &= mask - 1)
        count++;
    KITH_ASSERT(count <= 32);
    return count;
}

static void forget(struct kith_node *node, uint32_t mask)
{
    node->had_low &= ~mask;
    node->had_high &= ~mask;
    KITH_ASSERT((had(node) & mask) == 0);
}

static void end_turn(struct kith_node *node)
{
    KITH_ASSERT(node->at_once <= AT_ONCE_MAX);
    node->had_again = 0;
    node->at_once = node->group = 0;
}

/* Those of the oldest group may have another one. */
static void next_group(struct kith_node *node)
{
    const uint32_t low = node->had_low;
    KITH_ASSERT(node->group < GROUPS);
    node->had_low = node->had_high & ~low;
    node->had_high &= low;
    node->group = (node->group + 1) & 3u;
    if (node->group == GROUPS)
        end_turn(node);
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
    const uint32_t waiting = node->refused_low & node->refused_high;
    if (waiting == 0) {
        forget(node, UINT32_MAX);
        end_turn(node);
    }
    node->had_low |= bit;
    node->had_high |= bit;
    if (waiting != 0 && (owed(node) == 0 || GROUPS * count_of(newest(node)) >=
                                                count_of(waiting | had(node))))
        next_group(node);
    node->passed = 0;
    KITH_ASSERT((owed(node) & bit) == 0);
}

/* At once, as where what had stalled comes in one piece: that costs it nothing,
 * a few times a turn, for a liar could hold a record so. Whoever does so later,
 * and again, is charged like one that lets it lapse. */
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
        if (held_ns >= AT_ONCE_NS && (node->had_again & bit) != 0)
            kith_exchange_warn(node, exchange);
        bit &= ~node->had_again;
        node->had_again |= bit;
    }
    forget(node, bit);
    node->passed = 0;
    node->refused_low |= bit;
    node->refused_high |= bit;
}

/* Our neighbours, where they stay the same; how many. */
static uint32_t neighbours(const struct kith_node *node,
                           kith_id links[KITH_LINKS_MAX])
{
    const struct kith_topology *topology = node->config->topology;
    const uint32_t count =
        topology->kind->is_static
            ? kith_topology_links(topology, node->self, links, KITH_LINKS_MAX)
            : 0;
    KITH_ASSERT(count <= KITH_LINKS_MAX || count == KITH_LINKS_ANY);
    return count == KITH_LINKS_ANY ? 0 : count;
}

/* So often those that had a record are refused in favour of others, or others
 * are asked. */
static uint32_t patience(const struct kith_node *node)
{
    const struct kith_topology *topology = node->config->topology;
    const uint32_t own = kith_topology_degree(topology, node->self);
    const uint32_t mask = owed(node);
    kith_id links[KITH_LINKS_MAX];
    const uint32_t count = neighbours(node, links);
    KITH_ASSERT(mask != 0);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t theirs = kith_topology_degree(topology, links[i]);
        if ((mask & bit_of(links[i])) != 0 && own >= 2 * theirs)
            return SLOWEST * (own / theirs);
    }
    /* Whoever is refused may ask again at once, where it has nobody else. */
    return count > 0 ? 1 + node->config->retries : 1;
}

/* They should have had it by now: another turn. */
static bool is_over(struct kith_node *node)
{
    const uint32_t most = patience(node);
    KITH_ASSERT(owed(node) != 0);
    if (node->passed < most && node->passed < UINT8_MAX) {
        node->passed++;
        return false;
    }
    if (most > 1) {
        node->refused_low &= had(node);
        node->refused_high &= had(node);
    }
    forget(node, UINT32_MAX);
    end_turn(node);
    node->passed = 0;
    return true;
}

bool kith_turn_is_others(struct kith_node *node, kith_id from)
{
    KITH_ASSERT(from != node->self);
    return (had(node) & bit_of(from)) != 0 && owed(node) != 0 && !is_over(node);
}

kith_id kith_turn_owed(struct kith_node *node, const kith_id *avoid,
                       uint32_t count)
{
    const uint32_t mask = owed(node);
    kith_id links[KITH_LINKS_MAX];
    const uint32_t most = mask != 0 ? neighbours(node, links) : 0;
    for (uint32_t i = 0; i < most; i++) {
        const kith_id peer = links[(node->draws + i) % most];
        if ((mask & bit_of(peer)) != 0 &&
            !kith_exchange_is_in(avoid, count, peer)) {
            (void)is_over(node); /* it may be busy each time */
            return peer;
        }
    }
    return KITH_NOBODY;
}
