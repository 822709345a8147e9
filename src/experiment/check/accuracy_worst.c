/* accuracy_worst: the least accurate peer's own model. */
#include "kith/check.h"

static double accuracy_worst_value(const struct kith_values *values)
{
    return values->accuracy_worst;
}

extern const struct kith_quantity kith_quantity_accuracy_worst;
const struct kith_quantity kith_quantity_accuracy_worst = {
    .name = "accuracy_worst",
    .summary = "of the least accurate peer's own model",
    .paper = "-",
    .needs_data = true,
    .value = accuracy_worst_value,
};
