/* accuracy: of the averaged model on the test set, in [0, 1]. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_accuracy;
const struct kith_quantity kith_quantity_accuracy = {
    .name = "accuracy",
    .summary = "of the averaged model on the test set, in [0, 1]",
    .paper = "-",
    .needs_data = true,
    .field = KITH_VALUE(accuracy),
};
