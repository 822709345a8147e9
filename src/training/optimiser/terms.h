/* What several optimisers use. */
#ifndef KITH_TRAINING_OPTIMISER_TERMS_H
#define KITH_TRAINING_OPTIMISER_TERMS_H

#include "kith/optimiser.h"

/* The element at `offset` of a vector on the step's backend. */
static inline void *kith_at(const struct kith_optimiser_step *step,
                            const void *vector, size_t offset)
{
    return (char *)(uintptr_t)vector + offset * step->backend->element_bytes;
}

/* SGD on elements [from, to), with this share of the decay. */
bool kith_sgd_range(const struct kith_optimiser_step *step, size_t from,
                    size_t to, double decay);
/* AdamW on elements [from, to), with this share of the decay. */
bool kith_adamw_range(const struct kith_optimiser_step *step, size_t from,
                      size_t to, double decay);
/* lambda of a weight tensor; see lars.c. A pass over w and g. */
double kith_lars_rate(const struct kith_optimiser_step *step,
                      const struct kith_model_view *view);

#endif
