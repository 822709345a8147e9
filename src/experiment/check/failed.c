/* failed: exchanges that ended with neither side changed. */
#include "kith/check.h"

static double failed_value(const struct kith_values *values)
{
    return values->failed;
}

extern const struct kith_quantity kith_quantity_failed;
const struct kith_quantity kith_quantity_failed = {
    .name = "failed",
    .summary = "exchanges that ended with neither side changed",
    .paper = "-",
    .value = failed_value,
};
