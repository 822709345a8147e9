/* Moshpit SGD: H own steps, then the exact mean of a small group.
 *
 *   x_i <- mean over the group of this round
 *
 * Groups are the lines of a virtual grid, one dimension after the other, so
 * that a full grid of D dimensions agrees after D rounds; all change cells
 * then. Who is missing of a group leaves its weight with the others; `degree`
 * + 1 is the size of a group.
 *
 * Source: Ryabinin et al., "Moshpit SGD: Communication-Efficient Decentralized
 * Training on Heterogeneous Unreliable Devices", NeurIPS 2021, Alg. 1.
 * Test: unit/test_rules_rounds.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_moshpit = {
    .name = "moshpit",
    .paper = "Ryabinin et al., NeurIPS 2021",
    .summary = "H local steps, then the exact mean of a small group, another "
               "one each time",
    AVERAGING,
    .schedule = "grid-groups",
};
