/* Goal: no bytes make the parser of token shards misbehave; what is accepted
 * lies within the bytes given and is as many tokens as the header says. One
 * time in 64 they are a training shard between two others, and every token of
 * the stream is read. */
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[FOLDER_FILES] = {"train_1.bin", "train_2.bin",
                                                "train_3.bin", "val.bin"};
enum { CONTEXT = 4 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const uint8_t tokens[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
    (void)argc;
    (void)argv;
    folder_make(names);
    folder_put(0, tokens, 2);
    folder_put(2, tokens, sizeof tokens);
    folder_put(3, tokens, sizeof tokens);
    return 0;
}

static void read_folder(const uint8_t *data, size_t size)
{
    struct kith_dataset set;
    folder_put(1, data, size);
    if (!folder_open("tokens", CONTEXT, &set))
        return;
    KITH_ASSERT(set.train.tokens >= 7 &&
                set.train.count == (set.train.tokens - 1) / CONTEXT);
    for (size_t i = 0; i < set.train.count; i++) {
        int32_t window[CONTEXT + 1];
        kith_examples_tokens(&set.train, i * CONTEXT, CONTEXT + 1, window);
        for (size_t k = 0; k <= CONTEXT; k++)
            KITH_ASSERT(window[k] >= 0 &&
                        (uint32_t)window[k] < set.train.classes);
    }
    kith_dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_shard shard;
    const enum kith_err err = kith_shard_parse(data, size, &shard);
    KITH_ASSERT(err == KITH_OK || err == KITH_EPARSE);
    KITH_ASSERT((err == KITH_OK) == (shard.tokens > 0));
    if (err == KITH_OK)
        KITH_ASSERT(shard.offset + 2 * shard.tokens == size);
    if (size > 0 && data[size / 2] % 64 == 41)
        read_folder(data, size);
    return 0;
}
