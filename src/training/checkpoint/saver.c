/* See kith/saver.h. The mutex guards the state; image and result belong to the
 * saver's thread while it is WRITING, else to the callers. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "kith/saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "kith/assert.h"
#include "save.h"

enum saver_state { IDLE, WRITING, WRITTEN };

struct kith_saver {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum saver_state state;
    bool ending;
    struct save_image image;
    bool keep_previous;
    struct kith_saved saved, untold; /* one that failed: err is not KITH_OK */
    void (*written)(void *arg);
    void *arg;
};

static kith_ns now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (kith_ns)time.tv_sec * KITH_S + time.tv_nsec;
}

static void write_image(struct kith_saver *saver)
{
    struct kith_saved *saved = &saver->saved;
    const kith_ns began_ns = now();
    saved->err = kith_save_put(&saver->image, saved->path, saver->keep_previous,
                               saved->error);
    saved->took_ns = now() - began_ns;
}

static void *thread_main(void *arg)
{
    struct kith_saver *saver = arg;
    pthread_mutex_lock(&saver->mutex);
    for (;;) {
        while (saver->state != WRITING && !saver->ending)
            pthread_cond_wait(&saver->changed, &saver->mutex);
        if (saver->state != WRITING)
            break; /* a save that was begun comes before the end */
        pthread_mutex_unlock(&saver->mutex);
        write_image(saver);
        pthread_mutex_lock(&saver->mutex);
        saver->state = WRITTEN;
        pthread_cond_broadcast(&saver->changed);
        pthread_mutex_unlock(&saver->mutex);
        if (saver->written != NULL)
            saver->written(saver->arg);
        pthread_mutex_lock(&saver->mutex);
    }
    pthread_mutex_unlock(&saver->mutex);
    return NULL;
}

enum kith_err kith_saver_open(void (*written)(void *arg), void *arg,
                              struct kith_saver **out)
{
    struct kith_saver *saver = calloc(1, sizeof *saver);
    if (saver == NULL)
        return KITH_ENOMEM;
    saver->written = written;
    saver->arg = arg;
    if (pthread_mutex_init(&saver->mutex, NULL) != 0)
        goto no_mutex;
    if (pthread_cond_init(&saver->changed, NULL) != 0)
        goto no_cond;
    if (pthread_create(&saver->thread, NULL, thread_main, saver) != 0)
        goto no_thread;
    *out = saver;
    return KITH_OK;

no_thread:
    pthread_cond_destroy(&saver->changed);
no_cond:
    pthread_mutex_destroy(&saver->mutex);
no_mutex:
    free(saver);
    return KITH_ENOMEM;
}

/* That a save failed is told, though the next one begins before anyone asked.
 */
static void keep_failure(struct kith_saver *saver)
{
    pthread_mutex_lock(&saver->mutex);
    if (saver->state == WRITTEN && saver->saved.err != KITH_OK)
        saver->untold = saver->saved;
    pthread_mutex_unlock(&saver->mutex);
}

enum kith_err kith_saver_begin(struct kith_saver *saver,
                               struct kith_worker *worker, const char *path,
                               const struct kith_standing *standing,
                               bool keep_previous, char *error)
{
    kith_saver_wait(saver);
    const enum kith_err err =
        kith_save_take(worker, path, standing, &saver->image, error);
    if (err != KITH_OK)
        return err;
    keep_failure(saver);
    saver->keep_previous = keep_previous;
    saver->saved = (struct kith_saved){.path = path, .step = standing->step};
    pthread_mutex_lock(&saver->mutex);
    KITH_ASSERT(saver->state != WRITING && !saver->ending);
    saver->state = WRITING;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->mutex);
    return KITH_OK;
}

bool kith_saver_busy(struct kith_saver *saver)
{
    pthread_mutex_lock(&saver->mutex);
    const bool busy = saver->state == WRITING;
    pthread_mutex_unlock(&saver->mutex);
    return busy;
}

bool kith_saver_take(struct kith_saver *saver, struct kith_saved *saved)
{
    pthread_mutex_lock(&saver->mutex);
    const bool failed = saver->untold.err != KITH_OK;
    const bool there = failed || saver->state == WRITTEN;
    if (there)
        *saved = failed ? saver->untold : saver->saved;
    if (failed)
        saver->untold.err = KITH_OK;
    else if (there)
        saver->state = IDLE;
    pthread_mutex_unlock(&saver->mutex);
    return there;
}

void kith_saver_wait(struct kith_saver *saver)
{
    pthread_mutex_lock(&saver->mutex);
    while (saver->state == WRITING)
        pthread_cond_wait(&saver->changed, &saver->mutex);
    pthread_mutex_unlock(&saver->mutex);
}

void kith_saver_close(struct kith_saver *saver)
{
    if (saver == NULL)
        return;
    pthread_mutex_lock(&saver->mutex);
    saver->ending = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->mutex);
    pthread_join(saver->thread, NULL);
    pthread_cond_destroy(&saver->changed);
    pthread_mutex_destroy(&saver->mutex);
    kith_save_image_free(&saver->image);
    free(saver);
}
