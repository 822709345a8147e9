/* Goal: the origin is read once for all peers of a machine, the local copy from
 * then on, memory in every later epoch; a damaged or outdated copy is noticed
 * and fetched again; a disk that takes no copy costs one line and nothing else.
 * Method: IDX and text files in one folder, a cache in another, peers that are
 * forked processes (the table of the DataCache design, T4.5). */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "kith/backend.h"
#include "kith/loader.h"

enum { ROWS = 600, TEST_ROWS = 100, PIXELS = 64, PEERS = 6 };
static char root[] = "/tmp/kith-cache-XXXXXX";
static uint8_t pixels[ROWS * PIXELS], classes[ROWS];

static void join(char path[256], const char *folder, const char *name)
{
    (void)snprintf(path, 256, "%s/%s/%s", root, folder, name);
}

/* Big-endian sizes after the type, as IDX has them. */
static void put_idx(const char *name, uint8_t rank, const uint32_t *sizes,
                    const void *data, size_t bytes)
{
    char path[256];
    uint8_t header[16] = {0, 0, 8, rank};
    for (unsigned i = 0; i < rank; i++) {
        header[4 + 4 * i + 2] = (uint8_t)(sizes[i] >> 8);
        header[4 + 4 * i + 3] = (uint8_t)sizes[i];
    }
    join(path, "origin", name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_true(gzwrite(file, header, 4u + 4u * rank) > 0);
    assert_int_equal(gzwrite(file, data, (unsigned)bytes), (int)bytes);
    assert_int_equal(gzclose(file), Z_OK);
}

static void put_origin(void)
{
    const uint32_t train[] = {ROWS, 8, 8}, test[] = {TEST_ROWS, 8, 8};
    put_idx("train-images-idx3-ubyte.gz", 3, train, pixels, sizeof pixels);
    put_idx("train-labels-idx1-ubyte.gz", 1, train, classes, ROWS);
    put_idx("t10k-images-idx3-ubyte.gz", 3, test, pixels,
            (size_t)TEST_ROWS * PIXELS);
    put_idx("t10k-labels-idx1-ubyte.gz", 1, test, classes, TEST_ROWS);
}

static void clear(const char *folder)
{
    char command[300];
    (void)snprintf(command, sizeof command, "rm -rf %s/%s && mkdir %s/%s", root,
                   folder, root, folder);
    assert_int_equal(system(command), 0);
}

static struct kith_data_config configure(void)
{
    struct kith_data_config config = {.kind = kith_dataset_kind_find("idx")};
    join(config.path, "origin", "");
    join(config.cache, "cache", "");
    config.path[strlen(config.path) - 1] = '\0';
    config.cache[strlen(config.cache) - 1] = '\0';
    return config;
}

static struct kith_data_counts open_counts(char *note)
{
    const struct kith_data_config config = configure();
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_dataset set;
    if (kith_dataset_open(&config, &set, error) != KITH_OK)
        fail_msg("%s", error);
    assert_memory_equal(set.train.values, pixels, sizeof pixels);
    assert_int_equal(set.test.count, TEST_ROWS);
    if (note != NULL)
        memcpy(note, set.note, sizeof set.note);
    else
        assert_string_equal(set.note, "");
    const struct kith_data_counts counts = set.counts;
    kith_dataset_close(&set);
    return counts;
}

static void expect(struct kith_data_counts counts, uint64_t origin,
                   uint64_t disk, uint64_t refetched)
{
    assert_int_equal(counts.origin, origin);
    assert_int_equal(counts.disk, disk);
    assert_int_equal(counts.refetched, refetched);
}

/* The one file of the cache whose name begins so and does not end in a word of
 * its own. */
static void copy_of(const char *name, const char *suffix, char path[256])
{
    char command[400];
    (void)snprintf(command, sizeof command, "ls %s/cache/%s-????????????????%s",
                   root, name, suffix);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    assert_non_null(fgets(path, 256, list));
    path[strcspn(path, "\n")] = '\0';
    assert_int_equal(pclose(list), 0);
}

static void damage(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int was = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(was ^ 1, file), was ^ 1);
    assert_int_equal(fclose(file), 0);
}

/* First opening, second opening; then every epoch comes out of memory. */
static void test_layers(void **state)
{
    (void)state;
    clear("cache");
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 0);
    expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);

    const struct kith_data_config config = configure();
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_dataset set;
    assert_int_equal(kith_dataset_open(&config, &set, error), KITH_OK);
    const struct kith_loader_config loading = {.examples = &set.train,
                                               .backend =
                                                   kith_backend_find("naive32"),
                                               .batch = 50,
                                               .shuffle = true,
                                               .ahead = true};
    struct kith_loader *loader;
    assert_int_equal(kith_loader_open(&loading, &loader, error), KITH_OK);
    /* Nothing is left on disk to be read by the second epoch. */
    clear("cache");
    clear("origin");
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        struct kith_batch batch;
        for (int i = 0; i < ROWS / 50; i++)
            kith_loader_next(loader, &batch);
        struct kith_data_counts counts = set.counts;
        kith_loader_count(loader, &counts);
        expect(counts, 0, ROWS + TEST_ROWS, 0);
        assert_int_equal(counts.memory, epoch * ROWS);
        assert_int_equal(counts.mapped, 0);
    }
    kith_loader_close(loader);
    kith_dataset_close(&set);
    put_origin();
}

/* Peers that begin at once read the origin once between them. */
static void test_swarm(void **state)
{
    (void)state;
    clear("cache");
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    for (int peer = 0; peer < PEERS; peer++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const struct kith_data_counts counts = open_counts(NULL);
            _exit(write(pipes[1], &counts, sizeof counts) == sizeof counts ? 0
                                                                           : 1);
        }
    }
    uint64_t origin = 0, disk = 0;
    for (int peer = 0; peer < PEERS; peer++) {
        int status = 1;
        struct kith_data_counts counts;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
        assert_int_equal(read(pipes[0], &counts, sizeof counts), sizeof counts);
        origin += counts.origin;
        disk += counts.disk;
        assert_int_equal(counts.refetched, 0);
    }
    assert_int_equal(origin, ROWS + TEST_ROWS);
    assert_int_equal(disk, (PEERS - 1) * (ROWS + TEST_ROWS));
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static void test_damage(void **state)
{
    (void)state;
    char path[256];
    const char *const image = "train-images-idx3-ubyte.gz";
    clear("cache");
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 0);
    /* One bit of the copy, anywhere. */
    copy_of(image, "", path);
    for (long at = 0; at < 600; at += 199) {
        damage(path, at);
        expect(open_counts(NULL), ROWS, TEST_ROWS, 1);
        expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);
    }
    /* Truncated, gone, or its record damaged or gone. */
    assert_int_equal(truncate(path, 100), 0);
    expect(open_counts(NULL), ROWS, TEST_ROWS, 1);
    assert_int_equal(unlink(path), 0);
    expect(open_counts(NULL), ROWS, TEST_ROWS, 0);
    copy_of(image, ".blake2b", path);
    damage(path, 3);
    expect(open_counts(NULL), ROWS, TEST_ROWS, 1);
    assert_int_equal(truncate(path, 0), 0);
    expect(open_counts(NULL), ROWS, TEST_ROWS, 1);
    assert_int_equal(unlink(path), 0);
    expect(open_counts(NULL), ROWS, TEST_ROWS, 1);
    /* What a crash left half written is nobody's copy. */
    copy_of(image, "", path);
    (void)snprintf(path + strlen(path), 16, ".partial");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);
}

/* Another origin under the same name; then none at all. */
static void test_origin_changes(void **state)
{
    (void)state;
    clear("cache");
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 0);
    pixels[77] ^= 5;
    put_origin();
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 4);
    expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);
    clear("origin");
    expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);
    clear("cache");
    const struct kith_data_config config = configure();
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_dataset set;
    assert_int_equal(kith_dataset_open(&config, &set, error), KITH_ENOENT);
    assert_non_null(strstr(error, "no such file, nor with .gz"));
    put_origin();
}

/* A disk that takes no more than so many bytes of a file: the child alone. */
static void test_full_disk(void **state)
{
    (void)state;
    clear("cache");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {1000, 1000};
        char note[KITH_DATA_ERROR_BYTES];
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        /* The labels fit, the images do not. */
        const struct kith_data_counts counts = open_counts(note);
        const bool said = strstr(note, "data.cache") != NULL &&
                          strstr(note, "cannot keep a copy of "
                                       "train-images-idx3-ubyte.gz") != NULL &&
                          strchr(note, '\n') == NULL;
        _exit(said && counts.origin == ROWS + TEST_ROWS && counts.disk == 0
                  ? 0
                  : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* And with room again. */
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 0);
    expect(open_counts(NULL), 0, ROWS + TEST_ROWS, 0);
}

static void test_no_folder(void **state)
{
    (void)state;
    char path[256], note[KITH_DATA_ERROR_BYTES];
    clear("cache");
    join(path, "cache", "");
    path[strlen(path) - 1] = '\0';
    assert_int_equal(rmdir(path), 0);
    /* A folder that is not there yet is made. */
    expect(open_counts(NULL), ROWS + TEST_ROWS, 0, 0);
    clear("cache");
    assert_int_equal(rmdir(path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect(open_counts(note), ROWS + TEST_ROWS, 0, 0);
    assert_non_null(strstr(note, "cannot keep a copy of"));
    assert_int_equal(unlink(path), 0);
}

/* Others may write to the folder: what they plant there costs nobody a file,
 * and nobody waits for it. */
static void test_planted(void **state)
{
    (void)state;
    static const char *const words[] = {"", ".partial", ".blake2b",
                                        ".blake2b.partial", ".lock"};
    char victim[256], path[256], note[KITH_DATA_ERROR_BYTES], text[8] = "";
    join(victim, "origin", "victim");
    FILE *file = fopen(victim, "w");
    assert_non_null(file);
    assert_true(fputs("mine", file) >= 0 && fclose(file) == 0);
    for (size_t i = 0; i < 5; i++) {
        for (int fifo = 0; fifo < 2; fifo++) {
            clear("cache");
            (void)open_counts(NULL);
            copy_of("train-images-idx3-ubyte.gz", "", path);
            const size_t length = strlen(path);
            (void)snprintf(path + length, sizeof path - length, "%s", words[i]);
            (void)unlink(path);
            assert_int_equal(fifo ? mkfifo(path, 0600) : symlink(victim, path),
                             0);
            if (i == 1 || i == 3) { /* a copy has to be made */
                path[length] = '\0';
                assert_int_equal(truncate(path, 3), 0);
            }
            (void)open_counts(note);
            file = fopen(victim, "r");
            assert_non_null(file);
            assert_non_null(fgets(text, sizeof text, file));
            assert_int_equal(fclose(file), 0);
            assert_string_equal(text, "mine");
        }
    }
    assert_int_equal(unlink(victim), 0);
    clear("cache");
}

static int make_folders(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i * 7 >> 3);
    for (size_t i = 0; i < ROWS; i++)
        classes[i] = (uint8_t)(i % 10);
    if (mkdtemp(root) == NULL)
        return 1;
    clear("origin");
    put_origin();
    return 0;
}

static int remove_folders(void **state)
{
    (void)state;
    char command[300];
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),    cmocka_unit_test(test_swarm),
        cmocka_unit_test(test_damage),    cmocka_unit_test(test_origin_changes),
        cmocka_unit_test(test_full_disk), cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_planted),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
