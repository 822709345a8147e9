/* failed: exchanges that ended with neither side changed. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_failed;
const struct kith_quantity kith_quantity_failed = {
    .name = "failed",
    .summary = "exchanges that ended with neither side changed",
    .paper = "-",
    .field = KITH_VALUE(failed),
};
