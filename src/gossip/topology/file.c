/* An undirected graph from a file: a line "FROM TO [WEIGHT]" an edge; see
 * edges.c. */
#include "edges.h"

const struct kith_topology_kind kith_topology_file = {
    .name = "file",
    .paper = "-",
    .summary = "edges both ways, of a list, with weights or by the rule",
    EDGE_LIST,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(PATH),
};
