/* Peers that are late: how often the deadline of a round with them is doubled.
 *
 *   one more      it let a round lapse
 *   as needed     it comes so long after the first of those was opened
 *   one less      it was in time, and less would do, too
 *
 * Kept by peer, not by edge: of a graph that changes two meet every few rounds,
 * and rounds with others end well in between. Whoever lets VAIN_MAX rounds in a
 * row lapse may be a liar: it is left out for a while, and from then on after
 * half as many, until one round with it ends well. */
#include "src/protocol/core/round.h"

#define VAIN_MAX 10

/* Who only takes something says READY at once, wherever it is: that says
 * nothing of when it brings something. */
static uint64_t who(const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    return (uint64_t)edge->peer << 1 | ((edge->flags & EDGE_IN) != 0);
}

/* Its place, else that of the one that is to make room. */
static struct kith_round_late *place_of(const struct kith_node *node,
                                        const struct kith_round_edge *edge)
{
    struct kith_round_late *place = &node->round->late[0];
    KITH_ASSERT(edge->peer != node->self);
    for (uint32_t i = 0; i < KITH_LATE_MAX; i++) {
        struct kith_round_late *late = &node->round->late[i];
        if (late->who == who(edge))
            return late;
        if (late->lapses < place->lapses)
            place = late;
    }
    return place;
}

kith_ns kith_late_timeout(const struct kith_node *node, uint32_t doublings)
{
    const struct kith_estimate *later = &node->round->later;
    KITH_ASSERT(later->mean_us == 0 || kith_round_phases(node) > 1);
    return later->mean_us == 0 ? kith_node_turn_timeout(node, doublings)
                               : kith_estimate_timeout(later, 0, doublings);
}

/* Doublings of the deadline within which twice that time lies, whichever round
 * of a cycle it is. */
static uint8_t enough(const struct kith_node *node, kith_ns time_ns)
{
    uint8_t doublings = 0;
    KITH_ASSERT(time_ns >= 0);
    while (doublings < KITH_PATIENCE_MAX &&
           kith_node_earliest(kith_node_turn_timeout(node, doublings),
                              kith_late_timeout(node, doublings)) < 2 * time_ns)
        doublings++;
    return doublings;
}

uint32_t kith_late_doublings(const struct kith_node *node,
                             const struct kith_round_edge *edge)
{
    const struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(late->lapses <= KITH_PATIENCE_MAX);
    return late->who == who(edge) && !(edge->flags & EDGE_DOWN) ? late->lapses
                                                                : 0;
}

bool kith_late_lapse(struct kith_node *node, const struct kith_round_edge *edge)
{
    struct kith_round_late *late = place_of(node, edge);
    if (late->who != who(edge))
        *late = (struct kith_round_late){.who = who(edge)};
    if (late->since_ns == 0)
        late->since_ns = node->round->opened_ns;
    KITH_ASSERT(late->since_ns <= node->now_ns);
    if (late->lapses < KITH_PATIENCE_MAX)
        late->lapses++;
    /* A cycle may meet it in every round. */
    if (late->trigger == node->attempts)
        return false;
    late->trigger = node->attempts;
    if (++late->vain < VAIN_MAX)
        return false;
    late->vain = VAIN_MAX / 2;
    late->lapses = 0;
    return true;
}

void kith_late_hear(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    for (uint32_t i = 0; i < KITH_LATE_MAX; i++) {
        struct kith_round_late *late = &node->round->late[i];
        if (late->who >> 1 != peer || late->since_ns == 0)
            continue;
        const uint8_t needed = enough(node, node->now_ns - late->since_ns);
        if (needed > late->lapses)
            late->lapses = needed;
        late->since_ns = 0;
    }
}

void kith_late_in_time(struct kith_node *node,
                       const struct kith_round_edge *edge)
{
    struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(node->round->opened_ns <= node->now_ns);
    if (late->who != who(edge))
        return;
    late->since_ns = 0;
    late->vain = 0;
    if (enough(node, node->now_ns - node->round->opened_ns) < late->lapses)
        late->lapses--;
}
