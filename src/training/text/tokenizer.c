/* Byte-pair encoding. The file is read by tokenizer_file.c; here is what it
 * does with text. */
#define _GNU_SOURCE /* memmem */
#include "tokenizer_state.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/heap.h"

int kith_tokenizer_by_bytes(const void *a, const void *b)
{
    const struct token *x = *(struct token *const *)a;
    const struct token *y = *(struct token *const *)b;
    const size_t size = x->size < y->size ? x->size : y->size;
    const int order = memcmp(x->bytes, y->bytes, size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

int32_t kith_tokenizer_lookup(const struct kith_tokenizer *tokenizer,
                              const char *bytes, size_t size)
{
    const struct token key = {.bytes = (char *)(uintptr_t)bytes, .size = size};
    const struct token *const wanted = &key;
    struct token *const *found =
        bsearch(&wanted, tokenizer->by_bytes, tokenizer->token_count,
                sizeof wanted, kith_tokenizer_by_bytes);
    return found == NULL ? -1 : (*found)->id;
}

int32_t kith_tokenizer_find(const struct kith_tokenizer *tokenizer,
                            const char *text)
{
    return kith_tokenizer_lookup(tokenizer, text, strlen(text));
}

size_t kith_tokenizer_vocabulary(const struct kith_tokenizer *tokenizer)
{
    return tokenizer->vocabulary;
}

const char *kith_tokenizer_bytes(const struct kith_tokenizer *tokenizer,
                                 int32_t token, size_t *size)
{
    *size = 0;
    if (token < 0 || (size_t)token >= tokenizer->vocabulary ||
        tokenizer->by_id[token] == NULL)
        return "";
    *size = tokenizer->by_id[token]->size;
    return tokenizer->by_id[token]->bytes;
}

static const struct merge *find_merge(const struct kith_tokenizer *tokenizer,
                                      int32_t left, int32_t right)
{
    const uint64_t pair = merge_pair(left, right);
    size_t low = 0, high = tokenizer->merge_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (tokenizer->merges[middle].pair < pair)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tokenizer->merge_count && tokenizer->merges[low].pair == pair
               ? &tokenizer->merges[low]
               : NULL;
}

/* ---- one word */

/* Symbols in a doubly linked list by index; a joined one has token -1. */
struct symbol {
    int32_t token;
    uint32_t before, after; /* UINT32_MAX: none */
};

struct encoder {
    const struct kith_tokenizer *tokenizer;
    struct symbol *symbols;          /* (size of the text) */
    struct kith_heap_entry *entries; /* (3 size) */
    int32_t *tokens;                 /* (size) */
    size_t count;
};

/* A pair that could be joined: lowest rank first, leftmost of equals. */
static void offer(const struct encoder *encoder, struct kith_heap *heap,
                  uint32_t left)
{
    const struct symbol *symbol = &encoder->symbols[left];
    if (symbol->after == UINT32_MAX)
        return;
    const int32_t next = encoder->symbols[symbol->after].token;
    const struct merge *merge =
        find_merge(encoder->tokenizer, symbol->token, next);
    if (merge == NULL)
        return;
    const struct kith_heap_entry entry = {.time_ns = merge->rank,
                                          .peer = left,
                                          .value = (uint32_t)merge->joined,
                                          .sequence = merge->pair};
    KITH_ASSERT(kith_heap_push(heap, entry));
}

/* Whether the pair that was offered still stands there. */
static bool stands(const struct encoder *encoder,
                   const struct kith_heap_entry *entry)
{
    const struct symbol *left = &encoder->symbols[entry->peer];
    if (left->token < 0 || left->after == UINT32_MAX)
        return false;
    const int32_t right = encoder->symbols[left->after].token;
    return merge_pair(left->token, right) == entry->sequence;
}

static void join(struct encoder *encoder, const struct kith_heap_entry *entry)
{
    struct symbol *left = &encoder->symbols[entry->peer];
    struct symbol *right = &encoder->symbols[left->after];
    left->token = (int32_t)entry->value;
    left->after = right->after;
    right->token = -1;
    if (left->after != UINT32_MAX)
        encoder->symbols[left->after].before = entry->peer;
}

/* Each join offers two pairs and takes one symbol away: 3 size pairs at most.
 */
static void encode_word(struct encoder *encoder, const char *word, size_t size)
{
    struct kith_heap heap;
    struct kith_heap_entry entry;
    kith_heap_init(&heap, encoder->entries, 3 * size);
    for (uint32_t i = 0; i < size; i++)
        encoder->symbols[i] = (struct symbol){
            encoder->tokenizer->byte_tokens[(unsigned char)word[i]],
            i == 0 ? UINT32_MAX : i - 1, i + 1 < size ? i + 1 : UINT32_MAX};
    for (uint32_t i = 0; i + 1 < size; i++)
        offer(encoder, &heap, i);
    while (kith_heap_pop(&heap, &entry)) {
        if (!stands(encoder, &entry))
            continue;
        join(encoder, &entry);
        offer(encoder, &heap, entry.peer);
        if (encoder->symbols[entry.peer].before != UINT32_MAX)
            offer(encoder, &heap, encoder->symbols[entry.peer].before);
    }
    for (uint32_t i = 0; i != UINT32_MAX; i = encoder->symbols[i].after)
        encoder->tokens[encoder->count++] = encoder->symbols[i].token;
}

/* ---- a text */

/* What lies between two words: bytes that are no text. */
static void encode_span(struct encoder *encoder, pcre2_match_data *match,
                        const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        const int found =
            pcre2_match(encoder->tokenizer->words, (PCRE2_SPTR)text, size, at,
                        PCRE2_NOTEMPTY, match, NULL);
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
        const size_t begin = found > 0 ? ends[0] : size;
        const size_t end = found > 0 ? ends[1] : size;
        if (begin > at)
            encode_word(encoder, text + at, begin - at);
        if (end > begin)
            encode_word(encoder, text + begin, end - begin);
        at = end;
    }
}

/* Where each special token stands next; the text's size: nowhere. */
struct cuts {
    size_t next[SPECIALS_MAX];
};

/* The special token that begins first at or after `at`, the longest of those;
 * NULL: none. Each one's next place is looked up once it has been passed. */
static const struct token *next_special(const struct kith_tokenizer *tokenizer,
                                        struct cuts *cuts, const char *text,
                                        size_t size, size_t at, size_t *where)
{
    const struct token *found = NULL;
    *where = size;
    for (size_t i = 0; i < tokenizer->special_count; i++) {
        const struct token *token = tokenizer->specials[i];
        size_t *next = &cuts->next[i];
        if (at == 0 || *next < at) {
            const char *here =
                memmem(text + at, size - at, token->bytes, token->size);
            *next = here == NULL ? size : (size_t)(here - text);
        }
        if (*next == size || *next > *where ||
            (found != NULL && *next == *where && token->size < found->size))
            continue;
        *where = *next;
        found = token;
    }
    return found;
}

static void encode_text(struct encoder *encoder, pcre2_match_data *match,
                        const char *text, size_t size)
{
    struct cuts cuts;
    size_t at = 0;
    while (at < size) {
        size_t where;
        const struct token *special =
            next_special(encoder->tokenizer, &cuts, text, size, at, &where);
        encode_span(encoder, match, text + at, where - at);
        at = where;
        if (special == NULL)
            continue;
        encoder->tokens[encoder->count++] = special->id;
        at += special->size;
    }
}

enum kith_err kith_tokenizer_encode(const struct kith_tokenizer *tokenizer,
                                    const char *text, size_t size,
                                    int32_t **tokens, size_t *count)
{
    struct encoder encoder = {.tokenizer = tokenizer};
    *tokens = NULL;
    *count = 0;
    if (size >= UINT32_MAX / 4)
        return KITH_ELIMIT;
    encoder.symbols = malloc((size + 1) * sizeof *encoder.symbols);
    encoder.entries = malloc((3 * size + 1) * sizeof *encoder.entries);
    encoder.tokens = malloc((size + 1) * sizeof *encoder.tokens);
    pcre2_match_data *match =
        pcre2_match_data_create_from_pattern(tokenizer->words, NULL);
    const bool enough = encoder.symbols != NULL && encoder.entries != NULL &&
                        encoder.tokens != NULL && match != NULL;
    if (enough) {
        encode_text(&encoder, match, text, size);
        *tokens = encoder.tokens;
        *count = encoder.count;
    } else {
        free(encoder.tokens);
    }
    pcre2_match_data_free(match);
    free(encoder.entries);
    free(encoder.symbols);
    return enough ? KITH_OK : KITH_ENOMEM;
}
