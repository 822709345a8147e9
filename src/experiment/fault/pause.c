/* pause: SIGSTOP, and SIGCONT after `for`. Nothing is lost; the neighbours see
 * a peer that does not answer. */
#include "kith/fault.h"

extern const struct kith_fault kith_fault_pause;
const struct kith_fault kith_fault_pause = {
    .name = "pause",
    .summary = "the process stops for a while; nothing is lost",
    .paper = "Kingsbury, Jepsen (process pauses)",
    .keys = KITH_FAULT_TAKES(FOR),
    .effects = KITH_FAULT_DOES(PAUSE),
};
