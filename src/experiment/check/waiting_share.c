/* waiting_share: of wall time that training was held back by an exchange. */
#include "kith/check.h"

static double waiting_share_value(const struct kith_values *values)
{
    return values->waiting_share;
}

extern const struct kith_quantity kith_quantity_waiting_share;
const struct kith_quantity kith_quantity_waiting_share = {
    .name = "waiting_share",
    .summary = "share of time that training was held back by an exchange",
    .paper = "-",
    .value = waiting_share_value,
};
