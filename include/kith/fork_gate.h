/* fork() in a process where a peer runs.
 *
 * The child has a copy of everything but the threads: sockets that would keep a
 * dead peer's connections and port alive, keys that it has no use for, and a
 * loop that stopped wherever it was. So the loop rests while a fork is made,
 *
 *   forking thread   hold ......... fork ... release  (parent)
 *   loop thread      ..... rests ...............  goes on
 *   child                             forget: closes, wipes
 *
 * and the child finds it between two callbacks, where it can be taken apart.
 *
 * Test: integration/test_python_fork.sh */
#ifndef KITH_FORK_GATE_H
#define KITH_FORK_GATE_H

#include "kith/err.h"

struct kith_fork_gate;

KITH_MUST_CHECK enum kith_err kith_fork_gate_open(struct kith_fork_gate **gate);
/* After kith_peer_run(). NULL is none. */
void kith_fork_gate_close(struct kith_fork_gate *gate);

/* Around fork(), by the thread that calls it, which may be the loop's. hold()
 * waits for the end of the callback that the loop is in. */
void kith_fork_gate_hold(struct kith_fork_gate *gate);
void kith_fork_gate_release(struct kith_fork_gate *gate);
/* In the child: closes what the loop watches, wipes its keys. The peer's memory
 * is left as it is. */
void kith_fork_gate_forget(struct kith_fork_gate *gate);

/* By the loop thread around a call that may wait for who forks, as one that
 * logs in Python waits for its interpreter. */
void kith_fork_gate_rest(struct kith_fork_gate *gate);
void kith_fork_gate_resume(struct kith_fork_gate *gate);

#endif
