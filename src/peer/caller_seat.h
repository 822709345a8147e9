/* The thread's side of kith/caller.h: where the caller finds its items. */
#ifndef KITH_PEER_CALLER_SEAT_H
#define KITH_PEER_CALLER_SEAT_H

#include "kith/caller.h"
#include "training_thread.h"

void kith_caller_seat(struct kith_caller *caller, struct kith_thread *thread);
/* An item was handed out; by the loop, which holds the thread's lock. */
void kith_caller_submitted(struct kith_caller *caller);
/* Once the thread says that it stops: waits for the call under way. */
void kith_caller_unseat(struct kith_caller *caller);

#endif
