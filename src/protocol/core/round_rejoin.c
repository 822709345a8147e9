/* Catching up: rounds of peers that crashed, were cut off, or were given up.
 *
 * Every message says in which round its sender is. A peer that is further than
 * the round at hand has closed it without us: nothing of it will come, nothing
 * of ours is taken, so nobody waits for that edge. The rounds of a peer behind
 * are then short, and it catches up step by step; or at once:
 *
 *   somebody was missing, and two peers are two rounds ahead
 *       go on where they are, and tell those that wait for us in between
 *
 * Two, or all that are alive of a graph's few: one liar sends us nowhere. After
 * a round in which somebody was missing the next ones are wary: see
 * round_cast.c. */
#include "src/protocol/core/round.h"

/* The two furthest claims, of two peers. */
static void note_claim(struct kith_round *round, kith_id peer, uint64_t number)
{
    KITH_ASSERT(number <= round->most);
    struct kith_round_claim *const most = round->furthest;
    const unsigned at = most[0].peer == peer ? 0 : 1;
    if (number <= most[at].round)
        return;
    const struct kith_round_claim claim = {.round = number, .peer = peer};
    if (at == 1 && number > most[0].round) {
        most[1] = most[0];
        most[0] = claim;
    } else {
        most[at] = claim;
    }
    KITH_ASSERT(most[1].round <= most[0].round);
}

void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(from != node->self);
    const bool claims = node->mode->says_round && said <= round->most;
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge = kith_round_find(&round->lists[k], from);
        if (edge == NULL)
            continue;
        edge->flags &= ~(uint32_t)EDGE_DOWN;
        edge->silent = 0;
        if (claims && said > edge->said)
            edge->said = said;
    }
    if (claims)
        note_claim(round, from, said);
}

bool kith_round_review(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool is_static = node->config->topology->kind->is_static;
    bool missed = false;
    for (uint32_t e = 0; e < list->count; e++) {
        const struct kith_round_edge *edge = &list->edges[e];
        if (edge->decision != EDGE_DROPPED)
            continue;
        missed |= !is_static || !(edge->flags & EDGE_DOWN);
    }
    KITH_ASSERT(round->wary <= KITH_WARY_ROUNDS);
    if (missed)
        round->wary = KITH_WARY_ROUNDS;
    else if (round->wary > 0)
        round->wary--;
    return missed;
}

/* What a static graph's live neighbours all claim; 0 when all are silent. */
static uint64_t least_said(const struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    uint64_t least = UINT64_MAX;
    KITH_ASSERT(list->round == node->round->round);
    if (!node->config->topology->kind->is_static)
        return 0;
    for (uint32_t e = 0; e < list->count; e++)
        if (!(list->edges[e].flags & EDGE_DOWN) && list->edges[e].said < least)
            least = list->edges[e].said;
    return least == UINT64_MAX ? 0 : least;
}

/* A peer that is in the round that we leave out, or comes to it, need not
 * wait. */
static void leave_out(struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    for (uint32_t e = 0; e < list->count; e++)
        if (!(list->edges[e].flags & EDGE_DOWN) &&
            !kith_edge_is_past(node, &list->edges[e]))
            kith_round_tell(node, list->edges[e].peer, KITH_MESSAGE_ABORT,
                            node->round->round);
}

void kith_round_rejoin(struct kith_node *node, uint64_t number)
{
    leave_out(node);
    kith_round_jump(node, number);
    kith_round_ask_early(node);
    KITH_ASSERT(node->round->round == number);
}

void kith_round_catch_up(struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    const uint64_t all = least_said(node), two = round->furthest[1].round;
    const uint64_t further = kith_round_begins(node, all > two ? all : two);
    if (further > round->round && !node->leaving)
        kith_round_rejoin(node, further);
}

void kith_round_ask_early(struct kith_node *node)
{
    struct kith_round *round = node->round;
    uint32_t kept = 0;
    KITH_ASSERT(round->early_count <= KITH_EARLY_MAX);
    for (uint32_t i = 0; i < round->early_count; i++) {
        const struct kith_round_claim early = round->early[i];
        if (early.round > round->round + 1)
            round->early[kept++] = early;
        else
            kith_round_tell(node, early.peer,
                            early.round < round->round ? KITH_MESSAGE_ABORT
                                                       : KITH_MESSAGE_REQUEST,
                            early.round);
    }
    round->early_count = kept;
}
