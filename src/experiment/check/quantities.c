/* The quantities that a check may name. A figure of struct kith_values is a row
 * that names its field. */
#include <math.h>

#include "kith/check.h"

/* Averaging never changes the total silently, up to rounding:
 *
 *   live + in flight + lost = initial + gradients and restarts */
static double conserved_value(const struct kith_values *values)
{
    if (isnan(values->conservation_error) ||
        isnan(values->conservation_tolerance))
        return NAN;
    return values->conservation_error <= values->conservation_tolerance;
}

const struct kith_quantity kith_quantities[] = {
    {"finite(model)", "no live model holds a NaN or an infinity", "-",
     .predicate = true, .needs = KITH_NEEDS_VALUES,
     .field = KITH_VALUE(finite)},
    {"live",
     "after the last fault, who is there goes on training and averaging",
     "Lamport, \"Proving the correctness of multiprocess programs\", 1977",
     .predicate = true, .field = KITH_VALUE(live)},
    {"conserved", "live + in flight + lost = initial + contributed",
     "Jesus, Baquero, Almeida, \"Flow Updating\", 2009 (mass as an "
     "invariant)",
     .predicate = true, .needs = KITH_NEEDS_VALUES, .value = conserved_value},
    {"accuracy", "of the averaged model on the test set, in [0, 1]", "-",
     .needs = KITH_NEEDS_DATA, .field = KITH_VALUE(accuracy)},
    {"accuracy_mean", "mean over peers of their own models' accuracy", "-",
     .needs = KITH_NEEDS_DATA, .of_all = true,
     .field = KITH_VALUE(accuracy_mean)},
    {"accuracy_worst", "of the least accurate peer's own model", "-",
     .needs = KITH_NEEDS_DATA, .of_all = true,
     .field = KITH_VALUE(accuracy_worst)},
    {"loss", "of the averaged model on the test set", "-",
     .needs = KITH_NEEDS_LOSS, .field = KITH_VALUE(loss)},
    {"consensus_distance",
     "root mean square distance of the models from their mean",
     "Koloskova et al., ICML 2020", .needs = KITH_NEEDS_VALUES,
     .field = KITH_VALUE(consensus_distance)},
    {"correlation", "correlation of the values of two models, over all pairs",
     "Beton et al., 2025", .needs = KITH_NEEDS_VALUES,
     .field = KITH_VALUE(correlation)},
    {"done", "exchanges that both sides merged", "-",
     .field = KITH_VALUE(done)},
    {"failed", "exchanges that ended with neither side changed", "-",
     .field = KITH_VALUE(failed)},
    {"torn", "exchanges that one side merged and the other did not", "-",
     .field = KITH_VALUE(torn)},
    {"waiting_share",
     "share of time that training was held back by an exchange", "-",
     .field = KITH_VALUE(waiting_share)},
    {.name = NULL},
};
