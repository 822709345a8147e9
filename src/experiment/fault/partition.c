/* partition: traffic between two groups stalls; it is not refused, so that
 * neither side is told.
 *
 *   A <-> B   both ways        A -> B   only what A sends to B */
#include "kith/fault.h"

extern const struct kith_fault kith_fault_partition;
const struct kith_fault kith_fault_partition = {
    .name = "partition",
    .summary = "traffic between two groups stalls, one way or both",
    .paper = "Gilbert, Lynch, SIGACT News 2002 (the model)",
    .between = true,
    .keys = KITH_FAULT_TAKES(FOR),
    .effect = KITH_EFFECT_LINK,
    .begin = {"cut", 5},
    .end = {"heal", 6},
};
