/* Goal: no bytes make the .npy parser misbehave, nor, one time in 64, the
 * reading of a folder whose y_train.npy they are. What is accepted is an array
 * of a known type that fills the file exactly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/data.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory where there is such a folder: a million files are written. */
static char folder[] = "/dev/shm/kith-fuzz-npy-XXXXXX";
static const char *const names[] = {"x_train.npy", "y_train.npy", "x_test.npy",
                                    "y_test.npy"};

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

/* Version 1, 128 bytes of header, then `bytes` zeros. */
static void put_zeros(size_t which, const char *shape, size_t bytes)
{
    uint8_t file[256] = "\x93NUMPY\1\0\x76";
    memset(file + 10, ' ', 118);
    const int length = snprintf(
        (char *)file + 10, 118,
        "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", shape);
    file[10 + length] = ' ';
    file[127] = '\n';
    put(which, file, 128 + bytes);
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
    put_zeros(0, "(2, 1, 2)", 4);
    put_zeros(2, "(2, 1, 2)", 4);
    put_zeros(3, "(2,)", 2);
    KITH_ASSERT(atexit(remove_all) == 0);
    return 0;
}

static void read_folder(const uint8_t *data, size_t size)
{
    struct kith_dataset set;
    struct kith_data_config config = {.kind = kith_dataset_kind_find("npy")};
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
    struct kith_npy npy;
    const enum kith_err err = kith_npy_parse(data, size, &npy);
    KITH_ASSERT(err == KITH_OK || err == KITH_EPARSE || err == KITH_ELIMIT);
    KITH_ASSERT((err == KITH_OK) == (npy.rank > 0));
    if (err == KITH_OK) {
        size_t bytes = (size_t)(npy.type[1] - '0');
        KITH_ASSERT(npy.rank <= KITH_IDX_RANK_MAX);
        for (uint32_t i = 0; i < npy.rank; i++)
            bytes *= (size_t)npy.sizes[i];
        KITH_ASSERT(bytes == npy.bytes && npy.offset + npy.bytes == size);
    }
    if (size > 0 && data[size / 2] % 64 == 41)
        read_folder(data, size);
    return 0;
}
