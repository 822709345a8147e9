/* One job at a time; its parts are taken one by one from a single word.
 *
 *   open = number (32) || parts (16) || taken from below (8), from above (8)
 *
 *   loop     writes the job, stores `open`, wakes who sleeps, takes parts from
 *            below until none is left, waits for `done` = parts
 *   helper   takes a part from above, runs it, adds 1 to `done`
 *
 * From two ends, because the chunks of bursts are used again: so most of one
 * lies in the cache of the core that last wrote it (0.92 of two bare threads
 * with AES-256-GCM, 0.81 with AEGIS-256X2 where parts were taken in order).
 *
 * A part is taken by compare-and-swap on a word that names its job, so that a
 * helper which slept through a job can take nothing of it, and the next job is
 * written when no part of the last one is out. The backend's pool
 * (src/training/backend/pool.c) is the process's, has one user at a time and is
 * busy with a step while models travel: records have threads of their own.
 *
 * A helper looks for the next burst for some microseconds before it sleeps,
 * since those of a window follow each other closely.
 * Test: unit/test_session_threads.c. */
#include "record_threads.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "account.h"
#include "kith/assert.h"

enum {
    LOOKS = 4000, /* of a helper before it sleeps, about 60 us */
    SPINS = 4000  /* of the loop before it yields its core */
};

_Static_assert(KITH_BURST_RECORDS <= UINT8_MAX, "taken ones have 8 bits");
_Static_assert(KITH_LANES_MAX >= 2, "there is a helper to start");

static void rest(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#endif
}

static unsigned below(unsigned long long open)
{
    return (unsigned)(open >> 8 & UINT8_MAX);
}

static unsigned above(unsigned long long open)
{
    return (unsigned)(open & UINT8_MAX);
}

static unsigned parts(unsigned long long open)
{
    return (unsigned)(open >> 16 & UINT16_MAX);
}

static bool is_taken(unsigned long long open)
{
    return below(open) + above(open) == parts(open);
}

/* Runs the next part, if one is left. */
static bool take_part(struct kith_record_threads *threads, unsigned lane)
{
    unsigned long long open = atomic_load(&threads->open);
    const unsigned one = lane == 0 ? 1u << 8 : 1u;
    do
        if (is_taken(open))
            return false;
    while (!atomic_compare_exchange_weak(&threads->open, &open, open + one));
    threads->part(threads->context, lane,
                  lane == 0 ? below(open) : parts(open) - 1 - above(open));
    atomic_fetch_add(&threads->done, 1);
    return true;
}

/* `sleepers` and `open` are sequentially consistent: either the loop sees the
 * sleeper, or the sleeper sees the job. */
static void helper_sleep(struct kith_record_threads *threads)
{
    uv_mutex_lock(&threads->mutex);
    atomic_fetch_add(&threads->sleepers, 1);
    for (;;) { /* Each turn is a wake-up. */
        if (!is_taken(atomic_load(&threads->open)) ||
            atomic_load(&threads->stopping))
            break;
        uv_cond_wait(&threads->wake, &threads->mutex);
    }
    atomic_fetch_sub(&threads->sleepers, 1);
    uv_mutex_unlock(&threads->mutex);
}

static void helper_main(void *arg)
{
    const struct kith_record_helper *helper = arg;
    struct kith_record_threads *threads = helper->threads;
    int looks = 0;
    while (!atomic_load(&threads->stopping)) {
        if (take_part(threads, helper->lane)) {
            looks = 0;
        } else if (++looks < LOOKS) {
            rest();
        } else {
            helper_sleep(threads);
            looks = 0;
        }
    }
}

/* The lock is held by helpers for a few instructions alone. */
static void wake(struct kith_record_threads *threads)
{
    uv_mutex_lock(&threads->mutex);
    uv_cond_broadcast(&threads->wake);
    uv_mutex_unlock(&threads->mutex);
}

/* What a session calls, on the loop thread. */
static void run(void *arg, size_t count,
                void (*part)(void *context, unsigned lane, size_t i),
                void *context)
{
    struct kith_record_threads *threads = arg;
    KITH_ASSERT(count >= 1 && count <= KITH_BURST_RECORDS);
    KITH_ASSERT(is_taken(threads->open));
    threads->part = part;
    threads->context = context;
    atomic_store(&threads->done, 0);
    threads->number++;
    atomic_store(&threads->open, (unsigned long long)threads->number << 32 |
                                     (unsigned long long)count << 16);
    if (atomic_load(&threads->sleepers) > 0)
        wake(threads);
    while (take_part(threads, 0))
        continue;
    for (int spins = 0; atomic_load(&threads->done) < count; spins++)
        if (spins < SPINS)
            rest();
        else
            (void)sched_yield(); /* To the helper that lost its core. */
}

enum kith_err kith_record_threads_start(struct kith_record_threads *threads,
                                        unsigned lanes)
{
    KITH_ASSERT(lanes >= 1 && lanes <= KITH_LANES_MAX);
    memset(threads, 0, sizeof *threads);
    threads->session = (struct kith_session_threads){
        .lanes = lanes, .run = run, .arg = threads};
    if (lanes == 1)
        return KITH_OK;
    if (uv_mutex_init(&threads->mutex) != 0)
        return KITH_ENOMEM;
    if (uv_cond_init(&threads->wake) != 0) {
        uv_mutex_destroy(&threads->mutex);
        return KITH_ENOMEM;
    }
    while (threads->helper_count + 1 < lanes) {
        struct kith_record_helper *helper =
            &threads->helpers[threads->helper_count];
        helper->threads = threads;
        helper->lane = threads->helper_count + 1;
        if (uv_thread_create(&helper->thread, helper_main, helper) != 0) {
            kith_record_threads_stop(threads);
            return KITH_ENOMEM;
        }
        threads->helper_count++;
    }
    return KITH_OK;
}

/* `lanes` says whether there is a lock: without helpers it may be there, too,
 * where the first could not be started. */
void kith_record_threads_stop(struct kith_record_threads *threads)
{
    if (threads->session.lanes <= 1)
        return;
    KITH_ASSERT(is_taken(threads->open));
    atomic_store(&threads->stopping, true);
    wake(threads);
    for (unsigned i = 0; i < threads->helper_count; i++)
        uv_thread_join(&threads->helpers[i].thread);
    uv_cond_destroy(&threads->wake);
    uv_mutex_destroy(&threads->mutex);
    threads->helper_count = 0;
    threads->session.lanes = 1;
}

/* Asked of the kernel, so that helpers count nothing. uv_thread_t is POSIX's.
 */
kith_ns kith_record_threads_cpu(const struct kith_record_threads *threads)
{
    kith_ns sum = 0;
    for (unsigned i = 0; i < threads->helper_count; i++) {
        clockid_t clock;
        if (pthread_getcpuclockid(threads->helpers[i].thread, &clock) == 0)
            sum += kith_account_clock(clock);
    }
    return sum;
}
