/* The loop's side of kith/fork_gate.h. A NULL gate is none. */
#ifndef KITH_PEER_FORK_LOOP_H
#define KITH_PEER_FORK_LOOP_H

#include "kith/fork_gate.h"

struct kith_driver;

/* From begin() to end() forks wait for the loop; end() closes its handle. */
KITH_MUST_CHECK enum kith_err kith_fork_loop_begin(struct kith_fork_gate *gate,
                                                   struct kith_driver *driver);
void kith_fork_loop_end(struct kith_fork_gate *gate);

#endif
