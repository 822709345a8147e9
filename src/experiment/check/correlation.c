/* correlation: how alike the peers' models are, pooled over all pairs: 1 where
 * all are one. See kith_correlation. */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_correlation;
const struct kith_quantity kith_quantity_correlation = {
    .name = "correlation",
    .summary = "correlation of the values of two models, over all pairs",
    .paper = "Beton et al., 2025",
    .field = KITH_VALUE(correlation),
};
