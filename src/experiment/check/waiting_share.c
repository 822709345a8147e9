/* waiting_share: of wall time that training was held back by an exchange. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_waiting_share;
const struct kith_quantity kith_quantity_waiting_share = {
    .name = "waiting_share",
    .summary = "share of time that training was held back by an exchange",
    .paper = "-",
    .field = KITH_VALUE(waiting_share),
};
