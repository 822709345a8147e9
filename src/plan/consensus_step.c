/* G7: how far CHOCO may move towards the public copies in a round.
 *
 * Source: Koloskova et al., ICML 2019, Theorem 2. Test: unit/test_plan.c. */
#include <math.h>

#include "plan_range.h"

/* Through (0.01, 0.05) and (1, 1): ln 0.05 / ln 0.01. */
#define POWER 0.65

enum kith_err kith_plan_gamma(double gap, double lowest, double omega,
                              struct kith_plan_gamma *out, char *error)
{
    const struct plan_range ranges[] = {
        {"gap", gap, 0, 1, true},
        {"lowest", lowest, -1, 1 - 1e-15, false},
        {"omega", omega, 0, 1, true}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err != KITH_OK)
        return err;
    const double beta = 1 - lowest, squared = beta * beta;
    out->safe = gap * gap * omega /
                (16 * gap + gap * gap + 4 * squared + 2 * gap * squared -
                 8 * gap * omega);
    out->limit = 2 / beta;
    out->advise = fmin(pow(omega, POWER), 1 / beta);
    return KITH_OK;
}
