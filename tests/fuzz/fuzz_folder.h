/* A folder of four files, of which a fuzz target writes one at a time, again
 * and again, and reads the data set that they make. */
#ifndef KITH_TESTS_FUZZ_FUZZ_FOLDER_H
#define KITH_TESTS_FUZZ_FUZZ_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/data.h"

enum { FOLDER_FILES = 4 };

/* In memory where there is such a folder: a million files are written. */
static char folder[] = "/dev/shm/kith-fuzz-XXXXXX";
static const char *const *folder_names; /* (FOLDER_FILES), lives on */

static inline void folder_path(size_t which, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", folder, folder_names[which]);
}

static inline void folder_put(size_t which, const uint8_t *bytes, size_t size)
{
    char path[128];
    folder_path(which, path);
    FILE *file = fopen(path, "wb");
    KITH_ASSERT(file != NULL);
    KITH_ASSERT(fwrite(bytes, 1, size, file) == size);
    KITH_ASSERT(fclose(file) == 0);
}

static inline void folder_remove(void)
{
    for (size_t i = 0; i < FOLDER_FILES; i++) {
        char path[128];
        folder_path(i, path);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

/* Empty, and gone when the target ends. */
static inline void folder_make(const char *const names[FOLDER_FILES])
{
    folder_names = names;
    if (mkdtemp(folder) == NULL) {
        (void)snprintf(folder, sizeof folder, "/tmp/kith-fuzz-XXXXXX");
        KITH_ASSERT(mkdtemp(folder) != NULL);
    }
    KITH_ASSERT(atexit(folder_remove) == 0);
}

/* Opens the folder as it is. What is refused says why and leaves nothing open;
 * what is not is the caller's to close. */
static inline bool folder_open(const char *kind, uint32_t context,
                               struct kith_dataset *set)
{
    struct kith_data_config config = {.kind = kith_dataset_kind_find(kind),
                                      .context = context};
    char error[KITH_DATA_ERROR_BYTES] = "";
    (void)snprintf(config.path, sizeof config.path, "%s", folder);
    if (kith_dataset_open(&config, set, error) == KITH_OK)
        return true;
    KITH_ASSERT(strlen(error) > 0);
    KITH_ASSERT(set->train.values == NULL && set->train.segments == NULL);
    return false;
}

/* Two training images of two pixels each, and labels below the classes. */
static inline void folder_images(const char *kind)
{
    struct kith_dataset set;
    if (!folder_open(kind, 0, &set))
        return;
    KITH_ASSERT(set.train.count == 2 && set.train.features == 2);
    for (size_t i = 0; i < set.train.count; i++)
        KITH_ASSERT(set.train.labels[i] >= 0 &&
                    (uint32_t)set.train.labels[i] < set.train.classes);
    kith_dataset_close(&set);
}

#endif
