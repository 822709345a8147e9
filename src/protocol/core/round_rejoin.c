/* Catching up: rounds of peers that crashed, were cut off, or were given up.
 *
 * Every message says in which round its sender is. A peer that is further than
 * the round at hand has closed it without us: nothing of it will come, nothing
 * of ours is taken, so nobody waits for that edge. The rounds of a peer behind
 * are then short, and it catches up step by step; or at once, after a round in
 * which somebody was missing:
 *
 *   all alive of a static graph's neighbours are ahead: go on with the last
 *   two are, in a later stretch of 8 rounds, or of a cycle: go on where the
 *       second is
 *   one is, likewise, but in a later stretch of two cycles: go on where it is,
 *       for at a healed cut a peer has one such neighbour
 *   where neighbours change: if that is a whole stretch ahead, and with its
 *       first round; two that jump would else pass each other, each over the
 *       round in which the other one waits
 *
 * and tell those that wait for us in between. No word takes us further than
 *
 *   plausible(now) = 4 (first round + phases triggers work / work then) + 64
 *
 * which nobody reaches honestly whose rounds take a quarter of ours or more
 * (32 in place of 4, a 32nd: of a reduction that was split one part may wait
 * for the missing in each cycle, and the other one have none missing). Work is
 * our clock's time but for what training waited, which a liar may draw out;
 * then: when the last round was closed. Peers that wait for each other had as
 * many triggers, so they reckon alike, and who follows a claim is followed; who
 * is alone counts no rounds.
 *
 * What liars can do: numbers are labels, and a jump costs an edge one exchange,
 * because the one ahead waits for the one that follows, or a cycle. There is
 * one jump a stretch, hence at most four in 8 rounds, however many lie and
 * however slowly they creep; one liar breaks every second cycle at most, since
 * who follows it makes two, whom the others follow. None is final, since an
 * edge lives again as soon as the end that is behind finds the other's number
 * plausible, and in time it does. Of a reduction nothing comes where nobody
 * else is: a peer that was led to such a number goes back to those that it
 * heard of behind it, and believes whoever led it there for a while no more;
 * nor one that takes back its word: an honest peer's number falls by a cycle
 * when it has turned back itself or is another incarnation. Whoever was not met
 * where it alone said that it is is followed again later, and later each time.
 * Test: property/test_node_liars.c, unit/test_swarm_cycles.c.
 *
 * After a round in which somebody was missing the next ones are wary: see
 * round_cast.c. */
#include "src/protocol/core/round.h"

/* The fastest plausible peer's rounds to ours; and what the first rounds, of
 * which nothing is known, may be off. */
#define FASTER 4u
#define FASTER_CYCLES 32u
#define SLACK KITH_OUTCOMES
#define STRETCH 8u
#define CHASES_MAX 6u
#define MISLED_TRIGGERS UINT64_C(16)
#define MISLEADS_MAX 6u
#define START_MAX (KITH_ROUND_NUMBER_MAX / FASTER_CYCLES)
/* No mailbox's round is shorter: nobody waits there, so that periods differ. */
#define MAILBOX_ROUND_NS KITH_US

/* Our clock, but for what training waited in rounds: a liar may draw that out,
 * and those that wait for each other count the same number of rounds by it. It
 * runs while we are stopped. */
static kith_ns worked(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    kith_ns waited_ns = node->waited_ns - round->stopped_ns;
    if (node->blocked_ns != KITH_NEVER)
        waited_ns += node->now_ns - node->blocked_ns;
    const kith_ns all_ns = node->now_ns - round->begun_ns;
    KITH_ASSERT(all_ns >= 0);
    return waited_ns < all_ns ? all_ns - waited_ns : 0;
}

/* As many as there would be by now at the pace of all so far: those that wait
 * for each other had as many, whatever their steps take. */
static uint64_t triggers(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    /* A cycle may have many rounds, and the clock may hardly have run then. */
    const uint64_t most = START_MAX / kith_round_phases(node);
    const double count = (double)node->attempts * (double)worked(node) /
                         (double)round->closed_ns;
    KITH_ASSERT(round->closed_ns > 0);
    return count < (double)most ? (uint64_t)count : most;
}

uint64_t kith_round_plausible(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->begun_ns <= node->now_ns);
    const uint64_t start = round->start < START_MAX ? round->start : START_MAX;
    const uint64_t faster =
        kith_round_phases(node) > 1 ? FASTER_CYCLES : FASTER;
    uint64_t most = start + SLACK;
    if (!node->mode->says_round)
        most += (uint64_t)(node->now_ns - round->begun_ns) / MAILBOX_ROUND_NS;
    else if (round->closed_ns > 0)
        most += (faster - 1) * start +
                faster * kith_round_phases(node) * triggers(node);
    return most < KITH_ROUND_NUMBER_MAX ? most : KITH_ROUND_NUMBER_MAX;
}

void kith_round_time(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const kith_ns now_ns = worked(node);
    if (now_ns > round->closed_ns)
        kith_estimate_add(&round->period, now_ns - round->closed_ns);
    round->closed_ns = now_ns;
}

bool kith_round_is_awaited(const struct kith_node *node, uint64_t said)
{
    KITH_ASSERT(!node->round->deserted || node->mode->says_round);
    return node->round->deserted && said < node->round->round;
}

static void set_heard(const struct kith_node *node,
                      struct kith_round_edge *edge)
{
    KITH_ASSERT(edge->flags & (EDGE_IN | EDGE_OUT));
    if (kith_node_is_charged(node, edge->peer) ||
        kith_late_is_out(node, edge->peer))
        return;
    edge->flags &= ~(uint32_t)(EDGE_DOWN | EDGE_COMES);
    edge->silent = 0;
}

/* Who is alone waits where it is for those that are on their way; where one of
 * them arrives, for all of them. */
static void hear_deserted(struct kith_node *node, kith_id from, bool comes)
{
    KITH_ASSERT(node->round->deserted);
    for (unsigned k = 0; k < 2; k++) {
        const struct kith_round_list *list = &node->round->lists[k];
        for (uint32_t e = 0; e < list->count; e++) {
            struct kith_round_edge *edge = &list->edges[e];
            if (comes && edge->peer == from)
                edge->flags |= EDGE_COMES;
            else if (!comes && edge->flags & EDGE_COMES)
                set_heard(node, edge);
        }
    }
}

/* Numbers that are so far apart are of different stretches. */
static uint64_t stretch_of(const struct kith_node *node)
{
    const uint64_t cycle = kith_round_phases(node);
    KITH_ASSERT(cycle >= 1);
    return cycle > 1 ? cycle : STRETCH;
}

/* It was not where it said: a liar, or one that has turned back itself, which
 * is over in a while. */
static void set_misled(struct kith_node *node, kith_id by)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(by != node->self);
    if (by != round->misled_by)
        round->misleads = 0;
    else if (round->misleads < MISLEADS_MAX)
        round->misleads++;
    round->misled_by = by;
    round->misled_until = node->attempts + (MISLED_TRIGGERS << round->misleads);
}

bool kith_round_is_misled_by(const struct kith_node *node, kith_id by)
{
    KITH_ASSERT(node->round->misleads <= MISLEADS_MAX);
    return by == node->round->misled_by &&
           node->attempts < node->round->misled_until;
}

/* A plausible claim. */
static void note_claim(struct kith_round *round, kith_id from, uint64_t said)
{
    KITH_ASSERT(round->second <= round->furthest && from != KITH_NOBODY);
    if (said > round->furthest) {
        if (from != round->furthest_by)
            round->second = round->furthest;
        round->furthest = said;
        round->furthest_by = from;
    } else if (from != round->furthest_by && said > round->second) {
        round->second = said;
    }
}

void kith_round_hear(struct kith_node *node, kith_id from, uint64_t said)
{
    struct kith_round *round = node->round;
    const bool claims = node->mode->says_round && said <= KITH_ROUND_NUMBER_MAX;
    const bool comes = kith_round_is_awaited(node, said);
    if (round->deserted)
        hear_deserted(node, from, comes);
    for (unsigned k = 0; !comes && k < 2; k++) {
        struct kith_round_edge *edge = kith_round_find(&round->lists[k], from);
        if (edge == NULL)
            continue;
        set_heard(node, edge);
        if (claims && (said > edge->said ||
                       said + stretch_of(node) < edge->said)) /* turned back */
            edge->said = said;
    }
    /* It takes back its word; who begins a cycle again has not. */
    if (claims && said > 0 && from == round->furthest_by &&
        said + kith_round_phases(node) <= round->furthest) {
        round->furthest = round->second;
        round->furthest_by = KITH_NOBODY;
        set_misled(node, from);
    }
    const bool believed = !kith_round_is_misled_by(node, from);
    if (claims && said < round->round && said > round->behind &&
        from != round->led_by && believed)
        round->behind = said;
    if (claims && said < round->round)
        kith_late_hear(node, from);
    if (claims && believed && said > round->second &&
        said <= kith_round_plausible(node))
        note_claim(round, from, said);
}

/* Its next incarnation may begin anywhere. */
void kith_round_forget(struct kith_node *node, kith_id peer)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->second <= round->furthest);
    round->behind = 0;
    if (round->led_by == peer)
        round->led_by = KITH_NOBODY;
    if (round->misled_by == peer)
        round->misled_by = KITH_NOBODY;
    if (round->furthest_by == peer) {
        round->furthest = round->second;
        round->furthest_by = KITH_NOBODY;
    }
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
    node->round->noted |= NOTED_JUMP;
    kith_round_ask_early(node);
    KITH_ASSERT(node->round->round == number);
}

void kith_round_take_place(struct kith_node *node, uint64_t steps)
{
    struct kith_round *round = node->round;
    const uint64_t most = node->config->steps;
    const bool ahead = steps > node->steps;
    KITH_ASSERT(node->adopting);
    if (ahead)
        node->steps = steps < most ? steps : most;
    if (!node->mode->says_round) {
        round->donor = kith_round_after(node, steps);
        if (!ahead)
            return;
    }
    const uint64_t number = kith_round_begins(node, round->donor);
    if (round->donor > KITH_ROUND_NUMBER_MAX || number == round->round ||
        (round->closed_ns > 0 && number < round->round))
        return;
    round->start = number;
    kith_round_rejoin(node, number);
}

/* Rounds that brought a model are not gone through again: cycles are cast
 * without mass, so one that comes late from the first time is a slice of
 * another cycle's, and no account knows it. A liar that sends a model where it
 * led us keeps us there. */
void kith_round_turn_back(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const uint64_t number = kith_round_begins(node, round->behind);
    KITH_ASSERT(round->state == ROUND_CLOSED);
    if (round->behind <= round->met || number >= round->round ||
        round->second > round->round)
        return;
    set_misled(node, round->led_by);
    round->led_by = KITH_NOBODY;
    round->furthest_by = KITH_NOBODY;
    round->furthest = round->second = round->behind = 0;
    round->barren = 0;
    KITH_ASSERT(number > round->met);
    kith_round_rejoin(node, number);
}

/* Whoever was not where it said, when we followed it on its word alone, goes
 * on without us, or lies: it is followed again after two triggers, then after
 * four, ..., for whoever jumps parts from those that it was with. */
static bool may_chase(const struct kith_node *node)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->chases <= CHASES_MAX);
    return kith_round_phases(node) == 1 ||
           round->furthest_by != round->chased ||
           node->attempts - round->chased_at >= UINT64_C(1) << round->chases;
}

static void note_chase(struct kith_node *node)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(round->furthest_by != node->self);
    if (round->furthest_by != round->chased)
        round->chases = 0;
    else if (round->chases < CHASES_MAX)
        round->chases++;
    round->chased = round->furthest_by;
    round->chased_at = node->attempts;
}

static bool changes(const struct kith_node *node)
{
    KITH_ASSERT(node->round != NULL);
    return !node->config->topology->kind->is_static &&
           kith_round_phases(node) == 1;
}

/* In a later stretch of so many rounds. Where neighbours change those who have
 * none in some rounds are several ahead, and nobody is missing. */
static bool is_later(const struct kith_node *node, uint64_t said,
                     uint64_t stretch)
{
    const uint64_t at = node->round->round;
    KITH_ASSERT(stretch >= 1);
    return changes(node) ? said >= at + stretch : said / stretch > at / stretch;
}

/* Where to go on from here, 0: with the next round; and whose claim that is. */
static uint64_t destination(const struct kith_node *node, uint64_t *claim)
{
    const struct kith_round *round = node->round;
    KITH_ASSERT(round->state == ROUND_CLOSED);
    const uint64_t all = least_said(node);
    const uint64_t stretch = stretch_of(node);
    const uint64_t of_one = kith_round_phases(node) > 1 ? 2 * stretch : stretch;
    uint64_t most = all <= kith_round_plausible(node) ? all : 0;
    if (is_later(node, round->second, stretch))
        most = round->second;
    else if (is_later(node, round->furthest, of_one) && may_chase(node))
        most = round->furthest;
    uint64_t further = kith_round_begins(node, most);
    if (changes(node))
        further = most / stretch * stretch;
    /* A cycle that is under way is gone through: those behind us in it wait for
     * what it still brings them. */
    const bool begins = kith_round_begins(node, round->round) == round->round;
    *claim = most;
    return further > round->round && begins && node->presence != LEAVING
               ? further
               : 0;
}

bool kith_round_is_left_behind(const struct kith_node *node)
{
    uint64_t claim;
    KITH_ASSERT(node->mode->says_round);
    return destination(node, &claim) > 0;
}

void kith_round_catch_up(struct kith_node *node)
{
    struct kith_round *round = node->round;
    uint64_t claim;
    const uint64_t further = destination(node, &claim);
    if (further == 0)
        return;
    const bool alone = claim == round->furthest && claim != least_said(node);
    round->led_by = alone ? round->furthest_by : KITH_NOBODY;
    if (alone)
        note_chase(node);
    kith_round_rejoin(node, further);
    KITH_ASSERT(round->round == further);
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
