/* Lemma 1: S(G) = G (1 + R) / (1 + G R), and what it says backwards.
 *
 * Source: Zou et al., Lemma 1. Test: unit/test_plan.c (T2.1). */
#include <math.h>

#include "kith/text.h"
#include "plan_range.h"

#define RATIO_MAX 1e9

enum kith_err kith_plan_speedup(double workers, double ratio,
                                struct kith_plan_speedup *out, char *error)
{
    const struct plan_range ranges[] = {
        {"workers", workers, 1, KITH_PLAN_COUNT_MAX, false},
        {"ratio", ratio, 0, RATIO_MAX, false}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err != KITH_OK)
        return err;
    out->efficiency = (1 + ratio) / (1 + workers * ratio);
    out->speedup = workers * out->efficiency;
    out->limit =
        ratio >= KITH_PLAN_RATIO_LEAST ? 1 + 1 / ratio : (double)INFINITY;
    return KITH_OK;
}

enum kith_err kith_plan_workers(double alpha, double ratio, double *workers,
                                char *error)
{
    const struct plan_range ranges[] = {
        {"alpha", alpha, KITH_PLAN_LEAST, 1, false},
        {"ratio", ratio, KITH_PLAN_RATIO_LEAST, RATIO_MAX, false}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err != KITH_OK)
        return err;
    /* (1 + R - alpha) / (alpha R), whose first difference loses a small R. */
    *workers = 1 / alpha + (1 - alpha) / (alpha * ratio);
    return KITH_OK;
}

enum kith_err kith_plan_ratio(double alpha, double workers, double *ratio,
                              char *error)
{
    const struct plan_range alphas[] = {
        {"alpha", alpha, KITH_PLAN_LEAST, 1, false}};
    enum kith_err err = PLAN_CHECK(alphas, error);
    if (err != KITH_OK)
        return err;
    const struct plan_range counts[] = {
        {"workers", workers, 1 / alpha, KITH_PLAN_COUNT_MAX, true}};
    err = PLAN_CHECK(counts, error);
    if (err != KITH_OK)
        return err;
    /* Rounding may leave nothing of a count just above 1 / alpha. */
    const double found = (1 - alpha) / (alpha * workers - 1);
    if (!(found >= 0 && found <= RATIO_MAX))
        return kith_text_fail(
            error, KITH_PLAN_ERROR_BYTES, KITH_EINVAL,
            "workers: found %.17g; allowed: further above 1 / alpha, %g",
            workers, 1 / alpha);
    *ratio = found;
    return KITH_OK;
}
