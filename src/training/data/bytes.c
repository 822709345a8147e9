/* Any file by byte: 256 tokens, nothing to decode, so it stays mapped. The last
 * test_share of it is the test set. */
#include "data_files.h"

enum { VOCABULARY = 256 };

static enum kith_err open_bytes(struct kith_data_opening *opening,
                                enum kith_data_part part,
                                struct kith_examples *whole)
{
    struct kith_file_map file;
    (void)part;
    const enum kith_err err =
        kith_data_map(opening, kith_data_find(opening, NULL),
                      "no such file; data.path must be one file", &file);
    if (err != KITH_OK)
        return err;
    whole->input = KITH_INPUT_TOKENS;
    whole->element = KITH_ELEMENT_U8;
    whole->values = file.bytes;
    whole->tokens = file.size;
    whole->classes = VOCABULARY;
    whole->mapped = true;
    return KITH_OK;
}

const struct kith_dataset_kind kith_dataset_bytes = {
    .name = "bytes",
    .paper = "Graves, 2013 (byte-level language models)",
    .summary = "one file by byte, vocabulary 256; its end is the test set",
    .input = KITH_INPUT_TOKENS,
    .cut = true,
    .open = open_bytes,
};
