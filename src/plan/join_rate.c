/* G5: one who joins takes a whole model from somebody's line out.
 *
 * Test: unit/test_plan.c. */
#include "plan_range.h"

enum kith_err kith_plan_joins(double rate, double model_bytes, double up,
                              double *peers, char *error)
{
    const struct plan_range ranges[] = {
        {"rate", rate, 0, KITH_PLAN_COUNT_MAX, true},
        PLAN_BYTES("model_bytes", model_bytes),
        PLAN_BYTES("up", up)};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *peers = kith_plan_whole_up(rate * model_bytes / up);
    return err;
}
