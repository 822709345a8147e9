/* Lists of neighbours, and degrees that all peers of a kind have alike. */
#include "topology_kinds.h"

void kith_list_add(struct kith_neighbours *list, kith_id id, double weight)
{
    kith_topology_insert(list->ids, list->weights, list->count++, id, weight);
}

void kith_list_range(struct kith_neighbours *list, kith_id first, kith_id end,
                     double weight)
{
    for (kith_id id = first; id < end; id++)
        if (id != list->self)
            kith_list_add(list, id, weight);
}

void kith_list_shift(const struct kith_topology *topology,
                     struct kith_neighbours *list, uint64_t shift,
                     double weight)
{
    const uint64_t peers = topology->peers;
    const uint64_t id = list->self + (list->sources ? peers - shift : shift);
    kith_list_add(list, (kith_id)(id % peers), weight);
}

uint32_t kith_degree_one(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

uint32_t kith_degree_rest(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers - 1;
}

uint32_t kith_degree_option(const struct kith_topology *topology, kith_id self)
{
    const uint32_t degree = topology->options.degree;
    const uint32_t most = kith_degree_rest(topology, self);
    return degree < most ? degree : most;
}

uint32_t kith_degree_log2(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return kith_topology_log2(topology->peers);
}

uint32_t *kith_degree_default(struct kith_topology *topology, uint32_t usual,
                              uint32_t most)
{
    uint32_t *const degree = &topology->options.degree;
    if (*degree == 0)
        *degree = usual < most ? usual : most;
    return degree;
}

enum kith_err kith_degree_prepare(struct kith_topology *topology,
                                  uint32_t usual, uint32_t most, char *error)
{
    const uint32_t degree = *kith_degree_default(topology, usual, most);
    return topology->peers == 1 || degree <= most
               ? KITH_OK
               : kith_topology_refuse(
                     error, KITH_EINVAL,
                     "degree: found %u with %u peers; allowed: up to %u",
                     degree, topology->peers, most);
}

enum kith_err kith_degree_check_even(const struct kith_topology *topology,
                                     char *error)
{
    const uint32_t degree = topology->options.degree;
    return degree % 2 == 0 || topology->peers % 2 == 0
               ? KITH_OK
               : kith_topology_refuse(
                     error, KITH_EINVAL,
                     "degree: found %u with %u peers; allowed: an even degree, "
                     "or an even number of peers",
                     degree, topology->peers);
}
