/* One job at a time, parts handed out by a counter.
 *
 *   caller   takes the pool, writes the job, opens it under a new number, wakes
 *            who sleeps, takes parts itself, closes it, waits for `active` = 0
 *   worker   sees a number it has not seen, enters (active + 1), and only if
 * the job is still open takes parts; leaves (active - 1)
 *
 * `open` and `active` are sequentially consistent: either the caller sees the
 * worker inside, or the worker sees the job closed. So nobody waits for a
 * worker that has not begun, which on a busy machine may be long. Workers look
 * for the next job for some microseconds before they sleep, since the calls of
 * one training step follow each other closely. They are never joined: they hold
 * nothing, and sleep when the process ends. A forked child starts its own. */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/assert.h"

enum {
    LINE = 64,
    LOOKS = 2000, /* of a worker before it sleeps, about 30 us */
    SPINS = 20000 /* of the caller before it yields its core */
};

static struct {
    /* Written by whoever holds `busy`, read by those inside. */
    void (*part)(void *context, size_t i);
    void *context;
    size_t count;
    unsigned threads;
    uint64_t number; /* of the last job */
    unsigned started;

    atomic_bool busy;
    atomic_uint setting;               /* 0: not yet set, which is 1 */
    _Alignas(LINE) atomic_ullong open; /* the job's number, or 0 */
    _Alignas(LINE) atomic_size_t next;
    _Alignas(LINE) atomic_uint active;
    atomic_uint sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void rest(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#endif
}

static void take_parts(void)
{
    for (;;) {
        const size_t i =
            atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
        if (i >= pool.count)
            return;
        pool.part(pool.context, i);
    }
}

static bool is_new(unsigned long long seen, unsigned long long *open)
{
    *open = atomic_load(&pool.open);
    return *open != 0 && *open != seen;
}

/* The number of a job that was not seen before. */
static unsigned long long await_job(unsigned long long seen)
{
    unsigned long long open;
    for (int look = 0; look < LOOKS; look++) {
        if (is_new(seen, &open))
            return open;
        rest();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.sleepers, 1);
    while (!is_new(seen, &open))
        pthread_cond_wait(&pool.wake, &pool.mutex);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.mutex);
    return open;
}

static void *worker(void *argument)
{
    const unsigned index = (unsigned)(uintptr_t)argument; /* 1, 2, ... */
    unsigned long long seen = 0;
    for (;;) {
        seen = await_job(seen);
        atomic_fetch_add(&pool.active, 1);
        /* By now it may be a later job: any open one is good. */
        const unsigned long long open = atomic_load(&pool.open);
        if (open != 0) {
            seen = open;
            if (index < pool.threads)
                take_parts();
        }
        atomic_fetch_sub(&pool.active, 1);
    }
    return NULL;
}

/* The child has the forking thread alone, and no job. */
static void forget(void)
{
    atomic_store(&pool.busy, false);
    atomic_store(&pool.open, 0);
    atomic_store(&pool.active, 0);
    atomic_store(&pool.sleepers, 0);
    pool.started = 0;
    (void)pthread_mutex_init(&pool.mutex, NULL);
    (void)pthread_cond_init(&pool.wake, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget);
}

/* As many workers as the job may use, or as the system lets us have. */
static void start_workers(unsigned threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    while (pool.started + 1 < threads) {
        pthread_t thread;
        void *const index = (void *)(uintptr_t)(pool.started + 1);
        if (pthread_create(&thread, NULL, worker, index) != 0)
            return;
        (void)pthread_detach(thread);
        pool.started++;
    }
}

void kith_pool_set(unsigned threads)
{
    KITH_ASSERT(threads > 0);
    atomic_store(&pool.setting, threads < KITH_POOL_THREADS_MAX
                                    ? threads
                                    : KITH_POOL_THREADS_MAX);
}

unsigned kith_pool_threads(void)
{
    const unsigned setting = atomic_load(&pool.setting);
    return setting == 0 ? 1 : setting;
}

/* Opens the job, helps, closes it, and waits for those inside. */
static void run_job(void)
{
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    atomic_store(&pool.open, ++pool.number);
    if (atomic_load(&pool.sleepers) > 0) {
        pthread_mutex_lock(&pool.mutex);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.mutex);
    }
    take_parts();
    atomic_store(&pool.open, 0);
    for (int spin = 0; atomic_load(&pool.active) > 0; spin++)
        if (spin < SPINS)
            rest();
        else
            (void)sched_yield();
}

void kith_pool_run(size_t count, void (*part)(void *context, size_t i),
                   void *context)
{
    const unsigned threads = kith_pool_threads();
    bool idle = false;
    if (threads == 1 || count < 2 ||
        !atomic_compare_exchange_strong(&pool.busy, &idle, true)) {
        for (size_t i = 0; i < count; i++)
            part(context, i);
        return;
    }
    start_workers(threads);
    pool.part = part;
    pool.context = context;
    pool.count = count;
    pool.threads = threads;
    run_job();
    atomic_store(&pool.busy, false);
}
