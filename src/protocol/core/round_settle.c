/* How a round ends for edges of which nothing came: at its deadline, with their
 * link, or because this peer leaves. */
#include "src/protocol/core/round.h"

static void set_down(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(node->round->lists[0].count <= KITH_DEGREE_MAX);
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge =
            kith_round_find(&node->round->lists[k], peer);
        if (edge != NULL)
            edge->flags |= EDGE_DOWN;
    }
}

/* It let a round lapse: after two it is left out, in a cycle for the rest of
 * it, which would wait for it again and again, and after two cycles without a
 * word until it is heard. It may be a neighbour again in a later round only. */
static void count_silent(struct kith_node *node,
                         const struct kith_round_edge *late)
{
    const bool in_cycle = kith_round_phases(node) > 1;
    bool down = in_cycle && kith_late_is_silent(node, late);
    KITH_ASSERT(late->peer != node->self);
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge =
            kith_round_find(&node->round->lists[k], late->peer);
        if (edge == NULL || (!in_cycle && ++edge->silent < 2))
            continue;
        edge->flags |= EDGE_DOWN;
        down |= !in_cycle;
    }
    if (down && !node->config->topology->kind->is_static)
        kith_node_suspect(node, late->peer,
                          kith_node_turn_timeout(node, KITH_TRIES_MAX));
}

/* Waited for in vain again and again: it is left out for a while, whatever it
 * says. */
static void give_up(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    set_down(node, peer);
    kith_node_warn(node, peer,
                   kith_node_turn_timeout(node, KITH_PATIENCE_MAX - 2),
                   kith_node_turn_timeout(node, KITH_PATIENCE_MAX + 2));
}

void kith_round_lapse(struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision != EDGE_OPEN);
    node->round->left_out |= LEFT_LATE;
    const bool vain = kith_late_lapse(node, edge);
    count_silent(node, edge);
    if (vain)
        give_up(node, edge->peer);
}

/* The edge did not end in time: it is left out (false: it is in doubt). */
static bool settle(struct kith_node *node, struct kith_round_edge *edge)
{
    /* Each edge is settled on its own: one silent neighbour costs its own
     * weight alone. */
    const bool settled = node->mode->settle(node, edge);
    KITH_ASSERT(settled == (edge->decision != EDGE_OPEN));
    if (settled)
        kith_round_lapse(node, edge);
    return settled;
}

/* Edges that are open at the deadline: who is missing is asked whether it
 * comes, and waited for if it says so; the others are left out, or asked about
 * while they are in doubt. */
static void settle_all(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    bool doubts = false, asks = false, waits = false;
    const kith_ns came_ns = round->came_ns;
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    round->deadline_ns = KITH_NEVER;
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision != EDGE_OPEN)
            continue;
        if (kith_late_asks(node, edge))
            asks = true;
        else if (kith_late_waits(node, edge))
            waits = true;
        else
            doubts |= !settle(node, edge);
    }
    round->came_ns = came_ns; /* what lapses was not in time */
    /* Who is asked what became of an exchange answers at once, so that all of
     * its doubt takes no longer than it was waited for: nor may those that wait
     * for us. */
    if (doubts)
        round->deadline_ns =
            node->now_ns + kith_late_wait(node, 0) / KITH_TRIES_MAX;
    else if (asks)
        round->deadline_ns = node->now_ns + kith_late_answer(node);
    else if (waits)
        round->deadline_ns = node->now_ns + kith_late_longer(node);
    kith_round_try_close(node);
}

/* Those that have our model wait for the next one while we wait for others:
 * they are told that we are here. */
static void speak(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    round->speak_ns = node->now_ns + kith_late_wait(node, 0);
    if (round->state != ROUND_OPEN)
        return;
    for (uint32_t e = 0; e < list->count; e++)
        if (list->edges[e].decision != EDGE_OPEN &&
            !(list->edges[e].flags & EDGE_DOWN))
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_PROBE,
                            round->round);
}

void kith_round_wake(struct kith_node *node)
{
    if (node->now_ns >= node->round->deadline_ns) {
        node->round->stopped_ns += node->now_ns - node->round->deadline_ns;
        settle_all(node);
    }
    if (kith_round_phases(node) == 1 && node->now_ns >= node->round->speak_ns)
        speak(node);
    KITH_ASSERT(kith_round_deadline(node) > node->now_ns);
}

void kith_round_peer_left(struct kith_node *node, kith_id peer)
{
    struct kith_round_edge *edge =
        kith_round_find(kith_round_current(node), peer);
    const bool open = kith_edge_is_open(node, edge, node->round->round);
    KITH_ASSERT(edge == NULL || edge->peer == peer);
    set_down(node, peer);
    kith_round_forget(node, peer);
    node->round->left_out |= open ? LEFT_LOST : 0;
    node->mode->edge_down(node, open ? edge : NULL, peer);
    if (open)
        kith_round_try_close(node);
}

void kith_round_leave(struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(node->presence == LEAVING);
    if (node->round->state == ROUND_SNAPSHOT && !kith_round_is_complete(node))
        node->round->state = ROUND_CLOSED; /* it never will be */
    for (uint32_t e = 0; e < list->count; e++)
        if (!(list->edges[e].flags & EDGE_DOWN))
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_BYE,
                            node->round->round);
    settle_all(node); /* as at the deadline */
    kith_cast_leave(node);
}
