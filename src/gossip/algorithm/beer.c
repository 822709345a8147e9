/* BEER: gradient tracking over compressed differences.
 *
 *   x+ = x + gamma (W H - H) - eta V        H+ = H + C(x+ - H)
 *   V+ = V + gamma (W G - G) + g(x+) - g(x) G+ = G + C(V+ - G)
 *
 * gamma = `consensus`; V starts at the first gradient. H and G are public
 * copies. No bias where the peers' data differ; a message that is lost is made
 * up for. The optimiser sees V in the place of g.
 *
 * Source: Zhao et al., "BEER: Fast O(1/T) Rate for Decentralized Nonconvex
 * Optimization with Communication Compression", NeurIPS 2022, Alg. 1.
 * Test: unit/test_rules.c (C = identity is gradient tracking),
 * unit/test_taxonomy_bias.c (T6). */
#include "replicas.h"

enum { H_MINE, H_THEIRS, STARTED, G_MINE = STARTED, G_THEIRS, COPIES };
enum { MODEL, GRADIENT, PARTS };

/* y <- y + gamma sum_j W_ij (theirs_j - mine_j): each edge's weight was noted
 * when it last merged. */
static void mix_copies(struct kith_algebra *algebra, size_t n, unsigned mine,
                       unsigned theirs, void *y)
{
    const double gamma = algebra->coefficients[KITH_GOSSIP_CONSENSUS];
    for (uint32_t e = 0; e < algebra->edge_count; e++) {
        const double weight = algebra->edge_scalars[e * KITH_EDGE_SCALARS + 1];
        void *const *copies = algebra->edges + e * COPIES;
        if (weight > 0)
            (void)algebra->backend->mix(n, gamma * weight, copies[theirs],
                                        copies[mine], y);
    }
}

static void start(struct kith_algebra *algebra)
{
    kith_replica_start(algebra, STARTED, algebra->live);
}

static void direction(struct kith_algebra *algebra)
{
    mix_copies(algebra, algebra->trained, G_MINE, G_THEIRS,
               algebra->vectors[KITH_TRACKED]);
    kith_algorithm_track(algebra);
}

static void after_step(struct kith_algebra *algebra)
{
    mix_copies(algebra, algebra->dim, H_MINE, H_THEIRS, algebra->live);
}

static size_t payload(const struct kith_algebra *algebra)
{
    return PARTS * kith_compression_bytes(algebra->compression);
}

static void *part_of(const struct kith_algebra *algebra, const void *message,
                     unsigned part)
{
    return (char *)message +
           part * kith_compression_bytes(algebra->compression);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->scalars_sent[0] = *kith_replica_number(algebra);
    kith_replica_make(algebra, MODEL, algebra->live,
                      kith_replica_of(algebra, H_MINE),
                      part_of(algebra, algebra->sent, MODEL));
    kith_replica_make(algebra, GRADIENT, algebra->vectors[KITH_TRACKED],
                      kith_replica_of(algebra, G_MINE),
                      part_of(algebra, algebra->sent, GRADIENT));
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return kith_replica_scratch(algebra, COPIES);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    algebra->edge_scalars[algebra->edge_index * KITH_EDGE_SCALARS + 1] =
        edge->weight;
    if (!kith_replica_agree(algebra, edge, COPIES))
        return;
    struct kith_term news[COPIES];
    struct kith_update updates[COPIES];
    for (unsigned i = 0; i < COPIES; i++) {
        const bool mine = i == H_MINE || i == G_MINE;
        const unsigned part = i == H_MINE || i == H_THEIRS ? MODEL : GRADIENT;
        const void *wire =
            part_of(algebra, mine ? algebra->sent : algebra->received, part);
        news[i].factor = 1;
        news[i].plus = kith_replica_read(
            algebra, mine ? algebra->self : edge->peer, part, wire, i);
        news[i].minus = NULL;
        updates[i] =
            kith_one_term(kith_replica_of(algebra, i), 1, &news[i], NULL);
        edge->refused = edge->refused || news[i].plus == NULL;
    }
    if (edge->refused)
        return;
    *kith_replica_number(algebra) += 1;
    algebra->backend->combine(algebra->dim, COPIES, updates);
}

const struct kith_algorithm kith_algorithm_beer = {
    .name = "beer",
    .paper = "Zhao et al., NeurIPS 2022",
    .summary = "gradient tracking over compressed differences",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_STATIC_GRAPH | KITH_NEEDS_STABLE_MEMBERS |
             KITH_REMOVES_DATA_BIAS | KITH_TAKES_COMPRESSOR |
             KITH_SENDS_EDGE_MESSAGES | KITH_CHECKS_ITS_MESSAGES,
    .keys = KITH_GOSSIP_READS(CONSENSUS),
    .initial = {[KITH_GOSSIP_CONSENSUS] = 0.01},
    .scalar_count = 1,
    .scalars_high = REPLICA_NUMBER_MAX,
    .vectors = KITH_TRACKED_VECTORS,
    .edge_vectors = COPIES,
    .payload = payload,
    .scratch_bytes = scratch,
    .places = kith_replica_places,
    .start = start,
    .direction = direction,
    .after_step = after_step,
    .make = make,
    .merge = merge,
};
