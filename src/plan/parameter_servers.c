/* Lemma 2: servers whose links carry all pushes and pulls of a round while its
 * gradients are computed.
 *
 * Source: Zou et al., Lemma 2. Test: unit/test_plan.c. */
#include "plan_range.h"

enum kith_err kith_plan_servers(double model_bytes, double workers, double rate,
                                double step_s, double *servers, char *error)
{
    const struct plan_range ranges[] = {
        PLAN_BYTES("model_bytes", model_bytes),
        {"workers", workers, 1, KITH_PLAN_COUNT_MAX, false},
        PLAN_BYTES("rate", rate),
        PLAN_SECONDS("step_s", step_s)};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *servers =
            kith_plan_whole_up(2 * model_bytes * workers / (rate * step_s));
    return err;
}
