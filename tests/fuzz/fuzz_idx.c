/* Goal: no bytes make the IDX header misbehave, nor, one time in 64, the
 * reading of a file with them, plain or gzip. What is accepted is exactly the
 * bytes given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/data.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory where there is such a folder: a million files are written. */
static char folder[] = "/dev/shm/kith-fuzz-idx-XXXXXX";
static const char *const names[] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0,
                                 0, 1, 0, 0, 0, 2, 1, 2, 3, 4};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};

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
    (void)argc;
    (void)argv;
    if (mkdtemp(folder) == NULL) {
        (void)snprintf(folder, sizeof folder, "/tmp/kith-fuzz-XXXXXX");
        KITH_ASSERT(mkdtemp(folder) != NULL);
    }
    put(0, images, sizeof images);
    put(2, images, sizeof images);
    put(3, labels, sizeof labels);
    KITH_ASSERT(atexit(remove_all) == 0);
    return 0;
}

static void read_file(const uint8_t *data, size_t size)
{
    struct kith_dataset set;
    struct kith_data_config config = {.kind = kith_dataset_kind_find("idx")};
    char error[KITH_DATA_ERROR_BYTES] = "";
    (void)snprintf(config.path, sizeof config.path, "%s", folder);
    put(1, data, size);
    if (kith_dataset_open(&config, &set, error) != KITH_OK) {
        KITH_ASSERT(strlen(error) > 0 && set.train.values == NULL);
        return;
    }
    KITH_ASSERT(set.train.count == 2 && set.train.features == 2);
    for (size_t i = 0; i < set.train.count; i++)
        KITH_ASSERT(set.train.labels[i] >= 0 &&
                    (uint32_t)set.train.labels[i] < set.train.classes);
    kith_dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_idx idx;
    const enum kith_err err = kith_idx_parse(data, size, &idx);
    KITH_ASSERT(idx.rank <= KITH_IDX_RANK_MAX);
    KITH_ASSERT(idx.bytes <= KITH_IDX_BYTES_MAX);
    if (err == KITH_OK)
        KITH_ASSERT(idx.rank > 0 && idx.offset + idx.bytes == size);
    if (err == KITH_EAGAIN && idx.rank > 0)
        KITH_ASSERT(idx.offset <= size && idx.offset + idx.bytes > size);
    if (size > 0 && data[size - 1] % 64 == 0)
        read_file(data, size);
    return 0;
}
