/* CPU accounting of one thread by what it does.
 *
 * At every switch the time since the last one is booked on the kind that was
 * current. The thread's CPU clock costs a system call, the monotonic one does
 * not: a span so short that the thread cannot have slept in it is taken from
 * the latter, and the next read of the former puts right what that misses.
 * Outside all callbacks the kind is SOCKET: what libuv does there is polling,
 * reading and writing. */
#ifndef KITH_PEER_ACCOUNT_H
#define KITH_PEER_ACCOUNT_H

#include <time.h>

#include "kith/types.h"

enum kith_account_kind {
    KITH_ACCOUNT_SOCKET,
    KITH_ACCOUNT_AEAD,
    KITH_ACCOUNT_OTHER,
    KITH_ACCOUNT_COUNT
};

/* Going to sleep and waking up takes longer. */
#define KITH_ACCOUNT_SHORT_NS 4000

struct kith_account {
    kith_ns spent_ns[KITH_ACCOUNT_COUNT];
    kith_ns since_ns, since_wall_ns; /* the thread's CPU clock, monotonic */
    enum kith_account_kind current;
};

static inline kith_ns kith_account_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (kith_ns)t.tv_sec * KITH_S + (kith_ns)t.tv_nsec;
}

static inline kith_ns kith_thread_cpu(void)
{
    return kith_account_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns the kind that was current, for the switch back. */
static inline enum kith_account_kind
kith_account_switch(struct kith_account *account, enum kith_account_kind kind)
{
    const enum kith_account_kind was = account->current;
    if (was == kind)
        return was;
    const kith_ns wall = kith_account_clock(CLOCK_MONOTONIC);
    const kith_ns span = wall - account->since_wall_ns;
    const kith_ns now = span < KITH_ACCOUNT_SHORT_NS ? account->since_ns + span
                                                     : kith_thread_cpu();
    account->spent_ns[was] += now - account->since_ns;
    account->since_ns = now;
    account->since_wall_ns = wall;
    account->current = kind;
    return was;
}

static inline void kith_account_start(struct kith_account *account,
                                      enum kith_account_kind kind)
{
    account->since_ns = kith_thread_cpu();
    account->since_wall_ns = kith_account_clock(CLOCK_MONOTONIC);
    account->current = kind;
}

#endif
