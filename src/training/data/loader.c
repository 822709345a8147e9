/* Batches of examples, in the order of (seed, entity, epoch):
 *
 *   epoch e        a shuffle of the own rows, stream BATCH of (e, entity)
 *   example k      its crop and flip: block k of stream AUGMENT
 *   tokens         every window begins a shift further on, stream WINDOW
 *
 * so a place is (epoch, cursor) and needs no generator's state. With `ahead` a
 * ring of slots: the last batch given, the one before it, and `depth` more that
 * the thread fills meanwhile:
 *
 *   taken <= filled <= taken + depth, batch b in slot b mod (depth + 2)
 *
 * The thread sleeps while the ring is full and is woken when it is half empty:
 * small batches cost one wake-up for several of them.
 * A process that forks has no such thread in its child: there the loader sees
 * another process id and fills by itself, from the same place. */
#include "data_files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"

/* Two that stay valid, and as many more as make up a MiB. */
enum { SLOTS_KEPT = 2, DEPTH_MAX = 16, SLOTS_MAX = SLOTS_KEPT + DEPTH_MAX };
#define AHEAD_BYTES ((size_t)1 << 20)
/* Of an example, so much is asked for ahead; the CPU's own prefetching goes on
 * from there. */
enum { FETCH_BYTES = 1024, LINE_BYTES = 64 };

struct slot {
    void *inputs;
    int32_t *labels;
    size_t rows;
    struct kith_place end; /* where the batch after it begins */
};

struct kith_loader {
    struct kith_loader_config config;
    const struct kith_backend *host;
    const struct kith_examples *examples;
    struct pixels *pixels; /* of tokens not filled */
    size_t row_count;
    size_t input_bytes, label_count; /* of one example */
    size_t value_bytes;              /* of one value as it is stored */
    unsigned slot_count;
    struct slot slots[SLOTS_MAX]; /* in the host's memory */
    struct slot given[SLOTS_MAX]; /* on the backend; where that is another */

    struct kith_place place; /* of the batch after the last one given */
    uint64_t taken;          /* batches given */
    uint64_t given_examples, waited_ns;

    /* The filler's: the thread's, or the caller's where there is none. */
    uint32_t *order; /* (row_count), for order_epoch */
    uint32_t order_epoch;
    bool order_known;
    void *scratch; /* one augmented image */
    size_t shift;  /* of this epoch's windows */

    pid_t process; /* that has the thread; 0: none */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows and, for others, `taken` */
    pthread_cond_t room, ready;
    uint64_t filled;
    struct kith_place next; /* of batch `filled` */
    bool filling, asleep;   /* the thread */
    bool waiting;           /* the caller */
    atomic_bool stop;

    char error[KITH_DATA_ERROR_BYTES];
    atomic_bool failed; /* `error` says why, and stays */
};

/* ---- filling one slot */

static struct kith_rng stream(const struct kith_loader *loader,
                              enum kith_stream name, uint32_t epoch)
{
    struct kith_rng rng;
    kith_rng_init(&rng, loader->config.seed, name,
                  (uint64_t)epoch << 32 | loader->config.entity);
    return rng;
}

static void begin_epoch(struct kith_loader *loader, uint32_t epoch)
{
    const struct kith_loader_config *config = &loader->config;
    if (!config->shuffle ||
        (loader->order_known && loader->order_epoch == epoch))
        return;
    for (size_t i = 0; i < loader->row_count; i++)
        loader->order[i] = config->rows == NULL ? (uint32_t)i : config->rows[i];
    struct kith_rng rng = stream(loader, KITH_STREAM_BATCH, epoch);
    kith_rng_shuffle(&rng, loader->order, (uint32_t)loader->row_count);
    loader->order_epoch = epoch;
    loader->order_known = true;
    if (loader->examples->input == KITH_INPUT_TOKENS) {
        rng = stream(loader, KITH_STREAM_WINDOW, epoch);
        loader->shift =
            kith_rng_below(&rng, (uint32_t)loader->examples->features);
    }
}

static size_t row_at(const struct kith_loader *loader, uint64_t cursor)
{
    if (loader->config.shuffle)
        return loader->order[cursor];
    return loader->config.rows == NULL ? (size_t)cursor
                                       : loader->config.rows[cursor];
}

/* Where an example begins, in values. The last window of a shifted epoch ends
 * where the stream does. */
static size_t first_at(const struct kith_loader *loader, uint64_t cursor)
{
    const struct kith_examples *examples = loader->examples;
    const size_t n = examples->features;
    const size_t first = row_at(loader, cursor) * n;
    if (examples->input != KITH_INPUT_TOKENS)
        return first;
    const size_t last = examples->tokens - 1 - n;
    return first + loader->shift < last ? first + loader->shift : last;
}

/* Shuffled examples lie anywhere in memory: the next one is asked for while
 * this one is converted. Inlined, because GCC takes a function that only does
 * this for one without effect, and drops its calls. */
__attribute__((always_inline)) static inline void
fetch(const struct kith_loader *loader, uint64_t cursor)
{
    const struct kith_examples *examples = loader->examples;
    if (cursor == loader->row_count || examples->values == NULL)
        return;
    const size_t bytes = examples->features * loader->value_bytes;
    const char *values = (const char *)examples->values +
                         first_at(loader, cursor) * loader->value_bytes;
    for (size_t at = 0; at < bytes && at < FETCH_BYTES; at += LINE_BYTES)
        __builtin_prefetch(values + at);
}

static void fill_image(struct kith_loader *loader, struct kith_place place,
                       void *inputs, int32_t *label)
{
    const struct kith_examples *examples = loader->examples;
    const struct kith_augment *augment = &loader->config.augment;
    const void *image = (const char *)examples->values +
                        first_at(loader, place.cursor) * loader->value_bytes;
    if (augment->crop > 0 || augment->flip) {
        struct kith_rng rng = stream(loader, KITH_STREAM_AUGMENT, place.epoch);
        rng.block = (uint32_t)place.cursor;
        kith_data_pixels_augment(examples, augment, &rng, image,
                                 loader->scratch);
        image = loader->scratch;
    }
    kith_data_pixels_convert(loader->pixels, examples, loader->host, image,
                             inputs);
    *label = examples->labels[row_at(loader, place.cursor)];
}

static void fail(struct kith_loader *loader, const void *where, bool changed)
{
    if (atomic_load(&loader->failed))
        return;
    (void)kith_data_spoiled(loader->examples->owner, where, changed,
                            loader->error);
    atomic_store(&loader->failed, true);
}

/* They were when the file was opened. A sign tells of one that is below 0 or
 * past the last; a sum of signs, because every CPU can do several at once. */
static bool in_vocabulary(const struct kith_examples *examples,
                          const int32_t *tokens, size_t count)
{
    const uint32_t last = examples->classes - 1;
    uint32_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= (uint32_t)tokens[i] | (last - (uint32_t)tokens[i]);
    return (any >> 31) == 0;
}

static void fill_window(struct kith_loader *loader, struct kith_place place,
                        void *inputs, int32_t *labels)
{
    const struct kith_examples *examples = loader->examples;
    const size_t context = examples->features;
    const size_t at = first_at(loader, place.cursor);
    int32_t *window = inputs;
    kith_examples_tokens(examples, at, context, window);
    memcpy(labels, window + 1, (context - 1) * sizeof *labels);
    kith_examples_tokens(examples, at + context, 1, labels + context - 1);
    if (!examples->mapped || (in_vocabulary(examples, window, 1) &&
                              in_vocabulary(examples, labels, context)))
        return;
    fail(loader, kith_data_token(examples, at), true);
}

struct filling {
    struct kith_loader *loader;
    struct slot *slot; /* `end` says where it begins */
};

/* Stops early where the loader is being closed. */
static void fill(void *argument)
{
    struct filling *filling = argument;
    struct kith_loader *loader = filling->loader;
    struct slot *slot = filling->slot;
    struct kith_place *place = &slot->end;
    slot->rows = 0;
    while (slot->rows < loader->config.batch &&
           !atomic_load_explicit(&loader->stop, memory_order_relaxed)) {
        if (place->cursor == loader->row_count) {
            if (!loader->config.shuffle && slot->rows > 0)
                break;
            *place = (struct kith_place){place->epoch + 1, 0};
        }
        begin_epoch(loader, place->epoch);
        char *inputs = (char *)slot->inputs + slot->rows * loader->input_bytes;
        int32_t *labels = slot->labels + slot->rows * loader->label_count;
        fetch(loader, place->cursor + 1);
        if (loader->examples->input == KITH_INPUT_TOKENS)
            fill_window(loader, *place, inputs, labels);
        else
            fill_image(loader, *place, inputs, labels);
        place->cursor++;
        slot->rows++;
    }
}

/* The batch at `place`; zeros where its file has changed. */
static void fill_safely(struct kith_loader *loader, struct kith_place place,
                        struct slot *slot)
{
    struct filling filling = {loader, slot};
    const void *where;
    slot->end = place;
    if (!loader->examples->mapped)
        fill(&filling);
    else if (!atomic_load(&loader->failed) &&
             !kith_data_guard(fill, &filling, &where))
        fail(loader, where, false);
    if (!atomic_load(&loader->failed))
        return;
    slot->rows = loader->config.batch;
    memset(slot->inputs, 0, slot->rows * loader->input_bytes);
    memset(slot->labels, 0, slot->rows * loader->label_count * sizeof(int32_t));
}

/* ---- the thread */

static void *fill_ahead(void *argument)
{
    struct kith_loader *loader = argument;
    const unsigned depth = loader->slot_count - SLOTS_KEPT;
    (void)pthread_mutex_lock(&loader->mutex);
    while (!atomic_load(&loader->stop)) {
        if (loader->filled - loader->taken >= depth) {
            loader->asleep = true;
            (void)pthread_cond_wait(&loader->room, &loader->mutex);
            continue;
        }
        loader->asleep = false;
        const struct kith_place place = loader->next;
        struct slot *slot = &loader->slots[loader->filled % loader->slot_count];
        loader->filling = true;
        (void)pthread_mutex_unlock(&loader->mutex);
        fill_safely(loader, place, slot);
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
    loader->order_known = false;
    atomic_store(&loader->stop, false);
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
    struct slot *slot = &loader->slots[at], *given = &loader->given[at];
    if (has_thread(loader)) {
        wait_for_batch(loader);
    } else {
        fill_safely(loader, loader->place, slot);
        loader->taken++;
    }
    loader->place = slot->end;
    if (loader->host == backend) {
        given = slot;
    } else {
        hand_over(backend, given->inputs, slot->inputs,
                  slot->rows * loader->input_bytes);
        hand_over(backend, given->labels, slot->labels,
                  slot->rows * loader->label_count * sizeof(int32_t));
    }
    batch->inputs = given->inputs;
    batch->labels = given->labels;
    batch->rows = slot->rows;
    loader->given_examples += slot->rows;
}

const char *kith_loader_failed(const struct kith_loader *loader)
{
    return atomic_load(&loader->failed) ? loader->error : NULL;
}

struct kith_place kith_loader_place(const struct kith_loader *loader)
{
    return loader->place;
}

enum kith_err kith_loader_seek(struct kith_loader *loader,
                               struct kith_place place)
{
    if (place.cursor > loader->row_count)
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
    if (loader->examples->mapped)
        counts->mapped += loader->given_examples;
    else
        counts->memory += loader->given_examples;
}

static enum kith_err refuse(char *error, enum kith_err err, const char *what)
{
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "preparing batches: %s", what);
    return err;
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

static size_t input_bytes(enum kith_input input, size_t features,
                          const struct kith_backend *host)
{
    return features *
           (input == KITH_INPUT_TOKENS ? sizeof(int32_t) : host->element_bytes);
}

size_t kith_loader_bytes(enum kith_input input, size_t features,
                         const struct kith_backend *backend, size_t batch,
                         bool ahead)
{
    const struct kith_backend *host =
        backend->host == NULL ? backend : backend->host;
    const size_t bytes = input_bytes(input, features, host);
    const size_t labels = input == KITH_INPUT_TOKENS ? features : 1;
    if (bytes == 0 || batch == 0)
        return 0;
    return slots_of(batch, bytes, ahead) * (host == backend ? 1 : 2) * batch *
           (bytes + labels * sizeof(int32_t));
}

static bool take_slot(const struct kith_loader *loader, struct slot *slot,
                      bool pinned)
{
    const struct kith_backend *backend = loader->config.backend;
    const size_t batch = loader->config.batch;
    slot->inputs = backend->alloc(batch * loader->input_bytes, pinned);
    slot->labels =
        backend->alloc(batch * loader->label_count * sizeof(int32_t), pinned);
    return slot->inputs != NULL && slot->labels != NULL;
}

static enum kith_err take_memory(struct kith_loader *loader, char *error)
{
    const size_t batch = loader->config.batch, most = SIZE_MAX / 16 / batch;
    const bool device = loader->host != loader->config.backend;
    if (loader->input_bytes > most || loader->label_count > most)
        return refuse(error, KITH_ELIMIT,
                      "a batch does not fit the address space; take a smaller "
                      "train.batch");
    loader->order = malloc(loader->row_count * sizeof *loader->order);
    bool ok = loader->order != NULL;
    if (loader->config.lender != NULL) {
        kith_loader_borrow(loader, loader->config.lender);
        return ok ? KITH_OK : refuse(error, KITH_ENOMEM, "no memory");
    }
    loader->scratch = malloc(loader->examples->features * sizeof(float));
    loader->pixels = malloc(sizeof *loader->pixels);
    ok = ok && loader->scratch != NULL && loader->pixels != NULL;
    for (unsigned i = 0; i < loader->slot_count && ok; i++)
        ok = take_slot(loader, &loader->slots[i], true) &&
             (!device || take_slot(loader, &loader->given[i], false));
    if (ok)
        return KITH_OK;
    const size_t bytes =
        loader->input_bytes + loader->label_count * sizeof(int32_t);
    (void)snprintf(error, KITH_DATA_ERROR_BYTES,
                   "preparing batches: no memory for %u batches of %.1f MiB "
                   "each%s; take a smaller train.batch",
                   loader->slot_count, (double)(batch * bytes) / 0x1p20,
                   device ? ", pinned and on the device" : "");
    return KITH_ENOMEM;
}

static enum kith_err check(const struct kith_loader_config *config, char *error)
{
    const struct kith_examples *examples = config->examples;
    const size_t rows =
        config->rows == NULL ? examples->count : config->row_count;
    if (config->batch == 0 || config->batch > KITH_BATCH_MAX)
        return refuse(error, KITH_ELIMIT, "train.batch must be 1 to 2^20");
    if (rows == 0 || rows >= UINT32_MAX)
        return refuse(error, KITH_ELIMIT, "1 to 2^32 - 2 examples are needed");
    const bool augmented = config->augment.crop > 0 || config->augment.flip;
    const bool flat = examples->shape[0] == 1 && examples->shape[1] == 1;
    if (augmented && (examples->input != KITH_INPUT_IMAGES || flat))
        return refuse(error, KITH_EINVAL,
                      "train.augment needs images with a height and a width; "
                      "take it out");
    if (augmented && (config->augment.crop >= examples->shape[0] ||
                      config->augment.crop >= examples->shape[1]))
        return refuse(error, KITH_EINVAL,
                      "train.augment: the crop is as large as the image; take "
                      "fewer pixels");
    return KITH_OK;
}

enum kith_err kith_loader_open(const struct kith_loader_config *config,
                               struct kith_loader **out, char *error)
{
    const struct kith_examples *examples = config->examples;
    *out = NULL;
    KITH_ASSERT(config->entity <= UINT32_MAX && examples->features > 0);
    enum kith_err err = check(config, error);
    if (err != KITH_OK)
        return err;
    struct kith_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return refuse(error, KITH_ENOMEM, "no memory");
    const bool tokens = examples->input == KITH_INPUT_TOKENS;
    loader->config = *config;
    loader->examples = examples;
    loader->host =
        config->backend->host == NULL ? config->backend : config->backend->host;
    loader->row_count =
        config->rows == NULL ? examples->count : config->row_count;
    loader->input_bytes =
        input_bytes(examples->input, examples->features, loader->host);
    loader->label_count = tokens ? examples->features : 1;
    loader->value_bytes = kith_data_value_bytes(examples->element);
    loader->slot_count =
        slots_of(config->batch, loader->input_bytes, config->ahead);
    atomic_init(&loader->stop, false);
    atomic_init(&loader->failed, false);
    err = take_memory(loader, error);
    if (err == KITH_OK && !tokens && config->lender == NULL)
        kith_data_pixels_init(loader->pixels, examples);
    if (err == KITH_OK && config->ahead && start_thread(loader) != 0)
        err = refuse(error, KITH_ENOMEM, "the system starts no more threads");
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
                loader->examples == lender->examples);
    loader->scratch = lender->scratch;
    loader->pixels = lender->pixels;
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
        atomic_store(&loader->stop, true);
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
        const struct slot *slot = i < loader->slot_count
                                      ? &loader->slots[i]
                                      : &loader->given[i - loader->slot_count];
        backend->release(slot->inputs);
        backend->release(slot->labels);
    }
    if (loader->config.lender == NULL) {
        free(loader->scratch);
        free(loader->pixels);
    }
    free(loader->order);
    free(loader);
}
