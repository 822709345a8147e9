/* Batches, one after another, each a function of its place (sampler.c). With
 * `ahead` a ring of slots: the last batch given, the one before it, and `depth`
 * more that the thread fills meanwhile:
 *
 *   taken <= filled <= taken + depth, batch b in slot b mod (depth + 2)
 *
 * The thread sleeps while the ring is full and is woken when it is half empty:
 * small batches cost one wake-up for several of them.
 * A process that forks has no such thread in its child: there the loader sees
 * another process id and fills by itself, from the same place. */
#include "sampler.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"

/* Two that stay valid, and as many more as make up a MiB. */
enum { SLOTS_KEPT = 2, DEPTH_MAX = 16 };
#define AHEAD_BYTES ((size_t)1 << 20)

struct kith_loader {
    struct kith_loader_config config;
    struct sampler sampler; /* the thread's, or the caller's where it is not */
    unsigned slot_count;
    struct batch_slot *slots; /* (slot_count) in the host's memory */
    struct batch_slot *given; /* (slot_count) on the backend, if it is another;
                                 behind the slots */

    struct kith_place place; /* of the batch after the last one given */
    uint64_t taken;          /* batches given */
    uint64_t given_examples, waited_ns;

    pid_t process; /* that has the thread; 0: none */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows and, for others, `taken` */
    pthread_cond_t room, ready;
    uint64_t filled;
    struct kith_place next; /* of batch `filled` */
    bool filling, asleep;   /* the thread */
    bool waiting;           /* the caller */
};

/* ---- the thread */

static void *fill_ahead(void *argument)
{
    struct kith_loader *loader = argument;
    const unsigned depth = loader->slot_count - SLOTS_KEPT;
    (void)pthread_mutex_lock(&loader->mutex);
    while (!atomic_load(&loader->sampler.stop)) {
        if (loader->filled - loader->taken >= depth) {
            loader->asleep = true;
            (void)pthread_cond_wait(&loader->room, &loader->mutex);
            continue;
        }
        loader->asleep = false;
        const struct kith_place place = loader->next;
        struct batch_slot *slot =
            &loader->slots[loader->filled % loader->slot_count];
        loader->filling = true;
        (void)pthread_mutex_unlock(&loader->mutex);
        kith_sampler_fill(&loader->sampler, place, slot);
        (void)pthread_mutex_lock(&loader->mutex);
        loader->filling = false;
        loader->next = slot->end;
        loader->filled++;
        if (loader->waiting)
            (void)pthread_cond_signal(&loader->ready);
    }
    (void)pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* Signals are for the threads that expect them. */
static int start_thread(struct kith_loader *loader)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_mutex_init(&loader->mutex, NULL);
    (void)pthread_cond_init(&loader->room, NULL);
    (void)pthread_cond_init(&loader->ready, NULL);
    loader->process = getpid();
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&loader->thread, NULL, fill_ahead, loader);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        loader->process = 0;
    return code;
}

/* True while the thread is there; in a forked child it is not, and what it was
 * doing when the fork came is nobody's. */
static bool has_thread(struct kith_loader *loader)
{
    if (loader->process == 0)
        return false;
    if (loader->process == getpid())
        return true;
    loader->process = 0;
    kith_sampler_forget(&loader->sampler);
    return false;
}

static void wait_for_batch(struct kith_loader *loader)
{
    const unsigned depth = loader->slot_count - SLOTS_KEPT;
    (void)pthread_mutex_lock(&loader->mutex);
    if (loader->filled == loader->taken) {
        const kith_ns before_ns = kith_host_now();
        loader->waiting = true;
        while (loader->filled == loader->taken)
            (void)pthread_cond_wait(&loader->ready, &loader->mutex);
        loader->waiting = false;
        loader->waited_ns += (uint64_t)(kith_host_now() - before_ns);
    }
    loader->taken++;
    const bool wake =
        loader->asleep && loader->filled - loader->taken <= depth / 2;
    (void)pthread_mutex_unlock(&loader->mutex);
    if (wake)
        (void)pthread_cond_signal(&loader->room);
}

/* ---- the loader */

/* To a backend with memory of its own: on its own queue, in order. */
static void hand_over(const struct kith_backend *backend, void *target,
                      const void *source, size_t bytes)
{
    const size_t element = backend->element_bytes;
    backend->copy((bytes + element - 1) / element, target, source);
}

void kith_loader_next(struct kith_loader *loader, struct kith_batch *batch)
{
    const struct kith_backend *backend = loader->config.backend;
    const unsigned at = (unsigned)(loader->taken % loader->slot_count);
    struct batch_slot *slot = &loader->slots[at], *given = &loader->given[at];
    if (has_thread(loader)) {
        wait_for_batch(loader);
    } else {
        kith_sampler_fill(&loader->sampler, loader->place, slot);
        loader->taken++;
    }
    loader->place = slot->end;
    if (loader->sampler.host == backend) {
        given = slot;
    } else {
        hand_over(backend, given->inputs, slot->inputs,
                  slot->rows * loader->sampler.input_bytes);
        hand_over(backend, given->labels, slot->labels,
                  slot->rows * loader->sampler.label_count * sizeof(int32_t));
    }
    batch->inputs = given->inputs;
    batch->labels = given->labels;
    batch->rows = slot->rows;
    loader->given_examples += slot->rows;
}

const char *kith_loader_failed(const struct kith_loader *loader)
{
    return atomic_load(&loader->sampler.failed) ? loader->sampler.error : NULL;
}

struct kith_place kith_loader_place(const struct kith_loader *loader)
{
    return loader->place;
}

enum kith_err kith_loader_seek(struct kith_loader *loader,
                               struct kith_place place)
{
    if (place.cursor > loader->sampler.row_count)
        return KITH_EINVAL;
    loader->place = place;
    if (!has_thread(loader))
        return KITH_OK;
    (void)pthread_mutex_lock(&loader->mutex);
    /* A full ring, so that the thread stops after the batch it is in. */
    loader->filled = loader->taken + loader->slot_count - SLOTS_KEPT;
    loader->waiting = true;
    while (loader->filling)
        (void)pthread_cond_wait(&loader->ready, &loader->mutex);
    loader->waiting = false;
    loader->filled = loader->taken;
    loader->next = place;
    (void)pthread_cond_signal(&loader->room);
    (void)pthread_mutex_unlock(&loader->mutex);
    return KITH_OK;
}

uint64_t kith_loader_waited(const struct kith_loader *loader)
{
    return loader->waited_ns;
}

void kith_loader_count(const struct kith_loader *loader,
                       struct kith_data_counts *counts)
{
    if (loader->sampler.examples->mapped)
        counts->mapped += loader->given_examples;
    else
        counts->memory += loader->given_examples;
}

/* Batches kept, and how many a thread may be ahead. */
static unsigned slots_of(size_t batch, size_t input_bytes, bool ahead)
{
    const size_t depth = AHEAD_BYTES / batch / input_bytes;
    return SLOTS_KEPT + (!ahead              ? 0
                         : depth < 1         ? 1
                         : depth > DEPTH_MAX ? DEPTH_MAX
                                             : (unsigned)depth);
}

size_t kith_loader_bytes(enum kith_input input, size_t features,
                         const struct kith_backend *backend, size_t batch,
                         bool ahead)
{
    const struct kith_backend *host =
        backend->host == NULL ? backend : backend->host;
    const size_t bytes = kith_sampler_input_bytes(input, features, host);
    const size_t labels = input == KITH_INPUT_TOKENS ? features : 1;
    if (bytes == 0 || batch == 0)
        return 0;
    return slots_of(batch, bytes, ahead) * (host == backend ? 1 : 2) * batch *
           (bytes + labels * sizeof(int32_t));
}

static bool take_slot(const struct kith_loader *loader, struct batch_slot *slot,
                      bool pinned)
{
    const struct kith_backend *backend = loader->config.backend;
    const size_t batch = loader->config.batch;
    slot->inputs = backend->alloc(batch * loader->sampler.input_bytes, pinned);
    slot->labels = backend->alloc(
        batch * loader->sampler.label_count * sizeof(int32_t), pinned);
    return slot->inputs != NULL && slot->labels != NULL;
}

static enum kith_err take_memory(struct kith_loader *loader, char *error)
{
    const bool device = loader->sampler.host != loader->config.backend;
    bool ok = true;
    if (loader->config.lender != NULL) {
        kith_loader_borrow(loader, loader->config.lender);
        return KITH_OK;
    }
    for (unsigned i = 0; i < loader->slot_count && ok; i++)
        ok = take_slot(loader, &loader->slots[i], true) &&
             (!device || take_slot(loader, &loader->given[i], false));
    if (ok)
        return KITH_OK;
    const size_t bytes = loader->sampler.input_bytes +
                         loader->sampler.label_count * sizeof(int32_t);
    (void)snprintf(error, KITH_DATA_ERROR_BYTES,
                   "preparing batches: no memory for %u batches of %.1f MiB "
                   "each%s; take a smaller train.batch",
                   loader->slot_count,
                   (double)(loader->config.batch * bytes) / 0x1p20,
                   device ? ", pinned and on the device" : "");
    return KITH_ENOMEM;
}

enum kith_err kith_loader_open(const struct kith_loader_config *config,
                               struct kith_loader **out, char *error)
{
    *out = NULL;
    struct kith_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return kith_sampler_refuse(error, KITH_ENOMEM, "no memory");
    loader->config = *config;
    enum kith_err err =
        kith_sampler_open(&loader->sampler, &loader->config, error);
    if (err != KITH_OK) {
        free(loader);
        return err;
    }
    loader->slot_count =
        slots_of(config->batch, loader->sampler.input_bytes, config->ahead);
    loader->slots = calloc(2 * loader->slot_count, sizeof *loader->slots);
    if (loader->slots == NULL) {
        kith_sampler_close(&loader->sampler);
        free(loader);
        return kith_sampler_refuse(error, KITH_ENOMEM, "no memory");
    }
    loader->given = loader->slots + loader->slot_count;
    err = take_memory(loader, error);
    if (err == KITH_OK && config->ahead && start_thread(loader) != 0)
        err = kith_sampler_refuse(error, KITH_ENOMEM,
                                  "the system starts no more threads");
    if (err != KITH_OK) {
        kith_loader_close(loader);
        return err;
    }
    *out = loader;
    return KITH_OK;
}

void kith_loader_borrow(struct kith_loader *loader,
                        const struct kith_loader *lender)
{
    KITH_ASSERT(loader->config.lender != NULL && lender->config.lender == NULL);
    KITH_ASSERT(loader->slot_count == SLOTS_KEPT &&
                lender->slot_count == SLOTS_KEPT);
    KITH_ASSERT(loader->config.backend == lender->config.backend &&
                loader->config.batch == lender->config.batch &&
                loader->sampler.examples == lender->sampler.examples);
    kith_sampler_borrow(&loader->sampler, &lender->sampler);
    for (unsigned i = 0; i < SLOTS_KEPT; i++) {
        loader->slots[i].inputs = lender->slots[i].inputs;
        loader->slots[i].labels = lender->slots[i].labels;
        loader->given[i].inputs = lender->given[i].inputs;
        loader->given[i].labels = lender->given[i].labels;
    }
}

void kith_loader_close(struct kith_loader *loader)
{
    if (loader == NULL)
        return;
    if (has_thread(loader)) {
        (void)pthread_mutex_lock(&loader->mutex);
        atomic_store(&loader->sampler.stop, true);
        (void)pthread_cond_signal(&loader->room);
        (void)pthread_mutex_unlock(&loader->mutex);
        (void)pthread_join(loader->thread, NULL);
        (void)pthread_cond_destroy(&loader->room);
        (void)pthread_cond_destroy(&loader->ready);
        (void)pthread_mutex_destroy(&loader->mutex);
    }
    const struct kith_backend *backend = loader->config.backend;
    const unsigned own =
        loader->config.lender == NULL ? 2 * loader->slot_count : 0;
    for (unsigned i = 0; i < own; i++) {
        backend->release(loader->slots[i].inputs);
        backend->release(loader->slots[i].labels);
    }
    free(loader->slots);
    kith_sampler_close(&loader->sampler);
    free(loader);
}
