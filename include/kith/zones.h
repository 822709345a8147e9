/* Peers in zones, and the lines between them that all share (docs/links.md,
 * "Zones").
 *
 *   zone of peer i   the region of network.matrix or coordinates, i mod R; else
 *                    by rank, as network.zones says: Z zones of equal size, the
 *                    first of them one larger where it does not divide, or the
 *                    sizes that it lists
 *   zone_rate        of a line from each zone to each other one, each way
 *   zone_rates       the same with a rate for each two, from a file; where it
 *                    has one from a zone to itself, of a line that all within
 *                    the zone share
 *   zone_uplink      of each zone's one line out, and of its one line in
 *
 * Memory: 4 bytes a zone, and 8 for each two of zone_rates. Test:
 * unit/test_zones.c. */
#ifndef KITH_ZONES_H
#define KITH_ZONES_H

#include <stdint.h>

#include "kith/types.h"

struct kith_zones {
    uint32_t count;  /* 0: there are none */
    uint32_t *first; /* (count + 1) ranks; NULL: peer i is in i mod count */
    uint64_t rate_bits, uplink_bits; /* one of the three; 0: no limit */
    uint64_t *pair_bits; /* (count, count) from the row's to the column's; 0 in
                            the diagonal: none within; NULL */
    uint64_t hash;       /* of those; else 0 */
};

/* Less than count; 0 where there are none. */
uint32_t kith_zone_of(const struct kith_zones *zones, kith_id peer);
/* "network.zone_rate", or whichever of them limits the lines; NULL: none. */
const char *kith_zones_limit(const struct kith_zones *zones);
/* Of the line from one zone to another where zone_rate or zone_rates says it,
 * in bits a second; 0: no limit. */
uint64_t kith_zones_rate(const struct kith_zones *zones, uint32_t from,
                         uint32_t to);
void kith_zones_close(struct kith_zones *zones);

#endif
