/* How long a round waits for whom.
 *
 * At the deadline of a round that training waits for who is missing is asked:
 * PROBE. One that is alive says where it is,
 *
 *   ACCEPT   on its way to this round: the deadline is doubled, and so on
 *   ABORT    it will not come
 *
 * and one that says nothing is left out. So a deadline may be short, of those
 * that are in time, and nobody has to guess how late an honest peer is. Within
 * a cycle whoever is left out of one round is out of the rest.
 *
 * A liar that says so for ever is waited for as long as the bound. So would be
 * those that wait for one who waits; and one that is late by less than a cycle
 * is late again in the next one. After the n-th trigger in vain it is spared:
 *
 *   for 2^(n-1) - 1 times as long as that took it is asked, and waited for
 *       2^-(n+2) of the bound, half as long after each trigger in vain again
 *   then in full again
 *
 * until one round with it ends well. After VAIN_MAX of either kind it is left
 * out for a while whatever it says, from then on after half as many; of the
 * shorter ones not in a cycle, which takes longer than they do.
 *
 * How often the deadline of a round with a peer is doubled from the start:
 *
 *   one more      it let a round lapse, was asked and said nothing
 *   one less      it was in time, and less would do, too
 *
 * Kept by peer, not by edge: of a graph that changes two meet every few rounds,
 * and rounds with others end well in between. */
#include "src/protocol/core/round.h"

#define VAIN_MAX 10
#define SPARE_MAX 7
#define BRIEF_MAX 10
#define PATIENCE_NS (20 * KITH_S)
#define PATIENCE_PERIODS 16
#define SLOWER 10

/* Who only takes something says READY at once, wherever it is: that says
 * nothing of when it brings something. */
static uint64_t who(const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    return (uint64_t)edge->peer << 1 | ((edge->flags & EDGE_IN) != 0);
}

/* What a place knows: the least makes room. */
static unsigned known_of(const struct kith_round_late *late)
{
    KITH_ASSERT(late->lapses <= KITH_PATIENCE_MAX && late->vain <= VAIN_MAX);
    return late->lapses + late->vain;
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
        if (known_of(late) < known_of(place))
            place = late;
    }
    return place;
}

static kith_ns longest(kith_ns a, kith_ns b)
{
    KITH_ASSERT(a >= 0);
    return a > b ? a : b;
}

/* Of a round that is not measured yet. Its models share our link, as those of
 * a small one do; latencies are not shared, so that it does not take longer
 * than over a link that is SLOWER than guessed. */
static kith_ns first_timeout(const struct kith_node *node)
{
    const kith_ns first_ns = kith_node_first_timeout(node);
    KITH_ASSERT(first_ns >= 2 * KITH_TIMEOUT_INITIAL_NS);
    if (!kith_round_is_large(node))
        return first_ns;
    const uint32_t models = kith_round_current(node)->count;
    const kith_ns guess_ns = models * (first_ns - 2 * KITH_TIMEOUT_INITIAL_NS);
    const kith_ns like_small_ns =
        models * KITH_US * node->turn.mean_us / node->round->fewest;
    return first_ns + longest(guess_ns, kith_node_earliest(like_small_ns,
                                                           SLOWER * guess_ns));
}

/* As measured; a cycle's later rounds as the first one until one of them was,
 * and large ones as they were guessed. */
static kith_ns later_timeout(const struct kith_node *node, uint32_t doublings)
{
    const struct kith_estimate *later = &node->round->later;
    KITH_ASSERT(later->mean_us == 0 || kith_round_phases(node) > 1 ||
                node->round->fewest > 0);
    if (later->mean_us == 0 && !kith_round_is_large(node))
        return kith_node_turn_timeout(node, doublings);
    return kith_estimate_timeout(later, first_timeout(node), doublings);
}

static kith_ns measured(const struct kith_node *node, uint32_t doublings)
{
    KITH_ASSERT(doublings <= 2 * KITH_PATIENCE_MAX + 1);
    return kith_round_is_first(node) && !kith_round_is_large(node)
               ? kith_node_turn_timeout(node, doublings)
               : later_timeout(node, doublings);
}

/* Doublings of the deadline within which twice that time lies, whichever round
 * of a cycle it is. */
static uint8_t enough(const struct kith_node *node, kith_ns time_ns)
{
    uint8_t doublings = 0;
    KITH_ASSERT(time_ns >= 0);
    while (doublings < KITH_PATIENCE_MAX &&
           kith_node_earliest(kith_node_turn_timeout(node, doublings),
                              later_timeout(node, doublings)) < 2 * time_ns)
        doublings++;
    return doublings;
}

uint32_t kith_late_doublings(const struct kith_node *node,
                             const struct kith_round_edge *edge)
{
    const struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(late->lapses <= KITH_PATIENCE_MAX);
    return late->who == who(edge) && !(edge->flags & EDGE_DOWN) &&
                   node->now_ns >= late->spare_ns
               ? late->lapses
               : 0;
}

/* A large round may take so much longer than others; where those are measured,
 * no more than its models would over a link that is SLOWER. */
static kith_ns large_ns(const struct kith_node *node)
{
    const kith_ns more_ns = first_timeout(node) - kith_node_first_timeout(node);
    KITH_ASSERT(more_ns >= 0);
    if (more_ns == 0 || node->turn.mean_us == 0)
        return more_ns;
    const kith_ns like_small_ns = kith_round_current(node)->count * KITH_US *
                                  node->turn.mean_us / node->round->fewest;
    return kith_node_earliest(more_ns, SLOWER * like_small_ns);
}

/* There is a bound on all waiting for a trigger's rounds: whoever is late again
 * and again may be a liar. It is more where a model takes longer, or training
 * or a cycle does, for who is a cycle behind ends that one first. Each round of
 * a cycle ends before the next one does, so that those that wait for one who
 * waits are still there when it comes. */
static kith_ns bound(const struct kith_node *node)
{
    const kith_ns phases = kith_round_phases(node);
    const kith_ns before = (kith_ns)(node->round->round % (uint64_t)phases);
    const kith_ns first_ns = kith_node_first_timeout(node);
    const kith_ns work_ns = KITH_US * node->round->period.mean_us;
    const kith_ns cycle_ns =
        phases > 1 ? phases * KITH_US * node->round->later.mean_us : 0;
    const kith_ns most_ns =
        longest(4 * first_ns,
                longest(PATIENCE_NS, PATIENCE_PERIODS * work_ns)) +
        large_ns(node);
    KITH_ASSERT(before < phases);
    return most_ns + kith_node_earliest(cycle_ns + before * first_ns / 3,
                                        3 * most_ns / 2);
}

static bool is_behind(const struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->peer != node->self);
    return edge->said < node->round->round;
}

static bool comes_nearer(const struct kith_node *node,
                         const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    return kith_round_phases(node) == 1 && edge->said > edge->began;
}

/* Who is behind may wait for somebody as long as that, and then has to train
 * and to send; and who comes nearer meanwhile has several rounds to go, of
 * slower peers. */
static kith_ns bound_of(const struct kith_node *node,
                        const struct kith_round_edge *edge)
{
    const kith_ns all_ns = bound(node);
    KITH_ASSERT(all_ns > 0);
    if (comes_nearer(node, edge))
        return all_ns + longest(4 * kith_node_first_timeout(node), PATIENCE_NS);
    return all_ns + (is_behind(node, edge)
                         ? 2 * kith_node_first_timeout(node) +
                               KITH_US * node->round->period.mean_us
                         : 0);
}

static kith_ns spent(const struct kith_node *node)
{
    KITH_ASSERT(node->round->triggered_ns <= node->now_ns);
    return node->now_ns - node->round->triggered_ns;
}

/* No longer than of a round that is not measured yet: those that wait for one
 * who waits would measure ever longer ones, and who is missing is asked. */
kith_ns kith_late_wait(const struct kith_node *node, uint32_t doublings)
{
    const kith_ns first_ns = first_timeout(node);
    const kith_ns turn_ns =
        node->mode->says_round
            ? kith_node_earliest(measured(node, 0), first_ns) << doublings
            : measured(node, doublings);
    KITH_ASSERT(doublings <= 2 * KITH_PATIENCE_MAX + 1);
    return kith_node_earliest(turn_ns,
                              longest(first_ns / 4, bound(node) - spent(node)));
}

/* A neighbour may lapse as often as it is heard, while rounds without it end
 * well. */
static uint32_t patience(const struct kith_node *node)
{
    const struct kith_round_list *list = kith_round_current(node);
    uint32_t most = node->round->patience;
    KITH_ASSERT(list->count <= KITH_DEGREE_MAX);
    for (uint32_t e = 0; e < list->count; e++) {
        const uint32_t doublings = kith_late_doublings(node, &list->edges[e]);
        if (doublings > most)
            most = doublings;
    }
    return most;
}

/* Measured round trips unless the file sets a time; longer after rounds that
 * lapsed, since a fixed one would cut off the same slow peer again and
 * again. */
kith_ns kith_late_deadline(const struct kith_node *node)
{
    const kith_ns fixed = node->config->round_deadline_ns;
    KITH_ASSERT(fixed >= 0);
    return fixed == KITH_NEVER ? KITH_NEVER
           : fixed > 0         ? node->now_ns + fixed
                       : node->now_ns + kith_late_wait(node, patience(node));
}

kith_ns kith_late_answer(const struct kith_node *node)
{
    KITH_ASSERT(node->round->noted & NOTED_QUESTION);
    return longest(measured(node, 0) / KITH_TRIES_MAX,
                   kith_node_first_timeout(node) / 4);
}

kith_ns kith_late_longer(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->longer <= KITH_PATIENCE_MAX + 1);
    if (round->longer <= KITH_PATIENCE_MAX)
        round->longer++;
    return spent(node) < bound(node)
               ? kith_late_wait(node, patience(node) + round->longer)
               : 2 * kith_node_first_timeout(node);
}

/* RFC 6298's own time-out; nobody waits for a step boundary any more, which the
 * factor on top of it is there for. */
static kith_ns at_most(const struct kith_estimate *estimate)
{
    KITH_ASSERT(estimate->mean_us >= 0);
    return KITH_US *
           ((kith_ns)estimate->mean_us + 4 * (kith_ns)estimate->deviation_us);
}

/* Before a round was measured it may take as long as its bytes at the first
 * guess of a rate. */
kith_ns kith_late_rest(const struct kith_node *node)
{
    const uint32_t phases = kith_round_phases(node);
    const kith_ns rounds = phases - (kith_ns)(node->round->round % phases);
    const kith_ns measured_ns =
        longest(at_most(&node->turn), at_most(&node->round->later));
    const kith_ns each_ns =
        measured_ns > 0 ? measured_ns
                        : first_timeout(node) - 2 * KITH_TIMEOUT_INITIAL_NS;
    KITH_ASSERT(rounds > 0);
    return kith_node_earliest(rounds * each_ns, bound(node));
}

/* A READY of ours is in doubt: what is asked about it is how it ended. */
static bool may_ask(const struct kith_node *node,
                    const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->decision == EDGE_OPEN);
    return node->mode->says_round && node->config->round_deadline_ns == 0 &&
           node->presence != LEAVING &&
           !(edge->flags & (EDGE_TOLD_READY | EDGE_DOWN)) &&
           !kith_round_is_misled_by(node, edge->peer) &&
           !kith_edge_is_past(node, edge) &&
           (comes_nearer(node, edge) ||
            node->round->longer <
                KITH_PATIENCE_MAX + (unsigned)is_behind(node, edge)) &&
           spent(node) < bound_of(node, edge);
}

static bool is_spared(const struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    const struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(late->vain <= VAIN_MAX && late->brief <= BRIEF_MAX);
    return late->who == who(edge) && node->now_ns < late->spare_ns &&
           spent(node) >= bound(node) >> (late->vain + late->brief + 2);
}

bool kith_late_asks(struct kith_node *node, struct kith_round_edge *edge)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_OPEN);
    if (edge->flags & EDGE_ASKED || !may_ask(node, edge))
        return false;
    if (!(round->noted & NOTED_QUESTION))
        round->prompt_ns = round->came_ns;
    round->noted |= NOTED_QUESTION;
    edge->flags |= EDGE_ASKED;
    edge->flags &= ~(uint32_t)EDGE_COMING;
    kith_round_tell(node, edge->peer, KITH_MESSAGE_PROBE, round->round);
    return true;
}

bool kith_late_waits(const struct kith_node *node, struct kith_round_edge *edge)
{
    KITH_ASSERT(node->round->state == ROUND_OPEN);
    if (!(edge->flags & EDGE_COMING) || !may_ask(node, edge) ||
        is_spared(node, edge))
        return false;
    edge->flags &= ~(uint32_t)(EDGE_ASKED | EDGE_COMING);
    return true;
}

/* It was asked, and said nothing; a mailbox asks nobody. */
static bool is_silent(const struct kith_node *node,
                      const struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->peer != node->self);
    return !node->mode->says_round ||
           (edge->flags & (EDGE_ASKED | EDGE_COMING)) == EDGE_ASKED;
}

bool kith_late_lapse(struct kith_node *node, const struct kith_round_edge *edge)
{
    struct kith_round_late *late = place_of(node, edge);
    if (late->who != who(edge))
        *late = (struct kith_round_late){.who = who(edge)};
    const bool heard = late->since_ns == 0;
    if (heard)
        late->since_ns = node->round->opened_ns;
    KITH_ASSERT(late->since_ns <= node->now_ns);
    if (is_silent(node, edge) && late->lapses < KITH_PATIENCE_MAX)
        late->lapses++;
    if (kith_round_phases(node) > 1)
        late->out = node->attempts;
    /* A cycle may meet it in every round. */
    if (late->trigger == node->attempts)
        return false;
    late->trigger = node->attempts;
    if (heard && node->now_ns < late->spare_ns) {
        if (++late->brief < BRIEF_MAX)
            return false;
        late->brief = BRIEF_MAX / 2;
        if (kith_round_phases(node) > 1)
            return false;
        late->lapses = 0;
        return true;
    }
    late->brief = 0;
    const unsigned times =
        (1u << (late->vain < SPARE_MAX ? late->vain : SPARE_MAX)) - 1;
    late->spare_ns =
        node->now_ns + times * (node->now_ns - node->round->opened_ns);
    if (++late->vain < VAIN_MAX)
        return false;
    late->vain = VAIN_MAX / 2;
    late->lapses = 0;
    return true;
}

void kith_late_leave_out(struct kith_node *node,
                         const struct kith_round_edge *edge)
{
    struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(edge->flags & EDGE_DOWN);
    if (kith_round_phases(node) > 1 && late->who == who(edge))
        late->out = node->attempts;
}

bool kith_late_is_out(const struct kith_node *node, kith_id peer)
{
    const struct kith_round_late *late = node->round->late;
    bool is_out = false;
    KITH_ASSERT(peer != node->self);
    for (uint32_t i = 0; i < KITH_LATE_MAX; i++)
        is_out |= late[i].who >> 1 == peer && late[i].out > 0 &&
                  late[i].out == node->attempts;
    return is_out;
}

bool kith_late_is_silent(const struct kith_node *node,
                         const struct kith_round_edge *edge)
{
    const struct kith_round_late *late = place_of(node, edge);
    KITH_ASSERT(kith_round_phases(node) > 1);
    return late->who == who(edge) && late->vain > 1 && late->since_ns > 0;
}

void kith_late_hear(struct kith_node *node, kith_id peer)
{
    KITH_ASSERT(peer != node->self);
    for (uint32_t i = 0; i < KITH_LATE_MAX; i++) {
        struct kith_round_late *late = &node->round->late[i];
        if (late->who >> 1 == peer)
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
    late->since_ns = late->spare_ns = 0;
    late->vain = 0;
    if (enough(node, node->now_ns - node->round->opened_ns) < late->lapses)
        late->lapses--;
}
