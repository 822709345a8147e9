/* Optimisers and learning-rate schedules. State is local: never gossiped.
 * One file per optimiser, one line in src/optimiser/optimisers.def. */
#ifndef KITH_OPTIMISER_H
#define KITH_OPTIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdint.h>

#include "kith/backend.h"
#include "kith/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_optimiser_config {
    double learning_rate, momentum, weight_decay;
    double clip; /* global norm of the gradient; 0: off */
};

struct kith_optimiser {
    const char *name, *paper, *summary;
    unsigned state_vectors; /* (dim) each, start at 0 */
    /* x <- x - rate * direction; the gradient may be overwritten. Returns
     * whether every new value of x is finite. */
    bool (*step)(const struct kith_optimiser_config *config,
                 const struct kith_backend *backend, size_t n, double rate,
                 void *gradient, void *const *state, void *x);
};
extern const struct kith_optimiser *const kith_optimisers[];
const struct kith_optimiser *kith_optimiser_find(const char *name);

enum kith_schedule {
    KITH_SCHEDULE_CONSTANT, /* 1 */
    KITH_SCHEDULE_LINEAR,   /* 1 - t/T */
    KITH_SCHEDULE_COSINE,   /* (1 + cos(pi t/T)) / 2 */
    KITH_SCHEDULE_COUNT
};
const char *kith_schedule_name(enum kith_schedule schedule);
/* The factor on the learning rate at step t of T, after `warmup` steps that
 * climb linearly: min(1, (t + 1) / warmup) * schedule(t). */
double kith_schedule_factor(enum kith_schedule schedule, uint64_t step,
                            uint64_t steps, uint64_t warmup);

#ifdef __cplusplus
}
#endif
#endif
