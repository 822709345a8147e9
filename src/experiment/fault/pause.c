/* pause: SIGSTOP, and SIGCONT after `for`. Nothing is lost; the neighbours see
 * a peer that does not answer. */
#include "expand.h"

static enum kith_err pause_expand(const struct kith_fault_statement *statement,
                                  struct kith_atoms *atoms, char *error)
{
    return kith_fault_expand(statement, KITH_FAULT_PAUSE, KITH_FAULT_RESUME,
                             &statement->duration, 1, atoms, error);
}

extern const struct kith_fault kith_fault_pause;
const struct kith_fault kith_fault_pause = {
    .name = "pause",
    .summary = "the process stops for a while; nothing is lost",
    .paper = "Kingsbury, Jepsen (process pauses)",
    .keys = KITH_FAULT_KEY_FOR,
    .expand = pause_expand,
};
