/* The handles that are open in this process, and which calls they are in.
 *
 * The one thing of libkith that is global: fork() has to find every peer, and a
 * handle that was closed, or that a thread is using, is known before a byte of
 * it is read. */
#ifndef KITH_LIBRARY_HANDLES_H
#define KITH_LIBRARY_HANDLES_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/fork_gate.h"
#include "kith/session.h"

#define KITH_HANDLES_MAX 256u
#define KITH_MISUSE_BYTES 160u

/* In kith_open(), until leave(): memory of a handle that was closed may be this
 * one's. false: there are KITH_HANDLES_MAX. In a forked child the gate forgets,
 * the identity is wiped, and no handle is open any more. */
bool kith_handle_add(const void *handle, struct kith_fork_gate *gate,
                     struct kith_identity *identity);
void kith_handle_remove(const void *handle);

/* `call` begins (kept until leave). false: the handle is not open here, or
 * another thread is in a call, which is noted for misuse(). */
bool kith_handle_enter(const void *handle, const char *call);
void kith_handle_leave(const void *handle);
/* What was forbidden and done with it; "" for nothing. */
void kith_handle_misuse(const void *handle, char text[KITH_MISUSE_BYTES]);

#endif
