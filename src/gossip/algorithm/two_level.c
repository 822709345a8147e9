/* Two-level exchange of gradients (HiTopKComm): dense within a site, where
 * links are fast, and the largest values alone between sites.
 *
 *   m sites of g members, member j of each is there for shard j, a g-th of d
 *   1. reduce   s <- sum of the site's gradients, of the own shard
 *   2. between  e <- e + s; L <- the k largest of e (MSTopK), k = share d / g;
 *               e <- e - L; the lists of all sites go to all of them
 *   3. gather   s <- sum of the m lists; shards go to the own site's members
 *   g <- s / n, n gradients in it;  x <- optimiser(x, g)
 *
 *   applied n + residuals = sum of gradients
 *
 * What travels are true gradients (KITH_SHARES_GRADIENTS), as in the paper: all
 * peers are in one state, whatever the optimiser, and a residual is of sums of
 * a site, no peer's own. Lists are added in the order of sites, so that all
 * have the same sum to the bit. With one site there is nothing to choose, and
 * the mean is dense; nor is there a residual that a shard would part from, so
 * that shards go round: member j is there for another one in each cycle.
 *
 * A peer that is gone is missing in the sums and their counts. Its shard has no
 * sum in its site then: a shard of which nothing is heard is stepped along by
 * one's own gradient (left as it is, it would hold up the others' x as well:
 * the digits of the lab's test, one of four killed, 60 % in the place of 85 %).
 * Not so with one site: there a shard is left as it is for one cycle in g, and
 * nobody's x is another one. (Stepped along, nobody else's x heals what drifts:
 * of four one killed at once, 46 % and 3.8 apart in the place of 85 % and 0.)
 * What had come to a peer that dies is lost with it, as is its residual. So
 * that those who missed something have the others' x again, blocks of it
 * travel: behind each dense message, which is a list longer, and between sites
 * in every 8th cycle, in which one site after the other sends x in the place of
 * its lists, whose values wait in e meanwhile. All of x has gone round after 4
 * / share cycles.
 *
 * Cost: 2 (g - 1) + m - 1 rounds, all send in each; 2 (g - 1) shards and m - 1
 * lists leave each peer. With `norms`, and one site, another round has room for
 * LARS' rates, of which the worker knows (src/training/worker/norms.c): here is
 * said whether there is a mean that they are of.
 *
 * Source: Shi et al., "Towards Scalable Distributed Training of Deep Learning
 * on Public Cloud Clusters", MLSys 2021; blocks of x are ours.
 * Test: unit/test_two_level.c (T4.3), unit/test_two_level_message.c,
 * unit/test_two_level_runs.c, unit/test_two_level_costs.c (T4.4). */
#include "two_level.h"

#include "kith/assert.h"

/* Kept where a neighbour's numbers would be: gradients that the own message
 * speaks for, and how far this cycle is. Of an earlier cycle nothing is said:
 * who comes late into one, or leaps ahead, has begun nothing. */
enum { GIVEN, STATE };
enum state { BEGUN, CHOSEN, SUMMED, STATES };

static double state_of(const struct kith_algebra *algebra, enum state state)
{
    const uint64_t cycle = algebra->round / kith_collective_phases(algebra);
    return (double)(cycle * STATES + state + 1);
}
static void enter(struct kith_algebra *algebra, enum state state)
{
    algebra->edge_scalars[STATE] = state_of(algebra, state);
}
static bool is_in(const struct kith_algebra *algebra, enum state state)
{
    return algebra->edge_scalars[STATE] == state_of(algebra, state);
}

static struct kith_sites_round round_of(const struct kith_algebra *algebra)
{
    return kith_topology_sites_round(algebra->graph, algebra->round);
}

static bool is_whole(const struct kith_topology *graph, uint64_t round)
{
    const enum kith_sites_way way = kith_topology_sites_round(graph, round).way;
    return way == KITH_SITES_REDUCE || way == KITH_SITES_GATHER;
}

static void *shard_at(const struct kith_algebra *algebra,
                      struct kith_range shard)
{
    return kith_algorithm_at(algebra, algebra->vectors[TWO_LEVEL_SUM],
                             shard.at);
}

/* A gradient that is none, or beyond what peers take, is nobody's. */
static void begin(struct kith_algebra *algebra)
{
    const struct kith_backend *backend = algebra->backend;
    void *const sum = algebra->vectors[TWO_LEVEL_SUM];
    const bool has =
        algebra->gradient != NULL &&
        kith_two_level_sane(algebra, algebra->gradient, algebra->dim);
    KITH_ASSERT(algebra->trained == algebra->dim);
    if (has)
        backend->copy(algebra->dim, sum, algebra->gradient);
    else
        backend->clear(algebra->dim, sum);
    algebra->scalars[COLLECTIVE_COUNT] = has;
    algebra->edge_scalars[GIVEN] = has;
    enter(algebra, BEGUN);
}

/* The site's sum is there. */
static void choose(struct kith_algebra *algebra)
{
    if (!is_in(algebra, BEGUN))
        return;
    kith_two_level_take_in(algebra);
    if (!kith_two_level_shows_x(algebra, kith_two_level_of(algebra).site))
        kith_two_level_choose(algebra);
    algebra->edge_scalars[GIVEN] = algebra->scalars[COLLECTIVE_COUNT];
    enter(algebra, CHOSEN);
}

static void write_shard(struct kith_algebra *algebra, uint32_t member)
{
    const struct kith_range shard = kith_two_level_shard(algebra, member);
    KITH_ASSERT(shard.count <= kith_two_level_shard_size(algebra));
    memset(algebra->sent, 0, kith_two_level_dense_bytes(algebra));
    algebra->backend->copy(shard.count, algebra->sent,
                           shard_at(algebra, shard));
}

/* Of lists, or where there are none, of LARS' rates. */
static size_t slice(const struct kith_algebra *algebra)
{
    return kith_two_level_of(algebra).sites > 1
               ? kith_two_level_list_bytes(algebra)
               : algebra->layers * sizeof(float);
}

/* The block of x behind a shard. */
static void *behind(const struct kith_algebra *algebra, const void *message)
{
    return kith_algorithm_at(algebra, message,
                             kith_two_level_shard_size(algebra));
}

/* Who has nothing to say says so: numbers of nobody. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const struct kith_sites_round round = round_of(algebra);
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    if (algebra->peers == 1)
        return;
    switch (round.way) {
    case KITH_SITES_REDUCE:
        edge->scalars_sent[0] =
            is_in(algebra, BEGUN) ? algebra->edge_scalars[GIVEN] : 0;
        write_shard(algebra, (of.member + round.shift) % of.members);
        return;
    case KITH_SITES_BETWEEN:
        if (round.shift == 1)
            choose(algebra);
        edge->scalars_sent[0] =
            is_in(algebra, CHOSEN) ? algebra->edge_scalars[GIVEN] : 0;
        if (kith_two_level_shows_x(algebra, of.site))
            kith_two_level_write_block(algebra, algebra->sent);
        else
            kith_two_level_write_list(algebra);
        return;
    case KITH_SITES_GATHER:
        edge->scalars_sent[0] =
            is_in(algebra, SUMMED) ? algebra->scalars[COLLECTIVE_COUNT] : 0;
        write_shard(algebra, of.member);
        kith_two_level_write_block(algebra, behind(algebra, algebra->sent));
        return;
    case KITH_SITES_NORMS:
        edge->scalars_sent[0] = is_in(algebra, SUMMED);
        memset(algebra->sent, 0, slice(algebra));
        return;
    }
}

static void add_shard(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_range own =
        kith_two_level_shard(algebra, kith_two_level_of(algebra).member);
    edge->refused = edge->scalars_received[0] != 1 ||
                    !kith_two_level_sane(algebra, algebra->received, own.count);
    if (edge->refused || !is_in(algebra, BEGUN))
        return;
    algebra->backend->add(own.count, 1.0, algebra->received,
                          shard_at(algebra, own));
    algebra->scalars[COLLECTIVE_COUNT]++;
}

static void take_list(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const uint32_t site =
        (of.site + of.sites - round_of(algebra).shift) % of.sites;
    const double models = edge->scalars_received[0];
    const bool is_x = kith_two_level_shows_x(algebra, site);
    edge->refused = models > of.members ||
                    (is_x && !kith_two_level_is_block_sane(algebra, of.member,
                                                           algebra->received));
    if (edge->refused || !is_in(algebra, CHOSEN))
        return;
    if (is_x)
        edge->delta_sum =
            kith_two_level_take_block(algebra, of.member, algebra->received);
    else
        edge->refused = !kith_two_level_read_list(algebra, site);
    if (!edge->refused)
        algebra->scalars[COLLECTIVE_COUNT] += models;
}

/* A mean in the place of the own gradient. */
static void take_shard(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const uint32_t member =
        (of.member + of.members - round_of(algebra).shift) % of.members;
    const struct kith_range shard = kith_two_level_shard(algebra, member);
    const double models = edge->scalars_received[0];
    const void *const block = behind(algebra, algebra->received);
    edge->refused =
        models > algebra->peers ||
        !kith_two_level_sane(algebra, algebra->received, shard.count) ||
        !kith_two_level_is_block_sane(algebra, member, block);
    if (edge->refused)
        return;
    edge->delta_sum = kith_two_level_take_block(algebra, member, block);
    void *const sum = shard_at(algebra, shard);
    algebra->backend->copy(shard.count, sum, algebra->received);
    algebra->backend->scale(shard.count, 1 / models, sum);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (edge->scalars_received[0] == 0)
        return;
    switch (round_of(algebra).way) {
    case KITH_SITES_REDUCE:
        add_shard(algebra, edge);
        return;
    case KITH_SITES_BETWEEN:
        take_list(algebra, edge);
        return;
    case KITH_SITES_GATHER:
        take_shard(algebra, edge);
        return;
    case KITH_SITES_NORMS:
        edge->refused = edge->scalars_received[0] != 1;
        return;
    }
}

/* With one site: what is not heard of another shard is nothing. */
static void forget_others(struct kith_algebra *algebra, struct kith_range own)
{
    const size_t end = own.at + own.count;
    KITH_ASSERT(end <= algebra->dim);
    algebra->backend->clear(own.at, algebra->vectors[TWO_LEVEL_SUM]);
    algebra->backend->clear(
        algebra->dim - end,
        shard_at(algebra, (struct kith_range){end, algebra->dim - end}));
}

/* After the last list the sum is there, and at the end of all the mean takes
 * the gradient's place. */
static double finish(struct kith_algebra *algebra)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const uint64_t phase = kith_collective_phase(algebra);
    const struct kith_range own = kith_two_level_shard(algebra, of.member);
    const double count = algebra->scalars[COLLECTIVE_COUNT];
    if (algebra->peers == 1)
        return 0;
    if (phase + 1 == of.members - 1 + of.sites - 1 &&
        is_in(algebra, of.sites > 1 ? CHOSEN : BEGUN)) {
        if (of.sites > 1)
            kith_two_level_add_lists(algebra);
        else
            forget_others(algebra, own);
        if (count > 0)
            enter(algebra, SUMMED);
    }
    if (phase + 1 != 2 * (of.members - 1) + of.sites - 1 ||
        !is_in(algebra, SUMMED) || algebra->gradient == NULL)
        return 0;
    algebra->backend->scale(own.count, 1 / count, shard_at(algebra, own));
    algebra->backend->copy(algebra->dim, algebra->gradient,
                           algebra->vectors[TWO_LEVEL_SUM]);
    return 0;
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return kith_two_level_kept(algebra) * sizeof(uint32_t);
}

const struct kith_algorithm kith_algorithm_two_level = {
    .name = "two-level",
    .paper = "Shi et al., MLSys 2021",
    .summary = "the mean of all gradients, dense within a site, its largest "
               "values between sites, with error feedback on shards",
    .differs = "blocks of x travel along, so that who missed a round comes "
               "back",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_EXACT_MESSAGES |
             KITH_CHECKS_ITS_MESSAGES | KITH_SHARES_GRADIENTS,
    .schedule = "collective-sites",
    .keys = KITH_GOSSIP_READS(SHARE),
    .initial = {[KITH_GOSSIP_SHARE] = 0.01},
    .scalar_count = 1,
    .scalars_start = {1},
    .scalars_high = COLLECTIVE_COUNT_MAX,
    .vectors = TWO_LEVEL_VECTORS,
    .payload = kith_two_level_dense_bytes,
    .slice = slice,
    .is_whole = is_whole,
    .scratch_bytes = scratch,
    .make = make,
    .merge = merge,
    .finish = finish,
};
