/* slow: a step takes `by` times as long: a straggler. */
#include "kith/fault.h"

extern const struct kith_fault kith_fault_slow;
const struct kith_fault kith_fault_slow = {
    .name = "slow",
    .summary = "training steps take `by` times as long",
    .paper = "Dean, Barroso, \"The tail at scale\", CACM 2013",
    .keys = KITH_FAULT_TAKES(FOR) | KITH_FAULT_TAKES(BY),
    .effects = KITH_FAULT_DOES(SLOW),
};
