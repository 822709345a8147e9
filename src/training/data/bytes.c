/* Any file by byte: 256 tokens, nothing to decode, so it stays mapped. The last
 * test_share of it is the test set. */
#include "data_files.h"

enum { VOCABULARY = 256 };

static enum kith_err open_bytes(const struct kith_data_config *config,
                                struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    struct kith_examples whole = set->train;
    struct data_file file;
    struct data_bytes bytes;
    enum kith_err err = kith_data_find(&opening, NULL, &file);
    if (err == KITH_ENOENT)
        return kith_data_complain(error, err, file.path,
                                  "no such file; data.path must be one file");
    if (err == KITH_OK)
        err = kith_data_map(&opening, &file, &bytes);
    if (err != KITH_OK)
        return err;
    whole.element = KITH_ELEMENT_U8;
    whole.values = bytes.bytes;
    whole.tokens = bytes.size;
    whole.classes = VOCABULARY;
    whole.mapped = true;
    err = kith_data_cut(&opening, file.path, &whole);
    if (err == KITH_OK)
        kith_data_count(&opening, &file, set->train.count + set->test.count);
    return err;
}

const struct kith_dataset_kind kith_dataset_bytes = {
    .name = "bytes",
    .paper = "Graves, 2013 (byte-level language models)",
    .summary = "one file by byte, vocabulary 256; its end is the test set",
    .input = KITH_INPUT_TOKENS,
    .cut = true,
    .open = open_bytes,
};
