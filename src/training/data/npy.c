/* NumPy arrays: "\x93NUMPY", version, length of the header, a Python dictionary
 * as text, then the data:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 *   FOLDER/{x_train,x_test}.npy   (count, ...) of u1 or f4, rank 2 to 4
 *   FOLDER/{y_train,y_test}.npy   (count) of u1, u2, i4 or i8
 *
 * numpy.lib.format, versions 1 to 3. Images are mapped. */
#include "data_files.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is left of the dictionary. */
struct text {
    const char *at, *end;
};

static void skip_space(struct text *text)
{
    while (text->at < text->end && memchr(" \n\t\r", *text->at, 4) != NULL)
        text->at++;
}

/* One character, after spaces. */
static bool take(struct text *text, char c)
{
    skip_space(text);
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

/* The word, after spaces, between quotes of either kind where `quoted`. */
static bool take_word(struct text *text, const char *word, bool quoted)
{
    struct text rest = *text;
    const size_t length = strlen(word);
    skip_space(&rest);
    const char quote = quoted && rest.at < rest.end ? *rest.at++ : '"';
    if ((quote != '"' && quote != '\'') ||
        (size_t)(rest.end - rest.at) < length + quoted ||
        memcmp(rest.at, word, length) != 0 ||
        (quoted && rest.at[length] != quote))
        return false;
    text->at = rest.at + length + quoted;
    return true;
}

static bool take_number(struct text *text, uint64_t *value)
{
    skip_space(text);
    const char *const start = text->at;
    *value = 0;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
        if (*value > KITH_DATA_BYTES_MAX)
            return false;
        *value = *value * 10 + (uint64_t)(*text->at++ - '0');
    }
    return text->at > start;
}

static enum kith_err read_type(struct text *text, struct kith_array *array)
{
    static const char *const known[] = {"|u1", "<u1", "<u2",
                                        "<i4", "<i8", "<f4"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (take_word(text, known[i], true)) {
            memcpy(array->type, known[i] + 1, 3);
            return KITH_OK;
        }
    }
    return KITH_EPARSE;
}

static enum kith_err read_order(struct text *text, struct kith_array *array)
{
    (void)array;
    return take_word(text, "False", false) ? KITH_OK : KITH_EPARSE;
}

static enum kith_err read_shape(struct text *text, struct kith_array *array)
{
    if (!take(text, '('))
        return KITH_EPARSE;
    while (!take(text, ')')) {
        uint64_t size;
        if (!take_number(text, &size) || size == 0)
            return KITH_EPARSE;
        if (array->rank == KITH_IDX_RANK_MAX || size > KITH_DATA_BYTES_MAX)
            return KITH_ELIMIT;
        array->sizes[array->rank++] = size;
        if (take(text, ','))
            continue;
        return take(text, ')') ? KITH_OK : KITH_EPARSE;
    }
    return array->rank > 0 ? KITH_OK : KITH_EPARSE;
}

enum { KEYS = 3 };

/* One entry of the dictionary, each key once. */
static enum kith_err read_entry(struct text *text, struct kith_array *array,
                                bool seen[KEYS])
{
    static const struct {
        const char *key;
        enum kith_err (*read)(struct text *text, struct kith_array *array);
    } keys[KEYS] = {{"descr", read_type},
                    {"fortran_order", read_order},
                    {"shape", read_shape}};
    for (unsigned i = 0; i < KEYS; i++) {
        if (seen[i] || !take_word(text, keys[i].key, true))
            continue;
        seen[i] = true;
        return take(text, ':') ? keys[i].read(text, array) : KITH_EPARSE;
    }
    return KITH_EPARSE;
}

static enum kith_err read_dictionary(struct text *text,
                                     struct kith_array *array)
{
    bool seen[KEYS] = {false};
    bool more = take(text, '{');
    while (more && !take(text, '}')) {
        const enum kith_err err = read_entry(text, array, seen);
        if (err != KITH_OK)
            return err;
        more = take(text, ',');
        if (!more && !take(text, '}'))
            return KITH_EPARSE;
    }
    skip_space(text);
    return text->at == text->end && seen[0] && seen[1] && seen[2] ? KITH_OK
                                                                  : KITH_EPARSE;
}

/* Where the dictionary begins and ends. */
static bool find_header(const uint8_t *bytes, size_t size, size_t *start,
                        size_t *end)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    enum { MAGIC_BYTES = sizeof magic, VERSION_BYTES = 2 };
    uint32_t length = 0;
    if (size < MAGIC_BYTES + VERSION_BYTES ||
        memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return false;
    const uint8_t version = bytes[MAGIC_BYTES];
    const size_t digits = version == 1 ? 2 : 4;
    *start = MAGIC_BYTES + VERSION_BYTES + digits;
    if (version < 1 || version > 3 || size < *start)
        return false;
    memcpy(&length, bytes + *start - digits, digits);
    *end = *start + length;
    return length <= size - *start;
}

enum kith_err kith_npy_parse(const uint8_t *bytes, size_t size,
                             struct kith_array *array)
{
    size_t start, end;
    struct kith_array found = {.rank = 0};
    memset(array, 0, sizeof *array);
    if (!find_header(bytes, size, &start, &end))
        return KITH_EPARSE;
    struct text text = {(const char *)bytes + start, (const char *)bytes + end};
    const enum kith_err err = read_dictionary(&text, &found);
    if (err != KITH_OK)
        return err;
    uint64_t total = (uint64_t)(found.type[1] - '0');
    for (uint32_t i = 0; i < found.rank; i++) {
        /* Both factors are at most 2^40, and the first is kept so. */
        if (found.sizes[i] > KITH_DATA_BYTES_MAX / total)
            return KITH_ELIMIT;
        total *= found.sizes[i];
    }
    found.offset = end;
    found.bytes = (size_t)total;
    if (size - end != found.bytes)
        return KITH_EPARSE;
    *array = found;
    return KITH_OK;
}

/* ---- the data set */

static enum kith_err read_array(struct kith_data_opening *opening,
                                const char *name, struct kith_array *array,
                                const uint8_t **data)
{
    struct kith_file_map map;
    enum kith_err err =
        kith_data_map(opening, kith_data_find(opening, name),
                      "no such file; data.path needs x_train.npy, y_train.npy, "
                      "x_test.npy and y_test.npy (write them with numpy.save)",
                      &map);
    if (err != KITH_OK)
        return err;
    err = kith_npy_parse(map.bytes, map.size, array);
    *data = map.bytes + array->offset;
    if (err == KITH_ELIMIT)
        return kith_data_refuse(opening, err,
                                "more than %u dimensions or 1 TiB of data",
                                KITH_IDX_RANK_MAX);
    if (err != KITH_OK)
        return kith_data_refuse(
            opening, err,
            "not a whole .npy array in C order of u1, u2, i4, i8 or f4; write "
            "it again with numpy.save(FILE, numpy.ascontiguousarray(x, "
            "\"float32\"))");
    return KITH_OK;
}

static bool is_type(const struct kith_array *array, const char *type)
{
    return strcmp(array->type, type) == 0;
}

/* The whole file is read once: one value that is no number ends a training run
 * after minutes or days, and nothing would name the file then. */
static enum kith_err check_finite(struct kith_data_opening *opening,
                                  const uint8_t *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, data + i * sizeof value, sizeof value);
        if (!isfinite(value))
            return kith_data_refuse(opening, KITH_EPARSE,
                                    "value %zu is %f; take out or replace what "
                                    "is not finite (numpy.nan_to_num)",
                                    i, (double)value);
    }
    return KITH_OK;
}

static enum kith_err read_images(struct kith_data_opening *opening,
                                 const struct kith_array *array,
                                 const uint8_t *data,
                                 struct kith_examples *examples)
{
    const bool bytes = is_type(array, "u1");
    if (array->rank < 2 || (!bytes && !is_type(array, "f4")))
        return kith_data_refuse(opening, KITH_EPARSE,
                                "images need 2 to 4 dimensions of u1 or f4, "
                                "found %" PRIu32 " of %s",
                                array->rank, array->type);
    for (uint32_t i = 0; i < array->rank; i++) {
        if (array->sizes[i] >= UINT32_MAX)
            return kith_data_refuse(opening, KITH_ELIMIT,
                                    "dimension %" PRIu32 " is %" PRIu64
                                    "; allowed: below 2^32 - 1",
                                    i, array->sizes[i]);
    }
    kith_data_images(examples, bytes ? KITH_ELEMENT_U8 : KITH_ELEMENT_F32, data,
                     array->rank, array->sizes);
    examples->mapped = true;
    kith_data_count(opening, examples->count);
    if (bytes)
        return KITH_OK;
    const enum kith_err err =
        check_finite(opening, data, array->bytes / sizeof(float));
    if (err != KITH_OK || array->offset % sizeof(float) == 0)
        return err;
    /* NumPy aligns its data; others may not. */
    void *copy = kith_data_alloc(opening, array->bytes, 1, "bytes");
    if (copy == NULL)
        return KITH_ENOMEM;
    memcpy(copy, data, array->bytes);
    examples->values = copy;
    examples->mapped = false;
    return KITH_OK;
}

static enum kith_err open_npy(struct kith_data_opening *opening,
                              enum kith_data_part part,
                              struct kith_examples *examples)
{
    const bool train = part == KITH_DATA_TRAIN;
    struct kith_array array;
    const uint8_t *data;
    enum kith_err err = read_array(
        opening, train ? "x_train.npy" : "x_test.npy", &array, &data);
    if (err == KITH_OK)
        err = read_images(opening, &array, data, examples);
    if (err == KITH_OK)
        err = read_array(opening, train ? "y_train.npy" : "y_test.npy", &array,
                         &data);
    if (err != KITH_OK)
        return err;
    const bool column = array.rank == 2 && array.sizes[1] == 1;
    if ((array.rank != 1 && !column) || is_type(&array, "f4"))
        return kith_data_refuse(opening, KITH_EPARSE,
                                "labels need 1 dimension of u1, u2, i4 or i8, "
                                "found %" PRIu32 " of %s",
                                array.rank, array.type);
    return kith_data_labels(opening, &array, data, examples);
}

const struct kith_dataset_kind kith_dataset_npy = {
    .name = "npy",
    .paper = "Harris et al., Nature 2020 (numpy.lib.format)",
    .summary = "{x,y}_{train,test}.npy in a folder; x of u1 or f4, rank 2 to 4",
    .input = KITH_INPUT_IMAGES,
    .open = open_npy,
};
