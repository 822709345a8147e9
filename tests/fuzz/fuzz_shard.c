/* Goal: no bytes make the parser of token shards misbehave; what is accepted
 * lies within the bytes given and is as many tokens as the header says. One
 * time in 64 they are a training shard between two others, and every token of
 * the stream is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/data.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory where there is such a folder: a million files are written. */
static char folder[] = "/dev/shm/kith-fuzz-shard-XXXXXX";
static const char *const names[] = {"train_1.bin", "train_2.bin", "train_3.bin",
                                    "val.bin"};
enum { CONTEXT = 4 };

static void path_of(size_t which, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", folder, names[which]);
}

static void put(size_t which, const uint8_t *bytes, size_t size)
{
    char path[128];
    path_of(which, path);
    FILE *file = fopen(path, "wb");
    KITH_ASSERT(file != NULL);
    KITH_ASSERT(fwrite(bytes, 1, size, file) == size);
    KITH_ASSERT(fclose(file) == 0);
}

static void remove_all(void)
{
    for (size_t i = 0; i < 4; i++) {
        char path[128];
        path_of(i, path);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const uint8_t tokens[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
    (void)argc;
    (void)argv;
    if (mkdtemp(folder) == NULL) {
        (void)snprintf(folder, sizeof folder, "/tmp/kith-fuzz-XXXXXX");
        KITH_ASSERT(mkdtemp(folder) != NULL);
    }
    put(0, tokens, 2);
    put(2, tokens, sizeof tokens);
    put(3, tokens, sizeof tokens);
    KITH_ASSERT(atexit(remove_all) == 0);
    return 0;
}

static void read_folder(const uint8_t *data, size_t size)
{
    struct kith_dataset set;
    struct kith_data_config config = {.kind = kith_dataset_kind_find("tokens"),
                                      .context = CONTEXT};
    char error[KITH_DATA_ERROR_BYTES] = "";
    (void)snprintf(config.path, sizeof config.path, "%s", folder);
    put(1, data, size);
    if (kith_dataset_open(&config, &set, error) != KITH_OK) {
        KITH_ASSERT(strlen(error) > 0 && set.train.segments == NULL);
        return;
    }
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
