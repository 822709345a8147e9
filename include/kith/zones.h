/* Peers in zones, and the lines between them that all share (docs/links.md,
 * "Zones").
 *
 *   zone of peer i   the region of network.matrix or coordinates, i mod R; else
 *                    by rank, as network.zones says: Z zones of equal size, the
 *                    first of them one larger where it does not divide, or the
 *                    sizes that it lists
 *   zone_rate        of a line from each zone to each other one, each way
 *   zone_uplink      of each zone's one line out, and of its one line in
 *
 * Memory: 4 bytes a zone. Test: unit/test_zones.c. */
#ifndef KITH_ZONES_H
#define KITH_ZONES_H

#include <stdint.h>

#include "kith/types.h"

struct kith_zones {
    uint32_t count;  /* 0: there are none */
    uint32_t *first; /* (count + 1) ranks; NULL: peer i is in i mod count */
    uint64_t rate_bits, uplink_bits; /* one of them; 0: no limit */
};

/* Less than count; 0 where there are none. */
uint32_t kith_zone_of(const struct kith_zones *zones, kith_id peer);
void kith_zones_close(struct kith_zones *zones);

#endif
