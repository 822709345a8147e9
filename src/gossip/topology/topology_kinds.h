/* What topologies share among themselves. */
#ifndef KITH_GOSSIP_TOPOLOGY_TOPOLOGY_KINDS_H
#define KITH_GOSSIP_TOPOLOGY_TOPOLOGY_KINDS_H

#include "kith/topology.h"

struct kith_networks; /* permutation.h */

/* The graph that stands under a schedule where none is named. */
extern const struct kith_topology_kind kith_topology_circulant,
    kith_topology_collective_sites, kith_topology_collective_tree;

/* The stream of (seed; kind, round); a static random graph's round is the
 * attempt at it. */
struct kith_rng kith_topology_stream(const struct kith_topology *topology,
                                     uint64_t round);
/* ceil(log2 peers). */
uint32_t kith_topology_log2(uint32_t peers);
/* "gossip.KEY: found VALUE with N peers; allowed: ..." and its code. */
KITH_MUST_CHECK enum kith_err
kith_topology_refuse(char *error, enum kith_err code, const char *format, ...)
    KITH_PRINTF(3, 4);
/* The graph has a peer of more than `most` neighbours. */
KITH_MUST_CHECK enum kith_err
kith_topology_refuse_dense(const struct kith_topology *topology, uint32_t most,
                           char *error);

/* W_self,other by the rule, or the share of a directed graph. */
double kith_topology_weigh(const struct kith_topology *topology,
                           uint32_t own_degree, kith_id other);

/* ids[count], ascending, takes id in; weights go along where they are given. */
void kith_topology_insert(kith_id *ids, double *weights, uint32_t count,
                          kith_id id, double weight);

/* lists.c: a neighbour more; weight: of `weighted` kinds. */
void kith_list_add(struct kith_neighbours *list, kith_id id, double weight);
/* Everybody from `first` up to `end`, but self. */
void kith_list_range(struct kith_neighbours *list, kith_id first, kith_id end,
                     double weight);
/* Who stands `shift` (1..peers-1) places on, sources: before. */
void kith_list_shift(const struct kith_topology *topology,
                     struct kith_neighbours *list, uint64_t shift,
                     double weight);

/* Entries `degree` of kinds in which all peers have as many: one, as the option
 * `degree` says, all others, ceil(log2 peers). */
uint32_t kith_degree_one(const struct kith_topology *topology, kith_id self);
uint32_t kith_degree_option(const struct kith_topology *topology, kith_id self);
uint32_t kith_degree_rest(const struct kith_topology *topology, kith_id self);
uint32_t kith_degree_log2(const struct kith_topology *topology, kith_id self);
/* Static graphs whose weights follow the rule; `degree` is named beside it. */
#define RULED_GRAPH                                                            \
    .is_static = true, .keys = KITH_TOPOLOGY_READS(WEIGHTS),                   \
    .neighbours = neighbours
/* Rounds of an all-reduce: at most one to send to in each. */
#define COLLECTIVE_ROUNDS                                                      \
    .directed = true, .collective = true, .degree = kith_degree_one,           \
    .neighbours = neighbours, .period = period
/* The option `degree`: `usual` where none is given, and no more than `most`. */
uint32_t *kith_degree_default(struct kith_topology *topology, uint32_t usual,
                              uint32_t most);
/* The same, and more than `most` is refused. */
KITH_MUST_CHECK enum kith_err
kith_degree_prepare(struct kith_topology *topology, uint32_t usual,
                    uint32_t most, char *error);
/* Odd degrees of odd numbers of peers are refused. */
KITH_MUST_CHECK enum kith_err
kith_degree_check_even(const struct kith_topology *topology, char *error);

/* adjacency.c: a table of `width` places a peer, for graphs that are drawn. */
struct kith_adjacency {
    uint32_t peers, width;
    uint32_t *degree; /* (peers) */
    kith_id *table;   /* (peers, width), rows ascending */
};
/* An empty one at the head of `memory`. */
struct kith_adjacency *kith_adjacency_init(void *memory, uint32_t peers,
                                           uint32_t width);
bool kith_adjacency_has(const struct kith_adjacency *graph, kith_id i,
                        kith_id j);
/* Both ways. False: a row is full. j is not there yet. */
bool kith_adjacency_add(struct kith_adjacency *graph, kith_id i, kith_id j);
void kith_adjacency_remove(struct kith_adjacency *graph, kith_id i, kith_id j);
/* The circulant of `degree` in an empty one; odd degrees: peers are even. */
bool kith_adjacency_lattice(struct kith_adjacency *graph, uint32_t degree);
/* Everybody is reached from peer 0. scratch: (2 peers). */
bool kith_adjacency_connected(const struct kith_adjacency *graph,
                              uint32_t *scratch);
/* Places of a row: prepare()'s `own`, else as many as a peer can have. */
uint32_t kith_adjacency_width(const struct kith_topology *topology);
/* Bytes of a table and `scratch` numbers behind it, 2 peers at least. */
size_t kith_adjacency_room(const struct kith_topology *topology,
                           size_t scratch);
/* Entries of kinds that have draw(), and whose `built` is the graph. */
size_t kith_adjacency_size(const struct kith_topology *topology);
KITH_MUST_CHECK enum kith_err
kith_adjacency_build(struct kith_topology *topology, void *memory, char *error);
uint32_t kith_adjacency_degree(const struct kith_topology *topology,
                               kith_id self);
void kith_adjacency_neighbours(const struct kith_topology *topology,
                               struct kith_neighbours *list);
/* Of a kind whose prepare() checks the options and whose draw() makes the
 * edges, once. */
#define RANDOM_GRAPH                                                           \
    .is_static = true, .prepare = prepare, .draw = draw,                       \
    .build = kith_adjacency_build, .degree = kith_adjacency_degree,            \
    .neighbours = kith_adjacency_neighbours

/* random_cycles.c: a random graph of the option `degree` of which only the
 * orders of its cycles are stored, as keys; of more peers than are shuffled
 * (permutation.h). */
void kith_random_cycles_draw(const struct kith_topology *topology,
                             struct kith_networks *orders);
/* The neighbours. Cost O(degree^2), of which most are comparisons. */
void kith_random_cycles(const struct kith_topology *topology,
                        const struct kith_networks *orders,
                        struct kith_neighbours *list);

/* beneath.c: entries of schedules of rounds that stand on a static undirected
 * graph, options.graph: `built` begins with its struct kith_topology. prepare:
 * names it (circulant where nothing does) and takes over its options. */
KITH_MUST_CHECK enum kith_err
kith_beneath_prepare(struct kith_topology *topology, char *error);
/* 0 where prepare() has refused it; a multiple of 8. */
size_t kith_beneath_size(const struct kith_topology *topology);
KITH_MUST_CHECK enum kith_err kith_beneath_build(struct kith_topology *topology,
                                                 void *memory, char *error);

/* colouring.c: edges into matchings; at (peers, colours), colours above every
 * degree: neighbour by colour or KITH_NOBODY. Returns how many are used. */
uint32_t kith_colour_edges(const struct kith_topology *graph, uint32_t colours,
                           kith_id *at);

/* spectrum.c: extreme eigenvalues of a symmetric operator over vectors of mean
 * 0. scratch: (3 n + 2 KITH_RHO_STEPS). visits: what one application costs. */
struct kith_spectrum {
    double low, high;
    bool settled; /* else the budget ran out: bounds from within */
};
typedef void kith_operator(const void *context, const double *x, double *out);
struct kith_spectrum kith_spectrum_find(uint32_t n, kith_operator *apply,
                                        const void *context, uint64_t visits,
                                        double *scratch);
/* The same, with the eigenvector of the lowest in vector[n]. */
double kith_spectrum_lowest(uint32_t n, kith_operator *apply,
                            const void *context, double *scratch,
                            double *vector);
/* lambda_2 and lambda_n of the Laplacian of a static undirected graph. */
struct kith_spectrum kith_spectrum_laplacian(const struct kith_topology *graph,
                                             double *scratch);

#endif
