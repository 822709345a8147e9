/* Goal: IDX headers and files are read exactly, malformed ones refused with a
 * message that names the file, before anything large is allocated. Method:
 * headers in memory, then small data sets written to a temporary folder. */
#include <zlib.h>

#include "tests/support/dataset.h"

static void test_header(void **state)
{
    (void)state;
    struct kith_array idx;
    const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0,
                            0, 3, 1, 2, 3, 4, 5, 6, 7};
    assert_int_equal(kith_idx_parse(good, 18, &idx), KITH_OK);
    assert_int_equal(idx.rank, 2);
    assert_int_equal(idx.sizes[0], 2);
    assert_int_equal(idx.sizes[1], 3);
    assert_int_equal(idx.offset, 12);
    assert_int_equal(idx.bytes, 6);
    for (size_t size = 0; size < 18; size++) {
        assert_int_equal(kith_idx_parse(good, size, &idx), KITH_EAGAIN);
        assert_int_equal(idx.rank, size < 12 ? 0 : 2);
    }
    assert_int_equal(kith_idx_parse(good, 19, &idx), KITH_EPARSE);
}

static void test_bad_headers(void **state)
{
    (void)state;
    struct kith_array idx;
    const struct {
        uint8_t bytes[20];
        enum kith_err want;
    } cases[] = {
        {{1, 0, 8, 1, 0, 0, 0, 1}, KITH_EPARSE},    /* magic */
        {{0, 0, 0x0d, 1, 0, 0, 0, 1}, KITH_EPARSE}, /* float32 */
        {{0, 0, 8, 0}, KITH_EPARSE},                /* rank 0 */
        {{0, 0, 8, 5}, KITH_ELIMIT},                /* rank 5 */
        {{0, 0, 8, 255}, KITH_ELIMIT},              /* rank 255 */
        {{0, 0, 8, 1, 0, 0, 0, 0}, KITH_EPARSE},    /* empty */
        {{0, 0, 8, 1, 0x80, 0, 0, 1}, KITH_ELIMIT}, /* 2 GiB + 1 */
        {{0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255}, KITH_ELIMIT},
        {{0, 0, 8, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, KITH_ELIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            kith_idx_parse(cases[i].bytes, sizeof cases[i].bytes, &idx),
            cases[i].want);
        assert_int_equal(idx.rank, 0);
    }
}

static void put_zipped(const char *name, const void *bytes, size_t size)
{
    char path[256];
    path_of(name, path);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
    note(name);
}

static const char *const names[] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0,
                                 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 0, 2, 1};

static void put_all(bool zip)
{
    empty_folder();
    for (size_t i = 0; i < 4; i++) {
        const bool image = i % 2 == 0;
        const uint8_t *bytes = image ? images : labels;
        const size_t size = image ? sizeof images : sizeof labels;
        char zipped[64];
        (void)snprintf(zipped, sizeof zipped, "%s.gz", names[i]);
        if (zip)
            put_zipped(zipped, bytes, size);
        else
            put(names[i], bytes, size);
    }
}

static void test_plain_and_gzip(void **state)
{
    (void)state;
    const struct kith_data_config config = configure("idx", NULL);
    for (int zip = 0; zip < 2; zip++) {
        struct kith_dataset set;
        put_all(zip == 1);
        open_set(&config, &set);
        assert_int_equal(set.train.count, 3);
        assert_int_equal(set.train.features, 2);
        assert_int_equal(set.train.classes, 3);
        assert_memory_equal(set.test.values, images + 16, 6);
        assert_int_equal(set.train.mapped, zip == 0);
        assert_int_equal(set.counts.origin, 6);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(set.test.labels[i], labels[8 + i]);
        kith_dataset_close(&set);
    }
}

static void expect_refusal(enum kith_err want, const char *part)
{
    const struct kith_data_config config = configure("idx", NULL);
    refuse(&config, want, part);
}

static void test_refusals(void **state)
{
    (void)state;
    char path[256];
    empty_folder();
    expect_refusal(KITH_ENOENT, "apt-get install dataset-fashion-mnist");

    put_all(false);
    put(names[3], labels, sizeof labels - 1);
    expect_refusal(KITH_EPARSE, "t10k-labels-idx1-ubyte: its header announces "
                                "3 bytes, 2 follow");
    uint8_t longer[sizeof labels + 1] = {0};
    memcpy(longer, labels, sizeof labels);
    put(names[3], longer, sizeof longer);
    expect_refusal(KITH_EPARSE, "at least 4 follow");
    put(names[3], labels, 3);
    expect_refusal(KITH_EPARSE, "not an IDX file");
    put(names[3], images, sizeof images);
    expect_refusal(KITH_EPARSE, "labels need 1 dimension, found 3");
    const uint8_t two[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    put(names[3], two, sizeof two);
    expect_refusal(KITH_EPARSE, "2 labels for 3 images");

    put_all(false);
    const uint8_t huge[] = {0,   0,   8,   3,   255, 255, 255, 255,
                            255, 255, 255, 255, 255, 255, 255, 255};
    put(names[0], huge, sizeof huge);
    expect_refusal(KITH_ELIMIT, "train-images-idx3-ubyte");
    const uint8_t liar[] = {0, 0, 8,    3, 0, 0, 0x7f, 0xff, 0,
                            0, 0, 0xff, 0, 0, 0, 0xff, 1};
    put(names[0], liar, sizeof liar);
    expect_refusal(KITH_EPARSE, "announces 2130674175 bytes, 1 follow");
    put_all(true);
    put_zipped("train-images-idx3-ubyte.gz", liar, sizeof liar);
    expect_refusal(KITH_EPARSE, "bytes can hold");
    put_all(false);
    const uint8_t wide[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0,
                            0, 1, 0, 0, 0, 1, 1, 2, 3};
    put(names[0], wide, sizeof wide);
    expect_refusal(KITH_EPARSE, "images are 1 x 1 x 1, test images 1 x 2 x 1");

    /* A damaged gzip stream. */
    put_all(true);
    path_of("train-images-idx3-ubyte.gz", path);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 14, SEEK_SET), 0);
    assert_int_equal(fwrite("\xff\xff\xff\xff", 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
    const struct kith_data_config config = configure("idx", NULL);
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_dataset set;
    assert_int_not_equal(kith_dataset_open(&config, &set, error), KITH_OK);
    assert_non_null(strstr(error, "train-images-idx3-ubyte.gz"));

    /* And good again. */
    put_all(true);
    open_set(&config, &set);
    kith_dataset_close(&set);
}

/* 100 MB of zeros in 100 kB of gzip behind a header that admits to 3 bytes. */
static void test_gzip_bomb(void **state)
{
    (void)state;
    char path[256];
    put_all(true);
    path_of("train-labels-idx1-ubyte.gz", path);
    gzFile file = gzopen(path, "wb1");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, labels, sizeof labels), (int)sizeof labels);
    uint8_t *zeros = calloc(1, 1 << 20);
    assert_non_null(zeros);
    for (int i = 0; i < 100; i++)
        assert_int_equal(gzwrite(file, zeros, 1 << 20), 1 << 20);
    assert_int_equal(gzclose(file), Z_OK);
    free(zeros);
    expect_refusal(KITH_EPARSE, "at least 4 follow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_plain_and_gzip),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gzip_bomb),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
