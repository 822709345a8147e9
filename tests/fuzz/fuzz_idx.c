/* Goal: no bytes make the IDX header misbehave, nor, one time in 64, the
 * reading of a file with them, plain or gzip. What is accepted is exactly the
 * bytes given. */
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[FOLDER_FILES] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0,
                                 0, 1, 0, 0, 0, 2, 1, 2, 3, 4};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    folder_make(names);
    folder_put(0, images, sizeof images);
    folder_put(2, images, sizeof images);
    folder_put(3, labels, sizeof labels);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_array idx;
    const enum kith_err err = kith_idx_parse(data, size, &idx);
    KITH_ASSERT(idx.rank <= KITH_IDX_RANK_MAX);
    KITH_ASSERT(idx.bytes <= KITH_IDX_BYTES_MAX);
    if (err == KITH_OK)
        KITH_ASSERT(idx.rank > 0 && idx.offset + idx.bytes == size);
    if (err == KITH_EAGAIN && idx.rank > 0)
        KITH_ASSERT(idx.offset <= size && idx.offset + idx.bytes > size);
    if (size > 0 && data[size - 1] % 64 == 0) {
        folder_put(1, data, size);
        folder_images("idx");
    }
    return 0;
}
