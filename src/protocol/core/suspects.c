/* Peers that are left out for a while.
 *
 *   suspect   it did not answer, let rounds lapse, or said BYE: it is not drawn
 *             as a partner until its span is over or it is heard
 *   charged   it also held an exchange of ours and let it lapse: it is answered
 *             BUSY until its span is over, whatever it says meanwhile
 *
 * There are few places, so that an idle peer stays small; the suspect whose
 * span ends first makes room for a new one. */
#include "src/protocol/core/node_state.h"

_Static_assert(KITH_SUSPECTS_MAX <= 8, "suspects have a bit each in charged");

static bool charge_bit(const struct kith_node *node, size_t i)
{
    KITH_ASSERT(i < KITH_SUSPECTS_MAX);
    return (node->charged >> i & 1u) != 0;
}

/* Milliseconds wrap after 49 days; spans are at most two minutes, so a
 * difference says which of two comes first. */
static bool is_over(const struct kith_node *node,
                    const struct kith_suspect *suspect)
{
    KITH_ASSERT(suspect->peer != KITH_NOBODY);
    const uint32_t now_ms = (uint32_t)(node->now_ns / KITH_MS);
    return (int32_t)(suspect->until_ms - now_ms) <= 0;
}

void kith_node_suspect(struct kith_node *node, kith_id peer, kith_ns span_ns)
{
    KITH_ASSERT(peer != node->self && peer < node->config->topology->peers);
    KITH_ASSERT(span_ns > 0 && span_ns <= KITH_TIMEOUT_MAX_NS);
    /* Its own place, else a free one, else that of the span that ends first. */
    struct kith_suspect *place = &node->suspects[0];
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++) {
        struct kith_suspect *at = &node->suspects[i];
        if (at->peer == peer || at->peer == KITH_NOBODY) {
            place = at;
            break;
        }
        if ((int32_t)(at->until_ms - place->until_ms) < 0)
            place = at;
    }
    if (place->peer != peer)
        node->charged &= (uint8_t) ~(1u << (place - node->suspects));
    place->peer = peer;
    place->until_ms = (uint32_t)((node->now_ns + span_ns) / KITH_MS);
    kith_node_mark(node, KITH_MARK_SUSPECT, NULL, peer, 0, 0);
    KITH_ASSERT(kith_node_is_suspect(node, peer));
}

void kith_node_charge(struct kith_node *node, kith_id peer, kith_ns span_ns)
{
    kith_node_suspect(node, peer, span_ns);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer)
            node->charged |= (uint8_t)(1u << i);
    KITH_ASSERT(node->charged != 0);
}

bool kith_node_is_charged(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer && charge_bit(node, i))
            return !is_over(node, &node->suspects[i]);
    return false;
}

bool kith_node_is_suspect(const struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer)
            return !is_over(node, &node->suspects[i]);
    return false;
}

void kith_node_forgive(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != KITH_NOBODY);
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++)
        if (node->suspects[i].peer == peer && !charge_bit(node, i))
            node->suspects[i].peer = KITH_NOBODY;
}

uint32_t kith_node_suspects(struct kith_node *node,
                            kith_id suspects[KITH_SUSPECTS_MAX])
{
    uint32_t count = 0;
    for (size_t i = 0; i < KITH_SUSPECTS_MAX; i++) {
        struct kith_suspect *suspect = &node->suspects[i];
        if (suspect->peer == KITH_NOBODY)
            continue;
        if (is_over(node, suspect))
            suspect->peer = KITH_NOBODY;
        else
            suspects[count++] = suspect->peer;
    }
    KITH_ASSERT(count <= KITH_SUSPECTS_MAX);
    return count;
}
