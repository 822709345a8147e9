/* loss: of the averaged model on the test set. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_loss;
const struct kith_quantity kith_quantity_loss = {
    .name = "loss",
    .summary = "of the averaged model on the test set",
    .paper = "-",
    .field = KITH_VALUE(loss),
};
