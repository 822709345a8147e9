/* How good a model is: its loss and accuracy over a test set, and running
 * statistics for an average of models. */
#ifndef KITH_EVALUATION_H
#define KITH_EVALUATION_H

#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"

/* KITH_EINVAL: the examples do not fit the model. KITH_EDEVICE: the backend has
 * failed; its word says how. Models without data: the mean
 * loss over the peers' targets, accuracy NaN; without a loss: both NaN.
 * Loss and accuracy of parameters z (dim, float64) over examples, in batches
 * of 256, on the worker's backend with scratch of its own. */
struct kith_score {
    double loss, accuracy;
};
/* The same in three parts, for who evaluates often: opening takes all memory,
 * so that what does not fit is known before a run begins. `error`
 * (KITH_DATA_ERROR_BYTES) is a line. Everything is lent until the close. */
struct kith_evaluator;
KITH_MUST_CHECK enum kith_err
kith_evaluator_open(const struct kith_experiment *experiment,
                    const struct kith_backend *backend,
                    const struct kith_examples *examples,
                    struct kith_evaluator **evaluator, char *error);
/* KITH_EDEVICE; KITH_EPARSE: kith_loader_failed of the test set. */
KITH_MUST_CHECK enum kith_err
kith_evaluator_score(struct kith_evaluator *evaluator, const double *z,
                     struct kith_score *score, char *error);
void kith_evaluator_close(struct kith_evaluator *evaluator);
/* A part of the examples, once, for points of a curve: `rows` of them, drawn
 * from nothing but their number, so that it is the same one for every seed,
 * peer and world; 0, or as many as there are: all. KITH_ENOMEM, with a line as
 * above. score_part measures on it, score goes on measuring on all.
 * Test: unit/test_curve.c */
KITH_MUST_CHECK enum kith_err
kith_evaluator_part(struct kith_evaluator *evaluator, size_t rows, char *error);
KITH_MUST_CHECK enum kith_err
kith_evaluator_score_part(struct kith_evaluator *evaluator, const double *z,
                          struct kith_score *score, char *error);
/* How alike the models of n peers are: the correlation of two of them, pooled
 * over all pairs,
 *   (v - D^2 / (n - 1)) / (v + D^2),   v = |mean - its own average|^2,
 * of their mean (dim) and consensus distance D. 1: all are one; 0: strangers;
 * NaN for fewer than two. Test: unit/test_estimate.c. */
double kith_correlation(const double *mean, size_t dim,
                        double consensus_distance, uint32_t peers);
KITH_MUST_CHECK enum kith_err
kith_evaluate(const struct kith_experiment *experiment,
              const struct kith_backend *backend,
              const struct kith_examples *examples, const double *z,
              struct kith_score *score);

/* Running statistics of z (dim), in place: their means over `batches` batches
 * of the training set, each with weight 1 / batches. What an average of models
 * needs before it is evaluated, for it has activations that none of them had.
 * Nothing changes where the model has none. Batches are those of nobody's
 * stream, with `train.augment`: the same at every call.
 * Test: unit/test_estimate.c */
#define KITH_ESTIMATE_BATCHES 20u
/* Of a batch at least: fewer rows say little about a variance. */
#define KITH_ESTIMATE_ROWS 64u
KITH_MUST_CHECK enum kith_err
kith_estimate(const struct kith_experiment *experiment,
              const struct kith_backend *backend,
              const struct kith_examples *train, uint32_t batches, double *z);

#endif
