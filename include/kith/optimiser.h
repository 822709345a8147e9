/* Optimisers and learning-rate schedules. State is local: never gossiped.
 * One file per optimiser, one line in src/training/optimiser/optimisers.def.
 * Test: unit/test_optimiser.c, against formulas in float64. */
#ifndef KITH_OPTIMISER_H
#define KITH_OPTIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"
#include "kith/err.h"
#include "kith/model.h"

struct kith_optimiser_config {
    double learning_rate, momentum, weight_decay;
    bool nesterov;
    double beta1, beta2, epsilon; /* adamw; muon's vectors */
    double trust;                 /* lars */
    double clip;                  /* global norm of the gradient; 0: off */
};

/* One step. Vectors are on the backend: gradient and state (layout->trained),
 * x (layout->dim), of which only [0, trained) is changed; weight decay pulls at
 * [0, decayed) alone. */
struct kith_optimiser_step {
    const struct kith_optimiser_config *config;
    const struct kith_backend *backend;
    const struct kith_layout *layout;
    double rate;    /* learning rate, schedule included */
    uint64_t step;  /* from 0 */
    void *gradient; /* may be overwritten */
    void *const *state;
    void *x, *scratch;
    /* lars: (layers) that were found in parts (kith/lars_parts.h), of this
     * gradient, clipped before; NULL: found here. */
    const float *rates;
};

/* Keys of `train:` that only some optimisers read. X(NAME, key) */
#define KITH_OPTIMISER_KEYS(X)                                                 \
    X(MOMENTUM, "momentum")                                                    \
    X(NESTEROV, "nesterov")                                                    \
    X(BETA1, "beta1")                                                          \
    X(BETA2, "beta2")                                                          \
    X(EPSILON, "epsilon")                                                      \
    X(TRUST, "trust")
enum kith_optimiser_key {
#define KITH_X(name, key) KITH_OPTIMISER_KEY_##name,
    KITH_OPTIMISER_KEYS(KITH_X)
#undef KITH_X
        KITH_OPTIMISER_KEY_COUNT
};
#define KITH_OPTIMISER_READS(name) (1u << KITH_OPTIMISER_KEY_##name)

struct kith_optimiser {
    const char *name, *paper, *summary;
    unsigned keys;          /* KITH_OPTIMISER_READS(...) | ... */
    unsigned state_vectors; /* (trained) each, start at 0 */
    /* But for clip, values are stepped one by one: a step of a range, which no
     * layer is told of, is that range of a step. Test: unit/test_strips.c */
    bool is_elementwise;
    /* NULL: none. Bytes. */
    size_t (*scratch)(const struct kith_layout *layout,
                      const struct kith_backend *backend);
    /* Returns whether every new value of x is finite. */
    bool (*step)(const struct kith_optimiser_step *step);
};
extern const struct kith_optimiser *const kith_optimisers[];
const struct kith_optimiser *kith_optimiser_find(const char *name);
/* Scales the gradient to at most config->clip, where that is above 0; returns
 * its norm before. */
double kith_optimiser_clip(const struct kith_optimiser_step *step);

enum kith_schedule {
    KITH_SCHEDULE_CONSTANT, /* 1 */
    KITH_SCHEDULE_LINEAR,   /* 1 - t/T */
    KITH_SCHEDULE_COSINE,   /* (1 + cos(pi t/T)) / 2 */
    KITH_SCHEDULE_STEP,     /* decay^(milestones passed) */
    KITH_SCHEDULE_COUNT
};
const char *kith_schedule_name(enum kith_schedule schedule);

struct kith_schedule_config {
    enum kith_schedule kind;
    uint64_t warmup;      /* steps that climb linearly */
    double floor;         /* linear, cosine: ends at this share of the rate */
    double decay;         /* step */
    double milestones[4]; /* step: shares of all steps, ascending */
    uint32_t milestone_count;
};
/* The factor on the learning rate at step t of T: during warm-up
 * (t + 1) / warmup times, else 1 times
 *   floor + (1 - floor) schedule((t - warmup) / (T - warmup)).
 * where warmup is 0 the schedule runs over all of T. */
double kith_schedule_factor(const struct kith_schedule_config *config,
                            uint64_t step, uint64_t steps);

#endif
