/* What topologies share among themselves. */
#ifndef KITH_GOSSIP_TOPOLOGY_TOPOLOGY_KINDS_H
#define KITH_GOSSIP_TOPOLOGY_TOPOLOGY_KINDS_H

#include "kith/topology.h"

/* The graph that stands under a schedule where none is named. */
extern const struct kith_topology_kind kith_topology_circulant;

/* The stream of (seed; kind, round); a static random graph's round is the
 * attempt at it. */
void kith_topology_stream(const struct kith_topology *topology, uint64_t round,
                          struct kith_rng *rng);
/* ceil(log2 peers). */
uint32_t kith_topology_log2(uint32_t peers);
/* "gossip.KEY: found VALUE with N peers; allowed: ..." and its code. */
KITH_MUST_CHECK enum kith_err
kith_topology_refuse(char *error, enum kith_err code, const char *format, ...)
    KITH_PRINTF(3, 4);

/* W_self,other by the rule, or the share of a directed graph. */
double kith_topology_weigh(const struct kith_topology *topology,
                           uint32_t own_degree, kith_id other);

/* ids[count], ascending, takes id in; weights go along where they are given. */
void kith_topology_insert(kith_id *ids, double *weights, uint32_t count,
                          kith_id id, double weight);

/* shifts.c: circulants. shifts[count] ascend from 1 up to peers - 1; forward:
 * self + shift, else self - shift, modulo peers; out ascends. */
uint32_t kith_shift_forward(uint32_t peers, kith_id self,
                            const uint32_t *shifts, uint32_t count,
                            kith_id *out);
uint32_t kith_shift_backward(uint32_t peers, kith_id self,
                             const uint32_t *shifts, uint32_t count,
                             kith_id *out);

/* adjacency.c: a table of `width` places a peer, for graphs that are drawn. */
struct kith_adjacency {
    uint32_t peers, width;
    uint32_t *degree; /* (peers) */
    kith_id *table;   /* (peers, width), rows ascending */
};
size_t kith_adjacency_size(uint32_t peers, uint32_t width);
/* An empty one at the head of `memory`. */
struct kith_adjacency *kith_adjacency_init(void *memory, uint32_t peers,
                                           uint32_t width);
void kith_adjacency_clear(struct kith_adjacency *graph);
bool kith_adjacency_has(const struct kith_adjacency *graph, kith_id i,
                        kith_id j);
/* i -> j alone, or both ways. False: a row is full. j is not there yet. */
bool kith_adjacency_arc(struct kith_adjacency *graph, kith_id i, kith_id j);
bool kith_adjacency_add(struct kith_adjacency *graph, kith_id i, kith_id j);
void kith_adjacency_remove(struct kith_adjacency *graph, kith_id i, kith_id j);
/* The circulant of `degree` in an empty one; odd degrees: peers are even. */
bool kith_adjacency_lattice(struct kith_adjacency *graph, uint32_t degree);
/* Everybody is reached from peer 0. scratch: (2 peers). */
bool kith_adjacency_connected(const struct kith_adjacency *graph,
                              uint32_t *scratch);
/* Entries of a kind whose `built` begins with a struct kith_adjacency. */
uint32_t kith_adjacency_degree(const struct kith_topology *topology,
                               kith_id self);
uint32_t kith_adjacency_neighbours(const struct kith_topology *topology,
                                   kith_id self, uint64_t round,
                                   kith_id out[KITH_DEGREE_MAX],
                                   double weights[KITH_DEGREE_MAX]);
/* Places a row needs where degrees are not known before. */
uint32_t kith_adjacency_width(const struct kith_topology *topology);
/* Bytes of a table and `scratch` numbers behind it, 2 peers at least. */
size_t kith_adjacency_room(const struct kith_topology *topology, uint32_t width,
                           size_t scratch);
/* Draws until the graph is connected: draw() fills in an empty one from the
 * stream, and answers false where a row overflows. */
typedef bool kith_adjacency_drawer(const struct kith_topology *topology,
                                   struct kith_adjacency *graph,
                                   uint32_t *scratch, struct kith_rng *rng);
KITH_MUST_CHECK enum kith_err
kith_adjacency_draw(struct kith_topology *topology, void *memory,
                    uint32_t width, kith_adjacency_drawer *draw, char *error);

/* beneath.c: the static undirected `graph` that a schedule of rounds stands on.
 * prepare: names it (circulant where nothing does) and takes over its options;
 * size: bytes of what it builds, false where prepare() has refused it. */
KITH_MUST_CHECK enum kith_err
kith_beneath_prepare(struct kith_topology *topology, char *error);
KITH_MUST_CHECK bool kith_beneath_size(const struct kith_topology *topology,
                                       size_t *size);
KITH_MUST_CHECK enum kith_err
kith_beneath_build(const struct kith_topology *topology,
                   struct kith_topology *graph, void *memory, size_t *size,
                   char *error);

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
