/* JSON that the commands print and that a page carries. Documents are jansson's
 * values; numbers are written as they always were, which jansson cannot: 1, not
 * 1.0, and counts up to 2^64. */
#ifndef KITH_JSON_H
#define KITH_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json_t json_t;

/* Of malformed UTF-8 every byte but ASCII becomes a question mark; NULL, NaN,
 * infinities and UINT64_MAX become null. */
json_t *kith_json_text(const char *text);
json_t *kith_json_bytes(const char *text, size_t size);
json_t *kith_json_real(double value);
json_t *kith_json_whole(uint64_t value);

/* The same as a member of `object`. */
void kith_json_set_text(json_t *object, const char *key, const char *text);
void kith_json_set_real(json_t *object, const char *key, double value);
void kith_json_set_whole(json_t *object, const char *key, uint64_t value);

/* A number as text: so many significant digits where it is real, without a sign
 * where it is whole. */
#define KITH_JSON_NUMBER_BYTES 32u
const char *kith_json_number(const json_t *number, int digits,
                             char text[KITH_JSON_NUMBER_BYTES]);
/* One line; releases the document. print: on standard output, here because no
 * archive of libkith may name it: they are position-independent as an
 * executable's objects are, which is not enough for a library's variables. */
void kith_json_write(FILE *out, json_t *document, int digits);
static inline void kith_json_print(json_t *document, int digits)
{
    kith_json_write(stdout, document, digits);
}
/* For a <script> element: no text in it can end the element. Whole numbers have
 * a sign, reals nine digits. Releases the value. */
void kith_json_embed(FILE *out, json_t *value);

#endif
