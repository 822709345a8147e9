/* See kith/json.h. */
#include "kith/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* What is no UTF-8 keeps its ASCII alone. */
json_t *kith_json_bytes(const char *text, size_t size)
{
    json_t *value = json_stringn(text, size);
    char *ascii = value == NULL ? malloc(size + 1) : NULL;
    for (size_t i = 0; ascii != NULL && i < size; i++)
        ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    if (ascii != NULL)
        value = json_stringn(ascii, size);
    free(ascii);
    return value == NULL ? json_null() : value;
}

json_t *kith_json_text(const char *text)
{
    return text == NULL ? json_null() : kith_json_bytes(text, strlen(text));
}

json_t *kith_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *kith_json_whole(uint64_t value)
{
    return value == UINT64_MAX ? json_null() : json_integer((json_int_t)value);
}

void kith_json_set_text(json_t *object, const char *key, const char *text)
{
    (void)json_object_set_new(object, key, kith_json_text(text));
}

void kith_json_set_real(json_t *object, const char *key, double value)
{
    (void)json_object_set_new(object, key, kith_json_real(value));
}

void kith_json_set_whole(json_t *object, const char *key, uint64_t value)
{
    (void)json_object_set_new(object, key, kith_json_whole(value));
}

const char *kith_json_number(const json_t *number, int digits,
                             char text[KITH_JSON_NUMBER_BYTES])
{
    if (json_is_real(number))
        (void)snprintf(text, KITH_JSON_NUMBER_BYTES, "%.*g", digits,
                       json_real_value(number));
    else
        (void)snprintf(text, KITH_JSON_NUMBER_BYTES, "%" PRIu64,
                       (uint64_t)json_integer_value(number));
    return text;
}

static void write_plain(FILE *out, const json_t *value)
{
    (void)json_dumpf(value, out, JSON_ENCODE_ANY);
}

static void write_value(FILE *out, json_t *value, int digits)
{
    char number[KITH_JSON_NUMBER_BYTES];
    const char *key, *before = "";
    json_t *item;
    size_t at;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        fputc('{', out);
        json_object_foreach(value, key, item)
        {
            json_t *name = json_string(key);
            fputs(before, out);
            write_plain(out, name);
            json_decref(name);
            fputs(": ", out);
            write_value(out, item, digits);
            before = ", ";
        }
        fputc('}', out);
        break;
    case JSON_ARRAY:
        fputc('[', out);
        json_array_foreach(value, at, item)
        {
            fputs(at > 0 ? ", " : "", out);
            write_value(out, item, digits);
        }
        fputc(']', out);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        fputs(kith_json_number(value, digits, number), out);
        break;
    case JSON_STRING:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        write_plain(out, value);
        break;
    }
}

void kith_json_write(FILE *out, json_t *document, int digits)
{
    write_value(out, document, digits);
    fputc('\n', out);
    json_decref(document);
}

/* These four stand in texts alone. */
static int embed(const char *bytes, size_t size, void *out)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != '\0' && strchr("<>&'", bytes[i]) != NULL)
            (void)fprintf(out, "\\u%04x", bytes[i]);
        else
            (void)fputc(bytes[i], out);
    return 0;
}

void kith_json_embed(FILE *out, json_t *value)
{
    (void)json_dump_callback(value, embed, out,
                             JSON_ENCODE_ANY | JSON_ENSURE_ASCII |
                                 JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(value);
}
