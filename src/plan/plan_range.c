/* Inputs are checked before anything is computed, so that no formula divides by
 * zero, overflows or answers NaN. */
#include "plan_range.h"

#include <math.h>

#include "kith/text.h"

enum kith_err kith_plan_check(const struct plan_range *ranges, size_t count,
                              char *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct plan_range *range = &ranges[i];
        const bool is_low = range->above ? range->value > range->low
                                         : range->value >= range->low;
        if (is_low && range->value <= range->high)
            continue;
        return kith_text_fail(
            error, KITH_PLAN_ERROR_BYTES, KITH_EINVAL,
            "%s: found %g; allowed: %s %g, up to %g", range->name, range->value,
            range->above ? "above" : "from", range->low, range->high);
    }
    return KITH_OK;
}

/* Of a quotient of two numbers that are right to a part in 2^53. */
#define ROUNDING 1e-9

double kith_plan_whole_up(double value)
{
    return fmax(1, ceil(value * (1 - ROUNDING)));
}

double kith_plan_whole_down(double value)
{
    return floor(value * (1 + ROUNDING));
}
