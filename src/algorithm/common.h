/* What several algorithms do alike. */
#ifndef KITH_ALGORITHM_COMMON_H
#define KITH_ALGORITHM_COMMON_H

#include "kith/algorithm.h"

/* x <- x + w (received - sent), and back: what two that average do. */
void algorithm_mix(struct kith_algebra *algebra, struct kith_work_edge *edge);
void algorithm_unmix(struct kith_algebra *algebra, struct kith_work_edge *edge);
/* The passive side: snapshot and merge in one pass over x. */
void algorithm_swap_mix(struct kith_algebra *algebra,
                        struct kith_work_edge *edge);

/* y <- y + a - b, (n) elements. */
void algorithm_add_difference(const struct kith_backend *backend, size_t n,
                              const void *a, const void *b, void *y);
/* The vector's element at `at`. */
static inline void *algorithm_at(const struct kith_algebra *algebra,
                                 void *vector, size_t at)
{
    return (char *)vector + at * algebra->backend->element_bytes;
}

#endif
