/* Test vectors of the test data: a folder of JSON files ($KITH_TESTDATA, else
 * ../shared/data beside the source tree). Included by the tests that read
 * them. */
#ifndef KITH_TESTS_VECTORS_H
#define KITH_TESTS_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <sodium.h>

#define FIELD_MAX 4096u

struct field {
    uint8_t bytes[FIELD_MAX];
    size_t size;
};

static char folder[1024];

/* The file crypto/NAME, NULL with the folder looked into where there is none.
 */
static inline FILE *vectors_open(const char *name)
{
    const char *data = getenv("KITH_TESTDATA"), *top = getenv("srcdir");
    const char *roots[2] = {data && *data ? data : NULL, NULL};
    char beside[900], path[1200];
    snprintf(beside, sizeof beside, "%s/../shared/data",
             top && *top ? top : ".");
    roots[1] = beside;
    for (int i = 0; i < 2; i++) {
        if (!roots[i])
            continue;
        snprintf(folder, sizeof folder, "%s/crypto", roots[i]);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *file = fopen(path, "rb");
        if (file)
            return file;
    }
    return NULL;
}

/* Hexadecimal, as a field of an object. */
static inline struct field field(const json_t *object, const char *key)
{
    struct field f;
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    assert_int_equal(0, sodium_hex2bin(f.bytes, sizeof f.bytes, text,
                                       strlen(text), NULL, &f.size, NULL));
    return f;
}

#endif
