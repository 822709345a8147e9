/* finite(model): no live model holds a NaN or an infinity. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_finite;
const struct kith_quantity kith_quantity_finite = {
    .name = "finite(model)",
    .summary = "no live model holds a NaN or an infinity",
    .paper = "-",
    .predicate = true,
    .field = KITH_VALUE(finite),
};
