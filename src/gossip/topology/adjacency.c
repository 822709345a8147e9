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

struct kith_adjacency *kith_adjacency_init(void *memory, uint32_t peers,
                                           uint32_t width)
{
    struct kith_adjacency *graph = memory;
    graph->peers = peers;
    graph->width = width;
    graph->degree = (uint32_t *)(graph + 1);
    graph->table = graph->degree + peers;
    memset(graph->degree, 0, peers * sizeof *graph->degree);
    return graph;
}

static kith_id *row_of(const struct kith_adjacency *graph, kith_id i)
{
    KITH_ASSERT(i < graph->peers);
    return graph->table + (size_t)i * graph->width;
}

/* All of the row: most are short, and where j stands is nothing that a
 * processor could guess. */
bool kith_adjacency_has(const struct kith_adjacency *graph, kith_id i,
                        kith_id j)
{
    const kith_id *row = row_of(graph, i);
    const uint32_t count = graph->degree[i];
    uint32_t found = 0;
    for (uint32_t k = 0; k < count; k++)
        found |= row[k] == j;
    return found != 0;
}

static bool add_arc(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    if (graph->degree[i] == graph->width)
        return false;
    kith_topology_insert(row_of(graph, i), NULL, graph->degree[i]++, j, 0);
    return true;
}

bool kith_adjacency_add(struct kith_adjacency *graph, kith_id i, kith_id j)
{
    KITH_ASSERT(i != j);
    return graph->degree[j] < graph->width && add_arc(graph, i, j) &&
           add_arc(graph, j, i);
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

void kith_adjacency_neighbours(const struct kith_topology *topology,
                               struct kith_neighbours *list)
{
    const struct kith_adjacency *graph = topology->built;
    list->count = graph->degree[list->self];
    memcpy(list->ids, row_of(graph, list->self),
           list->count * sizeof *list->ids);
}

uint32_t kith_adjacency_width(const struct kith_topology *topology)
{
    const uint32_t most = topology->peers - 1;
    return topology->own > 0        ? topology->own
           : most < KITH_DEGREE_MAX ? most
                                    : KITH_DEGREE_MAX;
}

size_t kith_adjacency_room(const struct kith_topology *topology, size_t scratch)
{
    const size_t peers = topology->peers;
    return sizeof(struct kith_adjacency) +
           (peers * (1 + (size_t)kith_adjacency_width(topology)) +
            (scratch > 2 * peers ? scratch : 2 * peers)) *
               sizeof(uint32_t);
}

size_t kith_adjacency_size(const struct kith_topology *topology)
{
    return kith_adjacency_room(topology, 0);
}

enum kith_err kith_adjacency_build(struct kith_topology *topology, void *memory,
                                   char *error)
{
    const uint32_t peers = topology->peers;
    const uint32_t width = kith_adjacency_width(topology);
    const uint32_t wanted = ATTEMPT_PEERS / peers;
    const uint32_t attempts = wanted > ATTEMPTS_MAX   ? ATTEMPTS_MAX
                              : wanted < ATTEMPTS_MIN ? ATTEMPTS_MIN
                                                      : wanted;
    for (uint32_t attempt = 0; attempt < attempts; attempt++) {
        struct kith_adjacency *const graph =
            kith_adjacency_init(memory, peers, width);
        uint32_t *const scratch = graph->table + (size_t)peers * width;
        struct kith_rng rng = kith_topology_stream(topology, attempt);
        if (peers > 1 && !topology->kind->draw(topology, graph, scratch, &rng))
            return kith_topology_refuse_dense(topology, width, error);
        if (kith_adjacency_connected(graph, scratch))
            return KITH_OK;
    }
    return kith_topology_refuse(error, KITH_EINVAL,
                                "found %s, which was not connected in %u "
                                "draws; use more edges",
                                topology->kind->name, attempts);
}
