/* done: exchanges that both sides merged. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_done;
const struct kith_quantity kith_quantity_done = {
    .name = "done",
    .summary = "exchanges that both sides merged",
    .paper = "-",
    .field = KITH_VALUE(done),
};
