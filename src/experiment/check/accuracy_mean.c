/* accuracy_mean: the mean of the peers' own accuracies. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_accuracy_mean;
const struct kith_quantity kith_quantity_accuracy_mean = {
    .name = "accuracy_mean",
    .summary = "mean over peers of their own models' accuracy",
    .paper = "-",
    .needs_data = true,
    .field = KITH_VALUE(accuracy_mean),
};
