/* A one-shot timer with nanoseconds: libuv's own count milliseconds, and the
 * shaper's latencies are tens of microseconds. */
#ifndef KITH_PEER_TIMER_H
#define KITH_PEER_TIMER_H

#include <uv.h>

#include "kith/err.h"
#include "kith/types.h"

struct kith_alarm {
    uv_poll_t poll;
    int fd;
    kith_ns at_ns; /* uv_hrtime() instant, KITH_NEVER when off */
    void (*ring)(void *arg);
    void *arg;
};

KITH_MUST_CHECK enum kith_err kith_alarm_init(struct kith_alarm *alarm,
                                              uv_loop_t *loop,
                                              void (*ring)(void *arg),
                                              void *arg);
/* Rings once at `at_ns`, replacing what was set; KITH_NEVER: off. */
void kith_alarm_set(struct kith_alarm *alarm, kith_ns at_ns);
/* The memory may go after the loop has run its closing callbacks. */
void kith_alarm_close(struct kith_alarm *alarm);

#endif
