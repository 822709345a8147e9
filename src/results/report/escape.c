/* Values of a database, written so that they stay values: nothing that a
 * database holds can end a string, an element or a field. */
#include "src/results/report/escape.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at text, 0 for a malformed one. */
static size_t sequence(const unsigned char *text, size_t size)
{
    const unsigned char c = text[0];
    const size_t length = c < 0x80                ? 1
                          : c >= 0xc2 && c < 0xe0 ? 2
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xf0 && c < 0xf5 ? 4
                                                  : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Overlong forms, surrogates and what lies beyond U+10FFFF. */
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f)) {
        return 0;
    }
    return length;
}

void kith_write_json_text(FILE *out, const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;

    fputc('"', out);
    for (size_t at = 0; at < size;) {
        const unsigned char c = bytes[at];
        const size_t length = sequence(bytes + at, size - at);
        if (length == 0) {
            fputs("\\ufffd", out);
            at++;
            continue;
        }
        if (c < 0x20 || c == 0x7f || strchr("\"\\<>&'", c) != NULL) {
            fprintf(out, "\\u%04x", c);
        } else if (length == 3 && c == 0xe2 && bytes[at + 1] == 0x80 &&
                   (bytes[at + 2] & 0xfe) == 0xa8) {
            fprintf(out, "\\u20%02x", bytes[at + 2] & 0x3f);
        } else {
            fwrite(bytes + at, 1, length, out);
        }
        at += length;
    }
    fputc('"', out);
}

void kith_write_json_value(FILE *out, sqlite3_stmt *row, int at)
{
    const int64_t exact = INT64_C(1) << 53;

    switch (sqlite3_column_type(row, at)) {
    case SQLITE_INTEGER: {
        const int64_t value = sqlite3_column_int64(row, at);
        const char *quote = value > exact || value < -exact ? "\"" : "";
        fprintf(out, "%s%" PRId64 "%s", quote, value, quote);
        break;
    }
    case SQLITE_FLOAT: {
        const double value = sqlite3_column_double(row, at);
        if (isfinite(value)) {
            fprintf(out, "%.9g", value);
        } else {
            fputs("null", out);
        }
        break;
    }
    case SQLITE_TEXT: {
        const unsigned char *text = sqlite3_column_text(row, at);
        kith_write_json_text(out, (const char *)text,
                             (size_t)sqlite3_column_bytes(row, at));
        break;
    }
    default: /* NULL, and blobs: the schema has none to show */
        fputs("null", out);
    }
}

void kith_write_csv_text(FILE *out, const char *text, size_t size)
{
    fputc('"', out);
    if (size > 0 && strchr("=+-@\t\r", text[0]) != NULL && text[0] != '\0') {
        fputc('\'', out);
    }
    for (size_t at = 0; at < size; at++) {
        if (text[at] == '"') {
            fputc('"', out);
        }
        fputc(text[at], out);
    }
    fputc('"', out);
}

void kith_write_csv_value(FILE *out, sqlite3_stmt *row, int at)
{
    switch (sqlite3_column_type(row, at)) {
    case SQLITE_INTEGER:
        fprintf(out, "%" PRId64, (int64_t)sqlite3_column_int64(row, at));
        break;
    case SQLITE_FLOAT: {
        const double value = sqlite3_column_double(row, at);
        if (isfinite(value)) {
            fprintf(out, "%.17g", value);
        }
        break;
    }
    case SQLITE_TEXT:
        kith_write_csv_text(out, (const char *)sqlite3_column_text(row, at),
                            (size_t)sqlite3_column_bytes(row, at));
        break;
    default: /* not measured: an empty field */
        break;
    }
}
