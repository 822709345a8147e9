/* G4: how many rounds a graph takes to agree, and the gap that is enough.
 *
 * Source of the exponential graph's gap: Ying et al., "Exponential Graph is
 * Provably Efficient for Decentralized Deep Training", NeurIPS 2021.
 * Test: unit/test_plan.c, against kith_topology_rho(). */
#include <math.h>

#include "plan_range.h"

#define PI 3.14159265358979323846

enum kith_err kith_plan_ring(double peers, double *rho, char *error)
{
    const struct plan_range ranges[] = {
        {"peers", peers, 3, KITH_PLAN_COUNT_MAX, false}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *rho = (1 + 2 * cos(2 * PI / peers)) / 3;
    return err;
}

enum kith_err kith_plan_exponential(double peers, double *rho, char *error)
{
    const struct plan_range ranges[] = {
        {"peers", peers, 2, KITH_PLAN_COUNT_MAX, false}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *rho = 1 - 2 / (1 + ceil(log2(peers)));
    return err;
}

enum kith_err kith_plan_rounds(double rho, double left, double *rounds,
                               char *error)
{
    const struct plan_range ranges[] = {{"rho", rho, 0, 1 - 1e-15, false},
                                        {"left", left, 0, 1 - 1e-15, true}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *rounds = rho > 0 ? kith_plan_whole_up(log(left) / log(rho)) : 1;
    return err;
}

enum kith_err kith_plan_gap(double rounds, double left, double *gap,
                            char *error)
{
    const struct plan_range ranges[] = {
        {"rounds", rounds, 1, KITH_PLAN_COUNT_MAX, false},
        {"left", left, 0, 1 - 1e-15, true}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err == KITH_OK)
        *gap = -expm1(log(left) / rounds);
    return err;
}
