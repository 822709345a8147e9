/* A tokenizer's insides, shared by tokenizer.c and tokenizer_file.c. */
#ifndef KITH_TRAINING_TEXT_TOKENIZER_STATE_H
#define KITH_TRAINING_TEXT_TOKENIZER_STATE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "kith/tokenizer.h"

/* Special tokens of one file: each is looked for in all of a text. */
#define SPECIALS_MAX 256u

struct token {
    char *bytes; /* (size), raw: not the letters that stand for them in files */
    size_t size;
    int32_t id;
};

struct merge {
    uint64_t pair; /* merge_pair of what is joined */
    int32_t rank;  /* the lowest goes first */
    int32_t joined;
};

struct kith_tokenizer {
    struct token *tokens; /* (token_count) */
    size_t token_count, vocabulary;
    struct token **by_bytes; /* (token_count), sorted */
    struct token **by_id;    /* (vocabulary), NULL: no such token */
    struct token **specials; /* (special_count): cut out before anything else */
    size_t special_count;
    struct merge *merges; /* (merge_count), sorted by pair */
    size_t merge_count;
    int32_t byte_tokens[256];
    pcre2_code *words;
};

static inline uint64_t merge_pair(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Of two struct token *, for qsort and bsearch. */
int kith_tokenizer_by_bytes(const void *a, const void *b);
int32_t kith_tokenizer_lookup(const struct kith_tokenizer *tokenizer,
                              const char *bytes, size_t size);

#endif
