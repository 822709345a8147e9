/* torn: exchanges that one side merged and the other did not. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_torn;
const struct kith_quantity kith_quantity_torn = {
    .name = "torn",
    .summary = "exchanges that one side merged and the other did not",
    .paper = "-",
    .field = KITH_VALUE(torn),
};
