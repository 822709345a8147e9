/* An undirected graph from a file: a line "FROM TO [WEIGHT]" an edge; see
 * edges.c. */
#include "edges.h"

const struct kith_topology_kind kith_topology_file = {
    .name = "file",
    .paper = "-",
    .summary = "edges both ways, of a list, with weights or by the rule",
    .is_static = true,
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(PATH),
    .prepare = kith_edges_prepare,
    .size = kith_edges_size,
    .build = kith_edges_build,
    .degree = kith_edges_degree,
    .neighbours = kith_edges_neighbours,
};
