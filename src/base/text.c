/* Bounded text: building, copies, hexadecimal, and "did you mean". Units and
 * numbers are in units.c. */
#include "kith/text.h"

#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"

size_t kith_text_add(char *text, size_t size, size_t at, const char *format,
                     ...)
{
    KITH_ASSERT(size > 0);
    KITH_ASSERT(at < size);
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(text + at, size - at, format, arguments);
    va_end(arguments);
    if (added < 0) {
        text[at] = '\0';
        return at;
    }
    const size_t room = size - 1 - at;
    return at + ((size_t)added < room ? (size_t)added : room);
}

enum kith_err kith_text_fail(char *error, size_t size, enum kith_err err,
                             const char *format, ...)
{
    KITH_ASSERT(size > 0 && err != KITH_OK);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error, size, format, arguments);
    va_end(arguments);
    return err;
}

bool kith_text_copy(char *target, size_t size, const char *source)
{
    KITH_ASSERT(size > 0);
    size_t i = 0;
    for (; i + 1 < size && source[i] != '\0'; i++)
        target[i] = source[i];
    target[i] = '\0';
    return source[i] == '\0';
}

void kith_text_hex(char *target, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        target[2 * i] = digits[bytes[i] >> 4];
        target[2 * i + 1] = digits[bytes[i] & 15u];
    }
    target[2 * size] = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

enum kith_err kith_text_unhex(const char *text, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const int high = hex_value(text[2 * i]);
        const int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
        if (low < 0)
            return KITH_EPARSE;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * size] == '\0' ? KITH_OK : KITH_EPARSE;
}

/* Damerau-Levenshtein distance with adjacent transpositions ("rnig" is one
 * step from "ring"), by three rows. Words longer than a name are too far. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);
    if (m >= KITH_NAME_MAX || n >= KITH_NAME_MAX)
        return SIZE_MAX;

    size_t rows[3][KITH_NAME_MAX];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        last[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *const spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[n];
}

const char *kith_text_nearest(const char *word, const char *const *names)
{
    const char *nearest = NULL;
    size_t least = 1 + strlen(word) / 4;
    for (; *names != NULL; names++) {
        /* Three letters that begin with another one are another word: no tpu
         * is a cpu. */
        if (strlen(word) <= 3 && word[0] != (*names)[0])
            continue;
        const size_t distance = edit_distance(word, *names);
        if (distance <= least && (nearest == NULL || distance < least)) {
            nearest = *names;
            least = distance;
        }
    }
    return nearest;
}
