/* Vectors in parts that the nearest cache holds. */
#ifndef KITH_ALGORITHM_PARTS_H
#define KITH_ALGORITHM_PARTS_H

#include "kith/algorithm.h"

typedef double (*algorithm_part)(struct kith_algebra *part, void *argument);

/* `run` for each part in turn: live, sent, received, `vectors` of its own,
 * those kept for its edges and the first inboxes begin at the part, and dim,
 * rest and trained are its. Returns the sum of what it returned. */
double algorithm_in_parts(struct kith_algebra *whole, unsigned vectors,
                          uint32_t inboxes, algorithm_part run, void *argument);

#endif
