/* Marks become rows on a thread of their own, while the run goes ahead.
 *
 * Batches take turns: one fills while those before it become rows. The database
 * is the thread's while a batch is, and the caller's from kith_rundb_ahead_wait
 * on. So it still takes no lock, its rows have the order of the calls, and an
 * error is the caller's, some calls later. */
#include "rundb.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct store_ahead {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct kith_rundb *store;
    unsigned batches; /* the thread's */
    bool failed, ending;
};

static void *write_batches(void *argument)
{
    struct store_ahead *ahead = argument;
    bool failed = false;
    (void)pthread_mutex_lock(&ahead->mutex);
    for (;;) {
        while (ahead->batches == 0 && !ahead->ending)
            (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
        if (ahead->batches == 0)
            break;
        (void)pthread_mutex_unlock(&ahead->mutex);
        /* Nothing after a failure: its transaction may be rolled back. */
        failed = failed || !kith_rundb_marks_write(ahead->store);
        (void)pthread_mutex_lock(&ahead->mutex);
        ahead->failed = failed;
        ahead->batches--;
        (void)pthread_cond_signal(&ahead->changed);
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

void kith_rundb_ahead(struct kith_rundb *store)
{
    sigset_t all, before;
    struct store_ahead *ahead =
        store->ahead == NULL ? calloc(1, sizeof *ahead) : NULL;
    if (ahead == NULL)
        return;
    ahead->store = store;
    (void)sigfillset(&all);
    (void)pthread_mutex_init(&ahead->mutex, NULL);
    (void)pthread_cond_init(&ahead->changed, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&ahead->thread, NULL, write_batches, ahead);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        store->ahead = ahead;
    else
        free(ahead);
}

enum kith_err kith_rundb_ahead_wait(struct kith_rundb *store, unsigned batches)
{
    struct store_ahead *ahead = store->ahead;
    if (ahead == NULL || store->err != KITH_OK)
        return store->err;
    (void)pthread_mutex_lock(&ahead->mutex);
    while (ahead->batches > batches)
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    const bool failed = ahead->failed;
    (void)pthread_mutex_unlock(&ahead->mutex);
    return failed ? kith_rundb_stick(store, "adding marks") : KITH_OK;
}

void kith_rundb_ahead_go(struct kith_rundb *store)
{
    struct store_ahead *ahead = store->ahead;
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->batches++;
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

void kith_rundb_ahead_end(struct kith_rundb *store)
{
    struct store_ahead *ahead = store->ahead;
    if (ahead == NULL)
        return;
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->ending = true;
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
    (void)pthread_join(ahead->thread, NULL);
    (void)pthread_cond_destroy(&ahead->changed);
    (void)pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
    store->ahead = NULL;
}
