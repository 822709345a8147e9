/* RelaySGD: sums travel along a tree, so that all hear all, undiluted.
 *
 *   y_i = x_i - eta u_i;   i -> j:  m_ij = y_i + sum_{k != j} m_ki (before)
 *                                   c_ij =  1  + sum_{k != j} c_ki (before)
 *   x_i = (y_i + sum_j m_ji + (n - 1 - sum_j c_ji) x(0)) / n
 *
 * A message of node k arrives after as many rounds as it is hops away. The
 * graph must be a tree (path, star, binary-tree). Exact consensus, no bias
 * where the peers' data differ; a message that is lost leaves a subtree at what
 * it said last.
 *
 * Source: Vogels et al., "RelaySum for Decentralized Deep Learning on
 * Heterogeneous Data", NeurIPS 2021, Alg. 1.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "updates.h"

enum { FIRST, VECTORS };
enum { HEARD, COPIES };

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    struct kith_term terms[KITH_DEGREE_MAX + 1] = {{1, algebra->live, NULL}};
    unsigned terms_count = 1;
    double count = 1;
    for (uint32_t e = 0; e < algebra->edge_count; e++) {
        if (e == algebra->edge_index)
            continue;
        terms[terms_count++] =
            (struct kith_term){1, algebra->edges[e * COPIES + HEARD], NULL};
        count += algebra->edge_scalars[e * KITH_EDGE_SCALARS];
    }
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0,
                                algebra->sent, terms_count, terms);
    edge->scalars_sent[0] = count;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const uint32_t e = algebra->edge_index;
    algebra->backend->copy(algebra->dim, algebra->edges[e * COPIES + HEARD],
                           algebra->received);
    algebra->edge_scalars[e * KITH_EDGE_SCALARS] = edge->scalars_received[0];
    edge->delta_sum = 0;
}

static double finish(struct kith_algebra *algebra)
{
    const double share = 1.0 / algebra->peers;
    struct kith_term terms[KITH_DEGREE_MAX + 1];
    double missing = algebra->peers - 1.0;
    uint32_t count = 0;
    for (; count < algebra->edge_count; count++) {
        terms[count] = (struct kith_term){
            share, algebra->edges[count * COPIES + HEARD], NULL};
        missing -= algebra->edge_scalars[count * KITH_EDGE_SCALARS];
    }
    terms[count++] =
        (struct kith_term){missing * share, algebra->vectors[FIRST], NULL};
    return kith_algorithm_combine(algebra->backend, algebra->dim, share,
                                  algebra->live, count, terms);
}

const struct kith_algorithm kith_algorithm_relaysgd = {
    .name = "relaysgd",
    .paper = "Vogels et al., NeurIPS 2021",
    .summary = "sums travel along a tree: all hear all, no bias on unlike data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_STATIC_GRAPH | KITH_NEEDS_TREE |
             KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_STABLE_MEMBERS |
             KITH_REMOVES_DATA_BIAS | KITH_SENDS_EDGE_MESSAGES |
             KITH_NEEDS_EXACT_MESSAGES,
    .scalar_count = 1,
    .scalars_high = KITH_PEERS_MAX,
    .vectors = VECTORS,
    .edge_vectors = COPIES,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
    .finish = finish,
};
