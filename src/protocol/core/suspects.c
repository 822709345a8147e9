/* Peers that are left out for a while.
 *
 *   suspect   it did not answer, let rounds lapse, or said BYE: it is not drawn
 *             as a partner until its span is over or it is heard
 *   charged   it also held an exchange of ours and let it lapse: it is answered
 *             BUSY until its span is over, whatever it says meanwhile
 *   warned    charged for a short span, for a link that was cut would look the
 *             same. Whoever lets another one lapse within four long spans after
 *             that is charged for a long one
 *
 * There are few places, so that an idle peer stays small; the suspect whose
 * span ends first makes room for a new one. */
#include "src/protocol/core/node_state.h"

_Static_assert(KITH_SUSPECTS_MAX <= 8,
               "suspects have a bit each in charged and in warned");
/* Long spans in which a warning stands. */
#define WARNED_SPANS 4

static bool has_bit(uint8_t bits, size_t i)
{
    KITH_ASSERT(i < KITH_SUSPECTS_MAX);
    return (bits >> i & 1u) != 0;
}

/* Milliseconds wrap after 49 days; spans are at most two minutes, so a
 * difference says which of two comes first. */
static bool is_over_for(const struct kith_node *node,
                        const struct kith_suspect *suspect, kith_ns span_ns)
{
    KITH_ASSERT(suspect->peer != KITH_NOBODY);
    const uint32_t then_ms = (uint32_t)((node->now_ns - span_ns) / KITH_MS);
    return (int32_t)(suspect->until_ms - then_ms) <= 0;
}

static bool is_over(const struct kith_node *node,
                    const struct kith_suspect *suspect)
{
    return is_over_for(node, suspect, 0);
}

/* The place of `peer`, KITH_NOBODY: a free one; or KITH_SUSPECTS_MAX. */
static size_t find(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    size_t i = 0;
    while (i < KITH_SUSPECTS_MAX && node->suspects[i].peer != peer)
        i++;
    return i;
}

/* Its own place, else a free one, else that of the span that ends first. */
static size_t place_of(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    size_t place = find(node, peer);
    if (place == KITH_SUSPECTS_MAX)
        place = find(node, KITH_NOBODY);
    if (place < KITH_SUSPECTS_MAX)
        return place;
    place = 0;
    for (size_t i = 1; i < KITH_SUSPECTS_MAX; i++)
        if ((int32_t)(node->suspects[i].until_ms -
                      node->suspects[place].until_ms) < 0)
            place = i;
    return place;
}

static void set_span(struct kith_node *node, kith_id peer, kith_ns span_ns)
{
    KITH_ASSERT(peer != node->self && peer < node->config->topology->peers);
    KITH_ASSERT(span_ns > 0 && span_ns <= KITH_TIMEOUT_MAX_NS);
    const size_t i = place_of(node, peer);
    struct kith_suspect *place = &node->suspects[i];
    const uint8_t bit = (uint8_t)(1u << i);
    if (place->peer != peer)
        node->warned &= (uint8_t)~bit;
    if (place->peer != peer || is_over(node, place))
        node->charged &= (uint8_t)~bit;
    place->peer = peer;
    place->until_ms = (uint32_t)((node->now_ns + span_ns) / KITH_MS);
    kith_node_mark(node, KITH_MARK_SUSPECT, NULL, peer, 0, 0);
}

/* A charge ends when it was said to, though what is under way with that peer
 * may lapse meanwhile. */
void kith_node_suspect(struct kith_node *node, kith_id peer, kith_ns span_ns)
{
    KITH_ASSERT(span_ns > 0);
    if (!kith_node_is_charged(node, peer))
        set_span(node, peer, span_ns);
    KITH_ASSERT(kith_node_is_suspect(node, peer));
}

void kith_node_charge(struct kith_node *node, kith_id peer, kith_ns span_ns)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    const size_t at = find(node, peer);
    /* What is charged for less meanwhile does not shorten it. */
    if (!kith_node_is_charged(node, peer) ||
        is_over_for(node, &node->suspects[at], -span_ns))
        set_span(node, peer, span_ns);
    const uint8_t bit = (uint8_t)(1u << find(node, peer));
    node->charged |= bit;
    node->warned |= bit;
}

void kith_node_warn(struct kith_node *node, kith_id peer, kith_ns short_ns,
                    kith_ns long_ns)
{
    KITH_ASSERT(short_ns <= long_ns && peer != KITH_NOBODY);
    if (kith_node_is_charged(node, peer))
        return;
    const size_t i = find(node, peer);
    const kith_ns stands_ns =
        kith_node_earliest(WARNED_SPANS * long_ns, KITH_TIMEOUT_MAX_NS);
    const bool again = i < KITH_SUSPECTS_MAX && has_bit(node->warned, i) &&
                       !is_over_for(node, &node->suspects[i], stands_ns);
    kith_node_charge(node, peer, again ? long_ns : short_ns);
}

bool kith_node_is_warned(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    const size_t i = find(node, peer);
    return i < KITH_SUSPECTS_MAX && has_bit(node->warned, i) &&
           !is_over_for(node, &node->suspects[i], KITH_TIMEOUT_MAX_NS);
}

bool kith_node_is_charged(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    const size_t i = find(node, peer);
    return i < KITH_SUSPECTS_MAX && has_bit(node->charged, i) &&
           !is_over(node, &node->suspects[i]);
}

bool kith_node_is_suspect(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    const size_t i = find(node, peer);
    return i < KITH_SUSPECTS_MAX && !is_over(node, &node->suspects[i]);
}

void kith_node_forgive(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    const size_t i = find(node, peer);
    if (i == KITH_SUSPECTS_MAX || kith_node_is_charged(node, peer))
        return;
    if (!has_bit(node->warned, i))
        node->suspects[i].peer = KITH_NOBODY;
    else if (!is_over(node, &node->suspects[i])) /* that stays known */
        node->suspects[i].until_ms = (uint32_t)(node->now_ns / KITH_MS);
}

uint32_t kith_node_suspects(struct kith_node *node,
                            kith_id suspects[KITH_SUSPECTS_MAX])
{
    uint32_t count = 0;
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++) {
        struct kith_suspect *suspect = &node->suspects[i];
        if (suspect->peer == KITH_NOBODY)
            continue;
        if (!is_over(node, suspect))
            suspects[count++] = suspect->peer;
        else if (!has_bit(node->warned, i) ||
                 is_over_for(node, suspect, KITH_TIMEOUT_MAX_NS))
            suspect->peer = KITH_NOBODY;
    }
    KITH_ASSERT(count <= KITH_SUSPECTS_MAX);
    return count;
}
