/* consensus_distance: how far the peers' models are from their mean,
 *
 *   sqrt((1/n) sum_i |x_i - mean|^2). */
#include "kith/check.h"

extern const struct kith_quantity kith_quantity_consensus_distance;
const struct kith_quantity kith_quantity_consensus_distance = {
    .name = "consensus_distance",
    .summary = "root mean square distance of the models from their mean",
    .paper = "Koloskova et al., ICML 2020",
    .field = KITH_VALUE(consensus_distance),
};
