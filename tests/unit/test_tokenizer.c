/* Goal: text becomes the tokens that Hugging Face's tokenizers makes of it, and
 * comes back byte for byte, whatever the bytes are. Method: the bundled cases
 * (vectors/tokenizer/make.py made them), random bytes, one broken file per
 * rule. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "kith/rng.h"
#include "kith/tokenizer.h"

static char error[KITH_TOKENIZER_ERROR_BYTES];

static const char *vector(const char *name)
{
    static char path[1024];
    const char *top = getenv("srcdir");
    (void)snprintf(path, sizeof path, "%s/tests/vectors/tokenizer/%s",
                   top == NULL ? "." : top, name);
    return path;
}

static struct kith_tokenizer *open_vector(void)
{
    struct kith_tokenizer *tokenizer;
    if (kith_tokenizer_open(vector("tokenizer.json"), &tokenizer, error) !=
        KITH_OK)
        fail_msg("%s", error);
    return tokenizer;
}

static void comes_back(const struct kith_tokenizer *tokenizer, const char *text,
                       size_t size, const int32_t *tokens, size_t count)
{
    size_t at = 0, bytes;
    for (size_t i = 0; i < count; i++) {
        const char *piece = kith_tokenizer_bytes(tokenizer, tokens[i], &bytes);
        assert_true(bytes > 0 && bytes <= size - at);
        assert_memory_equal(piece, text + at, bytes);
        at += bytes;
    }
    assert_int_equal(at, size);
}

static void test_cases(void **state)
{
    (void)state;
    struct kith_tokenizer *tokenizer = open_vector();
    json_error_t why;
    json_t *cases = json_load_file(vector("cases.json"), 0, &why), *entry;
    size_t i;
    assert_true(json_array_size(cases) > 40);
    json_array_foreach(cases, i, entry)
    {
        const json_t *text = json_object_get(entry, "text");
        const json_t *want = json_object_get(entry, "tokens");
        int32_t *tokens;
        size_t count;
        assert_int_equal(
            kith_tokenizer_encode(tokenizer, json_string_value(text),
                                  json_string_length(text), &tokens, &count),
            KITH_OK);
        assert_int_equal(count, json_array_size(want));
        for (size_t k = 0; k < count; k++)
            assert_int_equal(tokens[k],
                             json_integer_value(json_array_get(want, k)));
        comes_back(tokenizer, json_string_value(text), json_string_length(text),
                   tokens, count);
        free(tokens);
    }
    json_decref(cases);
    kith_tokenizer_close(tokenizer);
}

static void test_any_bytes(void **state)
{
    (void)state;
    struct kith_tokenizer *tokenizer = open_vector();
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_WEIGHTS, 0);
    for (size_t size = 0; size < 300; size++) {
        char text[300];
        int32_t *tokens;
        size_t count;
        for (size_t i = 0; i < size; i++)
            text[i] = (char)(unsigned char)kith_rng_u64(&rng);
        assert_int_equal(
            kith_tokenizer_encode(tokenizer, text, size, &tokens, &count),
            KITH_OK);
        comes_back(tokenizer, text, size, tokens, count);
        free(tokens);
    }
    assert_int_equal(kith_tokenizer_vocabulary(tokenizer), 400);
    assert_int_equal(kith_tokenizer_find(tokenizer, "<|endoftext|>"), 0);
    assert_int_equal(kith_tokenizer_find(tokenizer, "no such token"), -1);
    size_t bytes;
    (void)kith_tokenizer_bytes(tokenizer, 400, &bytes);
    assert_int_equal(bytes, 0);
    (void)kith_tokenizer_bytes(tokenizer, -1, &bytes);
    assert_int_equal(bytes, 0);
    kith_tokenizer_close(tokenizer);
}

static void refused(const char *text, const char *reason)
{
    struct kith_tokenizer *tokenizer;
    if (kith_tokenizer_parse(text, strlen(text), &tokenizer, error) == KITH_OK)
        fail_msg("accepted: %s", text);
    assert_null(tokenizer);
    if (strstr(error, reason) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", text, error, reason);
}

#define HEAD "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"

static void test_refusals(void **state)
{
    (void)state;
    refused("", "no JSON");
    refused("{}", "only GPT-2's encoding");
    refused("{\"model\":{\"type\":\"WordPiece\"}}", "only GPT-2's encoding");
    refused("{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":"
            "\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{}}}",
            "only GPT-2's encoding");
    refused(HEAD "\"model\":{\"type\":\"BPE\"}}", "no model.vocab");
    refused(HEAD "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}",
            "not byte-level");
    refused(HEAD "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1}}}",
            "number is below 0");
    refused(HEAD "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1048576}}}",
            "above 1,048,575");
    refused(HEAD "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":7,\"b\":7}}}",
            "same number");
    refused(HEAD "\"added_tokens\":[{\"id\":1}],\"model\":{\"type\":\"BPE\","
                 "\"vocab\":{}}}",
            "added_tokens");
    assert_int_equal(kith_tokenizer_open("/nowhere/tokenizer.json",
                                         &(struct kith_tokenizer *){NULL},
                                         error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "/nowhere/tokenizer.json"));
    assert_int_equal(kith_tokenizer_open(
                         "/dev/null", &(struct kith_tokenizer *){NULL}, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "not a plain file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
