/* The safetensors format: 8 bytes of header length, little-endian, a header in
 * JSON, the data. The header is untrusted: its size is bounded before a byte of
 * it is parsed, every tensor must fit its shape and the file, and together they
 * must cover the data exactly, so that nothing hides between them. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/checkpoint.h"

enum { PREFIX = 8, ALIGNMENT = 64 };

static const struct {
    const char *text;
    size_t bytes;
} dtypes[KITH_DTYPE_COUNT] = {
#define KITH_X(name, text, bytes) {text, bytes},
    KITH_DTYPES(KITH_X)
#undef KITH_X
};

size_t kith_dtype_bytes(enum kith_dtype dtype)
{
    KITH_ASSERT((unsigned)dtype < KITH_DTYPE_COUNT);
    return dtypes[dtype].bytes;
}

/* ---- reading */

struct parse {
    struct kith_safetensors *file;
    size_t data_bytes, data_offset;
    char *error;
};

static enum kith_err complain(const struct parse *parse, enum kith_err err,
                              const char *tensor, const char *what)
{
    if (tensor == NULL)
        (void)snprintf(parse->error, KITH_CHECKPOINT_ERROR_BYTES, "%s", what);
    else
        (void)snprintf(parse->error, KITH_CHECKPOINT_ERROR_BYTES,
                       "tensor \"%.100s\": %s", tensor, what);
    return err;
}

static bool whole(const json_t *value, uint64_t most, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return *out <= most;
}

static bool read_dtype(const json_t *entry, enum kith_dtype *dtype)
{
    const char *text = json_string_value(json_object_get(entry, "dtype"));
    for (int i = 0; text != NULL && i < KITH_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].text) != 0)
            continue;
        *dtype = (enum kith_dtype)i;
        return true;
    }
    return false;
}

/* Shape, and the bytes that it needs. */
static bool read_shape(const json_t *entry, struct kith_tensor_entry *tensor,
                       uint64_t most, uint64_t *bytes)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > 4)
        return false;
    tensor->rank = (uint32_t)json_array_size(shape);
    *bytes = kith_dtype_bytes(tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint64_t *side = &tensor->shape[i];
        if (!whole(json_array_get(shape, i), most, side))
            return false;
        if (*side > 0 && *bytes > most / *side)
            return false;
        *bytes *= *side;
    }
    return true;
}

static enum kith_err read_tensor(const struct parse *parse, const char *name,
                                 const json_t *entry,
                                 struct kith_tensor_entry *tensor)
{
    const json_t *span = json_object_get(entry, "data_offsets");
    const size_t most = parse->data_bytes;
    uint64_t begin, end, bytes;
    if (strlen(name) >= sizeof tensor->name)
        return complain(parse, KITH_ELIMIT, name, "its name is too long");
    memcpy(tensor->name, name, strlen(name) + 1);
    if (!read_dtype(entry, &tensor->dtype))
        return complain(parse, KITH_EPARSE, name,
                        "dtype must be F32, F64, BF16 or F16");
    if (!read_shape(entry, tensor, most, &bytes))
        return complain(parse, KITH_EPARSE, name,
                        "its shape must be at most 4 sizes that fit the file");
    if (json_array_size(span) != 2 ||
        !whole(json_array_get(span, 0), most, &begin) ||
        !whole(json_array_get(span, 1), most, &end) || begin > end ||
        end - begin != bytes)
        return complain(parse, KITH_EPARSE, name,
                        "its data_offsets do not fit its shape and the file");
    tensor->offset = parse->data_offset + (size_t)begin;
    tensor->bytes = (size_t)bytes;
    return KITH_OK;
}

static enum kith_err read_texts(const struct parse *parse, json_t *metadata)
{
    struct kith_safetensors *file = parse->file;
    const char *key;
    json_t *value;
    if (metadata == NULL)
        return KITH_OK;
    if (!json_is_object(metadata))
        return complain(parse, KITH_EPARSE, NULL,
                        "__metadata__ is not an object");
    file->texts = calloc(json_object_size(metadata) + 1, sizeof *file->texts);
    if (file->texts == NULL)
        return complain(parse, KITH_ENOMEM, NULL, "no memory for its texts");
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return complain(parse, KITH_EPARSE, NULL,
                            "__metadata__ holds something that is no text");
        file->texts[file->text_count++] =
            (struct kith_text_entry){key, json_string_value(value)};
    }
    return KITH_OK;
}

static enum kith_err read_tensors(const struct parse *parse, json_t *header)
{
    struct kith_safetensors *file = parse->file;
    const char *name;
    json_t *entry;
    if (json_object_size(header) > KITH_TENSORS_MAX)
        return complain(parse, KITH_ELIMIT, NULL, "it has too many tensors");
    file->tensors = calloc(json_object_size(header) + 1, sizeof *file->tensors);
    if (file->tensors == NULL)
        return complain(parse, KITH_ENOMEM, NULL, "no memory for its header");
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const enum kith_err err =
            read_tensor(parse, name, entry, &file->tensors[file->tensor_count]);
        if (err != KITH_OK)
            return err;
        file->tensor_count++;
    }
    return KITH_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct kith_tensor_entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
    const struct kith_tensor_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum kith_err check_cover(const struct parse *parse)
{
    struct kith_safetensors *file = parse->file;
    size_t at = parse->data_offset;
    qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->tensor_count; i++) {
        if (file->tensors[i].offset != at)
            return complain(parse, KITH_EPARSE, file->tensors[i].name,
                            "it overlaps another, or a gap stands before it");
        at += file->tensors[i].bytes;
    }
    if (at != parse->data_offset + parse->data_bytes)
        return complain(parse, KITH_EPARSE, NULL,
                        "something follows the last tensor");
    qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_name);
    return KITH_OK;
}

static enum kith_err read_header(struct parse *parse, const uint8_t *bytes,
                                 size_t size)
{
    uint64_t length = 0;
    json_error_t why;
    if (size < PREFIX)
        return complain(parse, KITH_EPARSE, NULL,
                        "it is truncated: no whole header");
    for (unsigned k = 0; k < PREFIX; k++)
        length |= (uint64_t)bytes[k] << (8 * k);
    if (length > KITH_SAFETENSORS_HEADER_MAX)
        return complain(parse, KITH_ELIMIT, NULL,
                        "not a safetensors file, or its header is above 4 MiB");
    if (length > size - PREFIX)
        return complain(parse, KITH_EPARSE, NULL,
                        "it is truncated: no whole header");
    parse->data_offset = PREFIX + (size_t)length;
    parse->data_bytes = size - parse->data_offset;
    json_t *header = json_loadb((const char *)bytes + PREFIX, (size_t)length,
                                JSON_REJECT_DUPLICATES, &why);
    parse->file->owner = header;
    if (!json_is_object(header))
        return complain(parse, KITH_EPARSE, NULL,
                        "not a safetensors file: its header is no JSON object");
    enum kith_err err =
        read_texts(parse, json_object_get(header, "__metadata__"));
    if (err == KITH_OK)
        err = read_tensors(parse, header);
    return err == KITH_OK ? check_cover(parse) : err;
}

enum kith_err kith_safetensors_parse(const uint8_t *bytes, size_t size,
                                     struct kith_safetensors *file, char *error)
{
    struct parse parse = {.file = file, .error = error};
    *file = (struct kith_safetensors){.tensors = NULL};
    const enum kith_err err = read_header(&parse, bytes, size);
    if (err != KITH_OK)
        kith_safetensors_free(file);
    return err;
}

void kith_safetensors_free(struct kith_safetensors *file)
{
    free(file->tensors);
    free(file->texts);
    json_decref(file->owner);
    *file = (struct kith_safetensors){.tensors = NULL};
}

const struct kith_tensor_entry *
kith_safetensors_find(const struct kith_safetensors *file, const char *name)
{
    struct kith_tensor_entry key;
    if (strlen(name) >= sizeof key.name || file->tensor_count == 0)
        return NULL;
    memcpy(key.name, name, strlen(name) + 1);
    return bsearch(&key, file->tensors, file->tensor_count, sizeof key,
                   by_name);
}

const char *kith_safetensors_text(const struct kith_safetensors *file,
                                  const char *key)
{
    for (size_t i = 0; i < file->text_count; i++)
        if (strcmp(file->texts[i].key, key) == 0)
            return file->texts[i].value;
    return NULL;
}

/* bfloat16 is the upper half of a float. */
static double from_bf16(const uint8_t *bytes)
{
    const uint32_t bits = ((uint32_t)bytes[1] << 8 | bytes[0]) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double from_f16(const uint8_t *bytes)
{
    const uint32_t bits = (uint32_t)bytes[1] << 8 | bytes[0];
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t single = (bits & 0x8000u) << 16;
    float value;
    if (exponent == 0) { /* subnormal: fraction * 2^-24 */
        const double small = (double)fraction / 16777216.0;
        return bits & 0x8000u ? -small : small;
    }
    single |= (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    memcpy(&value, &single, sizeof value);
    return (double)value;
}

void kith_dtype_read(enum kith_dtype dtype, size_t n, const uint8_t *bytes,
                     double *out)
{
    float single;
    if (dtype == KITH_DTYPE_F64 && n > 0)
        memcpy(out, bytes, n * sizeof *out);
    for (size_t i = 0; i < n && dtype == KITH_DTYPE_F32; i++) {
        memcpy(&single, bytes + 4 * i, sizeof single);
        out[i] = (double)single;
    }
    for (size_t i = 0; i < n && dtype == KITH_DTYPE_BF16; i++)
        out[i] = from_bf16(bytes + 2 * i);
    for (size_t i = 0; i < n && dtype == KITH_DTYPE_F16; i++)
        out[i] = from_f16(bytes + 2 * i);
}

/* ---- writing */

/* json_pack and its like fail on no memory alone here, and give NULL then;
 * what takes the NULL refuses it in turn. */
static json_t *tensor_json(const struct kith_tensor_entry *tensor, size_t at)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < tensor->rank; i++)
        (void)json_array_append_new(shape,
                                    json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                     dtypes[tensor->dtype].text, "shape", shape, "data_offsets",
                     (json_int_t)at, (json_int_t)(at + tensor->bytes));
}

/* A path in an experiment may be in any encoding, JSON is UTF-8: what is not
 * gets question marks, for a run must not fail over it. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char *plain = json == NULL ? strdup(text) : NULL;
    for (char *c = plain; c != NULL && *c != '\0'; c++)
        *c = (unsigned char)*c < 0x80 ? *c : '?';
    if (plain != NULL)
        json = json_string(plain);
    free(plain);
    return json;
}

static json_t *header_json(struct kith_tensor_entry *tensors, size_t count,
                           const struct kith_text_entry *texts,
                           size_t text_count)
{
    json_t *header = json_object(), *metadata = json_object();
    bool ok = true;
    size_t at = 0;
    for (size_t i = 0; i < text_count; i++)
        ok &= json_object_set_new(metadata, texts[i].key,
                                  text_json(texts[i].value)) == 0;
    ok &= json_object_set_new(header, "__metadata__", metadata) == 0;
    for (size_t i = 0; i < count; i++) {
        struct kith_tensor_entry *tensor = &tensors[i];
        tensor->bytes = kith_dtype_bytes(tensor->dtype);
        for (uint32_t k = 0; k < tensor->rank; k++)
            tensor->bytes *= (size_t)tensor->shape[k];
        ok &= json_object_set_new(header, tensor->name,
                                  tensor_json(tensor, at)) == 0;
        tensor->offset = at;
        at += tensor->bytes;
    }
    if (ok)
        return header;
    json_decref(header);
    return NULL;
}

enum kith_err kith_safetensors_header(struct kith_tensor_entry *tensors,
                                      size_t tensor_count,
                                      const struct kith_text_entry *texts,
                                      size_t text_count, uint8_t **out,
                                      size_t *out_bytes)
{
    json_t *json = header_json(tensors, tensor_count, texts, text_count);
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return KITH_ENOMEM;
    const size_t length = strlen(text);
    const size_t whole_bytes =
        (PREFIX + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *bytes = malloc(whole_bytes);
    if (bytes != NULL) {
        for (unsigned k = 0; k < PREFIX; k++)
            bytes[k] = (uint8_t)((whole_bytes - PREFIX) >> (8 * k));
        memcpy(bytes + PREFIX, text, length);
        memset(bytes + PREFIX + length, ' ', whole_bytes - PREFIX - length);
        for (size_t i = 0; i < tensor_count; i++)
            tensors[i].offset += whole_bytes;
    }
    free(text);
    if (bytes == NULL)
        return KITH_ENOMEM;
    if (whole_bytes - PREFIX > KITH_SAFETENSORS_HEADER_MAX) {
        free(bytes);
        return KITH_ELIMIT;
    }
    *out = bytes;
    *out_bytes = whole_bytes;
    return KITH_OK;
}
