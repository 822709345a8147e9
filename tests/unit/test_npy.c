/* Goal: .npy headers and folders of arrays are read bit for bit, and what is
 * broken is refused by file and reason. Method: headers in memory, then arrays
 * written here; bad ones first, then the good ones again. */
#include "tests/support/dataset.h"

/* A version 1 or 2 file with this dictionary, padded as NumPy does. */
static size_t npy_file(uint8_t *out, int version, const char *dictionary,
                       const void *data, size_t bytes)
{
    const size_t prefix = version == 1 ? 10 : 12;
    size_t length = strlen(dictionary) + 1;
    while ((prefix + length) % 64 != 0)
        length++;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    memset(out + prefix, ' ', length);
    memcpy(out + prefix, dictionary, strlen(dictionary));
    out[prefix + length - 1] = '\n';
    memcpy(out + prefix + length, data, bytes);
    return prefix + length + bytes;
}

static void put_npy(const char *name, const char *dictionary, const void *data,
                    size_t bytes)
{
    uint8_t file[4096];
    put(name, file, npy_file(file, 1, dictionary, data, bytes));
}

#define DICT(type, shape)                                                      \
    "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"

static void test_npy_header(void **state)
{
    (void)state;
    uint8_t file[4096];
    const uint8_t data[64] = {1, 2, 3};
    struct kith_array npy;
    const struct {
        const char *text;
        size_t bytes;
        enum kith_err want;
    } cases[] = {
        {DICT("|u1", "(2, 3)"), 6, KITH_OK},
        {DICT("<f4", "(4,)"), 16, KITH_OK},
        {DICT("<i8", "(1, 2, 1, 2)"), 32, KITH_OK},
        {"{\"shape\":(3,),\"descr\":\"<u2\",\"fortran_order\":False}", 6,
         KITH_OK},
        {DICT("|u1", "(2, 3)"), 5, KITH_EPARSE},
        {DICT("|u1", "(2, 3)"), 7, KITH_EPARSE},
        {DICT("<f8", "(1,)"), 8, KITH_EPARSE},
        {DICT(">f4", "(1,)"), 4, KITH_EPARSE},
        {DICT("|O", "(1,)"), 8, KITH_EPARSE},
        {DICT("|u1", "()"), 1, KITH_EPARSE},
        {DICT("|u1", "(0, 3)"), 0, KITH_EPARSE},
        {DICT("|u1", "(1, 1, 1, 1, 1)"), 1, KITH_ELIMIT},
        {DICT("|u1", "(-1,)"), 1, KITH_EPARSE},
        {DICT("|u1", "(2 3)"), 6, KITH_EPARSE},
        {DICT("|u1", "(99999999999999999999, 1)"), 6, KITH_EPARSE},
        {DICT("<i8", "(1099511627776, 1)"), 6, KITH_ELIMIT},
        {DICT("<f4", "(4294967296, 4294967296, 4294967296, 4)"), 0,
         KITH_ELIMIT},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (6,), }", 6,
         KITH_EPARSE},
        {"{'descr': '|u1', 'shape': (6,), }", 6, KITH_EPARSE},
        {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': "
         "(6,), }",
         6, KITH_EPARSE},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'x': 1}", 6,
         KITH_EPARSE},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,), } 1", 6,
         KITH_EPARSE},
        {"{'descr': '|u1", 6, KITH_EPARSE},
        {"{", 6, KITH_EPARSE},
        {"", 6, KITH_EPARSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int version = 1; version <= 2; version++) {
            const size_t size =
                npy_file(file, version, cases[i].text, data, cases[i].bytes);
            const enum kith_err err = kith_npy_parse(file, size, &npy);
            if (err != cases[i].want)
                fail_msg("%s: %d", cases[i].text, err);
            assert_int_equal(npy.rank > 0, err == KITH_OK);
            if (err == KITH_OK)
                assert_memory_equal(file + npy.offset, data, npy.bytes);
        }
    }
    const size_t size = npy_file(file, 1, DICT("|u1", "(6,)"), data, 6);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(kith_npy_parse(file, cut, &npy), KITH_EPARSE);
    file[6] = 4;
    assert_int_equal(kith_npy_parse(file, size, &npy), KITH_EPARSE);
}

static void put_arrays(void)
{
    static const float x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.5F};
    static const int64_t train[3] = {2, 0, 1};
    static const int32_t test[2] = {1, 1};
    put_npy("x_train.npy", DICT("<f4", "(3, 2, 2)"), x, sizeof x);
    put_npy("y_train.npy", DICT("<i8", "(3,)"), train, sizeof train);
    put_npy("x_test.npy", DICT("<f4", "(2, 2, 2)"), x, 32);
    put_npy("y_test.npy", DICT("<i4", "(2, 1)"), test, sizeof test);
}

static void test_npy(void **state)
{
    (void)state;
    struct kith_data_config config = configure("npy", NULL);
    refuse(&config, KITH_ENOENT, "data.path needs x_train.npy");
    put_arrays();
    const int64_t bad[4] = {0, -1, 2}, big[4] = {0, 65536, 1};
    const float big_pixels[8] = {1e30F};
    put_npy("y_train.npy", DICT("<i8", "(3,)"), bad, 24);
    refuse(&config, KITH_EPARSE, "label 1 is -1; allowed: 0 to 65535");
    put_npy("y_train.npy", DICT("<i8", "(3,)"), big, 24);
    refuse(&config, KITH_EPARSE, "label 1 is 65536");
    put_npy("y_train.npy", DICT("<i8", "(2,)"), big, 16);
    refuse(&config, KITH_EPARSE, "2 labels for 3 images");
    put_npy("y_train.npy", DICT("<f4", "(3,)"), big, 12);
    refuse(&config, KITH_EPARSE, "found 1 of f4");
    put_arrays();
    put_npy("x_test.npy", DICT("<f4", "(2, 2, 2)"), bad, 32);
    refuse(&config, KITH_EPARSE, "value 2 is");
    put_npy("x_test.npy", DICT("<f4", "(2, 4)"), "", 0);
    refuse(&config, KITH_EPARSE, "not a whole .npy array");
    put_npy("x_test.npy", DICT("<f4", "(2, 4)"), big_pixels, 32);
    refuse(&config, KITH_EPARSE, "training images are 2 x 2 x 1");
    put_npy("x_test.npy", DICT("|u1", "(2, 2, 2)"), bad, 8);
    refuse(&config, KITH_EPARSE, "or of another type");
    put_npy("x_test.npy", DICT("|u1", "(8,)"), bad, 8);
    refuse(&config, KITH_EPARSE, "images need 2 to 4 dimensions");
    put_npy("x_test.npy", DICT("|u1", "(9,)"), bad, 8);
    refuse(&config, KITH_EPARSE, "not a whole .npy array");

    put_arrays();
    struct kith_dataset set;
    open_set(&config, &set);
    assert_int_equal(set.train.element, KITH_ELEMENT_F32);
    assert_int_equal(set.train.count, 3);
    assert_int_equal(set.train.classes, 3);
    assert_int_equal(set.train.shape[0], 2);
    assert_int_equal(set.train.shape[2], 1);
    assert_true(set.train.mapped);
    assert_true(((const float *)set.train.values)[11] > 11.4F);
    assert_int_equal(set.train.labels[0], 2);
    assert_int_equal(set.test.labels[1], 1);
    assert_true(set.train.mean[0] >= 0 && set.train.mean[0] <= 0);
    kith_dataset_close(&set);

    /* Mean 66.5 / 12, and the test set sees the training set's. */
    config.normalise = true;
    open_set(&config, &set);
    assert_true(set.train.mean[0] > 5.541F && set.train.mean[0] < 5.542F);
    assert_true(set.train.deviation[0] > 3.51F &&
                set.train.deviation[0] < 3.53F);
    assert_memory_equal(set.train.mean, set.test.mean, sizeof set.test.mean);
    kith_dataset_close(&set);

    /* A class that only the test set has counts all the same. */
    put_npy("y_test.npy", DICT("|u1", "(2,)"), "\7\1", 2);
    open_set(&config, &set);
    assert_int_equal(set.train.classes, 8);
    assert_int_equal(set.test.classes, 8);
    kith_dataset_close(&set);

    /* Bytes of four dimensions, by channel. */
    const uint8_t colour[8] = {0, 51, 255, 51, 0, 51, 255, 51};
    put_npy("x_train.npy", DICT("|u1", "(2, 1, 2, 2)"), colour, 8);
    put_npy("x_test.npy", DICT("|u1", "(2, 1, 2, 2)"), colour, 8);
    put_npy("y_train.npy", DICT("|u1", "(2,)"), "\1\2", 2);
    open_set(&config, &set);
    assert_int_equal(set.train.shape[2], 2);
    assert_true(set.train.mean[0] > 0.499F && set.train.mean[0] < 0.501F);
    assert_true(set.train.deviation[0] > 0.499F);
    assert_true(set.train.mean[1] > 0.199F && set.train.mean[1] < 0.201F);
    /* A channel that never changes is not divided by nothing. */
    assert_true(set.train.deviation[1] >= 1 && set.train.deviation[1] <= 1);
    kith_dataset_close(&set);
    empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_header),
        cmocka_unit_test(test_npy),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
