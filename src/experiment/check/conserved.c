/* conserved: averaging never changes the total silently.
 *
 *   live + in flight + lost = initial + gradients and restarts
 *
 * up to rounding. */
#include <math.h>

#include "kith/check.h"

static double conserved_value(const struct kith_values *values)
{
    if (isnan(values->conservation_error) ||
        isnan(values->conservation_tolerance))
        return NAN;
    return values->conservation_error <= values->conservation_tolerance;
}

extern const struct kith_quantity kith_quantity_conserved;
const struct kith_quantity kith_quantity_conserved = {
    .name = "conserved",
    .summary = "live + in flight + lost = initial + contributed",
    .paper = "Jesus, Baquero, Almeida, \"Flow Updating\", 2009 (mass as an "
             "invariant)",
    .predicate = true,
    .value = conserved_value,
};
