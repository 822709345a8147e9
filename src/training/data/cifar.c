/* CIFAR-10, binary version: records of one label byte and three planes of
 * 32 x 32 (red, green, blue), which become height, width, channel here.
 *
 *   FOLDER/data_batch_{1,2,3,4,5}.bin   training
 *   FOLDER/test_batch.bin               test
 *
 * Krizhevsky, "Learning multiple layers of features from tiny images", 2009. */
#include "data_files.h"

#include <stdio.h>
#include <string.h>

enum {
    SIDE = 32,
    PIXELS = SIDE * SIDE,
    CHANNELS = 3,
    RECORD_BYTES = 1 + CHANNELS * PIXELS,
    CLASSES = 10,
    TRAIN_FILES = 5,
};

enum kith_err kith_cifar_parse(const uint8_t *bytes, size_t size,
                               size_t *records)
{
    *records = 0;
    if (size > KITH_IDX_BYTES_MAX)
        return KITH_ELIMIT;
    if (size == 0 || size % RECORD_BYTES != 0)
        return KITH_EPARSE;
    for (size_t at = 0; at < size; at += RECORD_BYTES) {
        if (bytes[at] >= CLASSES)
            return KITH_EPARSE;
    }
    *records = size / RECORD_BYTES;
    return KITH_OK;
}

/* (channel, pixel) -> (pixel, channel) */
static void turn(const uint8_t *planes, uint8_t *image)
{
    for (size_t p = 0; p < PIXELS; p++) {
        for (size_t c = 0; c < CHANNELS; c++)
            image[p * CHANNELS + c] = planes[c * PIXELS + p];
    }
}

struct batch {
    struct data_file file;
    struct data_bytes bytes;
    size_t records;
};

static enum kith_err read_batch(struct data_opening *opening, const char *name,
                                struct batch *batch)
{
    enum kith_err err = kith_data_find(opening, name, &batch->file);
    if (err == KITH_ENOENT)
        return kith_data_complain(
            opening->error, err, batch->file.path,
            "no such file; unpack cifar-10-binary.tar.gz of "
            "https://www.cs.toronto.edu/~kriz/cifar.html and give its folder "
            "as data.path");
    if (err == KITH_OK)
        err = kith_data_map(opening, &batch->file, &batch->bytes);
    if (err != KITH_OK)
        return err;
    err = kith_cifar_parse(batch->bytes.bytes, batch->bytes.size,
                           &batch->records);
    if (err == KITH_OK)
        return err;
    return kith_data_complain(
        opening->error, err, batch->file.path,
        "not CIFAR-10: %zu bytes are not records of %d bytes "
        "with a label below %d each; fetch the file again",
        batch->bytes.size, RECORD_BYTES, CLASSES);
}

/* The batch's records. They were checked, but they are mapped: a label may have
 * been written to since. */
static enum kith_err decode_batch(struct data_opening *opening,
                                  const struct batch *batch, uint8_t *images,
                                  int32_t *labels)
{
    const uint8_t *record = batch->bytes.bytes;
    for (size_t r = 0; r < batch->records; r++, record += RECORD_BYTES) {
        labels[r] = record[0];
        if (labels[r] >= CLASSES) {
            kith_data_spoiled(opening->set->owner, record, true,
                              opening->error);
            return KITH_EIO;
        }
        turn(record + 1, images + r * (size_t)(CHANNELS * PIXELS));
    }
    kith_data_count(opening, &batch->file, batch->records);
    return KITH_OK;
}

static enum kith_err decode(struct data_opening *opening,
                            const struct batch *batches, size_t count,
                            struct kith_examples *examples)
{
    size_t records = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        records += batches[i].records;
    uint8_t *images =
        kith_data_alloc(opening, records * (size_t)(CHANNELS * PIXELS));
    int32_t *labels = kith_data_alloc(opening, records * sizeof *labels);
    if (images == NULL || labels == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM,
                                  batches[0].file.path,
                                  "no memory for %zu images", records);
    for (size_t i = 0; i < count; i++) {
        const enum kith_err err = decode_batch(
            opening, &batches[i], images + at * (size_t)(CHANNELS * PIXELS),
            labels + at);
        if (err != KITH_OK)
            return err;
        at += batches[i].records;
    }
    static const uint64_t sizes[4] = {0, SIDE, SIDE, CHANNELS};
    examples->input = KITH_INPUT_IMAGES;
    examples->element = KITH_ELEMENT_U8;
    examples->values = images;
    examples->labels = labels;
    examples->count = records;
    examples->classes = CLASSES;
    kith_data_shape(examples, 4, sizes);
    return KITH_OK;
}

static enum kith_err open_cifar(const struct kith_data_config *config,
                                struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    struct batch batches[TRAIN_FILES];
    enum kith_err err = KITH_OK;
    for (int i = 0; i < TRAIN_FILES && err == KITH_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data_batch_%d.bin", i + 1);
        err = read_batch(&opening, name, &batches[i]);
    }
    if (err == KITH_OK)
        err = decode(&opening, batches, TRAIN_FILES, &set->train);
    if (err == KITH_OK)
        err = read_batch(&opening, "test_batch.bin", &batches[0]);
    if (err == KITH_OK)
        err = decode(&opening, batches, 1, &set->test);
    return err;
}

const struct kith_dataset_kind kith_dataset_cifar = {
    .name = "cifar",
    .paper = "Krizhevsky, 2009 (CIFAR-10, binary version)",
    .summary = "data_batch_{1..5}.bin and test_batch.bin in a folder",
    .input = KITH_INPUT_IMAGES,
    .open = open_cifar,
};
