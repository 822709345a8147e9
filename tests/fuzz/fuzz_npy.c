/* Goal: no bytes make the .npy parser misbehave; what it accepts is an array of
 * a known type that fills the file exactly. Nor do they, accepted or, one time
 * in 64, not, make the reading of a folder misbehave whose y_train.npy or
 * x_train.npy they are. */
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[FOLDER_FILES] = {"x_train.npy", "y_train.npy",
                                                "x_test.npy", "y_test.npy"};

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
    folder_put(which, file, 128 + bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    folder_make(names);
    put_zeros(2, "(2, 1, 2)", 4);
    put_zeros(3, "(2,)", 2);
    return 0;
}

static void read_labels(const uint8_t *data, size_t size)
{
    put_zeros(0, "(2, 1, 2)", 4);
    folder_put(1, data, size);
    folder_images("npy");
}

/* The test set's are bytes, two to an image. */
static void read_images(const uint8_t *data, size_t size)
{
    struct kith_dataset set;
    folder_put(0, data, size);
    put_zeros(1, "(2,)", 2);
    if (!folder_open("npy", 0, &set))
        return;
    KITH_ASSERT(set.train.count == 2 && set.train.features == 2);
    KITH_ASSERT(set.train.element == KITH_ELEMENT_U8);
    kith_dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_array npy;
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
    if (err != KITH_OK && (size == 0 || data[size - 1] % 64 != 41))
        return 0;
    if (npy.rank < 2 || npy.sizes[1] == 1)
        read_labels(data, size);
    if (npy.rank > 1)
        read_images(data, size);
    return 0;
}
