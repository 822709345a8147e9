/* Goal: an .npz has each array as NumPy wants it, whatever the order of
 * writing; it is there whole, or not at all. Method: written here, read back
 * byte by byte; zlib's sums; a limit on the size of files in the place of a
 * full disk. */
#include "tests/support/dataset.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include "kith/npz.h"
#include "kith/plain_file.h"

enum { HEADER = 192, MATRIX_NAME = 5, LIST_NAME = 6 };

/* It goes with the folder. */
static void path_to(char path[256], const char *name)
{
    path_of(name, path);
    note(name);
}

static uint64_t number(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool is_there(const char *path, const char *ending)
{
    char name[300];
    (void)snprintf(name, sizeof name, "%s%s", path, ending);
    return access(name, F_OK) == 0;
}

static const struct kith_npz_array arrays[] = {
    {.name = "W", .sizes = {2, 3}, .rank = 2, .wide = true},
    {.name = "xs", .sizes = {4}, .rank = 1, .wide = false}};

static void write_some(struct kith_npz *npz)
{
    const double last[] = {4, 5}, first[] = {1, 2, 3}, list[] = {0.1, -7};
    kith_npz_write(npz, 0, 3, 2, last);
    kith_npz_write(npz, 1, 1, 2, list);
    kith_npz_write(npz, 0, 0, 3, first);
}

/* One entry: its local header, its .npy header, its sum; returns its end. */
static const uint8_t *check_entry(const uint8_t *at, const char *name,
                                  const char *dictionary, size_t bytes)
{
    const size_t length = strlen(name);
    assert_int_equal(number(at, 4), 0x04034b50);
    assert_int_equal(number(at + 8, 2), 0); /* stored */
    assert_int_equal(number(at + 18, 4), HEADER + bytes);
    assert_int_equal(number(at + 22, 4), HEADER + bytes);
    assert_int_equal(number(at + 26, 2), length);
    assert_memory_equal(at + 30, name, length);
    const uint8_t *array = at + 30 + length;
    assert_int_equal(number(at + 14, 4),
                     crc32(0, array, (uInt)(HEADER + bytes)));
    assert_memory_equal(array, "\x93NUMPY\x01\0", 8);
    assert_int_equal(number(array + 8, 2), HEADER - 10);
    assert_memory_equal(array + 10, dictionary, strlen(dictionary));
    assert_int_equal(array[HEADER - 1], '\n');
    return array + HEADER + bytes;
}

static void test_whole(void **state)
{
    char path[256], error[KITH_FILE_ERROR_BYTES];
    struct kith_npz *npz;
    struct kith_file_map map;
    (void)state;
    path_to(path, "whole.npz");
    assert_int_equal(kith_npz_create(path, arrays, 2, &npz, error), KITH_OK);
    write_some(npz);
    assert_false(is_there(path, ""));
    assert_int_equal(kith_npz_commit(npz, error), KITH_OK);
    assert_false(is_there(path, ".partial"));
    assert_int_equal(kith_file_map_open(path, &map, error), KITH_OK);

    const double matrix[] = {1, 2, 3, 4, 5, 0};
    const float list[] = {0, 0.1f, -7, 0};
    const uint8_t *const second = check_entry(
        map.bytes, "W.npy",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,3,), } ", 48);
    assert_memory_equal(second - 48, matrix, 48);
    const uint8_t *const directory = check_entry(
        second, "xs.npy",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } ", 16);
    assert_memory_equal(directory - 16, list, 16);

    const uint8_t *const other = directory + 46 + MATRIX_NAME;
    assert_int_equal(number(directory, 4), 0x02014b50);
    assert_memory_equal(directory + 46, "W.npy", MATRIX_NAME);
    assert_int_equal(number(directory + 42, 4), 0);
    assert_int_equal(number(other + 42, 4), second - map.bytes);
    assert_memory_equal(other + 46, "xs.npy", LIST_NAME);
    assert_int_equal(number(other + 16, 4), number(second + 14, 4));
    const uint8_t *const end = other + 46 + LIST_NAME;
    assert_int_equal(number(end, 4), 0x06054b50);
    assert_int_equal(number(end + 8, 2), 2);
    assert_int_equal(number(end + 10, 2), 2);
    assert_int_equal(number(end + 12, 4), end - directory);
    assert_int_equal(number(end + 16, 4), directory - map.bytes);
    assert_int_equal(map.size, end + 22 - map.bytes);
    kith_file_map_close(&map);
}

static void test_nothing_left(void **state)
{
    char path[256], error[KITH_FILE_ERROR_BYTES];
    struct kith_npz *npz;
    (void)state;
    path_to(path, "left.npz");
    assert_int_equal(kith_npz_create(path, arrays, 2, &npz, error), KITH_OK);
    write_some(npz);
    kith_npz_abandon(npz);
    assert_false(is_there(path, ""));
    assert_false(is_there(path, ".partial"));
    kith_npz_abandon(NULL);
}

static void refused(const char *path, const struct kith_npz_array *array,
                    enum kith_err want, const char *words)
{
    char error[KITH_FILE_ERROR_BYTES] = "";
    struct kith_npz *npz;
    assert_int_equal(kith_npz_create(path, array, 1, &npz, error), want);
    assert_null(npz);
    if (strstr(error, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, words);
    assert_false(is_there(path, ""));
    assert_false(is_there(path, ".partial"));
}

static void test_refused(void **state)
{
    char path[256];
    (void)state;
    struct kith_npz_array array = {
        .name = "x", .sizes = {1024, 1024, 1024}, .rank = 3, .wide = true};
    path_to(path, "refused.npz");
    refused(path, &array, KITH_ELIMIT, "it would take 8 GiB");
    /* Sizes whose product has more than 64 bits. */
    array.sizes[0] = array.sizes[1] = array.sizes[2] = UINT64_MAX / 2;
    refused(path, &array, KITH_ELIMIT, "the most is 4 GiB");
    path_to(path, "none/refused.npz");
    refused(path, &arrays[0], KITH_ENOENT, "No such file");

    struct rlimit before, small = {.rlim_cur = 4096};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    array.sizes[0] = array.sizes[1] = array.sizes[2] = 10;
    void (*const old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    path_to(path, "refused.npz");
    refused(path, &array, KITH_ENOSPC, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, old);
}

/* What stood there is replaced when the new one is whole. */
static void test_replaces(void **state)
{
    char path[256], error[KITH_FILE_ERROR_BYTES];
    struct kith_npz *npz;
    struct kith_file_map map;
    (void)state;
    path_to(path, "old.npz");
    put("old.npz", "old", 3);
    assert_int_equal(kith_npz_create(path, arrays, 2, &npz, error), KITH_OK);
    assert_int_equal(kith_file_map_open(path, &map, error), KITH_OK);
    assert_int_equal(map.size, 3);
    kith_file_map_close(&map);
    assert_int_equal(kith_npz_commit(npz, error), KITH_OK);
    assert_int_equal(kith_file_map_open(path, &map, error), KITH_OK);
    assert_true(map.size > 3);
    kith_file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole), cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_replaces)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
