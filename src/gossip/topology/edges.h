/* What the kinds that come from a list of edges share. */
#ifndef KITH_GOSSIP_TOPOLOGY_EDGES_H
#define KITH_GOSSIP_TOPOLOGY_EDGES_H

#include "topology_kinds.h"

KITH_MUST_CHECK enum kith_err kith_edges_prepare(struct kith_topology *topology,
                                                 char *error);
size_t kith_edges_size(const struct kith_topology *topology);
KITH_MUST_CHECK enum kith_err kith_edges_build(struct kith_topology *topology,
                                               void *memory, char *error);
uint32_t kith_edges_degree(const struct kith_topology *topology, kith_id self);
void kith_edges_neighbours(const struct kith_topology *topology,
                           struct kith_neighbours *list);

/* Records of graphs that are such a list. */
#define EDGE_LIST                                                              \
    .is_static = true, .weighted = true, .prepare = kith_edges_prepare,        \
    .size = kith_edges_size, .build = kith_edges_build,                        \
    .degree = kith_edges_degree, .neighbours = kith_edges_neighbours

#endif
