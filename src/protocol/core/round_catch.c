/* Finding back together: rounds of peers that crashed, or were given up.
 *
 * Every message says in which round its sender is. A peer that is further than
 * the round at hand has closed it without us: nothing of it will come, nothing
 * of ours is taken, so nobody waits for that edge. A laggard's rounds are then
 * short, and it catches up step by step; or at once:
 *
 *   somebody was missing, and two peers are two rounds ahead
 *       go on where they are, and tell those who wait for us in between
 *
 * Two, or all that are alive of a graph's few: one liar sends us nowhere. Where
 * somebody was missing the next rounds are wary: a directed model that is due
 * is asked for,
 *
 *   PROBE(r)    "where are you?"
 *   ABORT(r)    "further", "I am done" or "I did not make one for you"
 *
 * and whoever it comes under way from says nothing. Undirected edges need no
 * such question: our own model asks it. */
#include "src/protocol/core/node_state.h"

/* The two furthest claims, of two peers. */
static void note_claim(struct kith_round *round, kith_id peer, uint64_t number)
{
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
}

void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said)
{
    struct kith_round *round = node->round;
    const bool claims = !kith_round_is_mailbox(node) && said <= round->most;
    for (unsigned k = 0; k < 2; k++) {
        struct kith_round_edge *edge = kith_round_find(&round->lists[k], from);
        if (edge == NULL)
            continue;
        edge->down = false;
        edge->silent = 0;
        if (claims && said > edge->said)
            edge->said = said;
    }
    if (claims)
        note_claim(round, from, said);
}

void kith_round_heed(struct kith_node *node, struct kith_effects *effects,
                     struct kith_round_edge *edge)
{
    if (edge != NULL && node->round->state == ROUND_OPEN &&
        edge->decision == EDGE_OPEN && kith_edge_is_past(node, edge) &&
        !kith_edge_is_mutual(node, edge))
        kith_edge_lapse(node, effects, edge);
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
        missed |= !is_static || !edge->down;
    }
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
    if (!node->config->topology->kind->is_static)
        return 0;
    for (uint32_t e = 0; e < list->count; e++)
        if (!list->edges[e].down && list->edges[e].said < least)
            least = list->edges[e].said;
    return least == UINT64_MAX ? 0 : least;
}

/* Who is in the round that we leave out, or comes to it, need not wait. */
static void leave_out(struct kith_node *node, struct kith_effects *effects)
{
    const struct kith_round_list *list = kith_round_current(node);
    for (uint32_t e = 0; e < list->count; e++)
        if (!list->edges[e].down && !kith_edge_is_past(node, &list->edges[e]))
            kith_round_tell(node, effects, list->edges[e].peer,
                            KITH_MESSAGE_ABORT, node->round->round);
}

void kith_round_rejoin(struct kith_node *node, struct kith_effects *effects,
                       uint64_t number)
{
    leave_out(node, effects);
    kith_round_jump(node, number);
    kith_round_ask_early(node, effects);
}

void kith_round_catch_up(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const uint64_t all = least_said(node), two = round->furthest[1].round;
    const uint64_t ahead = kith_round_begins(node, all > two ? all : two);
    /* What was given to us for the next round is not left behind. */
    for (uint32_t e = 0; kith_round_splits(node) && e < list->count; e++)
        if (list->edges[e].have)
            return;
    if (ahead <= round->round || node->leaving)
        return;
    kith_round_rejoin(node, effects, ahead);
}

void kith_round_ask(struct kith_node *node, struct kith_effects *effects,
                    const struct kith_round_edge *edge)
{
    if (node->round->wary > 0 && edge->in && !edge->have &&
        edge->decision == EDGE_OPEN && !kith_edge_is_mutual(node, edge))
        kith_round_tell(node, effects, edge->peer, KITH_MESSAGE_PROBE,
                        node->round->round);
}

void kith_round_answer(struct kith_node *node, struct kith_effects *effects,
                       kith_id from, uint64_t number)
{
    const struct kith_round *round = node->round;
    const bool open = number == round->round && round->state != ROUND_CLOSED &&
                      round->state != ROUND_SNAPSHOT;
    const struct kith_round_edge *edge =
        open ? kith_round_find(kith_round_current(node), from) : NULL;
    const bool made = edge != NULL && edge->made;
    if (number < round->round || (open && !made) ||
        !kith_round_comes(node, number))
        kith_round_tell(node, effects, from, KITH_MESSAGE_ABORT, number);
}

void kith_round_ask_early(struct kith_node *node, struct kith_effects *effects)
{
    struct kith_round *round = node->round;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < round->early_count; i++) {
        const struct kith_round_claim early = round->early[i];
        if (early.round > round->round + 1)
            round->early[kept++] = early;
        else
            kith_round_tell(node, effects, early.peer,
                            early.round < round->round ? KITH_MESSAGE_ABORT
                                                       : KITH_MESSAGE_REQUEST,
                            early.round);
    }
    round->early_count = kept;
}

void kith_round_note_gone(struct kith_node *node, kith_id from, uint64_t number)
{
    const struct kith_round *round = node->round;
    const bool ahead =
        number == round->round + 1 ||
        (number == round->round &&
         (round->state == ROUND_CLOSED || round->state == ROUND_SNAPSHOT));
    struct kith_round_edge *edge =
        ahead ? kith_round_find(kith_round_list_of(node, number), from) : NULL;
    if (edge != NULL && !kith_edge_is_mutual(node, edge) && !edge->have)
        edge->gone = true;
}
