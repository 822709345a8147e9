/* crash: SIGKILL. What the peer had not saved is lost; with `restart` its
 * process comes back after that time and adopts a neighbour's model. */
#include "kith/fault.h"

extern const struct kith_fault kith_fault_crash;
const struct kith_fault kith_fault_crash = {
    .name = "crash",
    .summary = "the process is killed; with `restart` it comes back",
    .paper = "Fischer, Lynch, Paterson, JACM 1985 (the model)",
    .keys = KITH_FAULT_TAKES(RESTART),
    .effects = KITH_FAULT_DOES(STOP),
};
