/* Epidemic learning: the plain mean of one's own and what came. */
#ifndef KITH_GOSSIP_ALGORITHM_EPIDEMIC_H
#define KITH_GOSSIP_ALGORITHM_EPIDEMIC_H

#include "updates.h"

/* All is done at the end, when it is known how many came. */
void kith_epidemic_merge(struct kith_algebra *algebra,
                         struct kith_work_edge *edge);
/* x <- x + sum_j (received_j - sent) / (1 + received) */
double kith_epidemic_finish(struct kith_algebra *algebra,
                            const struct kith_work_edge *edges,
                            uint32_t edge_count);

#endif
