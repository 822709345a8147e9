/* slow: a step takes `by` times as long: a straggler. */
#include "expand.h"

static enum kith_err slow_expand(const struct kith_fault_statement *statement,
                                 struct kith_atoms *atoms, char *error)
{
    return kith_fault_expand(statement, KITH_FAULT_SLOW, KITH_FAULT_SLOW,
                             &statement->duration, statement->by, atoms, error);
}

extern const struct kith_fault kith_fault_slow;
const struct kith_fault kith_fault_slow = {
    .name = "slow",
    .summary = "training steps take `by` times as long",
    .paper = "Dean, Barroso, \"The tail at scale\", CACM 2013",
    .keys = KITH_FAULT_KEY_FOR | KITH_FAULT_KEY_BY,
    .expand = slow_expand,
};
