/* Goal: a header written is the header read, and nothing that lies about sizes,
 * offsets or names is believed. Method: round trips, then one broken header per
 * rule. Files from Hugging Face's own writer look like `foreign`. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/checkpoint.h"

static char error[KITH_CHECKPOINT_ERROR_BYTES];

/* A file of this header and so many bytes of data; free it. */
static uint8_t *file_of(const char *header, size_t data, size_t *size)
{
    const size_t length = strlen(header);
    uint8_t *bytes = calloc(1, 8 + length + data);
    assert_non_null(bytes);
    for (unsigned k = 0; k < 8; k++)
        bytes[k] = (uint8_t)((uint64_t)length >> (8 * k));
    memcpy(bytes + 8, header, length);
    *size = 8 + length + data;
    return bytes;
}

static void refused(const char *header, size_t data, const char *reason)
{
    struct kith_safetensors file;
    size_t size;
    uint8_t *bytes = file_of(header, data, &size);
    if (kith_safetensors_parse(bytes, size, &file, error) == KITH_OK)
        fail_msg("believed: %s", header);
    if (strstr(error, reason) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", header, error, reason);
    assert_null(file.tensors);
    free(bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct kith_tensor_entry tensors[] = {
        {.name = "wte.weight",
         .dtype = KITH_DTYPE_F32,
         .rank = 2,
         .shape = {3, 5}},
        {.name = "a \"quoted\" name", .dtype = KITH_DTYPE_F64, .rank = 0},
        {.name = "empty", .dtype = KITH_DTYPE_F32, .rank = 2, .shape = {0, 7}},
    };
    const struct kith_text_entry texts[] = {{"step", "41"},
                                            {"experiment", "name: x\n"},
                                            {"latin", "d\xe9j\xe0 vu"}};
    uint8_t *header;
    size_t bytes;
    assert_int_equal(
        kith_safetensors_header(tensors, 3, texts, 3, &header, &bytes),
        KITH_OK);
    assert_int_equal(bytes % 64, 0);
    uint8_t *whole = calloc(1, bytes + 68);
    assert_non_null(whole);
    memcpy(whole, header, bytes);
    struct kith_safetensors file;
    assert_int_equal(kith_safetensors_parse(whole, bytes + 68, &file, error),
                     KITH_OK);
    assert_int_equal(file.tensor_count, 3);
    const struct kith_tensor_entry *table =
        kith_safetensors_find(&file, "wte.weight");
    assert_non_null(table);
    assert_int_equal(table->offset, bytes);
    assert_int_equal(table->bytes, 60);
    assert_int_equal(table->shape[1], 5);
    assert_int_equal(kith_safetensors_find(&file, "a \"quoted\" name")->offset,
                     bytes + 60);
    assert_int_equal(kith_safetensors_find(&file, "empty")->bytes, 0);
    assert_null(kith_safetensors_find(&file, "wte"));
    assert_string_equal(kith_safetensors_text(&file, "step"), "41");
    assert_string_equal(kith_safetensors_text(&file, "latin"), "d?j? vu");
    assert_null(kith_safetensors_text(&file, "steps"));
    kith_safetensors_free(&file);
    /* One byte more or less is another file. */
    assert_int_equal(kith_safetensors_parse(whole, bytes + 67, &file, error),
                     KITH_EPARSE);
    free(whole);
    free(header);
}

static void test_foreign(void **state)
{
    (void)state;
    static const char foreign[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
        "\"a\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}   ";
    static const uint8_t values[] = {0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00,
                                     0x00, 0x7c, 0x80, 0x3f, 0x49, 0xc0};
    struct kith_safetensors file;
    size_t size;
    uint8_t *bytes = file_of(foreign, 12, &size);
    memcpy(bytes + size - 12, values, 12);
    assert_int_equal(kith_safetensors_parse(bytes, size, &file, error),
                     KITH_OK);
    double out[4];
    const struct kith_tensor_entry *a = kith_safetensors_find(&file, "a");
    kith_dtype_read(a->dtype, 4, bytes + a->offset, out);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24 &&
                isinf(out[3]));
    const struct kith_tensor_entry *b = kith_safetensors_find(&file, "b");
    kith_dtype_read(b->dtype, 2, bytes + b->offset, out);
    assert_true(out[0] == 1 && out[1] == -3.140625);
    assert_string_equal(kith_safetensors_text(&file, "format"), "pt");
    kith_safetensors_free(&file);
    free(bytes);
}

static void test_lies(void **state)
{
    (void)state;
#define T(shape, span)                                                         \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" span "}"
    refused("", 0, "no JSON object");
    refused("[]", 0, "no JSON object");
    refused("{\"a\":" T("[2]", "[0,8]"), 8, "no JSON object");
    refused("{\"a\":1}", 0, "dtype");
    refused("{\"a\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
            "dtype must be");
    refused("{\"a\":" T("[1]", "[0,8]") "}", 8, "do not fit its shape");
    refused("{\"a\":" T("[2]", "[0,8]") "}", 4, "must be at most 4 sizes");
    refused("{\"a\":" T("[2]", "[8,0]") "}", 8, "do not fit");
    refused("{\"a\":" T("[2]", "[-8,0]") "}", 8, "do not fit");
    refused("{\"a\":" T("[2]", "[0,8,9]") "}", 8, "do not fit");
    refused("{\"a\":" T("[1,1,1,1,2]", "[0,8]") "}", 8, "at most 4");
    refused("{\"a\":" T("[4294967296,4294967296]", "[0,8]") "}", 8, "at most");
    refused("{\"a\":" T("[1.5]", "[0,8]") "}", 8, "at most 4 sizes");
    refused("{\"a\":" T("[2]", "[0,8]") ",\"b\":" T("[2]", "[4,12]") "}", 12,
            "overlaps");
    refused("{\"a\":" T("[1]", "[0,4]") ",\"b\":" T("[1]", "[8,12]") "}", 12,
            "gap");
    refused("{\"a\":" T("[1]", "[0,4]") "}", 8, "follows the last");
    refused("{\"a\":" T("[1]", "[0,4]") ",\"a\":" T("[1]", "[4,8]") "}", 8,
            "no JSON object");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "no text");
    refused("{\"__metadata__\":[]}", 0, "not an object");
    refused("{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "aaaaa\":" T("[1]", "[0,4]") "}",
            4, "too long");
#undef T
}

static void test_short_files(void **state)
{
    (void)state;
    struct kith_safetensors file;
    uint8_t bytes[16] = {0};
    for (size_t size = 0; size < 8; size++)
        assert_int_equal(kith_safetensors_parse(bytes, size, &file, error),
                         KITH_EPARSE);
    bytes[0] = 9;
    assert_int_equal(kith_safetensors_parse(bytes, 16, &file, error),
                     KITH_EPARSE);
    bytes[7] = 1;
    assert_int_equal(kith_safetensors_parse(bytes, 16, &file, error),
                     KITH_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_short_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
