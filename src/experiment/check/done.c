/* done: exchanges that both sides merged. */
#include "kith/check.h"

static double done_value(const struct kith_values *values)
{
    return values->done;
}

extern const struct kith_quantity kith_quantity_done;
const struct kith_quantity kith_quantity_done = {
    .name = "done",
    .summary = "exchanges that both sides merged",
    .paper = "-",
    .value = done_value,
};
