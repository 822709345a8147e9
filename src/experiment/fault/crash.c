/* crash: SIGKILL. What the peer had not saved is lost; with `restart` its
 * process comes back after that time and adopts a neighbour's model. */
#include "expand.h"

static enum kith_err crash_expand(const struct kith_fault_statement *statement,
                                  struct kith_atoms *atoms, char *error)
{
    return kith_fault_expand(statement, KITH_FAULT_CRASH, KITH_FAULT_RESTART,
                             &statement->restart, 1, atoms, error);
}

extern const struct kith_fault kith_fault_crash;
const struct kith_fault kith_fault_crash = {
    .name = "crash",
    .summary = "the process is killed; with `restart` it comes back",
    .paper = "Fischer, Lynch, Paterson, JACM 1985 (the model)",
    .keys = KITH_FAULT_KEY_RESTART,
    .expand = crash_expand,
};
