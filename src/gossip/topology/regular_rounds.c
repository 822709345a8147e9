/* A regular graph whose peers change places each round: a random one of
 * `degree` neighbours is drawn once, and a fresh permutation of all peers says
 * who stands where.
 *
 *   W_ij = 1 / (s + 1),   E Gamma' / Gamma = (1 - s / (n - 1)) / (s + 1)
 *
 * for any regular graph underneath, as E tr(W^2) = n / (s + 1). */
#include "permutation.h"
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_random_regular;
extern const struct kith_topology_kind kith_topology_regular_rounds;

/* The graph underneath; its own memory follows. */
struct rounds {
    struct kith_topology graph;
};

static enum kith_err prepare_graph(const struct kith_topology *topology,
                                   struct kith_topology *graph, size_t *size,
                                   char *error)
{
    return kith_topology_prepare(&kith_topology_random_regular, topology->peers,
                                 topology->seed, &topology->options, graph,
                                 size, error);
}

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    struct kith_topology graph;
    size_t size;
    const enum kith_err err = prepare_graph(topology, &graph, &size, error);
    if (err == KITH_OK)
        topology->options = graph.options;
    return err;
}

static size_t size(const struct kith_topology *topology)
{
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    struct kith_topology graph;
    size_t beneath;
    return prepare_graph(topology, &graph, &beneath, error) == KITH_OK
               ? sizeof(struct rounds) + beneath
               : 0; /* prepare() has said so */
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    struct rounds *rounds = memory;
    size_t size;
    const enum kith_err err =
        prepare_graph(topology, &rounds->graph, &size, error);
    return err == KITH_OK
               ? kith_topology_build(&rounds->graph, rounds + 1, error)
               : err;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? topology->options.degree : 0;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const struct rounds *rounds = topology->built;
    kith_id places[KITH_DEGREE_MAX];
    struct kith_rng rng;
    struct kith_permutation permutation;
    (void)weights;
    kith_topology_stream(topology, round, &rng);
    kith_permutation_draw(&permutation, topology->peers, &rng);
    const uint32_t count = kith_topology_neighbours(
        &rounds->graph, kith_permutation_place(&permutation, self), 0, places,
        NULL);
    for (uint32_t i = 0; i < count; i++)
        kith_topology_insert(out, NULL, i,
                             kith_permutation_peer(&permutation, places[i]), 0);
    return count;
}

/* Places are drawn alike: the same from every start. */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double n = topology->peers, s = topology->options.degree;
    const double left = topology->peers > 1 ? (1 - s / (n - 1)) / (s + 1) : 0;
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_regular_rounds = {
    .name = "regular-rounds",
    .paper = "de Vos et al., NeurIPS 2023 (2310.01972), EL-Oracle",
    .summary = "a random graph of `degree` [4], its peers permuted each round",
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = degree,
    .neighbours = neighbours,
    .contraction = contraction,
};
