/* Reads a tokenizer.json: a vocabulary, merges in order of rank, special
 * tokens. The letters in it stand for bytes: those that print stand for
 * themselves, the others for U+0100 and up, in order. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/data.h"
#include "kith/plain_file.h"
#include "kith/data.h"
#include "tokenizer_state.h"

/* GPT-2's words. */
static const char words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                            " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
#define TOKEN_BYTES_MAX 1024u

struct reading {
    struct kith_tokenizer *tokenizer;
    int16_t byte_of[512]; /* of a letter; -1: stands for none */
    char *error;
};

static enum kith_err complain(const struct reading *reading, enum kith_err err,
                              const char *what)
{
    (void)snprintf(reading->error, KITH_TOKENIZER_ERROR_BYTES, "%s", what);
    return err;
}

static bool prints(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
           byte >= 0xae;
}

static void map_letters(struct reading *reading)
{
    int16_t next = 256;
    for (size_t i = 0; i < 512; i++)
        reading->byte_of[i] = -1;
    for (unsigned byte = 0; byte < 256; byte++)
        reading->byte_of[prints(byte) ? byte : (unsigned)next++] =
            (int16_t)byte;
}

/* Letters up to U+01FF to the bytes they stand for; false: another letter. The
 * text is valid UTF-8, jansson has seen to that. */
static bool to_bytes(const struct reading *reading, const char *letters,
                     size_t size, char *bytes, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned letter = (unsigned char)letters[i];
        if (letter >= 0x80) {
            if ((letter & 0xe0) != 0xc0 || i + 1 == size)
                return false;
            letter = (letter & 31) << 6 | ((unsigned char)letters[++i] & 63);
        }
        if (letter >= 512 || reading->byte_of[letter] < 0)
            return false;
        bytes[(*count)++] = (char)(unsigned char)reading->byte_of[letter];
    }
    return true;
}

static bool keep_token(struct kith_tokenizer *tokenizer, const char *bytes,
                       size_t size, int32_t id)
{
    struct token *token = &tokenizer->tokens[tokenizer->token_count];
    token->bytes = malloc(size + 1);
    if (token->bytes == NULL)
        return false;
    memcpy(token->bytes, bytes, size);
    token->bytes[size] = '\0';
    token->size = size;
    token->id = id;
    tokenizer->token_count++;
    if ((size_t)id >= tokenizer->vocabulary)
        tokenizer->vocabulary = (size_t)id + 1;
    return true;
}

static bool is_id(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) < (json_int_t)KITH_VOCABULARY_MAX;
}

/* The vocabulary's entry, unless it is a special token's, which is kept as it
 * is written. */
static enum kith_err read_token(struct reading *reading, const char *letters,
                                const json_t *id)
{
    char bytes[TOKEN_BYTES_MAX];
    size_t size = strlen(letters);
    if (!is_id(id))
        return complain(reading, KITH_EPARSE,
                        "model.vocab: a token's number is below 0 or above "
                        "1,048,575");
    if (size == 0 || size > sizeof bytes)
        return complain(reading, KITH_EPARSE,
                        "model.vocab: a token has no bytes, or above 1,024");
    if (!to_bytes(reading, letters, size, bytes, &size))
        return KITH_OK; /* Not byte-level: nothing can ever become it. */
    return keep_token(reading->tokenizer, bytes, size,
                      (int32_t)json_integer_value(id))
               ? KITH_OK
               : complain(reading, KITH_ENOMEM, "no memory");
}

static enum kith_err read_special(struct reading *reading, const json_t *entry)
{
    struct kith_tokenizer *tokenizer = reading->tokenizer;
    const char *text = json_string_value(json_object_get(entry, "content"));
    const json_t *id = json_object_get(entry, "id");
    if (text == NULL || !is_id(id) || text[0] == '\0' ||
        strlen(text) > TOKEN_BYTES_MAX)
        return complain(reading, KITH_EPARSE,
                        "added_tokens: each needs `content` and an `id`");
    if (!keep_token(tokenizer, text, strlen(text),
                    (int32_t)json_integer_value(id)))
        return complain(reading, KITH_ENOMEM, "no memory");
    tokenizer->specials[tokenizer->special_count++] =
        &tokenizer->tokens[tokenizer->token_count - 1];
    return KITH_OK;
}

static enum kith_err read_tokens(struct reading *reading, json_t *vocabulary,
                                 json_t *added)
{
    struct kith_tokenizer *tokenizer = reading->tokenizer;
    const size_t most = json_object_size(vocabulary) + json_array_size(added);
    const char *letters;
    json_t *entry;
    size_t i;
    enum kith_err err = KITH_OK;
    if (json_object_size(vocabulary) > KITH_VOCABULARY_MAX ||
        json_array_size(added) > SPECIALS_MAX)
        return complain(reading, KITH_ELIMIT,
                        "above 1,048,576 tokens or 256 added tokens");
    tokenizer->tokens = calloc(most + 1, sizeof *tokenizer->tokens);
    tokenizer->specials =
        calloc(json_array_size(added) + 1, sizeof(struct token *));
    if (tokenizer->tokens == NULL || tokenizer->specials == NULL)
        return complain(reading, KITH_ENOMEM, "no memory");
    json_array_foreach(added, i, entry)
    {
        err = read_special(reading, entry);
        if (err != KITH_OK)
            return err;
    }
    json_object_foreach(vocabulary, letters, entry)
    {
        /* Listed among the added tokens as well: that one counts. */
        bool special = false;
        for (size_t k = 0; k < tokenizer->special_count; k++)
            special |= strcmp(tokenizer->specials[k]->bytes, letters) == 0;
        err = special ? KITH_OK : read_token(reading, letters, entry);
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const struct token *x = *(struct token *const *)a;
    const struct token *y = *(struct token *const *)b;
    const size_t size = x->size < y->size ? x->size : y->size;
    const int order = memcmp(x->bytes, y->bytes, size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static enum kith_err index_tokens(struct reading *reading)
{
    struct kith_tokenizer *tokenizer = reading->tokenizer;
    const size_t count = tokenizer->token_count;
    tokenizer->by_bytes = calloc(count + 1, sizeof(struct token *));
    tokenizer->by_id =
        calloc(tokenizer->vocabulary + 1, sizeof(struct token *));
    if (tokenizer->by_bytes == NULL || tokenizer->by_id == NULL)
        return complain(reading, KITH_ENOMEM, "no memory");
    for (size_t i = 0; i < count; i++) {
        struct token *token = &tokenizer->tokens[i];
        tokenizer->by_bytes[i] = token;
        if (tokenizer->by_id[token->id] != NULL)
            return complain(reading, KITH_EPARSE,
                            "model.vocab: two tokens have the same number");
        tokenizer->by_id[token->id] = token;
    }
    qsort(tokenizer->by_bytes, count, sizeof(struct token *), by_bytes);
    for (unsigned byte = 0; byte < 256; byte++) {
        const char one[1] = {(char)(unsigned char)byte};
        tokenizer->byte_tokens[byte] = kith_tokenizer_lookup(tokenizer, one, 1);
        if (tokenizer->byte_tokens[byte] < 0)
            return complain(reading, KITH_EPARSE,
                            "model.vocab: not byte-level: a byte has no token");
    }
    return KITH_OK;
}

/* "left right", or ["left", "right"] in newer files. */
static bool read_pair(const struct reading *reading, const json_t *entry,
                      char *bytes, size_t *left, size_t *whole)
{
    const char *text = json_string_value(entry), *second;
    size_t first_size, second_size, count;
    if (text != NULL) {
        second = strchr(text, ' ');
        if (second == NULL)
            return false;
        first_size = (size_t)(second++ - text);
    } else {
        text = json_string_value(json_array_get(entry, 0));
        second = json_string_value(json_array_get(entry, 1));
        if (text == NULL || second == NULL || json_array_size(entry) != 2)
            return false;
        first_size = strlen(text);
    }
    second_size = strlen(second);
    if (first_size + second_size > TOKEN_BYTES_MAX ||
        !to_bytes(reading, text, first_size, bytes, left) ||
        !to_bytes(reading, second, second_size, bytes + *left, &count))
        return false;
    *whole = *left + count;
    return true;
}

static int by_pair(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->pair != y->pair)
        return x->pair < y->pair ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum kith_err read_merges(struct reading *reading, const json_t *merges)
{
    struct kith_tokenizer *tokenizer = reading->tokenizer;
    const size_t count = json_array_size(merges);
    char bytes[TOKEN_BYTES_MAX];
    size_t left, whole;
    if (count > KITH_VOCABULARY_MAX)
        return complain(reading, KITH_ELIMIT, "above 1,048,576 merges");
    tokenizer->merges = calloc(count + 1, sizeof *tokenizer->merges);
    if (tokenizer->merges == NULL)
        return complain(reading, KITH_ENOMEM, "no memory");
    for (size_t i = 0; i < count; i++) {
        if (!read_pair(reading, json_array_get(merges, i), bytes, &left,
                       &whole))
            return complain(reading, KITH_EPARSE,
                            "model.merges: an entry that is no pair of tokens");
        const int32_t a = kith_tokenizer_lookup(tokenizer, bytes, left);
        const int32_t b =
            kith_tokenizer_lookup(tokenizer, bytes + left, whole - left);
        const int32_t joined = kith_tokenizer_lookup(tokenizer, bytes, whole);
        if (a < 0 || b < 0 || joined < 0)
            return complain(reading, KITH_EPARSE,
                            "model.merges: a pair whose parts or whole are no "
                            "tokens");
        tokenizer->merges[i] =
            (struct merge){merge_pair(a, b), (int32_t)i, joined};
    }
    tokenizer->merge_count = count;
    qsort(tokenizer->merges, count, sizeof *tokenizer->merges, by_pair);
    return KITH_OK;
}

static bool says(const json_t *object, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && strcmp(text, value) == 0;
}

static enum kith_err read_json(struct reading *reading, const json_t *json)
{
    const json_t *model = json_object_get(json, "model");
    const json_t *words_of = json_object_get(json, "pre_tokenizer");
    json_t *vocabulary = json_object_get(model, "vocab");
    if (!says(model, "type", "BPE") || !says(words_of, "type", "ByteLevel") ||
        json_is_true(json_object_get(words_of, "add_prefix_space")) ||
        json_is_false(json_object_get(words_of, "use_regex")) ||
        !json_is_null(json_object_get(json, "normalizer")))
        return complain(reading, KITH_EPARSE,
                        "only GPT-2's encoding is understood: model.type BPE, "
                        "pre_tokenizer.type ByteLevel without a prefix space, "
                        "no normalizer");
    if (!json_is_object(vocabulary))
        return complain(reading, KITH_EPARSE, "it has no model.vocab");
    enum kith_err err =
        read_tokens(reading, vocabulary, json_object_get(json, "added_tokens"));
    if (err == KITH_OK)
        err = index_tokens(reading);
    return err == KITH_OK
               ? read_merges(reading, json_object_get(model, "merges"))
               : err;
}

enum kith_err kith_tokenizer_parse(const char *text, size_t size,
                                   struct kith_tokenizer **out, char *error)
{
    struct reading reading = {.error = error};
    json_error_t why;
    PCRE2_SIZE where;
    int code;
    *out = NULL;
    if (size > KITH_TOKENIZER_BYTES_MAX)
        return complain(&reading, KITH_ELIMIT, "it is above 64 MiB");
    reading.tokenizer = calloc(1, sizeof *reading.tokenizer);
    if (reading.tokenizer == NULL)
        return complain(&reading, KITH_ENOMEM, "no memory");
    map_letters(&reading);
    reading.tokenizer->words = pcre2_compile(
        (PCRE2_SPTR)words, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &code, &where, NULL);
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    enum kith_err err;
    if (json == NULL)
        err = complain(&reading, KITH_EPARSE, "it is no JSON");
    else if (reading.tokenizer->words == NULL)
        err = complain(&reading, KITH_ENOMEM, "no memory");
    else
        err = read_json(&reading, json);
    json_decref(json);
    if (err == KITH_OK)
        *out = reading.tokenizer;
    else
        kith_tokenizer_close(reading.tokenizer);
    return err;
}

_Static_assert(KITH_TOKENIZER_ERROR_BYTES >= KITH_DATA_ERROR_BYTES,
               "messages of file.h fit");

enum kith_err kith_tokenizer_open(const char *path,
                                  struct kith_tokenizer **tokenizer,
                                  char *error)
{
    struct kith_file_map map;
    char why[KITH_TOKENIZER_ERROR_BYTES] = "";
    *tokenizer = NULL;
    enum kith_err err = kith_file_map_open(path, &map, error);
    if (err != KITH_OK)
        return err;
    err = kith_tokenizer_parse(map.bytes == NULL ? "" : (const char *)map.bytes,
                               map.size, tokenizer, why);
    if (err != KITH_OK)
        (void)snprintf(error, KITH_TOKENIZER_ERROR_BYTES,
                       "reading tokenizer %.250s: %.200s", path, why);
    kith_file_map_close(&map);
    return err;
}

void kith_tokenizer_close(struct kith_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    for (size_t i = 0; i < tokenizer->token_count; i++)
        free(tokenizer->tokens[i].bytes);
    free(tokenizer->tokens);
    free(tokenizer->by_bytes);
    free(tokenizer->by_id);
    free(tokenizer->specials);
    free(tokenizer->merges);
    pcre2_code_free(tokenizer->words);
    free(tokenizer);
}
