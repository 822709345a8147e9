/* The one-shot nanosecond timer: a timerfd watched by the loop. */
#include "timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "kith/assert.h"

static void alarm_rang(uv_poll_t *poll, int status, int events)
{
    struct kith_alarm *alarm = poll->data;
    uint64_t count;
    (void)events;
    if (status < 0 || read(alarm->fd, &count, sizeof count) <= 0)
        return;
    alarm->at_ns = KITH_NEVER;
    alarm->ring(alarm->arg);
}

enum kith_err kith_alarm_init(struct kith_alarm *alarm, uv_loop_t *loop,
                              void (*ring)(void *arg), void *arg)
{
    *alarm = (struct kith_alarm){.at_ns = KITH_NEVER, .ring = ring, .arg = arg};
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd < 0)
        return KITH_EIO;
    if (uv_poll_init(loop, &alarm->poll, alarm->fd) != 0) {
        close(alarm->fd);
        return KITH_EIO;
    }
    alarm->poll.data = alarm;
    if (uv_poll_start(&alarm->poll, UV_READABLE, alarm_rang) != 0) {
        kith_alarm_close(alarm);
        return KITH_EIO;
    }
    return KITH_OK;
}

void kith_alarm_set(struct kith_alarm *alarm, kith_ns at_ns)
{
    if (at_ns == alarm->at_ns)
        return;
    alarm->at_ns = at_ns;
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (at_ns != KITH_NEVER) {
        /* An absolute instant of zero would switch the timer off. */
        const kith_ns at = at_ns > 0 ? at_ns : 1;
        when.it_value.tv_sec = (time_t)(at / KITH_S);
        when.it_value.tv_nsec = (long)(at % KITH_S);
    }
    const int failed =
        timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL);
    KITH_ASSERT(failed == 0);
}

static void alarm_closed(uv_handle_t *handle)
{
    const struct kith_alarm *alarm = handle->data;
    close(alarm->fd);
}

void kith_alarm_close(struct kith_alarm *alarm)
{
    uv_poll_stop(&alarm->poll);
    alarm->poll.data = alarm;
    uv_close((uv_handle_t *)&alarm->poll, alarm_closed);
}
