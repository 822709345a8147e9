/* accuracy_worst: the least accurate peer's own model. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_accuracy_worst;
const struct kith_quantity kith_quantity_accuracy_worst = {
    .name = "accuracy_worst",
    .summary = "of the least accurate peer's own model",
    .paper = "-",
    .needs_data = true,
    .field = KITH_VALUE(accuracy_worst),
};
