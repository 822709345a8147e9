/* Opening and closing a data set of any kind, and what all kinds share: shapes,
 * classes, windows of token streams, normalisation. */
#include "data_files.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/text.h"

uint32_t kith_data_channels(const struct kith_examples *examples)
{
    return examples->shape[2] <= 4 ? examples->shape[2] : 1;
}

size_t kith_data_value_bytes(enum kith_element element)
{
    return element == KITH_ELEMENT_U8 ? 1 : element == KITH_ELEMENT_U16 ? 2 : 4;
}

void kith_data_images(struct kith_examples *examples, enum kith_element element,
                      const void *values, uint32_t rank, const uint64_t *sizes)
{
    KITH_ASSERT(rank >= 2 && rank <= 4);
    const uint64_t flat[3] = {1, 1, sizes[1]};
    const uint64_t grey[3] = {sizes[1], rank > 2 ? sizes[2] : 1, 1};
    const uint64_t *shape = rank == 2 ? flat : rank == 3 ? grey : sizes + 1;
    examples->input = KITH_INPUT_IMAGES;
    examples->element = element;
    examples->values = values;
    examples->count = (size_t)sizes[0];
    examples->features = 1;
    for (unsigned i = 0; i < 3; i++) {
        examples->shape[i] = (uint32_t)shape[i];
        examples->features *= (size_t)shape[i];
    }
}

static int64_t label_at(const struct kith_array *array, const uint8_t *data,
                        size_t i)
{
    const size_t bytes = (size_t)(array->type[1] - '0');
    uint64_t value = 0;
    memcpy(&value, data + i * bytes, bytes);
    return strcmp(array->type, "i4") == 0 ? (int32_t)(uint32_t)value
                                          : (int64_t)value;
}

enum kith_err kith_data_labels(struct kith_data_opening *opening,
                               const struct kith_array *array,
                               const uint8_t *data,
                               struct kith_examples *examples)
{
    if (array->sizes[0] != examples->count)
        return kith_data_refuse(opening, KITH_EPARSE,
                                "%" PRIu64 " labels for %zu images",
                                array->sizes[0], examples->count);
    int32_t *labels =
        kith_data_alloc(opening, examples->count, sizeof *labels, "labels");
    if (labels == NULL)
        return KITH_ENOMEM;
    for (size_t i = 0; i < examples->count; i++) {
        const int64_t label = label_at(array, data, i);
        if (label < 0 || label >= DATA_CLASSES_MAX)
            return kith_data_refuse(opening, KITH_EPARSE,
                                    "label %zu is %" PRId64
                                    "; allowed: 0 to %u",
                                    i, label, DATA_CLASSES_MAX - 1);
        labels[i] = (int32_t)label;
        if (label >= examples->classes)
            examples->classes = (uint32_t)label + 1;
    }
    examples->labels = labels;
    return KITH_OK;
}

/* How many windows the tokens in `values` or `segments` make. */
static enum kith_err count_windows(struct kith_data_opening *opening,
                                   struct kith_examples *examples)
{
    const uint32_t context = opening->config->context;
    if (context == 0)
        return kith_data_refuse(
            opening, KITH_EINVAL,
            "it holds text, and the model reads none; choose "
            "one that does (model.kind: gpt)");
    examples->features = context;
    examples->count =
        examples->tokens == 0 ? 0 : (examples->tokens - 1) / context;
    if (examples->count > 0)
        return KITH_OK;
    return kith_data_refuse(
        opening, KITH_EINVAL,
        "its training or test part has %zu tokens, fewer than one window of "
        "model.context %" PRIu32 " and the token after it; use more text, a "
        "smaller context or another data.test_share",
        examples->tokens, context);
}

/* The last test_share of the tokens is the test set. */
static void cut(const struct kith_data_config *config,
                struct kith_examples *train, struct kith_examples *test)
{
    *test = *train;
    train->tokens = (size_t)((double)test->tokens * (1 - config->test_share));
    test->tokens -= train->tokens;
    test->values = (const char *)train->values +
                   train->tokens * kith_data_value_bytes(train->element);
}

/* The segment that holds place `at` of the stream. */
static const struct kith_segment *
segment_of(const struct kith_examples *examples, size_t at)
{
    size_t low = 0, high = examples->segment_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (examples->segments[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return &examples->segments[low];
}

const void *kith_data_token(const struct kith_examples *examples, size_t at)
{
    const size_t bytes = kith_data_value_bytes(examples->element);
    if (examples->segments == NULL)
        return (const char *)examples->values + at * bytes;
    const struct kith_segment *segment = segment_of(examples, at);
    return (const char *)segment->values + (at - segment->first) * bytes;
}

static void widen(enum kith_element element, const void *values, size_t first,
                  size_t count, int32_t *tokens)
{
    const uint8_t *bytes = values;
    const uint16_t *words = values;
    switch (element) {
    case KITH_ELEMENT_U8:
        for (size_t i = 0; i < count; i++)
            tokens[i] = bytes[first + i];
        break;
    case KITH_ELEMENT_U16:
        for (size_t i = 0; i < count; i++)
            tokens[i] = words[first + i];
        break;
    case KITH_ELEMENT_I32:
        memcpy(tokens, (const int32_t *)values + first, count * sizeof *tokens);
        break;
    case KITH_ELEMENT_F32:
        KITH_ASSERT(element != KITH_ELEMENT_F32);
        break;
    }
}

void kith_examples_tokens(const struct kith_examples *examples, size_t first,
                          size_t count, int32_t *tokens)
{
    KITH_ASSERT(first <= examples->tokens && count <= examples->tokens - first);
    const struct kith_segment whole = {examples->values, 0, examples->tokens};
    const struct kith_segment *segment =
        examples->segments == NULL ? &whole : segment_of(examples, first);
    while (count > 0) {
        const size_t from = first - segment->first;
        const size_t left = segment->tokens - from;
        const size_t now = count < left ? count : left;
        widen(examples->element, segment->values, from, now, tokens);
        tokens += now;
        first += now;
        count -= now;
        segment++;
    }
}

/* Mean and deviation per channel of v in [0, 1] (bytes) or as it is. Sums of
 * bytes are whole numbers below 2^53, so float64 holds them exactly. */
static void measure(struct kith_examples *examples)
{
    const uint32_t channels = kith_data_channels(examples);
    const size_t total = examples->count * examples->features;
    const uint8_t *bytes = examples->values;
    const float *values = examples->values;
    const bool u8 = examples->element == KITH_ELEMENT_U8;
    const double scale = u8 ? 255 : 1, n = (double)(total / channels);
    for (uint32_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t i = c; i < total; i += channels) {
            const double v = u8 ? bytes[i] : (double)values[i];
            sum += v;
            squares += v * v;
        }
        const double mean = sum / scale / n;
        const double variance = squares / (scale * scale) / n - mean * mean;
        examples->mean[c] = (float)mean;
        /* A channel that never changes is left alone. */
        examples->deviation[c] =
            variance > 1e-12 ? (float)sqrt(variance) : 1.0F;
    }
}

/* Both parts alike, and one number of classes for both. */
static enum kith_err check_parts(struct kith_data_opening *opening)
{
    struct kith_examples *train = &opening->set->train;
    struct kith_examples *test = &opening->set->test;
    if (test->classes > train->classes)
        train->classes = test->classes;
    test->classes = train->classes;
    if (train->features == test->features &&
        memcmp(train->shape, test->shape, sizeof train->shape) == 0 &&
        train->element == test->element)
        return KITH_OK;
    return kith_data_refuse(opening, KITH_EPARSE,
                            "training images are %" PRIu32 " x %" PRIu32
                            " x %" PRIu32 ", test images %" PRIu32 " x %" PRIu32
                            " x %" PRIu32
                            " or of another type; make them alike",
                            train->shape[0], train->shape[1], train->shape[2],
                            test->shape[0], test->shape[1], test->shape[2]);
}

/* The training set, then the test set. */
static enum kith_err read_parts(struct kith_data_opening *opening)
{
    const struct kith_data_config *config = opening->config;
    struct kith_examples *train = &opening->set->train;
    struct kith_examples *test = &opening->set->test;
    enum kith_err err = config->kind->open(opening, KITH_DATA_TRAIN, train);
    if (err == KITH_OK && config->kind->cut)
        cut(config, train, test);
    else if (err == KITH_OK)
        err = config->kind->open(opening, KITH_DATA_TEST, test);
    if (err != KITH_OK)
        return err;
    /* What follows is true of the whole set: no one file is to blame. */
    (void)kith_text_copy(opening->path, sizeof opening->path, config->path);
    if (train->input == KITH_INPUT_TOKENS) {
        err = count_windows(opening, train);
        if (err == KITH_OK)
            err = count_windows(opening, test);
    }
    if (config->kind->cut)
        kith_data_count(opening, train->count + test->count);
    return err == KITH_OK ? check_parts(opening) : err;
}

/* All that looks at the files' bytes. */
static void read_all(void *argument)
{
    struct kith_data_opening *opening = argument;
    struct kith_dataset *set = opening->set;
    opening->err = read_parts(opening);
    if (opening->err != KITH_OK || !opening->config->normalise ||
        set->train.input != KITH_INPUT_IMAGES)
        return;
    measure(&set->train);
    memcpy(set->test.mean, set->train.mean, sizeof set->test.mean);
    memcpy(set->test.deviation, set->train.deviation,
           sizeof set->test.deviation);
}

enum kith_err kith_dataset_open(const struct kith_data_config *config,
                                struct kith_dataset *set, char *error)
{
    static const struct kith_examples empty = {.deviation = {1, 1, 1, 1}};
    struct kith_data_opening opening = {
        .config = config, .set = set, .error = error};
    const void *where;
    *set = (struct kith_dataset){.train = empty, .test = empty};
    if (!kith_data_guard(read_all, &opening, &where))
        opening.err = kith_data_spoiled(set->owner, where, false, error);
    if (opening.err != KITH_OK)
        kith_dataset_close(set);
    set->train.owner = set->test.owner = set->owner;
    if (config->store != NULL)
        set->train.mapped = set->test.mapped = false;
    return opening.err;
}

void kith_dataset_close(struct kith_dataset *set)
{
    if (set->close != NULL)
        set->close(set->owner);
    memset(set, 0, sizeof *set);
}

/* ---- told apart */

enum { LOOKS = 256, LOOK_BYTES = 4096 };

static uint64_t hash_places(uint64_t hash, const void *bytes, size_t size,
                            size_t looks)
{
    KITH_ASSERT(looks >= 2 && (bytes != NULL || size == 0));
    if (size <= looks * LOOK_BYTES)
        return kith_hash_bytes(hash, bytes, size);
    const size_t last = size - LOOK_BYTES;
    for (size_t i = 0; i < looks; i++) {
        const size_t at = i + 1 < looks ? last / (looks - 1) * i : last;
        hash = kith_hash_bytes(hash, (const char *)bytes + at, LOOK_BYTES);
    }
    return kith_hash_word(hash, size);
}

static size_t bytes_of(const struct kith_examples *examples)
{
    const size_t values = examples->input == KITH_INPUT_TOKENS
                              ? examples->tokens
                              : examples->count * examples->features;
    return values * kith_data_value_bytes(examples->element);
}

static uint64_t hash_examples(uint64_t hash,
                              const struct kith_examples *examples)
{
    const size_t segments = examples->segment_count;
    const size_t looks = segments < LOOKS / 2 ? LOOKS / (segments + 1) : 2;
    const size_t element = kith_data_value_bytes(examples->element);
    KITH_ASSERT(segments == 0 || examples->segments != NULL);
    hash = kith_hash_word(hash, examples->count);
    hash = kith_hash_word(hash, examples->features);
    hash = kith_hash_word(hash, examples->classes);
    if (examples->values != NULL)
        hash = hash_places(hash, examples->values, bytes_of(examples), LOOKS);
    for (size_t i = 0; i < segments; i++)
        hash = hash_places(hash, examples->segments[i].values,
                           examples->segments[i].tokens * element, looks);
    return examples->labels == NULL
               ? hash
               : hash_places(hash, examples->labels,
                             examples->count * sizeof *examples->labels, LOOKS);
}

uint64_t kith_dataset_hash(uint64_t hash, const struct kith_dataset *set)
{
    if (set == NULL)
        return hash;
    hash = hash_examples(hash, &set->train);
    return hash_examples(hash, &set->test);
}
