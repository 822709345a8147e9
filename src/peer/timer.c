/* The one-shot nanosecond timer: a timerfd (timerfd_create(2)) watched by the
 * loop. epoll waits in whole milliseconds, a descriptor becomes readable at the
 * nanosecond. */
#include "timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "kith/assert.h"

/* The count must be read, or the descriptor stays readable. EAGAIN: the timer
 * was set again meanwhile. */
static void timer_expired(uv_poll_t *poll, int status, int events)
{
    struct kith_timer *timer = poll->data;
    uint64_t count;
    (void)events;
    if (status < 0 || read(timer->fd, &count, sizeof count) <= 0)
        return;
    timer->at_ns = KITH_NEVER;
    timer->expired(timer->arg);
}

/* CLOCK_MONOTONIC, as uv_hrtime(): one clock for everything. */
enum kith_err kith_timer_init(struct kith_timer *timer, uv_loop_t *loop,
                              void (*expired)(void *arg), void *arg)
{
    *timer = (struct kith_timer){
        .at_ns = KITH_NEVER, .expired = expired, .arg = arg};
    timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->fd < 0)
        return KITH_EIO;
    if (uv_poll_init(loop, &timer->poll, timer->fd) != 0) {
        close(timer->fd);
        return KITH_EIO;
    }
    timer->poll.data = timer;
    if (uv_poll_start(&timer->poll, UV_READABLE, timer_expired) != 0) {
        kith_timer_close(timer);
        return KITH_EIO;
    }
    return KITH_OK;
}

/* A system call, so setting the same time again costs nothing. */
void kith_timer_set(struct kith_timer *timer, kith_ns at_ns)
{
    if (at_ns == timer->at_ns)
        return;
    KITH_ASSERT(at_ns >= 0);
    timer->at_ns = at_ns;
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (at_ns != KITH_NEVER) {
        /* An absolute instant of zero would switch the timer off. */
        const kith_ns at = at_ns > 0 ? at_ns : 1;
        when.it_value.tv_sec = (time_t)(at / KITH_S);
        when.it_value.tv_nsec = (long)(at % KITH_S);
    }
    const int failed =
        timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &when, NULL);
    KITH_ASSERT(failed == 0);
}

/* libuv must have stopped polling before the descriptor goes. */
static void timer_closed(uv_handle_t *handle)
{
    const struct kith_timer *timer = handle->data;
    close(timer->fd);
}

/* The descriptor is closed by the callback, the memory by the owner. */
void kith_timer_close(struct kith_timer *timer)
{
    uv_poll_stop(&timer->poll);
    timer->poll.data = timer;
    uv_close((uv_handle_t *)&timer->poll, timer_closed);
}
