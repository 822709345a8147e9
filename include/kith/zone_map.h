/* A map of a run's zones (kith/zones.h) for whoever draws them: at most
 * KITH_PLACES_MAX places in the plane, each a zone or several that are near.
 *
 *   matrix
 *     classical scaling of the one-way times t; a zone's own count as 0, and
 *     both directions by the mean of their squares:
 *
 *       B = -1/2 J S J,  s_ij = (t_ij^2 + t_ji^2) / 2,  J = I - 1 1' / R
 *       (x, y)_i = (sqrt(l1) v1_i, sqrt(l2) v2_i)
 *
 *     with the two largest eigenvalues of B, 0 where one is not above it, and
 *     their eigenvectors, the largest element positive. Where t are distances
 *     in a plane that is the plane, turned.
 *   coordinates
 *     theirs; a host's height is no place
 *   by number
 *     none: x and y are NaN
 *
 * More zones than places are joined: halves of equal count along the wider
 * axis, again and again, and a place is the mean of its zones; by number,
 * neighbours.
 * Source: W. S. Torgerson, "Multidimensional scaling: I. Theory and method",
 * Psychometrika 17(4), 1952.
 * Memory: 1 byte a zone, and 40 while it is made. Test: unit/test_zone_map.c.
 */
#ifndef KITH_ZONE_MAP_H
#define KITH_ZONE_MAP_H

#include <stdint.h>

#include "kith/err.h"
#include "kith/latencies.h"
#include "kith/zones.h"

#define KITH_PLACES_MAX 64u
/* A page draws so many peers one by one; of more there is a map. */
#define KITH_NODES_MAX 1000u
/* A region's name, with its end, a longer one is cut; and how many more. */
#define KITH_REGION_NAME_BYTES 32u
#define KITH_PLACE_NAME_BYTES (KITH_REGION_NAME_BYTES + 24u)

struct kith_map_place {
    char name[KITH_PLACE_NAME_BYTES]; /* "us-east-1 and 3 more" */
    uint32_t zones, peers;
    double x, y; /* ms one way of a matrix, of a round trip of coordinates */
};

struct kith_zone_map {
    uint32_t count;    /* of places; 0: there are no zones */
    uint32_t zones;    /* that have peers */
    uint8_t *place_of; /* (zones) */
    struct kith_map_place places[KITH_PLACES_MAX];
};

/* KITH_ENOMEM; then there is nothing to close. Cost of a matrix: at most 2,000
 * passes over R x R times for each axis, fewer above 1,000 regions. */
KITH_MUST_CHECK enum kith_err
kith_zone_map_open(const struct kith_zones *zones,
                   const struct kith_latencies *latencies, uint32_t peers,
                   struct kith_zone_map *map);
void kith_zone_map_close(struct kith_zone_map *map);

#endif
