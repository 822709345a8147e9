/* loss: of the averaged model on the test set. */
#include "kith/check.h"

static double loss_value(const struct kith_values *values)
{
    return values->loss;
}

extern const struct kith_quantity kith_quantity_loss;
const struct kith_quantity kith_quantity_loss = {
    .name = "loss",
    .summary = "of the averaged model on the test set",
    .paper = "-",
    .value = loss_value,
};
