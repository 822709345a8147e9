/* A network and its vector over a set of examples: what evaluate.c measures and
 * batch_statistics.c goes through. */
#ifndef KITH_TRAINING_EVALUATION_EVALUATOR_H
#define KITH_TRAINING_EVALUATION_EVALUATOR_H

#include "kith/evaluation.h"
#include "kith/loader.h"

struct kith_evaluator {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    struct kith_graph *network;           /* NULL: nothing is learnt */
    struct kith_loader *loader;           /* NULL without data */
    const struct kith_examples *examples; /* the same */
    /* A part of them, of so many; 0: there is none, and all stand for it. */
    struct kith_loader *part;
    uint32_t *part_rows; /* (part_count) ascending */
    size_t part_count;
    void *x; /* (dim) */
};
/* Opens all three, on the loader's backend, for its batches; what there is must
 * be released in either case. */
KITH_MUST_CHECK enum kith_err
kith_evaluator_prepare(const struct kith_experiment *experiment,
                       const struct kith_loader_config *loader,
                       struct kith_evaluator *job, char *error);
void kith_evaluator_release(struct kith_evaluator *job);

#endif
