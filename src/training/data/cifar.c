/* CIFAR-10, binary version: records of one label byte and three planes of
 * 32 x 32 (red, green, blue), which become height, width, channel here.
 *
 *   FOLDER/data_batch_{1,2,3,4,5}.bin   training
 *   FOLDER/test_batch.bin               test
 *
 * Krizhevsky, "Learning multiple layers of features from tiny images", 2009. */
#include "data_files.h"

#include <stdio.h>

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
    for (size_t at = 0; at < size; at += RECORD_BYTES)
        if (bytes[at] >= CLASSES)
            return KITH_EPARSE;
    *records = size / RECORD_BYTES;
    return KITH_OK;
}

/* (channel, pixel) -> (pixel, channel) */
static void turn(const uint8_t *planes, uint8_t *image)
{
    for (size_t p = 0; p < PIXELS; p++)
        for (size_t c = 0; c < CHANNELS; c++)
            image[p * CHANNELS + c] = planes[c * PIXELS + p];
}

struct batch {
    const uint8_t *bytes;
    size_t records;
};

static enum kith_err read_batch(struct kith_data_opening *opening,
                                const char *name, struct batch *batch)
{
    struct kith_file_map file;
    enum kith_err err = kith_data_map(
        opening, kith_data_find(opening, name),
        "no such file; unpack cifar-10-binary.tar.gz of "
        "https://www.cs.toronto.edu/~kriz/cifar.html and give its folder as "
        "data.path",
        &file);
    if (err != KITH_OK)
        return err;
    batch->bytes = file.bytes;
    err = kith_cifar_parse(file.bytes, file.size, &batch->records);
    kith_data_count(opening, batch->records);
    return err == KITH_OK
               ? err
               : kith_data_refuse(
                     opening, err,
                     "not CIFAR-10: %zu bytes are not records of %d bytes with "
                     "a label below %d each; fetch the file again",
                     file.size, RECORD_BYTES, CLASSES);
}

/* The batch's records. They were checked, but they are mapped: a label may have
 * been written to since. */
static enum kith_err decode_batch(struct kith_data_opening *opening,
                                  const struct batch *batch, uint8_t *images,
                                  int32_t *labels)
{
    const uint8_t *record = batch->bytes;
    for (size_t r = 0; r < batch->records; r++, record += RECORD_BYTES) {
        labels[r] = record[0];
        if (labels[r] >= CLASSES)
            return kith_data_spoiled(opening->set->owner, record, true,
                                     opening->error);
        turn(record + 1, images + r * (size_t)(CHANNELS * PIXELS));
    }
    return KITH_OK;
}

static enum kith_err open_cifar(struct kith_data_opening *opening,
                                enum kith_data_part part,
                                struct kith_examples *examples)
{
    const size_t count = part == KITH_DATA_TRAIN ? TRAIN_FILES : 1;
    struct batch batches[TRAIN_FILES];
    uint64_t sizes[4] = {0, SIDE, SIDE, CHANNELS};
    for (size_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data_batch_%zu.bin", i + 1);
        const enum kith_err err = read_batch(
            opening, part == KITH_DATA_TRAIN ? name : "test_batch.bin",
            &batches[i]);
        if (err != KITH_OK)
            return err;
        sizes[0] += batches[i].records;
    }
    uint8_t *images = kith_data_alloc(opening, (size_t)sizes[0],
                                      (size_t)(CHANNELS * PIXELS), "images");
    int32_t *labels =
        kith_data_alloc(opening, (size_t)sizes[0], sizeof *labels, "labels");
    if (images == NULL || labels == NULL)
        return KITH_ENOMEM;
    kith_data_images(examples, KITH_ELEMENT_U8, images, 4, sizes);
    examples->labels = labels;
    examples->classes = CLASSES;
    for (size_t i = 0; i < count; i++) {
        const enum kith_err err =
            decode_batch(opening, &batches[i], images, labels);
        if (err != KITH_OK)
            return err;
        images += batches[i].records * (size_t)(CHANNELS * PIXELS);
        labels += batches[i].records;
    }
    return KITH_OK;
}

const struct kith_dataset_kind kith_dataset_cifar = {
    .name = "cifar",
    .paper = "Krizhevsky, 2009 (CIFAR-10, binary version)",
    .summary = "data_batch_{1..5}.bin and test_batch.bin in a folder",
    .input = KITH_INPUT_IMAGES,
    .open = open_cifar,
};
