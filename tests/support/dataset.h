/* A folder of files for the tests of data sets, which their group makes and
 * removes, and what is opened from it or refused. The state is theirs. */
#ifndef KITH_TESTS_DATASET_H
#define KITH_TESTS_DATASET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/data.h"

static char folder[] = "/tmp/kith-data-XXXXXX";
static char made[64][64];
static unsigned made_count;

static inline void path_of(const char *name, char path[256])
{
    (void)snprintf(path, 256, "%s/%s", folder, name);
}

/* It goes with the others. */
static inline void note(const char *name)
{
    for (unsigned i = 0; i < made_count; i++)
        if (strcmp(made[i], name) == 0)
            return;
    assert_true(made_count < 64);
    (void)snprintf(made[made_count++], sizeof made[0], "%s", name);
}

static inline void put(const char *name, const void *bytes, size_t size)
{
    char path[256];
    path_of(name, path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    note(name);
}

static inline void empty_folder(void)
{
    for (unsigned i = 0; i < made_count; i++) {
        char path[256];
        path_of(made[i], path);
        (void)unlink(path);
    }
    made_count = 0;
}

static inline struct kith_data_config configure(const char *kind,
                                                const char *file)
{
    struct kith_data_config config = {.kind = kith_dataset_kind_find(kind),
                                      .test_share = 0.1};
    assert_non_null(config.kind);
    (void)snprintf(config.path, sizeof config.path, "%s%s%s", folder,
                   file == NULL ? "" : "/", file == NULL ? "" : file);
    return config;
}

static inline void open_set(const struct kith_data_config *config,
                            struct kith_dataset *set)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    if (kith_dataset_open(config, set, error) != KITH_OK)
        fail_msg("%s", error);
    assert_string_equal(set->note, "");
}

static inline void refuse(const struct kith_data_config *config,
                          enum kith_err want, const char *part)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_dataset set;
    assert_int_equal(kith_dataset_open(config, &set, error), want);
    if (strstr(error, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, part);
    assert_null(set.train.values);
    assert_null(set.close);
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

#endif
