/* Guard none: whatever passed the gate is merged. */

#include "kith/guard.h"

extern const struct kith_guard kith_guard_none;
const struct kith_guard kith_guard_none = {
    .name = "none",
    .paper = "-",
    .summary = "merge whatever is finite, of the right shape and fresh",
};
