/* Goal: a mapped file that shrinks or is written to while it is opened or
 * batches are made is a line that names it, never a signal, with a thread or
 * without, after a fork, too; other faults and signals stay what they are.
 * Method: files of several pages, truncated and overwritten under a loader;
 * under kith_dataset_open by a thread that never rests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/training/data/data_files.h"

enum { TOKENS = 100000, CONTEXT = 16 };

static char folder[] = "/tmp/kith-test-shrinks-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? 1 : chdir(folder);
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink("train.bin");
    (void)unlink("val.bin");
    return chdir("/") == 0 ? rmdir(folder) : 1;
}

static void write_shard(const char *name, uint16_t salt)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    for (int i = 0; i < TOKENS; i++) {
        const uint16_t token = (uint16_t)(i % 100 + salt);
        assert_int_equal(fwrite(&token, sizeof token, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

static void open_set(const char *kind, const char *path,
                     struct kith_dataset *set)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_data_config config = {.kind = kith_dataset_kind_find(kind),
                                      .context = CONTEXT,
                                      .test_share = 0.1};
    (void)snprintf(config.path, sizeof config.path, "%s", path);
    write_shard("train.bin", 0);
    write_shard("val.bin", 0);
    if (kith_dataset_open(&config, set, error) != KITH_OK)
        fail_msg("%s", error);
}

static struct kith_loader *open_loader(const struct kith_dataset *set,
                                       bool ahead)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_loader *loader;
    const struct kith_loader_config config = {.examples = &set->train,
                                              .backend =
                                                  kith_backend_find("naive32"),
                                              .batch = 64,
                                              .seed = 1,
                                              .shuffle = true,
                                              .ahead = ahead};
    if (kith_loader_open(&config, &loader, error) != KITH_OK)
        fail_msg("%s", error);
    return loader;
}

/* One epoch meets every page. */
static const char *run_epoch(struct kith_loader *loader)
{
    struct kith_batch batch = {.rows = 0};
    for (int i = 0; i < 2 * TOKENS / CONTEXT / 64; i++)
        kith_loader_next(loader, &batch);
    if (kith_loader_failed(loader) != NULL) {
        assert_int_equal(batch.rows, 64);
        for (size_t i = 0; i < batch.rows * CONTEXT; i++)
            assert_int_equal(((const int32_t *)batch.inputs)[i], 0);
    }
    return kith_loader_failed(loader);
}

static void test_shrinks(void)
{
    static const char *const kinds[][2] = {{"tokens", "."},
                                           {"bytes", "train.bin"}};
    for (int i = 0; i < 4; i++) {
        struct kith_dataset set;
        open_set(kinds[i / 2][0], kinds[i / 2][1], &set);
        struct kith_loader *loader = open_loader(&set, i % 2 == 1);
        assert_null(run_epoch(loader));

        assert_int_equal(truncate("train.bin", 5000), 0);

        const char *why = run_epoch(loader);
        assert_non_null(why);
        assert_non_null(strstr(why, "train.bin"));
        assert_non_null(strstr(why, "200000 bytes when it was opened"));
        assert_non_null(strstr(why, "5000 now"));
        kith_loader_close(loader);
        kith_dataset_close(&set);
    }
}

static void test_written_to(void)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct kith_dataset set;
        open_set("tokens", ".", &set);
        struct kith_loader *loader = open_loader(&set, ahead == 1);
        assert_null(run_epoch(loader));

        write_shard("new.bin", 30000);
        FILE *from = fopen("new.bin", "rb");
        const int to = open("train.bin", O_WRONLY);
        static char bytes[2 * TOKENS];
        assert_int_equal(fread(bytes, 1, sizeof bytes, from), sizeof bytes);
        assert_int_equal(pwrite(to, bytes, sizeof bytes, 0), sizeof bytes);
        (void)fclose(from);
        (void)close(to);
        (void)unlink("new.bin");

        const char *why = run_epoch(loader);
        assert_non_null(why);
        assert_non_null(strstr(why, "train.bin"));
        assert_non_null(strstr(why, "written to since it was opened"));
        kith_loader_close(loader);
        kith_dataset_close(&set);
    }
}

/* Writes one of two texts into a file, then the other, until told to stop. */
struct writer {
    int fd;
    off_t at;
    size_t size;
    const void *texts[2];
    atomic_bool stop;
};

static void *write_on(void *argument)
{
    struct writer *writer = argument;
    for (unsigned i = 0; !atomic_load(&writer->stop); i++)
        (void)!pwrite(writer->fd, writer->texts[i % 2], writer->size,
                      writer->at);
    return NULL;
}

/* What is opened meanwhile is whole or refused: never past its memory, nor a
 * class past the last. */
static void open_often(const char *kind, const char *path,
                       struct writer *writer)
{
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_data_config config = {.kind = kith_dataset_kind_find(kind),
                                      .context = CONTEXT,
                                      .test_share = 0.1};
    pthread_t thread;
    (void)snprintf(config.path, sizeof config.path, "%s", path);
    assert_int_equal(pthread_create(&thread, NULL, write_on, writer), 0);
    for (int i = 0; i < 200; i++) {
        struct kith_dataset set;
        error[0] = '\0';
        const enum kith_err err = kith_dataset_open(&config, &set, error);
        assert_int_equal(err == KITH_OK, error[0] == '\0');
        for (size_t k = 0;
             err == KITH_OK && set.train.labels != NULL && k < set.train.count;
             k++)
            assert_in_range(set.train.labels[k], 0, set.train.classes - 1);
        for (size_t k = 0;
             err == KITH_OK && set.train.labels == NULL && k < set.train.tokens;
             k++)
            assert_in_range(((const uint8_t *)set.train.values)[k], 0,
                            set.train.classes - 1);
        kith_dataset_close(&set);
    }
    atomic_store(&writer->stop, true);
    (void)pthread_join(thread, NULL);
}

/* A character of two bytes becomes two of one. */
static void test_text_while_opened(void)
{
    enum { TEXT = 20000, CHANGED = 4096 };
    static char ones[CHANGED], twos[CHANGED], text[TEXT];
    memset(text, 'a', sizeof text);
    memset(ones, 'a', sizeof ones);
    for (size_t i = 0; i < sizeof twos; i += 2)
        memcpy(twos + i, "\xc3\xa9", 2);
    const int fd = open("text", O_RDWR | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, text, sizeof text, 0), sizeof text);
    struct writer writer = {
        .fd = fd, .at = 8192, .size = CHANGED, .texts = {ones, twos}};

    open_often("text", "text", &writer);

    (void)close(fd);
    (void)unlink("text");
}

static void test_cifar_while_opened(void)
{
    enum { RECORD = 3073 };
    static const char label = 3, strange = 77;
    static uint8_t records[2 * RECORD];
    char name[32];
    struct writer writer = {
        .fd = -1, .at = RECORD, .size = 1, .texts = {&label, &strange}};
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name,
                       i == 0 ? "test_batch.bin" : "data_batch_%d.bin", i);
        const int fd = open(name, O_RDWR | O_CREAT, 0600);
        assert_int_equal(pwrite(fd, records, sizeof records, 0),
                         sizeof records);
        if (i == 5)
            writer.fd = fd;
        else
            (void)close(fd);
    }

    open_often("cifar", ".", &writer);

    (void)close(writer.fd);
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name,
                       i == 0 ? "test_batch.bin" : "data_batch_%d.bin", i);
        (void)unlink(name);
    }
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_fork(void)
{
    struct kith_dataset set;
    open_set("tokens", ".", &set);
    struct kith_loader *loader = open_loader(&set, true);
    assert_null(run_epoch(loader));
    assert_int_equal(truncate("train.bin", 0), 0);

    const pid_t child = fork();
    if (child == 0)
        _exit(run_epoch(loader) != NULL ? 7 : 8);

    const int status = wait_for(child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    kith_loader_close(loader);
    kith_dataset_close(&set);
}

static void touch(void *page)
{
    const volatile char *bytes = page;
    (void)bytes[0];
}

/* A guard within a guard, and none: the signal it always was. */
static void touch_guarded(void *page)
{
    const void *where = NULL;
    assert_false(kith_data_guard(touch, page, &where));
    assert_ptr_equal(where, page);
}

static void test_guard(void)
{
    write_shard("val.bin", 0);
    const int fd = open("val.bin", O_RDWR);
    char *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
    const void *where = NULL;
    assert_true(map != MAP_FAILED);
    assert_true(kith_data_guard(touch, map + 4096, &where));
    assert_int_equal(ftruncate(fd, 100), 0);

    assert_true(kith_data_guard(touch_guarded, map + 4096, &where));
    assert_true(kith_data_guard(touch, map, &where));
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        touch(map + 4096);
        _exit(0);
    }

    const int status = wait_for(child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)munmap(map, 8192);
    (void)close(fd);
}

static void send_itself(void *argument)
{
    (void)argument;
    (void)raise(SIGBUS);
}

/* Somebody else's SIGBUS is no page that is missing. */
static void test_sent(void)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        const pid_t child = fork();
        if (child == 0) {
            const struct rlimit none = {0, 0};
            const void *where;
            (void)setrlimit(RLIMIT_CORE, &none);
            if (guarded)
                (void)!kith_data_guard(send_itself, NULL, &where);
            else
                send_itself(NULL);
            _exit(0);
        }

        const int status = wait_for(child);
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* cmocka puts a handler of its own in place before each test: all in one. */
static void test_all(void **state)
{
    (void)state;
    (void)signal(SIGBUS, SIG_DFL);
    test_shrinks();
    test_written_to();
    test_fork();
    test_guard();
    test_sent();
    test_text_while_opened();
    test_cifar_while_opened();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
