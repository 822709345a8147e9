/* A one-shot timer with nanoseconds: libuv's own count milliseconds, and the
 * network's latencies are tens of microseconds. */
#ifndef KITH_PEER_TIMER_H
#define KITH_PEER_TIMER_H

#include <uv.h>

#include "kith/err.h"
#include "kith/types.h"

struct kith_timer {
    uv_poll_t poll;
    int fd;
    kith_ns at_ns; /* uv_hrtime() instant, KITH_NEVER when off */
    void (*expired)(void *arg);
    void *arg;
};

KITH_MUST_CHECK enum kith_err kith_timer_init(struct kith_timer *timer,
                                              uv_loop_t *loop,
                                              void (*expired)(void *arg),
                                              void *arg);
/* Expires once at `at_ns`, replacing what was set; KITH_NEVER: off. */
void kith_timer_set(struct kith_timer *timer, kith_ns at_ns);
/* The memory may go after the loop has run its closing callbacks. */
void kith_timer_close(struct kith_timer *timer);

#endif
