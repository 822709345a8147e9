/* CHOCO-SGD: averaging of public copies, of which compressed differences
 * travel.
 *
 *   x_i <- x_i - eta g_i;   q_i = C(x_i - x^_i);   x^_i <- x^_i + q_i
 *   x_i <- x_i + gamma sum_j W_ij (x^_j - x^_i)
 *
 * gamma = `consensus`: 0.02 for the largest 1 % (too much diverges, slowly).
 * The sum is kept whatever C is. Copies start at x(0), where all start alike.
 *
 * Source: Koloskova et al., "Decentralized Stochastic Optimization and Gossip
 * Algorithms with Compressed Communication", ICML 2019, Alg. 2.
 * Test: unit/test_rules.c (C = identity, gamma = 1 is D-PSGD),
 * unit/test_taxonomy_choco.c (T9). */
#include "replicas.h"

enum { MINE, THEIRS, COPIES };

static void start(struct kith_algebra *algebra)
{
    kith_replica_start(algebra, COPIES, algebra->live);
}

static size_t payload(const struct kith_algebra *algebra)
{
    return kith_compression_bytes(algebra->compression);
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return kith_replica_scratch(algebra, COPIES);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->scalars_sent[0] = *kith_replica_number(algebra);
    kith_replica_make(algebra, 0, algebra->live, kith_replica_of(algebra, MINE),
                      algebra->sent);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    void *const mine = kith_replica_of(algebra, MINE);
    void *const theirs = kith_replica_of(algebra, THEIRS);
    const double gamma = algebra->coefficients[KITH_GOSSIP_CONSENSUS];
    edge->delta_sum = 0;
    if (!kith_replica_agree(algebra, edge, COPIES))
        return;
    const struct kith_term news[] = {
        {1, kith_replica_read(algebra, edge->peer, 0, algebra->received, 0),
         NULL},
        {1, kith_replica_read(algebra, algebra->self, 0, algebra->sent, 1),
         NULL}};
    const struct kith_term pull = {gamma * edge->weight, theirs, mine};
    const struct kith_update updates[] = {
        kith_one_term(theirs, 1, &news[0], NULL),
        kith_one_term(mine, 1, &news[1], NULL),
        kith_one_term(algebra->live, 1, &pull, &edge->delta_sum)};
    edge->refused = news[0].plus == NULL || news[1].plus == NULL;
    if (edge->refused)
        return;
    *kith_replica_number(algebra) += 1;
    algebra->backend->combine(algebra->dim, 3, updates);
}

const struct kith_algorithm kith_algorithm_choco = {
    .name = "choco",
    .paper = "Koloskova et al., ICML 2019",
    .summary = "averaging of public copies, of which compressed differences "
               "travel",
    .differs = "public copies begin at x(0) where all start alike, where "
               "the paper's begin at 0",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_CONSERVES_SUM | KITH_NEEDS_STATIC_GRAPH |
             KITH_TAKES_COMPRESSOR | KITH_SENDS_EDGE_MESSAGES |
             KITH_CHECKS_ITS_MESSAGES,
    .keys = KITH_GOSSIP_READS(CONSENSUS),
    .initial = {[KITH_GOSSIP_CONSENSUS] = 0.02},
    .scalar_count = 1,
    .scalars_high = REPLICA_NUMBER_MAX,
    .edge_vectors = COPIES,
    .payload = payload,
    .scratch_bytes = scratch,
    .places = kith_replica_places,
    .start = start,
    .make = make,
    .merge = merge,
};
