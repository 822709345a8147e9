/* Goal: every kind of data set reads what it says it reads, bit for bit, and
 * refuses what is broken by file and reason. Method: files written here; bad
 * ones first, then the good one again. IDX has
 * test_idx.c, NumPy's arrays have test_npy.c. */
#include <math.h>

#include "kith/hash.h"
#include "tests/support/dataset.h"

/* ---- CIFAR-10 */

enum { RECORD = 3073 };

static void cifar_batch(uint8_t *bytes, size_t records, uint8_t salt)
{
    for (size_t r = 0; r < records; r++) {
        bytes[r * RECORD] = (uint8_t)((r + salt) % 10);
        for (size_t i = 0; i < 3072; i++)
            bytes[r * RECORD + 1 + i] = (uint8_t)(i * 7 + r + salt);
    }
}

static void test_cifar(void **state)
{
    (void)state;
    static uint8_t batch[4 * RECORD];
    const struct kith_data_config config = configure("cifar", NULL);
    refuse(&config, KITH_ENOENT, "data_batch_1.bin: no such file; unpack");
    for (int i = 1; i <= 5; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data_batch_%d.bin", i);
        cifar_batch(batch, 4, (uint8_t)i);
        put(name, batch, sizeof batch);
    }
    cifar_batch(batch, 2, 9);
    put("test_batch.bin", batch, 2 * RECORD - 1);
    refuse(&config, KITH_EPARSE, "test_batch.bin: not CIFAR-10: 6145 bytes");
    batch[RECORD] = 10;
    put("test_batch.bin", batch, (size_t)2 * RECORD);
    refuse(&config, KITH_EPARSE, "a label below 10");
    put("test_batch.bin", batch, 0);
    refuse(&config, KITH_EPARSE, "it is empty");
    cifar_batch(batch, 2, 9);
    put("test_batch.bin", batch, (size_t)2 * RECORD);

    struct kith_dataset set;
    open_set(&config, &set);
    assert_int_equal(set.train.count, 20);
    assert_int_equal(set.test.count, 2);
    assert_int_equal(set.train.features, 3072);
    assert_int_equal(set.train.shape[0], 32);
    assert_int_equal(set.train.shape[1], 32);
    assert_int_equal(set.train.shape[2], 3);
    assert_int_equal(set.train.classes, 10);
    assert_int_equal(set.counts.origin, 22);
    /* Record 5 is the second of batch 2; planes have become channels. */
    const uint8_t *image = (const uint8_t *)set.train.values + 5 * 3072;
    assert_int_equal(set.train.labels[5], (1 + 2) % 10);
    for (size_t p = 0; p < 1024; p++) {
        for (size_t c = 0; c < 3; c++)
            assert_int_equal(image[p * 3 + c],
                             (uint8_t)((c * 1024 + p) * 7 + 1 + 2));
    }
    kith_dataset_close(&set);
    empty_folder();
}

/* ---- text and bytes */

static void test_text(void **state)
{
    (void)state;
    struct kith_data_config config = configure("text", "book.txt");
    config.context = 4;
    refuse(&config, KITH_ENOENT, "data.path must be one text file");
    /* 20 characters of six kinds, one of two bytes and one of four. */
    static const char text[] = "hello \xc3\xa9 \xf0\x9f\x98\x80h "
                               "hello he!!";
    put("book.txt", text, sizeof text - 1);
    struct kith_dataset set;
    refuse(&config, KITH_EINVAL, "fewer than one window of model.context 4");
    config.test_share = 0.3;
    open_set(&config, &set);
    assert_int_equal(set.train.tokens + set.test.tokens, 21);
    assert_int_equal(set.train.tokens, 14);
    assert_int_equal(set.train.count, 3);
    assert_int_equal(set.test.count, 1);
    assert_int_equal(set.train.features, 4);
    static const char *const letters[] = {
        " ", "!", "e", "h", "l", "o", "\xc3\xa9", "\xf0\x9f\x98\x80"};
    assert_int_equal(set.train.classes, 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(set.alphabet[i], letters[i]);
    assert_string_equal(set.alphabet[8], "");
    char again[64] = "";
    int32_t tokens[21];
    kith_examples_tokens(&set.train, 0, 14, tokens);
    kith_examples_tokens(&set.test, 0, 7, tokens + 14);
    for (size_t i = 0; i < 21; i++)
        (void)strncat(again, set.alphabet[tokens[i]], 5);
    assert_string_equal(again, text);
    kith_dataset_close(&set);

    config.context = 0;
    refuse(&config, KITH_EINVAL, "choose one that does");
    config.context = 4;
    static const char *const bad[] = {
        "abcdefgh\xff",         "abcdefgh\xc0\x80",
        "abcdefgh\xed\xa0\x80", "abcdefgh\xf5\x80\x80\x80",
        "abcdefgh\xe2\x82",     "abcdefgh\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("book.txt", bad[i], strlen(bad[i]));
        refuse(&config, KITH_EPARSE, "byte 8 is not UTF-8");
    }
    /* 257 different characters: U+0100 and on. */
    char many[2 * 257];
    for (unsigned i = 0; i < 257; i++) {
        many[2 * i] = (char)(0xc4 + i / 64);
        many[2 * i + 1] = (char)(0x80 + i % 64);
    }
    put("book.txt", many, sizeof many);
    refuse(&config, KITH_ELIMIT, "more than 256 different characters");
    put("book.txt", many, sizeof many - 2);
    open_set(&config, &set);
    assert_int_equal(set.train.classes, 256);
    kith_dataset_close(&set);

    /* By byte there is nothing that is not text. */
    config = configure("bytes", "book.txt");
    config.context = 16;
    open_set(&config, &set);
    assert_int_equal(set.train.classes, 256);
    assert_int_equal(set.train.tokens, 460);
    assert_int_equal(set.test.tokens, 52);
    assert_true(set.train.mapped);
    kith_examples_tokens(&set.test, 50, 2, tokens);
    assert_int_equal(tokens[1], (uint8_t)many[511]);
    kith_dataset_close(&set);
    config = configure("bytes", NULL);
    config.context = 16;
    refuse(&config, KITH_EINVAL, "it is a folder");
    empty_folder();
}

/* ---- token shards */

static size_t shard(uint8_t *bytes, bool header, uint16_t first, size_t count)
{
    const size_t offset = header ? 1024 : 0;
    memset(bytes, 0, 1024);
    if (header) {
        const uint32_t words[3] = {20240520, 1, (uint32_t)count};
        memcpy(bytes, words, sizeof words);
    }
    for (size_t i = 0; i < count; i++) {
        const uint16_t token = (uint16_t)(first + i);
        memcpy(bytes + offset + 2 * i, &token, 2);
    }
    return offset + 2 * count;
}

static void test_tokens(void **state)
{
    (void)state;
    uint8_t file[8192];
    struct kith_data_config config = configure("tokens", NULL);
    config.context = 10;
    refuse(&config, KITH_ENOENT, "no *train*.bin");
    put("w_train_000002.bin", file, shard(file, true, 100, 50));
    put("w_train_000001.bin", file, shard(file, false, 0, 100));
    put("w_train_000003.bin", file, shard(file, true, 150, 2000));
    put("w_train_000003.txt", file, 3);
    refuse(&config, KITH_ENOENT, "no *val*.bin");
    size_t size = shard(file, true, 7, 100);
    put("w_val_0.bin", file, size - 2);
    refuse(&config, KITH_EPARSE, "w_val_0.bin: its 1222 bytes are not");
    put("w_val_0.bin", file, size + 1);
    refuse(&config, KITH_EPARSE, "w_val_0.bin");
    file[4] = 2;
    put("w_val_0.bin", file, size);
    refuse(&config, KITH_EPARSE, "of version 1");
    put("w_val_0.bin", file, shard(file, true, 7, 10));
    refuse(&config, KITH_EINVAL, "10 tokens, fewer than one window");
    put("w_val_0.bin", file, shard(file, true, 7, 100));

    struct kith_dataset set;
    open_set(&config, &set);
    assert_int_equal(set.train.tokens, 2150);
    assert_int_equal(set.train.count, 214);
    assert_int_equal(set.test.count, 9);
    assert_int_equal(set.train.segment_count, 3);
    assert_int_equal(set.test.segment_count, 0);
    /* Nothing is above the vocabulary: it is found by looking. */
    assert_int_equal(set.train.classes, 2150);
    assert_int_equal(set.test.classes, 2150);
    assert_int_equal(set.counts.origin, 214 + 9);
    int32_t tokens[2150];
    kith_examples_tokens(&set.train, 0, 2150, tokens);
    for (int i = 0; i < 2150; i++)
        assert_int_equal(tokens[i], i);
    for (size_t first = 95; first < 160; first++) {
        kith_examples_tokens(&set.train, first, 11, tokens);
        for (size_t i = 0; i < 11; i++)
            assert_int_equal(tokens[i], first + i);
    }
    /* A token of the second segment, and of the test set, tell sets apart. */
    const uint64_t hash = kith_dataset_hash(KITH_HASH_START, &set);
    kith_dataset_close(&set);
    put("w_train_000002.bin", file, shard(file, true, 101, 50));
    open_set(&config, &set);
    assert_true(kith_dataset_hash(KITH_HASH_START, &set) != hash);
    kith_dataset_close(&set);
    put("w_train_000002.bin", file, shard(file, true, 100, 50));
    open_set(&config, &set);
    assert_true(kith_dataset_hash(KITH_HASH_START, &set) == hash);
    kith_dataset_close(&set);
    put("w_val_0.bin", file, shard(file, true, 8, 100));
    open_set(&config, &set);
    assert_true(kith_dataset_hash(KITH_HASH_START, &set) != hash);
    kith_dataset_close(&set);
    empty_folder();

    struct kith_shard parsed;
    size = shard(file, true, 0, 0);
    assert_int_equal(kith_shard_parse(file, size, &parsed), KITH_EPARSE);
    assert_int_equal(kith_shard_parse(file, 0, &parsed), KITH_EPARSE);
    assert_int_equal(kith_shard_parse(file, 1023, &parsed), KITH_EPARSE);
}

static void test_synthetic(void **state)
{
    (void)state;
    struct kith_data_config config = {.kind =
                                          kith_dataset_kind_find("synthetic"),
                                      .shape = {8, 6, 3},
                                      .classes = 5,
                                      .rows = 400,
                                      .seed = 3};
    struct kith_dataset set, twin;
    open_set(&config, &set);
    open_set(&config, &twin);
    assert_int_equal(set.train.count, 400);
    assert_int_equal(set.train.features, 144);
    assert_int_equal(set.test.count, 41);
    assert_memory_equal(set.train.values, twin.train.values, 400 * 144);
    assert_memory_not_equal(set.train.values, set.test.values, 41 * 144);
    int seen[5] = {0};
    for (size_t i = 0; i < 400; i++)
        seen[set.train.labels[i]]++;
    for (size_t i = 0; i < 5; i++)
        assert_in_range(seen[i], 40, 120);
    kith_dataset_close(&set);
    kith_dataset_close(&twin);

    config.context = 32;
    config.classes = 70000;
    open_set(&config, &set);
    assert_int_equal(set.train.input, KITH_INPUT_TOKENS);
    assert_int_equal(set.train.tokens, 400 * 32 + 1);
    int32_t tokens[33];
    kith_examples_tokens(&set.train, 399 * 32, 33, tokens);
    for (size_t i = 0; i < 33; i++)
        assert_in_range(tokens[i], 0, 69999);
    kith_dataset_close(&set);

    config.rows = UINT64_C(1) << 40;
    refuse(&config, KITH_ELIMIT, "data.rows");
    config.context = 0;
    config.shape[0] = 0;
    refuse(&config, KITH_ELIMIT, "an image needs");
}

/* Unit noise around means of the spread asked for, the same at every opening,
 * classes alike, and a test set of a quarter from the same means. */
static void test_gaussian(void **state)
{
    (void)state;
    struct kith_data_config config = {.kind =
                                          kith_dataset_kind_find("gaussian"),
                                      .shape = {1, 1, 100},
                                      .classes = 10,
                                      .rows = 8000,
                                      .spread = 0.28,
                                      .seed = 3};
    struct kith_dataset set, twin;
    open_set(&config, &set);
    open_set(&config, &twin);
    assert_int_equal(set.train.count, 8000);
    assert_int_equal(set.test.count, 2000);
    assert_memory_equal(set.train.values, twin.train.values, 8000 * 400);
    double means[2][1000] = {{0}}, squares = 0, noise = 0, apart = 0;
    const struct kith_examples *parts[] = {&set.train, &set.test};
    for (unsigned p = 0; p < 2; p++)
        for (size_t i = 0; i < parts[p]->count; i++)
            for (size_t k = 0; k < 100; k++)
                means[p][(size_t)parts[p]->labels[i] * 100 + k] +=
                    (double)((const float *)parts[p]->values)[i * 100 + k] /
                    (double)(parts[p]->count / 10);
    for (size_t i = 0; i < 1000; i++) {
        squares += means[0][i] * means[0][i] / 1000;
        apart += (means[0][i] - means[1][i]) * (means[0][i] - means[1][i]);
    }
    for (size_t i = 0; i < 8000; i++)
        for (size_t k = 0; k < 100; k++) {
            const double rest =
                (double)((const float *)set.train.values)[i * 100 + k] -
                means[0][(size_t)set.train.labels[i] * 100 + k];
            noise += rest * rest / 800000;
        }
    printf("spread^2 expected %.4f measured %.4f, noise expected 1 measured "
           "%.4f\n",
           0.28 * 0.28 + 1.0 / 800, squares, noise);
    assert_true(fabs(squares - 0.28 * 0.28 - 1.0 / 800) < 0.012);
    assert_true(fabs(noise - 1) < 0.01);
    assert_true(apart / 1000 < 2 * (1.0 / 200 + 1.0 / 800));
    kith_dataset_close(&set);
    kith_dataset_close(&twin);

    config.rows = UINT64_C(1) << 40;
    refuse(&config, KITH_ELIMIT, "data.rows");
    config.rows = 100;
    config.context = 8;
    refuse(&config, KITH_EINVAL, "reads tokens");
    config.context = 0;
    config.shape[0] = 8;
    refuse(&config, KITH_EINVAL, "flat rows");
}

/* ---- told apart */

static uint64_t hash_of(const struct kith_data_config *config)
{
    struct kith_dataset set;
    open_set(config, &set);
    const uint64_t hash = kith_dataset_hash(KITH_HASH_START, &set);
    kith_dataset_close(&set);
    assert_true(hash != KITH_HASH_START);
    return hash;
}

static void test_hash(void **state)
{
    (void)state;
    assert_int_equal(kith_dataset_hash(5, NULL), 5);
    /* Small: every byte. */
    struct kith_data_config config = configure("bytes", "book.txt");
    config.context = 4;
    config.test_share = 0.5;
    char text[] = "it was the best of times";
    put("book.txt", text, sizeof text);
    const uint64_t hash = hash_of(&config);
    assert_int_equal(hash_of(&config), hash);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] ^= 1;
        put("book.txt", text, sizeof text);
        assert_true(hash_of(&config) != hash);
        text[i] ^= 1;
    }
    config.context = 5;
    put("book.txt", text, sizeof text);
    assert_true(hash_of(&config) != hash);

    /* Large: at its ends, and 256 times between; the test set's, too. */
    const size_t size = (size_t)8 << 20;
    uint8_t *bytes = calloc(1, size);
    assert_non_null(bytes);
    put("book.txt", bytes, size);
    const uint64_t whole = hash_of(&config);
    const size_t train = size / 2;
    const size_t places[] = {0,         4095,     train - 1,
                             train,     size - 1, (train - 4096) / 255 * 7 + 9,
                             train + 99};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bytes[places[i]] = 1;
        put("book.txt", bytes, size);
        assert_true(hash_of(&config) != whole);
        bytes[places[i]] = 0;
    }
    bytes[4096] = 1;
    put("book.txt", bytes, size);
    assert_int_equal(hash_of(&config), whole);
    free(bytes);

    /* Labels, of images. */
    config = configure("cifar", NULL);
    uint8_t batch[2 * RECORD];
    for (int i = 0; i <= 5; i++) {
        char name[32] = "test_batch.bin";
        if (i > 0)
            (void)snprintf(name, sizeof name, "data_batch_%d.bin", i);
        cifar_batch(batch, 2, (uint8_t)i);
        put(name, batch, sizeof batch);
    }
    const uint64_t images = hash_of(&config);
    batch[RECORD] = (uint8_t)((batch[RECORD] + 1) % 10);
    put("data_batch_5.bin", batch, sizeof batch);
    assert_true(hash_of(&config) != images);
    empty_folder();
}

static void test_registry(void **state)
{
    (void)state;
    for (size_t i = 0; kith_dataset_kinds[i] != NULL; i++) {
        const struct kith_dataset_kind *kind = kith_dataset_kinds[i];
        assert_ptr_equal(kith_dataset_kind_find(kind->name), kind);
        assert_true(strlen(kind->summary) > 0 && strlen(kind->paper) > 0);
        if (kind->rows > 0)
            continue;
        struct kith_data_config config = {.kind = kind, .context = 8};
        (void)snprintf(config.path, sizeof config.path, "%s/nowhere", folder);
        refuse(&config, KITH_ENOENT, "nowhere");
    }
    assert_null(kith_dataset_kind_find("csv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cifar),    cmocka_unit_test(test_text),
        cmocka_unit_test(test_tokens),   cmocka_unit_test(test_synthetic),
        cmocka_unit_test(test_gaussian), cmocka_unit_test(test_registry),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
