/* A directed graph from a file: a line "FROM TO [WEIGHT]" an edge; see edges.c.
 * Without weights the shares that are sent, 1 / (1 + out-degree), and those
 * that are given to what comes in, 1 / (1 + in-degree), are two matrices,
 * unless all degrees are one: push-sum needs the first alone, push-pull uses
 * both. */
#include "edges.h"

const struct kith_topology_kind kith_topology_file_directed = {
    .name = "file-directed",
    .paper = "-",
    .summary = "edges one way, of a list, with weights or shares by degree",
    EDGE_LIST,
    .directed = true,
    .keys = KITH_TOPOLOGY_READS(PATH),
};
