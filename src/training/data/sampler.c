/* The batch at a place (epoch, cursor), in the order of (seed, entity, epoch):
 *
 *   epoch e        a shuffle of the own rows, stream BATCH of (e, entity)
 *   example k      its crop and flip: block k of stream AUGMENT
 *   tokens         every window begins a shift further on, stream WINDOW
 *
 * so a place needs no generator's state. */
#include "sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

/* Of an example, so much is asked for ahead; the CPU's own prefetching goes on
 * from there. */
enum { FETCH_BYTES = 1024, LINE_BYTES = 64 };

static struct kith_rng stream(const struct sampler *sampler,
                              enum kith_stream name, uint32_t epoch)
{
    struct kith_rng rng;
    kith_rng_init(&rng, sampler->config->seed, name,
                  (uint64_t)epoch << 32 | sampler->config->entity);
    return rng;
}

static void begin_epoch(struct sampler *sampler, uint32_t epoch)
{
    const struct kith_loader_config *config = sampler->config;
    if (!config->shuffle ||
        (sampler->order_known && sampler->order_epoch == epoch))
        return;
    for (size_t i = 0; i < sampler->row_count; i++)
        sampler->order[i] =
            config->rows == NULL ? (uint32_t)i : config->rows[i];
    struct kith_rng rng = stream(sampler, KITH_STREAM_BATCH, epoch);
    kith_rng_shuffle(&rng, sampler->order, (uint32_t)sampler->row_count);
    sampler->order_epoch = epoch;
    sampler->order_known = true;
    if (sampler->examples->input == KITH_INPUT_TOKENS) {
        rng = stream(sampler, KITH_STREAM_WINDOW, epoch);
        sampler->shift =
            kith_rng_below(&rng, (uint32_t)sampler->examples->features);
    }
}

static size_t row_at(const struct sampler *sampler, uint64_t cursor)
{
    if (sampler->config->shuffle)
        return sampler->order[cursor];
    return sampler->config->rows == NULL ? (size_t)cursor
                                         : sampler->config->rows[cursor];
}

/* Where an example begins, in values. The last window of a shifted epoch ends
 * where the stream does. */
static size_t first_at(const struct sampler *sampler, uint64_t cursor)
{
    const struct kith_examples *examples = sampler->examples;
    const size_t n = examples->features;
    const size_t first = row_at(sampler, cursor) * n;
    if (examples->input != KITH_INPUT_TOKENS)
        return first;
    const size_t last = examples->tokens - 1 - n;
    return first + sampler->shift < last ? first + sampler->shift : last;
}

/* Shuffled examples lie anywhere in memory: the next one is asked for while
 * this one is converted. Inlined, because GCC takes a function that only does
 * this for one without effect, and drops its calls. */
__attribute__((always_inline)) static inline void
fetch(const struct sampler *sampler, uint64_t cursor)
{
    const struct kith_examples *examples = sampler->examples;
    if (cursor == sampler->row_count || examples->values == NULL)
        return;
    const size_t bytes = examples->features * sampler->value_bytes;
    const char *values = (const char *)examples->values +
                         first_at(sampler, cursor) * sampler->value_bytes;
    for (size_t at = 0; at < bytes && at < FETCH_BYTES; at += LINE_BYTES)
        __builtin_prefetch(values + at);
}

static void fill_image(struct sampler *sampler, struct kith_place place,
                       void *inputs, int32_t *label)
{
    const struct kith_examples *examples = sampler->examples;
    const struct kith_augment *augment = &sampler->config->augment;
    const void *image = (const char *)examples->values +
                        first_at(sampler, place.cursor) * sampler->value_bytes;
    if (augment->crop > 0 || augment->flip) {
        struct kith_rng rng = stream(sampler, KITH_STREAM_AUGMENT, place.epoch);
        rng.block = (uint32_t)place.cursor;
        kith_data_pixels_augment(examples, augment, &rng, image,
                                 sampler->scratch);
        image = sampler->scratch;
    }
    kith_data_pixels_convert(sampler->pixels, examples, sampler->host, image,
                             inputs);
    *label = examples->labels[row_at(sampler, place.cursor)];
}

static void fail(struct sampler *sampler, const void *where, bool changed)
{
    if (atomic_load(&sampler->failed))
        return;
    (void)kith_data_spoiled(sampler->examples->owner, where, changed,
                            sampler->error);
    atomic_store(&sampler->failed, true);
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

static void fill_window(struct sampler *sampler, struct kith_place place,
                        void *inputs, int32_t *labels)
{
    const struct kith_examples *examples = sampler->examples;
    const size_t context = examples->features;
    const size_t at = first_at(sampler, place.cursor);
    int32_t *window = inputs;
    kith_examples_tokens(examples, at, context, window);
    memcpy(labels, window + 1, (context - 1) * sizeof *labels);
    kith_examples_tokens(examples, at + context, 1, labels + context - 1);
    if (!examples->mapped || (in_vocabulary(examples, window, 1) &&
                              in_vocabulary(examples, labels, context)))
        return;
    fail(sampler, kith_data_token(examples, at), true);
}

struct filling {
    struct sampler *sampler;
    struct batch_slot *slot; /* `end` says where it begins */
};

/* Stops early where the loader is being closed. */
static void fill(void *argument)
{
    struct filling *filling = argument;
    struct sampler *sampler = filling->sampler;
    struct batch_slot *slot = filling->slot;
    struct kith_place *place = &slot->end;
    slot->rows = 0;
    while (slot->rows < sampler->config->batch &&
           !atomic_load_explicit(&sampler->stop, memory_order_relaxed)) {
        if (place->cursor == sampler->row_count) {
            if (!sampler->config->shuffle && slot->rows > 0)
                break;
            *place = (struct kith_place){place->epoch + 1, 0};
        }
        begin_epoch(sampler, place->epoch);
        char *inputs = (char *)slot->inputs + slot->rows * sampler->input_bytes;
        int32_t *labels = slot->labels + slot->rows * sampler->label_count;
        fetch(sampler, place->cursor + 1);
        if (sampler->examples->input == KITH_INPUT_TOKENS)
            fill_window(sampler, *place, inputs, labels);
        else
            fill_image(sampler, *place, inputs, labels);
        place->cursor++;
        slot->rows++;
    }
}

void kith_sampler_fill(struct sampler *sampler, struct kith_place place,
                       struct batch_slot *slot)
{
    struct filling filling = {sampler, slot};
    const void *where;
    slot->end = place;
    if (!sampler->examples->mapped)
        fill(&filling);
    else if (!atomic_load(&sampler->failed) &&
             !kith_data_guard(fill, &filling, &where))
        fail(sampler, where, false);
    if (!atomic_load(&sampler->failed))
        return;
    slot->rows = sampler->config->batch;
    memset(slot->inputs, 0, slot->rows * sampler->input_bytes);
    memset(slot->labels, 0,
           slot->rows * sampler->label_count * sizeof(int32_t));
}

void kith_sampler_forget(struct sampler *sampler)
{
    sampler->order_known = false;
    atomic_store(&sampler->stop, false);
}

size_t kith_sampler_input_bytes(enum kith_input input, size_t features,
                                const struct kith_backend *host)
{
    return features *
           (input == KITH_INPUT_TOKENS ? sizeof(int32_t) : host->element_bytes);
}

enum kith_err kith_sampler_refuse(char *error, enum kith_err err,
                                  const char *what)
{
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "preparing batches: %s", what);
    return err;
}

static enum kith_err check(const struct kith_loader_config *config, char *error)
{
    const struct kith_examples *examples = config->examples;
    const size_t rows =
        config->rows == NULL ? examples->count : config->row_count;
    if (config->batch == 0 || config->batch > KITH_BATCH_MAX)
        return kith_sampler_refuse(error, KITH_ELIMIT,
                                   "train.batch must be 1 to 2^20");
    if (rows == 0 || rows >= UINT32_MAX)
        return kith_sampler_refuse(error, KITH_ELIMIT,
                                   "1 to 2^32 - 2 examples are needed");
    const bool augmented = config->augment.crop > 0 || config->augment.flip;
    const bool flat = examples->shape[0] == 1 && examples->shape[1] == 1;
    if (augmented && (examples->input != KITH_INPUT_IMAGES || flat))
        return kith_sampler_refuse(
            error, KITH_EINVAL,
            "train.augment needs images with a height and a width; "
            "take it out");
    if (augmented && (config->augment.crop >= examples->shape[0] ||
                      config->augment.crop >= examples->shape[1]))
        return kith_sampler_refuse(
            error, KITH_EINVAL,
            "train.augment: the crop is as large as the image; take "
            "fewer pixels");
    return KITH_OK;
}

static void take_sizes(struct sampler *sampler,
                       const struct kith_loader_config *config)
{
    const struct kith_examples *examples = config->examples;
    const struct kith_backend *backend = config->backend;
    const bool tokens = examples->input == KITH_INPUT_TOKENS;
    sampler->config = config;
    sampler->examples = examples;
    sampler->host = backend->host == NULL ? backend : backend->host;
    sampler->row_count =
        config->rows == NULL ? examples->count : config->row_count;
    sampler->input_bytes = kith_sampler_input_bytes(
        examples->input, examples->features, sampler->host);
    sampler->label_count = tokens ? examples->features : 1;
    sampler->value_bytes = kith_data_value_bytes(examples->element);
    atomic_init(&sampler->stop, false);
    atomic_init(&sampler->failed, false);
}

/* On a cache line: vectors that cross lines made an image with crop and flip 10
 * % slower. */
static void *take_lines(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) & ~(size_t)63);
}

enum kith_err kith_sampler_open(struct sampler *sampler,
                                const struct kith_loader_config *config,
                                char *error)
{
    KITH_ASSERT(config->entity <= UINT32_MAX && config->examples->features > 0);
    const enum kith_err err = check(config, error);
    if (err != KITH_OK)
        return err;
    take_sizes(sampler, config);
    const size_t most = SIZE_MAX / 16 / config->batch;
    if (sampler->input_bytes > most || sampler->label_count > most)
        return kith_sampler_refuse(
            error, KITH_ELIMIT,
            "a batch does not fit the address space; take a smaller "
            "train.batch");
    sampler->order = malloc(sampler->row_count * sizeof *sampler->order);
    bool ok = sampler->order != NULL;
    if (config->lender == NULL) {
        sampler->scratch =
            take_lines(config->examples->features * sizeof(float));
        sampler->pixels = malloc(sizeof *sampler->pixels);
        ok = ok && sampler->scratch != NULL && sampler->pixels != NULL;
    }
    if (!ok) {
        kith_sampler_close(sampler);
        return kith_sampler_refuse(error, KITH_ENOMEM,
                                   "no memory for their order");
    }
    if (config->lender == NULL && config->examples->input != KITH_INPUT_TOKENS)
        kith_data_pixels_init(sampler->pixels, config->examples);
    return KITH_OK;
}

void kith_sampler_borrow(struct sampler *sampler, const struct sampler *lender)
{
    KITH_ASSERT(sampler->config->lender != NULL);
    sampler->scratch = lender->scratch;
    sampler->pixels = lender->pixels;
}

void kith_sampler_close(struct sampler *sampler)
{
    if (sampler->config->lender == NULL) {
        free(sampler->scratch);
        free(sampler->pixels);
    }
    free(sampler->order);
}
