/* Byte-pair encoding of text, as GPT-2 does it, from a tokenizer.json.
 *
 * Text is cut at special tokens, then into words (letters, digits, other signs,
 * white space, each with the blank before it); within a word the pair of lowest
 * rank is joined until none is left. Any bytes can be encoded, and decoding
 * gives them back. Sennrich et al., ACL 2016; Radford et al., 2019.
 * Test: unit/test_tokenizer.c, against Hugging Face's tokenizers. */
#ifndef KITH_TOKENIZER_H
#define KITH_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

struct kith_tokenizer;
#define KITH_TOKENIZER_ERROR_BYTES 512

/* From a file, or from the text of one; bounded by KITH_TOKENIZER_BYTES_MAX and
 * KITH_VOCABULARY_MAX before anything is allocated. KITH_EPARSE also where the
 * file names an encoding that is not this one. */
KITH_MUST_CHECK enum kith_err
kith_tokenizer_open(const char *path, struct kith_tokenizer **tokenizer,
                    char *error);
KITH_MUST_CHECK enum kith_err
kith_tokenizer_parse(const char *text, size_t size,
                     struct kith_tokenizer **tokenizer, char *error);
void kith_tokenizer_close(struct kith_tokenizer *tokenizer);

/* 1 + the largest token. */
size_t kith_tokenizer_vocabulary(const struct kith_tokenizer *tokenizer);
/* *tokens is malloc'd, (count). O(size log size). KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err
kith_tokenizer_encode(const struct kith_tokenizer *tokenizer, const char *text,
                      size_t size, int32_t **tokens, size_t *count);
/* The bytes of one token, not terminated; none for a number that is no token.
 */
const char *kith_tokenizer_bytes(const struct kith_tokenizer *tokenizer,
                                 int32_t token, size_t *size);
/* The token that is exactly this text, -1: none. */
int32_t kith_tokenizer_find(const struct kith_tokenizer *tokenizer,
                            const char *text);

#endif
