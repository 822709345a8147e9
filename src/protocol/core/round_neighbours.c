/* The neighbours of a round: who they are, what is known of them, how past
 * rounds ended, and which rounds there are.
 *
 * A trigger begins `phases` rounds; a share of S steps with a trigger every H
 * has S / H phases of them. Lists of two rounds are kept, of the round at hand
 * and the next one, since a neighbour may be a round ahead. */
#include "src/protocol/core/round.h"

/* Of graphs that are drawn for ever. */
#define HORIZON_MAX KITH_OUTCOMES

_Static_assert(KITH_DEGREE_MAX <= 64, "an outcome has a bit for each edge");

/* Out- and in-neighbours of one round together; a graph of so many neighbours
 * is refused when it is opened. */
static uint32_t list_neighbours(const struct kith_node_config *config,
                                kith_id self, uint64_t round,
                                struct kith_round_edge edges[])
{
    kith_id out[KITH_DEGREE_MAX], in[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX], shares[KITH_DEGREE_MAX];
    const uint32_t outs =
        kith_topology_neighbours(config->topology, self, round, out, shares);
    const uint32_t ins =
        kith_topology_sources(config->topology, self, round, in, weights);
    uint32_t count = 0;
    /* Both lists ascend, so one pass joins them. */
    for (uint32_t o = 0, i = 0; o < outs || i < ins; count++) {
        KITH_ASSERT(count < KITH_DEGREE_MAX);
        struct kith_round_edge *edge = &edges[count];
        *edge = (struct kith_round_edge){0};
        const bool sends = o < outs && (i == ins || out[o] <= in[i]);
        const bool receives = i < ins && (o == outs || in[i] <= out[o]);
        edge->peer = sends ? out[o] : in[i];
        KITH_ASSERT(edge->peer != self);
        if (receives) {
            edge->flags |= EDGE_IN;
            edge->weight = weights[i++];
        }
        if (sends) {
            edge->flags |= EDGE_OUT;
            edge->share = shares[o++];
        }
    }
    return count;
}

/* What outlives a round. */
static void inherit(const struct kith_node *node, struct kith_round_edge *edge,
                    const struct kith_round_list *from)
{
    const struct kith_round_edge *before = kith_round_find(from, edge->peer);
    if (before != NULL) {
        edge->said = before->said;
        edge->silent = before->silent;
        edge->flags |= EDGE_AGAIN;
        if (node->config->topology->kind->is_static)
            edge->flags |= before->flags & EDGE_DOWN;
    }
    /* Where neighbours change two may leave each other out: until the span is
     * over. */
    if (kith_node_is_suspect(node, edge->peer) ||
        kith_late_is_out(node, edge->peer))
        edge->flags |= EDGE_DOWN;
    KITH_ASSERT(before == NULL || before->peer == edge->peer);
}

void kith_round_list_fill(struct kith_node *node, uint64_t number)
{
    struct kith_round_list *list = &node->round->lists[number & 1];
    /* What is known of a neighbour is carried over from the other round. */
    const struct kith_round_list *other = &node->round->lists[~number & 1];
    KITH_ASSERT(!kith_round_is_running(node) || node->adopting);
    list->round = number;
    /* The same neighbours: only what came for the round two before is
     * dropped. */
    if (list->count > 0 && node->config->topology->kind->is_static) {
        for (uint32_t e = 0; e < list->count; e++)
            list->edges[e].flags &= ~(uint32_t)(EDGE_RECEIVED | EDGE_GIVEN_UP);
        return;
    }
    list->count =
        list_neighbours(node->config, node->self, number, list->edges);
    for (uint32_t e = 0; e < list->count; e++) {
        list->peers[e] = list->edges[e].peer;
        inherit(node, &list->edges[e], other);
    }
    if (list->count > 0 && kith_round_phases(node) == 1 &&
        (node->round->fewest == 0 || list->count < node->round->fewest))
        node->round->fewest = list->count;
}

/* Rounds that this peer's neighbours are looked for in. */
static uint64_t horizon(const struct kith_node *node)
{
    const uint64_t period = kith_topology_period(node->config->topology);
    KITH_ASSERT(kith_round_phases(node) <= 1 ||
                kith_round_phases(node) % period == 0);
    return period > 0 && period < HORIZON_MAX ? period : HORIZON_MAX;
}

/* Is everybody suspected whom it will meet? */
static bool suspects_all(const struct kith_node *node)
{
    const uint64_t first = node->round->round, most = horizon(node);
    struct kith_round_edge edges[KITH_DEGREE_MAX];
    KITH_ASSERT(!node->config->topology->kind->is_static);
    for (uint64_t by = 0; by < most; by++) {
        const uint32_t count =
            list_neighbours(node->config, node->self, first + by, edges);
        for (uint32_t e = 0; e < count; e++)
            if (!kith_node_is_suspect(node, edges[e].peer))
                return false;
    }
    return true;
}

/* Nothing of the round at hand was sent, or can come. */
static bool is_dropped(const struct kith_round_list *list)
{
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    for (uint32_t e = 0; e < list->count; e++) {
        const struct kith_round_edge *edge = &list->edges[e];
        if ((edge->flags & (EDGE_DOWN | EDGE_MADE)) != EDGE_DOWN ||
            edge->decision != EDGE_DROPPED)
            return false;
    }
    return list->count > 0;
}

bool kith_round_is_deserted(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    const bool cycle = kith_round_phases(node) > 1;
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    return node->mode->says_round && round->furthest <= round->round &&
           (cycle || is_dropped(kith_round_current(node))) &&
           (node->config->topology->kind->is_static || suspects_all(node));
}

void kith_round_list_review(struct kith_node *node)
{
    for (unsigned k = 0; k < 2; k++) {
        const struct kith_round_list *list = &node->round->lists[k];
        KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
        for (uint32_t e = 0; e < list->count; e++)
            if (!kith_node_is_suspect(node, list->edges[e].peer))
                list->edges[e].flags &= ~(uint32_t)EDGE_DOWN;
    }
}

/* Of a directed graph in- and out-neighbours may all differ. */
uint32_t kith_node_edges(const struct kith_node_config *config, kith_id self)
{
    if (config->algorithm->pattern != KITH_PATTERN_ROUND)
        return 0;
    const uint32_t degree = kith_topology_degree(config->topology, self);
    const uint32_t both =
        config->topology->kind->directed ? 2 * degree : degree;
    return both < KITH_DEGREE_MAX ? both : KITH_DEGREE_MAX;
}

/* Of edges and their items; a peer that is alone still takes a snapshot. */
static uint32_t room_of(const struct kith_node_config *config, kith_id self)
{
    const uint32_t edges = kith_node_edges(config, self);
    KITH_ASSERT(edges <= KITH_DEGREE_MAX);
    return edges > 0 ? edges : 1;
}

size_t kith_round_size(const struct kith_node_config *config)
{
    if (config->algorithm->pattern != KITH_PATTERN_ROUND)
        return 0;
    /* One size for all peers, so that a driver may allocate them as an
     * array. */
    size_t most = 0;
    KITH_ASSERT(config->topology->peers > 0);
    for (kith_id self = 0; self < config->topology->peers; self++) {
        const size_t room = room_of(config, self);
        most = room > most ? room : most;
    }
    return sizeof(struct kith_round) +
           most * (sizeof(struct kith_work_edge) +
                   2 * (sizeof(struct kith_round_edge) + sizeof(kith_id)));
}

uint32_t kith_round_phases(const struct kith_node *node)
{
    KITH_ASSERT(node->config->every >= 1);
    return node->config->phases > 1 ? node->config->phases : 1;
}

/* More rounds than can be counted: until told to leave. */
static bool is_endless(const struct kith_node *node)
{
    return node->config->steps > UINT64_MAX / kith_round_phases(node);
}

void kith_round_init(struct kith_node *node, void *memory)
{
    struct kith_round *round = memory;
    const uint32_t room = room_of(node->config, node->self);
    KITH_ASSERT(node->config->algorithm->wait != KITH_WAIT_NO ||
                node->config->topology->kind->is_static);
    node->round = round;
    round->deadline_ns = KITH_NEVER;
    round->needs = UINT32_MAX;
    round->furthest_by = round->led_by = KITH_NOBODY;
    round->misled_by = round->chased = KITH_NOBODY;
    /* One block: the largest alignment first. */
    round->work = (struct kith_work_edge *)(round + 1);
    round->lists[0].edges = (struct kith_round_edge *)(round->work + room);
    round->lists[1].edges = round->lists[0].edges + room;
    round->lists[0].peers = (kith_id *)(round->lists[1].edges + room);
    round->lists[1].peers = round->lists[0].peers + room;
    round->share = kith_round_after(node, node->config->steps);
    for (uint32_t k = 0; k < KITH_OUTCOMES; k++)
        round->outcomes[k].round = UINT64_MAX;
    round->wary =
        node->adopting ? KITH_WARY_ROUNDS : 0; /* the others went on */
    round->start = kith_round_after(node, node->steps);
    kith_round_jump(node, round->start);
}

uint64_t kith_round_after(const struct kith_node *node, uint64_t steps)
{
    return steps / node->config->every * kith_round_phases(node);
}

uint64_t kith_round_begins(const struct kith_node *node, uint64_t number)
{
    const uint64_t each = kith_round_phases(node), rest = number % each;
    KITH_ASSERT(rest < each);
    return rest == 0 ? number : number - rest + each;
}

bool kith_round_comes(const struct kith_node *node, uint64_t number)
{
    const struct kith_round *round = node->round;
    if (node->presence != HERE && number >= round->round)
        return number == round->round && round->state != ROUND_CLOSED;
    if (is_endless(node) || number < round->round)
        return true;
    KITH_ASSERT(node->round->state <= ROUND_MERGE);
    /* Counted in rounds: those of steps to come, of a trigger that waits,
     * and of the cycle at hand. */
    const uint64_t begun = node->steps + (node->round->complete > 0);
    uint64_t left = round->share - kith_round_after(node, begun);
    if (node->trigger_due)
        left += kith_round_phases(node);
    if (round->state != ROUND_CLOSED)
        left +=
            kith_round_phases(node) - round->round % kith_round_phases(node);
    return number - round->round < left;
}

void kith_round_jump(struct kith_node *node, uint64_t number)
{
    node->round->round = number;
    kith_round_list_fill(node, number);
    kith_round_list_fill(node, number + 1);
    KITH_ASSERT(kith_round_list_of(node, number)->round == number ||
                node->mode->list_mask == 0);
}

/* Where the outcome of a round is kept until one KITH_OUTCOMES later. */
static struct kith_round_outcome *outcome_of(const struct kith_node *node,
                                             uint64_t number)
{
    struct kith_round_outcome *outcome =
        &node->round->outcomes[number % KITH_OUTCOMES];
    KITH_ASSERT(outcome->round == UINT64_MAX ||
                outcome->round % KITH_OUTCOMES == number % KITH_OUTCOMES);
    return outcome;
}

void kith_round_remember(struct kith_node *node)
{
    const uint64_t number = node->round->round;
    const struct kith_round_list *list = kith_round_current(node);
    struct kith_round_outcome *outcome = outcome_of(node, number);
    *outcome = (struct kith_round_outcome){.round = number};
    for (uint32_t e = 0; e < list->count; e++)
        if (list->edges[e].decision == EDGE_COMMITTED)
            outcome->committed |= UINT64_C(1) << e;
    KITH_ASSERT(!kith_round_is_forgotten(node, number));
}

bool kith_round_is_forgotten(const struct kith_node *node, uint64_t number)
{
    const uint64_t kept = outcome_of(node, number)->round;
    return kept != UINT64_MAX && kept > number;
}

bool kith_round_was_committed(const struct kith_node *node, kith_id peer,
                              uint64_t number)
{
    const struct kith_round_outcome *outcome = outcome_of(node, number);
    if (outcome->round != number)
        return false;
    /* The graph of an old round is computed again: queries are rare, and 64
     * lists of neighbours would not be small. */
    struct kith_round_edge edges[KITH_DEGREE_MAX];
    const uint32_t count =
        list_neighbours(node->config, node->self, number, edges);
    KITH_ASSERT(count <= KITH_DEGREE_MAX);
    for (uint32_t e = 0; e < count; e++)
        if (edges[e].peer == peer)
            return (outcome->committed >> e & 1u) != 0;
    return false;
}
