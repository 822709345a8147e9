/* What the faults share: from a statement's target to pairs of atoms. */
#ifndef KITH_EXPERIMENT_FAULT_EXPAND_H
#define KITH_EXPERIMENT_FAULT_EXPAND_H

#include "kith/fault.h"

/* `begin` and `end` of one interval on each peer of the target. length NONE:
 * it has no end. factor: SLOW while it lasts, 1 after; others ignore it. */
KITH_MUST_CHECK enum kith_err
kith_fault_expand(const struct kith_fault_statement *statement,
                  enum kith_fault_kind begin, enum kith_fault_kind end,
                  const struct kith_spread *length, double factor,
                  struct kith_atoms *atoms, char *error);

#endif
