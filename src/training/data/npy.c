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

enum { MAGIC_BYTES = 6 };

/* What is left of the dictionary. */
struct text {
    const char *at, *end;
};

static void skip_space(struct text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' ||
                                    *text->at == '\t' || *text->at == '\r'))
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

static bool take_word(struct text *text, const char *word)
{
    const size_t length = strlen(word);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length ||
        memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* 'a short name' or "one". */
static bool take_string(struct text *text, char *out, size_t size)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    const char quote = *text->at++;
    size_t length = 0;
    while (text->at < text->end && *text->at != quote) {
        if (length + 1 == size)
            return false;
        out[length++] = *text->at++;
    }
    out[length] = '\0';
    return take(text, quote);
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

static enum kith_err read_type(struct text *text, struct kith_npy *npy)
{
    static const char *const known[][2] = {{"|u1", "u1"}, {"<u1", "u1"},
                                           {"<u2", "u2"}, {"<i4", "i4"},
                                           {"<i8", "i8"}, {"<f4", "f4"}};
    char name[8];
    if (!take_string(text, name, sizeof name))
        return KITH_EPARSE;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i][0]) == 0) {
            memcpy(npy->type, known[i][1], 3);
            return KITH_OK;
        }
    }
    return KITH_EPARSE;
}

static enum kith_err read_shape(struct text *text, struct kith_npy *npy)
{
    if (!take(text, '('))
        return KITH_EPARSE;
    while (!take(text, ')')) {
        uint64_t size;
        if (!take_number(text, &size) || size == 0)
            return KITH_EPARSE;
        if (npy->rank == KITH_IDX_RANK_MAX || size > KITH_DATA_BYTES_MAX)
            return KITH_ELIMIT;
        npy->sizes[npy->rank++] = size;
        if (take(text, ','))
            continue;
        return take(text, ')') ? KITH_OK : KITH_EPARSE;
    }
    return npy->rank > 0 ? KITH_OK : KITH_EPARSE;
}

enum { SEEN_TYPE = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4 };

static enum kith_err read_entry(struct text *text, struct kith_npy *npy,
                                unsigned *seen)
{
    char key[16];
    unsigned flag;
    enum kith_err err = KITH_OK;
    if (!take_string(text, key, sizeof key) || !take(text, ':'))
        return KITH_EPARSE;
    if (strcmp(key, "descr") == 0) {
        flag = SEEN_TYPE;
        err = read_type(text, npy);
    } else if (strcmp(key, "fortran_order") == 0) {
        flag = SEEN_ORDER;
        err = take_word(text, "False") ? KITH_OK : KITH_EPARSE;
    } else if (strcmp(key, "shape") == 0) {
        flag = SEEN_SHAPE;
        err = (*seen & SEEN_SHAPE) == 0 ? read_shape(text, npy) : KITH_EPARSE;
    } else {
        return KITH_EPARSE;
    }
    if ((*seen & flag) != 0)
        return KITH_EPARSE;
    *seen |= flag;
    return err;
}

static enum kith_err read_dictionary(struct text *text, struct kith_npy *npy)
{
    unsigned seen = 0;
    if (!take(text, '{'))
        return KITH_EPARSE;
    while (!take(text, '}')) {
        const enum kith_err err = read_entry(text, npy, &seen);
        if (err != KITH_OK)
            return err;
        if (take(text, ','))
            continue;
        if (!take(text, '}'))
            return KITH_EPARSE;
        break;
    }
    skip_space(text);
    return text->at == text->end &&
                   seen == (SEEN_TYPE | SEEN_ORDER | SEEN_SHAPE)
               ? KITH_OK
               : KITH_EPARSE;
}

/* Where the dictionary begins and ends. */
static bool find_header(const uint8_t *bytes, size_t size, size_t *start,
                        size_t *end)
{
    static const uint8_t magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (size < MAGIC_BYTES + 4 || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return false;
    const uint8_t version = bytes[MAGIC_BYTES];
    size_t length = bytes[8] + ((size_t)bytes[9] << 8);
    *start = 10;
    if (version < 1 || version > 3)
        return false;
    if (version > 1) {
        if (size < 12)
            return false;
        length += ((size_t)bytes[10] << 16) + ((size_t)bytes[11] << 24);
        *start = 12;
    }
    *end = *start + length;
    return length <= size - *start;
}

enum kith_err kith_npy_parse(const uint8_t *bytes, size_t size,
                             struct kith_npy *npy)
{
    size_t start, end;
    struct kith_npy found = {.rank = 0};
    memset(npy, 0, sizeof *npy);
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
    *npy = found;
    return KITH_OK;
}

/* ---- the data set */

struct array {
    struct data_file file;
    struct kith_npy npy;
    const uint8_t *data;
};

static enum kith_err read_array(struct data_opening *opening, const char *name,
                                struct array *array)
{
    struct data_bytes bytes;
    enum kith_err err = kith_data_find(opening, name, &array->file);
    if (err == KITH_ENOENT)
        return kith_data_complain(
            opening->error, err, array->file.path,
            "no such file; data.path needs x_train.npy, "
            "y_train.npy, x_test.npy and y_test.npy (write "
            "them with numpy.save)");
    if (err == KITH_OK)
        err = kith_data_map(opening, &array->file, &bytes);
    if (err != KITH_OK)
        return err;
    err = kith_npy_parse(bytes.bytes, bytes.size, &array->npy);
    array->data = bytes.bytes + array->npy.offset;
    if (err == KITH_ELIMIT)
        return kith_data_complain(opening->error, err, array->file.path,
                                  "more than %u dimensions or 1 TiB of data",
                                  KITH_IDX_RANK_MAX);
    if (err != KITH_OK)
        return kith_data_complain(
            opening->error, err, array->file.path,
            "not a whole .npy array in C order of u1, u2, "
            "i4, i8 or f4; write it again with numpy.save("
            "FILE, numpy.ascontiguousarray(x, \"float32\"))");
    return KITH_OK;
}

static bool is_type(const struct array *array, const char *type)
{
    return strcmp(array->npy.type, type) == 0;
}

static int64_t label_at(const struct array *array, size_t i)
{
    const size_t bytes = (size_t)(array->npy.type[1] - '0');
    uint64_t value = 0;
    for (size_t k = 0; k < bytes; k++)
        value |= (uint64_t)array->data[i * bytes + k] << (8 * k);
    if (is_type(array, "i4"))
        return (int32_t)(uint32_t)value;
    return (int64_t)value;
}

static enum kith_err read_labels(struct data_opening *opening,
                                 const struct array *array,
                                 struct kith_examples *examples)
{
    const bool column = array->npy.rank == 2 && array->npy.sizes[1] == 1;
    if ((array->npy.rank != 1 && !column) || is_type(array, "f4"))
        return kith_data_complain(
            opening->error, KITH_EPARSE, array->file.path,
            "labels need 1 dimension of u1, u2, i4 or i8, "
            "found %" PRIu32 " of %s",
            array->npy.rank, array->npy.type);
    if (array->npy.sizes[0] != examples->count)
        return kith_data_complain(opening->error, KITH_EPARSE, array->file.path,
                                  "%" PRIu64 " labels for %zu images",
                                  array->npy.sizes[0], examples->count);
    int32_t *labels =
        kith_data_alloc(opening, examples->count * sizeof *labels);
    if (labels == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM, array->file.path,
                                  "no memory for %zu labels", examples->count);
    for (size_t i = 0; i < examples->count; i++) {
        const int64_t label = label_at(array, i);
        if (label < 0 || label >= DATA_CLASSES_MAX)
            return kith_data_complain(
                opening->error, KITH_EPARSE, array->file.path,
                "label %zu is %" PRId64 "; allowed: 0 to %u", i, label,
                DATA_CLASSES_MAX - 1);
        labels[i] = (int32_t)label;
    }
    examples->labels = labels;
    return kith_data_classes(labels, examples->count, &examples->classes);
}

/* The whole file is read once: one value that is no number ends a training run
 * after minutes or days, and nothing would name the file then. */
static enum kith_err check_finite(struct data_opening *opening,
                                  const struct array *array)
{
    const size_t count = array->npy.bytes / sizeof(float);
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, array->data + i * sizeof value, sizeof value);
        if (!isfinite(value))
            return kith_data_complain(
                opening->error, KITH_EPARSE, array->file.path,
                "value %zu is %f; take out or replace what "
                "is not finite (numpy.nan_to_num)",
                i, (double)value);
    }
    return KITH_OK;
}

static enum kith_err read_images(struct data_opening *opening,
                                 const struct array *array,
                                 struct kith_examples *examples)
{
    const struct kith_npy *npy = &array->npy;
    if (npy->rank < 2 || (!is_type(array, "u1") && !is_type(array, "f4")))
        return kith_data_complain(opening->error, KITH_EPARSE, array->file.path,
                                  "images need 2 to 4 dimensions of u1 or f4, "
                                  "found %" PRIu32 " of %s",
                                  npy->rank, npy->type);
    for (uint32_t i = 0; i < npy->rank; i++) {
        if (npy->sizes[i] >= UINT32_MAX)
            return kith_data_complain(
                opening->error, KITH_ELIMIT, array->file.path,
                "dimension %" PRIu32 " is %" PRIu64 "; allowed: below 2^32 - 1",
                i, npy->sizes[i]);
    }
    examples->input = KITH_INPUT_IMAGES;
    examples->element =
        is_type(array, "u1") ? KITH_ELEMENT_U8 : KITH_ELEMENT_F32;
    examples->count = (size_t)npy->sizes[0];
    examples->values = array->data;
    examples->mapped = true;
    kith_data_shape(examples, npy->rank, npy->sizes);
    kith_data_count(opening, &array->file, examples->count);
    if (examples->element == KITH_ELEMENT_U8)
        return KITH_OK;
    const enum kith_err err = check_finite(opening, array);
    if (err != KITH_OK || npy->offset % sizeof(float) == 0)
        return err;
    /* NumPy aligns its data; others may not. */
    void *copy = kith_data_alloc(opening, npy->bytes);
    if (copy == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM, array->file.path,
                                  "no memory for its %zu bytes", npy->bytes);
    memcpy(copy, array->data, npy->bytes);
    examples->values = copy;
    examples->mapped = false;
    return KITH_OK;
}

static enum kith_err open_part(struct data_opening *opening, const char *images,
                               const char *labels,
                               struct kith_examples *examples)
{
    struct array array;
    enum kith_err err = read_array(opening, images, &array);
    if (err == KITH_OK)
        err = read_images(opening, &array, examples);
    if (err == KITH_OK)
        err = read_array(opening, labels, &array);
    return err == KITH_OK ? read_labels(opening, &array, examples) : err;
}

static enum kith_err open_npy(const struct kith_data_config *config,
                              struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    const enum kith_err err =
        open_part(&opening, "x_train.npy", "y_train.npy", &set->train);
    return err == KITH_OK
               ? open_part(&opening, "x_test.npy", "y_test.npy", &set->test)
               : err;
}

const struct kith_dataset_kind kith_dataset_npy = {
    .name = "npy",
    .paper = "Harris et al., Nature 2020 (numpy.lib.format)",
    .summary = "{x,y}_{train,test}.npy in a folder; x of u1 or f4, rank 2 to 4",
    .input = KITH_INPUT_IMAGES,
    .open = open_npy,
};
