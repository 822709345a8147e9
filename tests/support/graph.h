/* Opened topologies and their matrices, for tests. Include after what cmocka
 * needs. */
#ifndef KITH_TESTS_GRAPH_H
#define KITH_TESTS_GRAPH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/topology.h"

struct graph {
    struct kith_topology topology;
    void *memory;
    char error[KITH_TOPOLOGY_ERROR_BYTES];
};

static inline void graph_check(const char *what, double expected,
                               double measured, double tolerance)
{
    printf("  %-46s expected %.12g measured %.12g\n", what, expected, measured);
    if (!(fabs(measured - expected) <= tolerance))
        fail_msg("%s: %.15g, not %.15g +- %g", what, measured, expected,
                 tolerance);
}

/* A ring, for the kinds that need a list; n <= 4096. */
static inline uint32_t ring_edges(uint32_t n, bool directed,
                                  struct kith_topology_edge *edges)
{
    uint32_t count = 0;
    for (kith_id i = 0; i < n && n > 1; i++) {
        const kith_id next = (i + 1) % n;
        if (directed || i < next)
            edges[count++] = (struct kith_topology_edge){i, next, 0};
        else if (n > 2)
            edges[count++] = (struct kith_topology_edge){next, i, 0};
    }
    return count;
}

static inline enum kith_err
graph_open(const char *name, uint32_t n, uint64_t seed,
           const struct kith_topology_options *options, struct graph *graph)
{
    static struct kith_topology_edge edges[4096];
    const struct kith_topology_kind *kind = kith_topology_find(name);
    struct kith_topology_options own = {.rewire = 0.1};
    size_t size;
    assert_non_null(kind);
    if (options != NULL)
        own = *options;
    if ((kith_topology_keys(kind, &own) & KITH_TOPOLOGY_READS(PATH)) &&
        own.edges == NULL) {
        own.edges = edges;
        own.edge_count = ring_edges(n <= 4096 ? n : 1, kind->directed, edges);
    }
    memset(graph, 0, sizeof *graph);
    enum kith_err err = kith_topology_prepare(
        kind, n, seed, &own, &graph->topology, &size, graph->error);
    if (err != KITH_OK)
        return err;
    if (size > 0)
        graph->memory = malloc(size);
    assert_true(size == 0 || graph->memory != NULL);
    err = kith_topology_build(&graph->topology, graph->memory, graph->error);
    if (err != KITH_OK) {
        free(graph->memory);
        graph->memory = NULL;
    }
    return err;
}

static inline void graph_close(struct graph *graph)
{
    free(graph->memory);
    graph->memory = NULL;
}

static inline void graph_must(const char *name, uint32_t n, uint64_t seed,
                              const struct kith_topology_options *options,
                              struct graph *graph)
{
    if (graph_open(name, n, seed, options, graph) != KITH_OK)
        fail_msg("%s, %u peers: %s", name, n, graph->error);
}

/* W (n, n) of a round: row i is what i gives to its sources and itself. */
static inline void graph_rows(const struct kith_topology *topology,
                              uint64_t round, double *w)
{
    const uint32_t n = topology->peers;
    kith_id in[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    memset(w, 0, sizeof *w * n * n);
    for (kith_id i = 0; i < n; i++) {
        const uint32_t count =
            kith_topology_sources(topology, i, round, in, weights);
        w[i * n + i] = 1;
        for (uint32_t k = 0; k < count; k++) {
            w[i * n + in[k]] = weights[k];
            w[i * n + i] -= weights[k];
        }
    }
}

/* rho, whatever the size. */
static inline double graph_rho(const struct kith_topology *topology)
{
    double *scratch =
        malloc(KITH_RHO_SCRATCH(topology->peers) * sizeof *scratch);
    assert_non_null(scratch);
    const double rho = kith_topology_rho(topology, scratch, NULL);
    free(scratch);
    return rho;
}

/* x <- W x. */
static inline void graph_mix(const struct kith_topology *topology,
                             uint64_t round, double *x, double *next)
{
    kith_id in[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    for (kith_id i = 0; i < topology->peers; i++) {
        const uint32_t count =
            kith_topology_sources(topology, i, round, in, weights);
        next[i] = x[i];
        for (uint32_t k = 0; k < count; k++)
            next[i] += weights[k] * (x[in[k]] - x[i]);
    }
    memcpy(x, next, sizeof *x * topology->peers);
}

/* sum (x - mean)^2. */
static inline double graph_spread(const double *x, uint32_t n)
{
    double mean = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

#endif
