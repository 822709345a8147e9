/* A random few of the coordinates, the same for all who draw them by the number
 * of an exchange or a round: only values travel. One coordinate out of each run
 * of 1/p, so that each has the chance p; p = `share`. */
#ifndef KITH_GOSSIP_ALGORITHM_MASK_H
#define KITH_GOSSIP_ALGORITHM_MASK_H

#include "updates.h"

/* Bytes of the values. */
size_t kith_mask_payload(const struct kith_algebra *algebra);
/* places: those of a mask, for a device. */
size_t kith_mask_places(const struct kith_algebra *algebra);
/* sent <- the mask's coordinates of x. */
kith_edge_work kith_mask_make;
/* x_k <- x_k + weight (received_k - sent_k) for k in the mask. Returns the sum
 * of what that added. */
double kith_mask_mix(struct kith_algebra *algebra, double weight);

#endif
