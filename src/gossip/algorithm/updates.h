/* What several algorithms do alike. */
#ifndef KITH_GOSSIP_ALGORITHM_UPDATES_H
#define KITH_GOSSIP_ALGORITHM_UPDATES_H

#include "kith/algorithm.h"

/* Entries make, merge and undo: something with a neighbour. */
typedef void kith_edge_work(struct kith_algebra *algebra,
                            struct kith_work_edge *edge);

/* x <- x + w (received - sent), and back: what two that average do. */
kith_edge_work kith_algorithm_mix, kith_algorithm_unmix;

/* Records of plain averaging with all of a round, for which training waits. */
#define AVERAGING                                                              \
    .pattern = KITH_PATTERN_ROUND, .wait = KITH_WAIT_STRICT,                   \
    .flags = KITH_CONSERVES_SUM | KITH_MERGES_BESIDE | KITH_TAKES_GUARD,       \
    .merge = kith_algorithm_mix

/* Bytes of a message of two vectors. */
size_t kith_algorithm_two_vectors(const struct kith_algebra *algebra);

/* direction: tracked <- tracked + g - g before, which the optimiser gets in the
 * place of g; then g before <- g. */
enum { KITH_TRACKED, KITH_GRADIENT_BEFORE, KITH_TRACKED_VECTORS };
void kith_algorithm_track(struct kith_algebra *algebra);

/* start: the first of the algorithm's own vectors <- x. */
void kith_algorithm_start(struct kith_algebra *algebra);
/* before_step: the same, in the step after a round. A model may be adopted at
 * any step; `start` keeps it. */
void kith_algorithm_before_step(struct kith_algebra *algebra);
/* merge: `finish` does all, since it depends on what else was received. */
kith_edge_work kith_algorithm_merge_later;

/* Running statistics, which come after what trains, are averaged plainly by
 * methods that treat the trained part in their own way. */
void kith_algorithm_copy_buffers(const struct kith_algebra *algebra, void *to,
                                 const void *from);
/* Returns the sum of what that added. */
double kith_algorithm_mix_buffers(struct kith_algebra *algebra, double weight);

/* y <- own y + term; the sum of what that changed goes to `change`, NULL: it is
 * not asked for. */
static inline struct kith_update
kith_one_term(void *y, double own, const struct kith_term *term, double *change)
{
    return (struct kith_update){
        .y = y, .own = own, .count = 1, .terms = term, .change = change};
}
/* One update; returns the sum of what that changed. */
double kith_algorithm_combine(const struct kith_backend *backend, size_t n,
                              double own, void *y, unsigned count,
                              const struct kith_term *terms);
/* The same, where nobody asks for the sum. */
void kith_algorithm_combine_only(const struct kith_backend *backend, size_t n,
                                 double own, void *y, unsigned count,
                                 const struct kith_term *terms);
/* `finish`: x <- x + terms (merged_count); returns what that added. */
double kith_algorithm_add_merged(struct kith_algebra *algebra,
                                 const struct kith_term *terms);
/* a <- x, b <- x, (n) elements. */
void kith_algorithm_copy_twice(const struct kith_backend *backend, size_t n,
                               const void *x, void *a, void *b);
/* y <- y + a - b, (n) elements. */
void kith_algorithm_add_difference(const struct kith_backend *backend, size_t n,
                                   const void *a, const void *b, void *y);
/* A vector from element `index` on. */
static inline void *kith_algorithm_at(const struct kith_algebra *algebra,
                                      const void *vector, size_t index)
{
    return (char *)vector + index * algebra->backend->element_bytes;
}

/* The second vector of a message of two. */
static inline void *kith_algorithm_second(const struct kith_algebra *algebra,
                                          const void *message)
{
    return kith_algorithm_at(algebra, message, algebra->dim);
}

#endif
