/* What several algorithms do alike. */
#ifndef KITH_GOSSIP_ALGORITHM_UPDATES_H
#define KITH_GOSSIP_ALGORITHM_UPDATES_H

#include "kith/algorithm.h"

/* x <- x + w (received - sent), and back: what two that average do. */
void kith_algorithm_mix(struct kith_algebra *algebra,
                        struct kith_work_edge *edge);
void kith_algorithm_unmix(struct kith_algebra *algebra,
                          struct kith_work_edge *edge);
/* The passive side: snapshot and merge in one pass over x. */
void kith_algorithm_swap_mix(struct kith_algebra *algebra,
                             struct kith_work_edge *edge);

/* Messages of two vectors, x and the algorithm's vector 0, both mixed. */
size_t kith_algorithm_two_vectors(const struct kith_algebra *algebra);
void kith_algorithm_make_two(struct kith_algebra *algebra,
                             struct kith_work_edge *edge);
void kith_algorithm_mix_two(struct kith_algebra *algebra,
                            struct kith_work_edge *edge);

/* direction: own vector `tracked` <- itself + g - g before, which the optimiser
 * gets in the place of g; own vector `before` <- g. */
void kith_algorithm_track(struct kith_algebra *algebra, unsigned tracked,
                          unsigned before);

/* Own vector `index` <- x. */
void kith_algorithm_keep(struct kith_algebra *algebra, unsigned index);
/* before_step: the same, where a round has just been. Who adopts a model does
 * so at any step, and keeps it in `start`. */
void kith_algorithm_stash(struct kith_algebra *algebra, unsigned index);
/* backend.h's combine, or the passes that it stands for. */
void kith_algorithm_update(const struct kith_backend *backend, size_t n,
                           unsigned count, const struct kith_update *updates);
/* One update; returns the sum of what that changed. */
double kith_algorithm_combine(const struct kith_backend *backend, size_t n,
                              double own, void *y, unsigned count,
                              const struct kith_term *terms);
/* The same, where nobody asks for the sum. */
void kith_algorithm_combine_only(const struct kith_backend *backend, size_t n,
                                 double own, void *y, unsigned count,
                                 const struct kith_term *terms);
/* a <- x, b <- x, (n) elements. */
void kith_algorithm_copy_twice(const struct kith_backend *backend, size_t n,
                               const void *x, void *a, void *b);
/* y <- y + a - b, (n) elements. */
void kith_algorithm_add_difference(const struct kith_backend *backend, size_t n,
                                   const void *a, const void *b, void *y);
/* The second vector of a message of two. */
static inline void *algorithm_second(const struct kith_algebra *algebra,
                                     const void *message)
{
    return (char *)message + algebra->dim * algebra->backend->element_bytes;
}

#endif
