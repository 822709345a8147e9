/* A table of neighbours for graphs that are drawn: `width` places a peer, each
 * row ascending, in one block of the caller's memory. */
#include "topology_kinds.h"

#include <string.h>

#include "kith/assert.h"

/* Draws of one graph before we say that it will not be connected: 10 to 1,000,
 * seconds at most. */
#define ATTEMPTS_MIN 10u
#define ATTEMPTS_MAX 1000u
#define ATTEMPT_PEERS 10000000u

/* The record is followed by degrees and rows. */
size_t kith_adjacency_size(uint32_t peers, uint32_t width)
{
    return sizeof(struct kith_adjacency) +
           (size_t)peers * (1 + (size_t)width) * sizeof(uint32_t);
}

struct kith_adjacency *kith_adjacency_init(void *memory, uint32_t peers,
                                           uint32_t width)
{
    struct kith_adjacency *graph = memory;
    graph->peers = peers;
    graph->width = width;
    graph->degree = (uint32_t *)(graph + 1);
    graph->table = graph->degree + peers;
    kith_adjacency_clear(graph);
    return graph;
}

void kith_adjacency_clear(struct kith_adjacency *graph)
{
    memset(graph->degree, 0, graph->peers * sizeof *graph->degree);
}

static kith_id *row_of(const struct kith_adjacency *graph, kith_id i)
{
    KITH_ASSERT(i < graph->peers);
    return graph->table + (size_t)i * graph->width;
}

bool kith_adjacency_has(const struct kith_adjacency *graph, kith_id i,
                        kith_id j)
{
    const kith_id *row = row_of(graph, i);
    for (uint32_t k = 0; k < graph->degree[i]; k++)
        if (row[k] == j)
            return true;
    return false;
}

bool kith_adjacency_arc(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    if (graph->degree[i] == graph->width)
        return false;
    kith_topology_insert(row_of(graph, i), NULL, graph->degree[i]++, j, 0);
    return true;
}

bool kith_adjacency_add(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    KITH_ASSERT(i != j);
    return graph->degree[j] < graph->width && kith_adjacency_arc(graph, i, j) &&
           kith_adjacency_arc(graph, j, i);
}

static void remove_arc(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    kith_id *row = row_of(graph, i);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < graph->degree[i]; k++)
        if (row[k] != j)
            row[kept++] = row[k];
    graph->degree[i] = kept;
}

void kith_adjacency_remove(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    remove_arc(graph, i, j);
    remove_arc(graph, j, i);
}

bool kith_adjacency_connected(const struct kith_adjacency *graph,
                              uint32_t *scratch)
{
    uint32_t *const queue = scratch, *const seen = scratch + graph->peers;
    uint32_t head = 0, tail = 0;
    memset(seen, 0, graph->peers * sizeof *seen);
    queue[tail++] = 0;
    seen[0] = 1;
    while (head < tail) {
        const kith_id i = queue[head++];
        const kith_id *row = row_of(graph, i);
        for (uint32_t k = 0; k < graph->degree[i]; k++) {
            if (seen[row[k]])
                continue;
            seen[row[k]] = 1;
            queue[tail++] = row[k];
        }
    }
    return tail == graph->peers;
}

bool kith_adjacency_lattice(struct kith_adjacency *graph, uint32_t degree)
{
    const uint32_t peers = graph->peers;
    for (kith_id i = 0; i < peers; i++)
        for (uint32_t o = 1; o <= degree / 2; o++)
            if (!kith_adjacency_add(graph, i, (i + o) % peers))
                return false;
    for (kith_id i = 0; degree % 2 == 1 && i < peers / 2; i++)
        if (!kith_adjacency_add(graph, i, i + peers / 2))
            return false;
    return true;
}

uint32_t kith_adjacency_degree(const struct kith_topology *topology,
                               kith_id self)
{
    const struct kith_adjacency *graph = topology->built;
    return graph->degree[self];
}

uint32_t kith_adjacency_neighbours(const struct kith_topology *topology,
                                   kith_id self, uint64_t round,
                                   kith_id out[KITH_DEGREE_MAX],
                                   double weights[KITH_DEGREE_MAX])
{
    const struct kith_adjacency *graph = topology->built;
    (void)round;
    (void)weights;
    memcpy(out, row_of(graph, self), graph->degree[self] * sizeof *out);
    return graph->degree[self];
}

uint32_t kith_adjacency_width(const struct kith_topology *topology)
{
    const uint32_t most = topology->peers - 1;
    return most < KITH_DEGREE_MAX ? most : KITH_DEGREE_MAX;
}

size_t kith_adjacency_room(const struct kith_topology *topology, uint32_t width,
                           size_t scratch)
{
    const size_t least = 2 * (size_t)topology->peers;
    return kith_adjacency_size(topology->peers, width) +
           (scratch > least ? scratch : least) * sizeof(uint32_t);
}

enum kith_err kith_adjacency_draw(struct kith_topology *topology, void *memory,
                                  uint32_t width, kith_adjacency_drawer *draw,
                                  char *error)
{
    struct kith_adjacency *const graph =
        kith_adjacency_init(memory, topology->peers, width);
    uint32_t *const scratch = graph->table + (size_t)topology->peers * width;
    const uint32_t wanted = ATTEMPT_PEERS / topology->peers;
    const uint32_t attempts = wanted > ATTEMPTS_MAX   ? ATTEMPTS_MAX
                              : wanted < ATTEMPTS_MIN ? ATTEMPTS_MIN
                                                      : wanted;
    bool full = false;
    for (uint32_t attempt = 0; attempt < attempts && !full; attempt++) {
        struct kith_rng rng;
        kith_topology_stream(topology, attempt, &rng);
        kith_adjacency_clear(graph);
        full = !draw(topology, graph, scratch, &rng);
        if (!full && kith_adjacency_connected(graph, scratch))
            return KITH_OK;
    }
    if (full)
        return kith_topology_refuse(
            error, KITH_ELIMIT,
            "found %s, which gives a peer of %u more than %u neighbours; use a "
            "sparser one or fewer peers",
            topology->kind->name, topology->peers, graph->width);
    return kith_topology_refuse(error, KITH_EINVAL,
                                "found %s, which was not connected in %u "
                                "draws; use more edges",
                                topology->kind->name, attempts);
}
