/* A grid of r x c peers whose ends meet, r the largest divisor of n up to its
 * root; peer (i, j) is i c + j and meets the four around it:
 * rho = (3 + 2 cos(2 pi / c)) / 5 for r >= 3. One row is a ring. */
#include "topology_kinds.h"

/* Finding the rows is not for every call. */
static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    (void)error;
    topology->own = 1;
    for (uint32_t r = 2; (uint64_t)r * r <= topology->peers; r++)
        if (topology->peers % r == 0)
            topology->own = r;
    return KITH_OK;
}

/* Adds the two neighbours along a cycle of `length`; of 2 there is one. */
static void add_cycle(struct kith_neighbours *list, uint32_t place,
                      uint32_t length, kith_id base, uint32_t step)
{
    const uint32_t next = (place + 1) % length;
    const uint32_t last = (place + length - 1) % length;
    if (length > 1)
        kith_list_add(list, base + next * step, 0);
    if (length > 2)
        kith_list_add(list, base + last * step, 0);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t rows = topology->own;
    const uint32_t columns = topology->peers / rows;
    const uint32_t i = list->self / columns, j = list->self % columns;
    add_cycle(list, i, rows, j, columns);
    add_cycle(list, j, columns, i * columns, 1);
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const uint32_t rows = topology->own;
    const uint32_t columns = topology->peers / rows;
    (void)self;
    return (rows < 3 ? rows - 1 : 2) + (columns < 3 ? columns - 1 : 2);
}

const struct kith_topology_kind kith_topology_torus = {
    .name = "torus",
    .paper = "Assran et al., ICML 2019 (1811.10792); Lian et al., NeurIPS 2017",
    .summary = "a grid whose ends meet, as square as the peers divide",
    RULED_GRAPH,
    .prepare = prepare,
    .degree = degree,
};
