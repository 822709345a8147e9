/* huge: what a peer sends is `by`, sign by sign: finite, and no model. A
 * certified member gone bad; what it trains itself is not changed. With
 * `models` it is over after so many that are made to be sent; one that goes to
 * all neighbours of a round is one. */
#include "kith/fault.h"

extern const struct kith_fault kith_fault_huge;
const struct kith_fault kith_fault_huge = {
    .name = "huge",
    .summary = "every value that the peer sends has the magnitude `by`",
    .paper = "Blanchard et al., NIPS 2017 (Byzantine peers)",
    .keys =
        KITH_FAULT_TAKES(FOR) | KITH_FAULT_TAKES(BY) | KITH_FAULT_TAKES(MODELS),
    .effect = KITH_EFFECT_LIE,
    .begin = {"huge", 7},
    .end = {"huge", 7},
};
