/* CPU accounting of one thread by what it does.
 *
 * The thread's CPU clock is read at every switch and the time since the last
 * one booked on the kind that was current. Outside all callbacks the kind is
 * SOCKET: what libuv does there is polling, reading and writing. */
#ifndef KITH_UV_ACCOUNT_H
#define KITH_UV_ACCOUNT_H

#include <time.h>

#include "kith/types.h"

enum kith_account_kind {
    KITH_ACCOUNT_SOCKET,
    KITH_ACCOUNT_AEAD,
    KITH_ACCOUNT_OTHER,
    KITH_ACCOUNT_COUNT
};

struct kith_account {
    kith_ns spent_ns[KITH_ACCOUNT_COUNT];
    kith_ns since_ns;
    enum kith_account_kind current;
};

static inline kith_ns kith_thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (kith_ns)t.tv_sec * KITH_S + (kith_ns)t.tv_nsec;
}

/* Returns the kind that was current, for the switch back. */
static inline enum kith_account_kind
kith_account_switch(struct kith_account *account, enum kith_account_kind kind)
{
    const enum kith_account_kind was = account->current;
    if (was == kind)
        return was;
    const kith_ns now = kith_thread_cpu();
    account->spent_ns[was] += now - account->since_ns;
    account->since_ns = now;
    account->current = kind;
    return was;
}

static inline void kith_account_start(struct kith_account *account,
                                      enum kith_account_kind kind)
{
    account->since_ns = kith_thread_cpu();
    account->current = kind;
}

#endif
