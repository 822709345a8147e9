/* Plain text by character: a token is a character's place in the sorted
 * alphabet of the whole file, as in nanoGPT's shakespeare_char.
 * The last test_share of the characters is the test set. */
#include "data_files.h"

#include <stdlib.h>

#include "kith/text.h"

enum { ALPHABET_MAX = 256, CODES = 0x110000 };

/* One character of UTF-8, or 0 bytes where there is none: overlong forms,
 * surrogates and what lies past U+10FFFF are none. */
static size_t take(const uint8_t *bytes, size_t size, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = bytes[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xc0 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf8 ? 4
                                         : 0;
    if (length == 0 || length > size)
        return 0;
    *code = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (bytes[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[length] || *code >= CODES || surrogate ? 0 : length;
}

static void put(uint32_t code, char *text)
{
    size_t at = 0;
    if (code < 0x80) {
        text[at++] = (char)code;
    } else {
        const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const unsigned lead[4] = {0, 0xc0, 0xe0, 0xf0};
        text[at++] = (char)(lead[more] | code >> (6 * more));
        for (unsigned i = more; i > 0; i--)
            text[at++] = (char)(0x80 | (code >> (6 * (i - 1)) & 0x3f));
    }
    text[at] = '\0';
}

/* Marks what occurs in `place` and counts it. */
static enum kith_err scan(struct kith_data_opening *opening,
                          const struct kith_file_map *text, uint8_t *place,
                          size_t *characters)
{
    *characters = 0;
    for (size_t at = 0; at < text->size;) {
        uint32_t code = 0;
        const size_t length = take(text->bytes + at, text->size - at, &code);
        if (length == 0)
            return kith_data_refuse(opening, KITH_EPARSE,
                                    "byte %zu is not UTF-8; convert the file, "
                                    "or read it with data.kind: bytes",
                                    at);
        place[code] = 1;
        at += length;
        (*characters)++;
    }
    return KITH_OK;
}

/* Room for six digits and a blank each. */
enum { CODE_BYTES = 7 };

/* place[code] <- its token; alphabet[token] <- the character. */
static enum kith_err sort_alphabet(struct kith_data_opening *opening,
                                   uint8_t *place, struct kith_examples *whole)
{
    const size_t size = (size_t)ALPHABET_MAX * CODE_BYTES + 1;
    char *codes = kith_data_alloc(opening, size, 1, "bytes of its alphabet");
    size_t at = 0;
    if (codes == NULL)
        return KITH_ENOMEM;
    whole->alphabet = codes;
    for (uint32_t code = 0; code < CODES; code++) {
        if (place[code] == 0)
            continue;
        if (whole->classes == ALPHABET_MAX)
            return kith_data_refuse(opening, KITH_ELIMIT,
                                    "it has more than %d different characters; "
                                    "read it with data.kind: bytes",
                                    ALPHABET_MAX);
        at = kith_text_add(codes, size, at, "%x ", (unsigned)code);
        put(code, opening->set->alphabet[whole->classes]);
        place[code] = (uint8_t)whole->classes++;
    }
    return KITH_OK;
}

static enum kith_err decode(struct kith_data_opening *opening,
                            const struct kith_file_map *text, uint8_t *place,
                            struct kith_examples *whole)
{
    enum kith_err err = scan(opening, text, place, &whole->tokens);
    if (err == KITH_OK)
        err = sort_alphabet(opening, place, whole);
    if (err != KITH_OK)
        return err;
    uint8_t *tokens = kith_data_alloc(opening, whole->tokens, 1, "characters");
    if (tokens == NULL)
        return KITH_ENOMEM;
    /* The file is mapped: what was scanned may have been written to since. */
    size_t at = 0, i = 0;
    for (; i < whole->tokens && at < text->size; i++) {
        uint32_t code = 0;
        const size_t length = take(text->bytes + at, text->size - at, &code);
        if (length == 0)
            break;
        tokens[i] = place[code];
        at += length;
    }
    whole->values = tokens;
    return i == whole->tokens && at == text->size
               ? KITH_OK
               : kith_data_spoiled(opening->set->owner, text->bytes, true,
                                   opening->error);
}

static enum kith_err open_text(struct kith_data_opening *opening,
                               enum kith_data_part part,
                               struct kith_examples *whole)
{
    struct kith_file_map text;
    (void)part;
    enum kith_err err =
        kith_data_map(opening, kith_data_find(opening, NULL),
                      "no such file; data.path must be one text file", &text);
    if (err != KITH_OK)
        return err;
    whole->input = KITH_INPUT_TOKENS;
    whole->element = KITH_ELEMENT_U8;
    uint8_t *place = calloc(CODES, 1);
    if (place == NULL)
        return kith_data_refuse(opening, KITH_ENOMEM, "no memory");
    err = decode(opening, &text, place, whole);
    free(place);
    return err;
}

const struct kith_dataset_kind kith_dataset_text = {
    .name = "text",
    .paper = "Karpathy, 2015 (char-rnn)",
    .summary = "one UTF-8 file by character; its end is the test set",
    .input = KITH_INPUT_TOKENS,
    .cut = true,
    .open = open_text,
};
