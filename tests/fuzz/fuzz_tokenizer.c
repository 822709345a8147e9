/* Goal: no bytes make reading a tokenizer.json misbehave, and one that is
 * accepted gives any text back byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kith_tokenizer *tokenizer, const char *text,
                  size_t size)
{
    int32_t *tokens;
    size_t count, at = 0, bytes;
    KITH_ASSERT(kith_tokenizer_encode(tokenizer, text, size, &tokens, &count) ==
                KITH_OK);
    for (size_t i = 0; i < count; i++) {
        const char *piece = kith_tokenizer_bytes(tokenizer, tokens[i], &bytes);
        KITH_ASSERT(bytes <= size - at);
        KITH_ASSERT(memcmp(piece, text + at, bytes) == 0);
        at += bytes;
    }
    KITH_ASSERT(at == size);
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_tokenizer *tokenizer;
    char error[KITH_TOKENIZER_ERROR_BYTES] = "";
    if (kith_tokenizer_parse((const char *)data, size, &tokenizer, error) !=
        KITH_OK) {
        KITH_ASSERT(tokenizer == NULL && error[0] != '\0');
        return 0;
    }
    check(tokenizer, (const char *)data, size < 256 ? size : 256);
    kith_tokenizer_close(tokenizer);
    return 0;
}
