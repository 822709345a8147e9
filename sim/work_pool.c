/* First in, first out, and joined out of order.
 *
 *   WAITING -> QUEUED -> RUNNING -> DONE       one lock guards all states
 *
 * Whoever awaits an item that is still queued runs it, wherever it stands in
 * the queue; if another thread has it, the first of the queue instead: it would
 * only wait. Items of different peers share nothing but what a thread lends for
 * a step, so any thread may run any of them; the thread that has the pool is
 * number 0. Who has no item looks at what number 0 will ask about, or makes
 * pages that it is about to write. Beside threads.c and windows.c the only file
 * of the simulator that knows threads. */
#include "sim/work_pool.h"

#include "kith/assert.h"
#include "sim/huge_pages.h"

/* First in, first out: an item's end is due in about the order in which items
 * begin. */
static void queue_put(struct sim_work_pool *pool, struct sim_job *job)
{
    KITH_ASSERT(job->state == JOB_WAITING);
    job->state = JOB_QUEUED;
    job->next = NULL;
    job->previous = pool->last;
    *(pool->last ? &pool->last->next : &pool->first) = job;
    pool->last = job;
}

/* From anywhere: the thread that awaits an item takes it, wherever it stands.
 * */
static void queue_drop(struct sim_work_pool *pool, struct sim_job *job)
{
    KITH_ASSERT(job->state == JOB_QUEUED);
    *(job->previous ? &job->previous->next : &pool->first) = job->next;
    *(job->next ? &job->next->previous : &pool->last) = job->previous;
}

static void run_by(struct sim_work_pool *pool, struct sim_job *job,
                   unsigned thread)
{
    KITH_ASSERT(thread < pool->count && job->worker);
    if (pool->lenders[thread])
        kith_worker_borrow(job->worker, pool->lenders[thread]);
    kith_worker_run(job->worker, &job->work, &job->result);
    pool->counts[thread]++;
}

/* Under the lock, which is given up while the item runs. */
static void run_item(struct sim_work_pool *pool, struct sim_job *job,
                     unsigned thread)
{
    KITH_ASSERT(thread < pool->count);
    queue_drop(pool, job);
    job->state = JOB_RUNNING;
    pthread_mutex_unlock(&pool->lock);
    run_by(pool, job, thread);
    pthread_mutex_lock(&pool->lock);
    job->state = JOB_DONE;
}

/* Likewise, what the thread that has the pool will write first. */
static void make_page(struct sim_work_pool *pool, unsigned thread)
{
    char *const page = pool->page;
    KITH_ASSERT(page < pool->pages_end && !pool->making[thread]);
    pool->page += SIM_HUGE_PAGE;
    pool->making[thread] = page;
    pthread_mutex_unlock(&pool->lock);
    sim_page_make(page);
    pthread_mutex_lock(&pool->lock);
    pool->making[thread] = NULL;
}

/* The place that waits longest of those that were not withdrawn, or NULL. */
static void **next_sight(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->sights_end - pool->sight <= SIM_SIGHTS_MAX);
    for (; pool->sight < pool->sights_end; pool->sight++) {
        void **place = &pool->sights[pool->sight % SIM_SIGHTS_MAX];
        if (*place)
            return place;
    }
    return NULL;
}

static void look_at(struct sim_work_pool *pool, void **place, unsigned thread)
{
    void *const sight = *place;
    KITH_ASSERT(sight && !pool->looking[thread]);
    *place = NULL;
    pool->looking[thread] = sight;
    pthread_mutex_unlock(&pool->lock);
    pool->look(pool->owner, sight);
    pthread_mutex_lock(&pool->lock);
    pool->looking[thread] = NULL;
}

/* Whatever there is to do; false: nothing. */
static bool work(struct sim_work_pool *pool, unsigned thread)
{
    void **place;
    if (pool->first)
        run_item(pool, pool->first, thread);
    else if ((place = next_sight(pool)) != NULL)
        look_at(pool, place, thread);
    else if (pool->page < pool->pages_end)
        make_page(pool, thread);
    else
        return false;
    return true;
}

/* Another thread is about to end something. */
static void work_or_wait(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->count > 1);
    if (!work(pool, 0))
        pthread_cond_wait(&pool->done, &pool->lock);
}

/* A thread takes whatever is queued: items are of different peers, and share
 * nothing. */
static void *thread_main(void *argument)
{
    struct sim_work_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    const unsigned thread = ++pool->running;
    KITH_ASSERT(thread < pool->count);
    while (!pool->stop)
        if (work(pool, thread))
            pthread_cond_signal(&pool->done);
        else
            pthread_cond_wait(&pool->queued, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void sim_work_pool_open(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->count >= 1 && pool->count <= SIM_THREADS_MAX);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->queued, NULL);
    pthread_cond_init(&pool->done, NULL);
}

/* This thread is the first of the count: with one thread there is no lock to
 * wait for. */
bool sim_work_pool_start(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->count >= 1 && pool->count <= SIM_THREADS_MAX);
    for (unsigned i = 1; i < pool->count; i++) {
        if (pthread_create(&pool->threads[i], NULL, thread_main, pool) != 0)
            return false;
        pool->started = i;
    }
    return true;
}

void sim_work_pool_close(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->started < SIM_THREADS_MAX);
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->queued);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 1; i <= pool->started; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->queued);
    pthread_mutex_destroy(&pool->lock);
}

void sim_work_pool_run(struct sim_work_pool *pool, struct sim_job *job)
{
    KITH_ASSERT(job->state == JOB_WAITING);
    run_by(pool, job, 0);
    job->state = JOB_DONE;
}

void sim_work_pool_put(struct sim_work_pool *pool, struct sim_job *job)
{
    KITH_ASSERT(pool->count > 1);
    pthread_mutex_lock(&pool->lock);
    queue_put(pool, job);
    pthread_cond_signal(&pool->queued);
    pthread_mutex_unlock(&pool->lock);
}

static bool is_making(const struct sim_work_pool *pool, const char *page)
{
    bool is = false;
    for (unsigned i = 1; i < pool->count && !is; i++)
        is = pool->making[i] == page;
    return is;
}

/* What was made is not asked for again. Two who make one page take as long as
 * it takes, and one of them in vain: this thread does something else, or makes
 * one that nobody has begun. */
void sim_work_pool_make(struct sim_work_pool *pool, char *now, char *end)
{
    KITH_ASSERT(pool->count > 1 && (size_t)(end - now) % SIM_HUGE_PAGE == 0);
    pthread_mutex_lock(&pool->lock);
    if (pool->page <= now || pool->page > end)
        pool->page = now + SIM_HUGE_PAGE;
    pool->pages_end = end;
    pthread_cond_signal(&pool->queued);
    while (is_making(pool, now))
        work_or_wait(pool);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t sim_work_pool_show(struct sim_work_pool *pool, void *sight)
{
    KITH_ASSERT(pool->count > 1 && pool->look && sight);
    pthread_mutex_lock(&pool->lock);
    (void)next_sight(pool); /* passes over those withdrawn */
    uint32_t place = 0;
    if (pool->sights_end - pool->sight < SIM_SIGHTS_MAX) {
        place = (uint32_t)(pool->sights_end++ % SIM_SIGHTS_MAX);
        pool->sights[place++] = sight;
        pthread_cond_signal(&pool->queued);
    }
    pthread_mutex_unlock(&pool->lock);
    return place;
}

static bool is_looking(const struct sim_work_pool *pool, const void *sight)
{
    bool is = false;
    for (unsigned i = 0; i < pool->count && !is; i++)
        is = pool->looking[i] == sight;
    return is;
}

/* The place may be another's by now. */
void sim_work_pool_withdraw(struct sim_work_pool *pool, void *sight,
                            uint32_t place)
{
    KITH_ASSERT(place > 0 && place <= SIM_SIGHTS_MAX);
    pthread_mutex_lock(&pool->lock);
    if (pool->sights[place - 1] == sight)
        pool->sights[place - 1] = NULL;
    while (is_looking(pool, sight))
        work_or_wait(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* Between two items it is looked at anew: another thread may have ended it. */
void sim_work_pool_await(struct sim_work_pool *pool, struct sim_job *job)
{
    KITH_ASSERT(pool->count > 1);
    pthread_mutex_lock(&pool->lock);
    while (job->state != JOB_DONE)
        if (job->state == JOB_QUEUED)
            run_item(pool, job, 0);
        else
            work_or_wait(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* Of one thread nothing is ever queued: there is nothing to help with. */
bool sim_work_pool_help(struct sim_work_pool *pool)
{
    KITH_ASSERT(pool->count >= 1);
    pthread_mutex_lock(&pool->lock);
    const bool has = pool->first != NULL;
    if (has)
        run_item(pool, pool->first, 0);
    pthread_mutex_unlock(&pool->lock);
    return has;
}
