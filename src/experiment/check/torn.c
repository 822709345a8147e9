/* torn: exchanges that one side merged and the other did not. */
#include "kith/check.h"

static double torn_value(const struct kith_values *values)
{
    return values->torn;
}

extern const struct kith_quantity kith_quantity_torn;
const struct kith_quantity kith_quantity_torn = {
    .name = "torn",
    .summary = "exchanges that one side merged and the other did not",
    .paper = "-",
    .value = torn_value,
};
