/* Trace events on their way into the database, on a thread of their own where
 * the caller asks for one.
 *
 * A run leaves an event for every decision, most of a database's rows. Batches
 * take turns: one is filled while those before it become rows. The database is
 * the thread's while a batch is, and the caller's after
 * kith_rundb_writer_wait(). So it takes no lock, its rows have the order of the
 * calls, and an error is the caller's, some calls later. */
#include "rundb_store.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "kith/assert.h"

/* Values of a row behind its run. */
#define EVENT_VALUES 9

struct rundb_writer {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct kith_rundb *store;
    unsigned batches; /* the thread's */
    bool failed, ending;
};

/* The values of one row from place `at` on. The database's integers are signed:
 * a counter or value that does not fit keeps its bits. */
static void bind_event(sqlite3_stmt *insert, int at,
                       const struct rundb_event *event)
{
    const struct kith_mark *mark = &event->mark;
    kith_query_bind_peer(insert, at, event->peer);
    kith_query_bind_real(insert, at + 1, (double)event->time_ns / 1e9);
    sqlite3_bind_int(insert, at + 2, (int)mark->kind);
    kith_query_bind_peer(insert, at + 3, mark->peer);
    sqlite3_bind_int(insert, at + 4, mark->initiator);
    sqlite3_bind_int64(insert, at + 5, mark->id.incarnation);
    sqlite3_bind_int64(insert, at + 6, (sqlite3_int64)mark->id.counter);
    sqlite3_bind_int64(insert, at + 7, (sqlite3_int64)mark->value);
    kith_query_bind_real(insert, at + 8, mark->sum);
}

/* One statement inserts RUNDB_TOGETHER rows, another the rest one by one: 0.31
 * us a row in place of 0.56; 0.34 with 16 together. The batch after it is next,
 * also where this one failed: false. */
static bool write_events(struct kith_rundb *store)
{
    struct rundb_batch *batch = &store->batches[store->writing];
    bool done = true;
    for (uint32_t i = 0, rows; i < batch->count && done; i += rows) {
        rows = batch->count - i < RUNDB_TOGETHER ? 1 : RUNDB_TOGETHER;
        sqlite3_stmt *insert = store->prepared[rows == 1 ? EVENT : EVENTS];
        sqlite3_bind_int64(insert, 1, store->run_id);
        for (uint32_t k = 0; k < rows; k++)
            bind_event(insert, 2 + (int)k * EVENT_VALUES,
                       &batch->events[i + k]);
        done = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert);
    }
    batch->count = 0;
    store->writing = (store->writing + 1) % RUNDB_BATCHES;
    return done;
}

static void *write_batches(void *argument)
{
    struct rundb_writer *writer = argument;
    bool failed = false;
    (void)pthread_mutex_lock(&writer->mutex);
    for (;;) {
        while (writer->batches == 0 && !writer->ending)
            (void)pthread_cond_wait(&writer->changed, &writer->mutex);
        if (writer->batches == 0)
            break;
        (void)pthread_mutex_unlock(&writer->mutex);
        /* Nothing after a failure: its transaction may be rolled back. */
        failed = failed || !write_events(writer->store);
        (void)pthread_mutex_lock(&writer->mutex);
        writer->failed = failed;
        writer->batches--;
        (void)pthread_cond_signal(&writer->changed);
    }
    (void)pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

void kith_rundb_start_writer(struct kith_rundb *store)
{
    sigset_t all, before;
    struct rundb_writer *writer =
        store->writer == NULL ? calloc(1, sizeof *writer) : NULL;
    if (writer == NULL)
        return;
    writer->store = store;
    (void)sigfillset(&all);
    (void)pthread_mutex_init(&writer->mutex, NULL);
    (void)pthread_cond_init(&writer->changed, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code =
        pthread_create(&writer->thread, NULL, write_batches, writer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        store->writer = writer;
    else
        free(writer);
}

enum kith_err kith_rundb_writer_wait(struct kith_rundb *store, unsigned batches)
{
    struct rundb_writer *writer = store->writer;
    KITH_ASSERT(batches < RUNDB_BATCHES);
    if (writer == NULL || store->err != KITH_OK)
        return store->err;
    (void)pthread_mutex_lock(&writer->mutex);
    while (writer->batches > batches)
        (void)pthread_cond_wait(&writer->changed, &writer->mutex);
    const bool failed = writer->failed;
    (void)pthread_mutex_unlock(&writer->mutex);
    return failed ? kith_rundb_stick(store, "adding trace events") : KITH_OK;
}

/* The thread has the database, and one batch more. */
static void wake_writer(struct rundb_writer *writer)
{
    (void)pthread_mutex_lock(&writer->mutex);
    writer->batches++;
    (void)pthread_cond_signal(&writer->changed);
    (void)pthread_mutex_unlock(&writer->mutex);
}

void kith_rundb_writer_end(struct kith_rundb *store)
{
    struct rundb_writer *writer = store->writer;
    if (writer == NULL)
        return;
    (void)pthread_mutex_lock(&writer->mutex);
    writer->ending = true;
    (void)pthread_cond_signal(&writer->changed);
    (void)pthread_mutex_unlock(&writer->mutex);
    (void)pthread_join(writer->thread, NULL);
    (void)pthread_cond_destroy(&writer->changed);
    (void)pthread_mutex_destroy(&writer->mutex);
    free(writer);
    store->writer = NULL;
}

enum kith_err kith_rundb_events_hand_on(struct kith_rundb *store)
{
    if (kith_rundb_writer_wait(store, RUNDB_BATCHES - 2) != KITH_OK)
        return store->err;
    store->filling = (store->filling + 1) % RUNDB_BATCHES;
    if (store->writer != NULL)
        wake_writer(store->writer);
    else if (!write_events(store))
        return kith_rundb_stick(store, "adding trace events");
    return KITH_OK;
}

enum kith_err kith_rundb_events_settle(struct kith_rundb *store)
{
    const enum kith_err err = store->batches[store->filling].count > 0
                                  ? kith_rundb_events_hand_on(store)
                                  : KITH_OK;
    return err == KITH_OK ? kith_rundb_writer_wait(store, 0) : err;
}
