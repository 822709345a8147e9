/* The bounds of an input, and the one line that says which is broken. */
#ifndef KITH_SRC_PLAN_PLAN_RANGE_H
#define KITH_SRC_PLAN_PLAN_RANGE_H

#include <stdbool.h>

#include "kith/plan.h"

struct plan_range {
    const char *name;
    double value, low, high;
    bool above; /* low itself is not allowed */
};
#define PLAN_SECONDS(name, value)                                              \
    {                                                                          \
        name, value, KITH_PLAN_LEAST, KITH_PLAN_SECONDS_MAX, false             \
    }
#define PLAN_BYTES(name, value)                                                \
    {                                                                          \
        name, value, KITH_PLAN_LEAST, KITH_PLAN_BYTES_MAX, false               \
    }

/* The first that is NaN or outside: KITH_EINVAL with the line in `error`. */
KITH_MUST_CHECK enum kith_err kith_plan_check(const struct plan_range *ranges,
                                              size_t count, char *error);
#define PLAN_CHECK(ranges, error)                                              \
    kith_plan_check(ranges, sizeof(ranges) / sizeof *(ranges), error)

/* The least whole number that is no smaller, from 1, but for what rounding
 * added: 3 of a step's 3.0000000001 hide. */
double kith_plan_whole_up(double value);
/* The largest whole number that is no larger, likewise. */
double kith_plan_whole_down(double value);

#endif
