/* Goal: whatever moment a process is killed at while libkith saves its model,
 * the save that is there loads and is one model, the last or the one before,
 * and the peer starts again; a full disk is an error by name.
 * Method: children that save a model of one value throughout, a new one each
 * time, killed within the time that a save takes. KITH_KILLS: how many, 20
 * unless told. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kith/checkpoint.h"
#include "kith/kith.h"
#include "tests/support/library_files.h"

enum { DIM = 1000000, STEPS = 3 };

static float values[DIM];

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* A run of a peer over a model of this value; what kith_close() says. */
static int run(const struct library_files *files, float value, int closing,
               char *error, size_t size)
{
    char path[100];
    const struct kith_vector vector = {values, DIM, KITH_FLOAT32, 0};
    const struct kith_options options = {.size = sizeof options,
                                         .start = KITH_START_OWN};
    (void)snprintf(path, sizeof path, "%s/peer-0.yaml", files->folder);
    for (size_t i = 0; i < DIM; i++)
        values[i] = value;
    kith_peer *peer = kith_open(path, &vector, 1, &options, error, size);
    if (peer == NULL)
        return -2;
    for (int i = 0; i < STEPS; i++)
        (void)kith_step(peer, 0.5, 100);
    if (closing >= 0 && write(closing, "c", 1) != 1)
        return -3;
    return kith_close(peer, error, size);
}

/* Its child is about to close: `after_us` later it is killed, unless that is
 * below 0. Returns how long it took. */
static int64_t run_and_kill(const struct library_files *files, float value,
                            int64_t after_us)
{
    int ready[2];
    char byte, error[300] = "";
    int status;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int said = run(files, value, ready[1], error, sizeof error);
        (void)fprintf(stderr, "%s", error);
        _exit(said == 0 ? 0 : 1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1); /* 0: it could not open */
    const int64_t began_us = now_us();
    if (after_us >= 0) {
        const struct timespec pause = {after_us / 1000000,
                                       after_us % 1000000 * 1000};
        (void)nanosleep(&pause, NULL);
        (void)kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    (void)close(ready[0]);
    return now_us() - began_us;
}

/* The value that a whole save is of. */
static double saved(const struct library_files *files)
{
    char path[100], error[KITH_CHECKPOINT_ERROR_BYTES] = "", *text = NULL;
    struct kith_safetensors save;
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/save-0/calls.save", files->folder);
    if (kith_checkpoint_experiment(path, &text, error) != KITH_OK)
        fail_msg("%s", error);
    free(text);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    const size_t size = (size_t)status.st_size;
    uint8_t *bytes = malloc(size);
    double *model = malloc(DIM * sizeof *model);
    assert_true(bytes != NULL && model != NULL);
    assert_int_equal(fread(bytes, 1, size, file), size);
    (void)fclose(file);
    assert_int_equal(kith_safetensors_parse(bytes, size, &save, error),
                     KITH_OK);
    const double *const end = model + DIM;
    for (size_t i = 0; i < save.tensor_count; i++) {
        const struct kith_tensor_entry *entry = &save.tensors[i];
        if (entry->bytes != DIM * sizeof(float))
            continue;
        kith_dtype_read(entry->dtype, DIM, bytes + entry->offset, model);
        for (const double *x = model; x < end; x++)
            assert_true(*x == *model);
    }
    const double value = *model;
    kith_safetensors_free(&save);
    free(bytes);
    free(model);
    return value;
}

static void test_kills(void **state)
{
    struct library_files files;
    const char *text = getenv("KITH_KILLS");
    const int kills = text == NULL ? 20 : atoi(text);
    unsigned seed = 1;
    int last = 0, before = 0;
    (void)state;
    library_files_make(&files, DIM, 100);
    const int64_t whole_us = run_and_kill(&files, 1, -1);
    double old = saved(&files);
    assert_true(old == 1);
    for (int i = 0; i < kills; i++) {
        const float value = (float)(i + 2);
        seed = seed * 1664525u + 1013904223u;
        (void)run_and_kill(&files, value,
                           (int64_t)(seed >> 8) % (whole_us * 5 / 4));
        const double now = saved(&files);
        assert_true(now == old || now == (double)value);
        last += now == (double)value;
        before += now == old;
        old = now;
    }
    printf("%d kills within %.1f ms of closing: %d new models, %d of before, 0 "
           "torn\n",
           kills, (double)whole_us / 1e3, last, before);
    library_files_remove(&files);
}

static void test_full_disk(void **state)
{
    struct library_files files;
    char path[100], error[300] = "";
    (void)state;
    library_files_make(&files, DIM, 100);
    (void)snprintf(path, sizeof path, "%s/save-0", files.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    if (mount("kith-test", path, "tmpfs", 0, "size=256k") != 0) {
        library_files_remove(&files);
        printf("mounting a tmpfs is refused: %s\n", strerror(errno));
        skip();
    }
    const int said = run(&files, 1, -1, error, sizeof error);
    printf("full disk: %d, %s\n", said, error);
    assert_int_equal(umount(path), 0);
    assert_int_equal(said, KITH_FAILED);
    assert_non_null(strstr(error, "calls.save"));
    assert_non_null(strstr(error, strerror(ENOSPC)));
    library_files_remove(&files);
}

/* A disk that takes half a second once it is slow. */
static volatile bool is_slow;
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    const struct timespec pause = {0, 500000000};
    if (is_slow)
        (void)nanosleep(&pause, NULL);
    return __real_fsync(fd);
}

/* Where a run ends while its loop goes on, calls wait no longer for its last
 * save than they are told, and say so until it is there. */
static void test_slow_disk(void **state)
{
    struct library_files files;
    char path[100], error[300] = "";
    int64_t longest_us = 0;
    unsigned late = 0;
    int said;
    (void)state;
    library_files_make(&files, 64, 100);
    library_files_write(&files, "run.yaml",
                        "name: calls\npeers: 2\nstop: {time: 300ms}\n"
                        "model: {kind: program, dim: 64}\n"
                        "gossip: {algorithm: adpsgd}\n");
    (void)snprintf(path, sizeof path, "%s/peer-0.yaml", files.folder);
    const struct kith_vector vector = {values, 64, KITH_FLOAT32, 0};
    const struct kith_options options = {.size = sizeof options,
                                         .start = KITH_START_OWN};
    kith_peer *peer =
        kith_open(path, &vector, 1, &options, error, sizeof error);
    if (peer == NULL)
        fail_msg("%s", error);
    is_slow = true;
    do {
        const int64_t began_us = now_us();
        said = kith_step(peer, 0.5, 20);
        const int64_t took_us = now_us() - began_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
        late += said == KITH_LATE;
    } while (said == KITH_GOES_ON || said == KITH_LATE);
    printf("%u calls were late, the longest took %.0f ms; then %d\n", late,
           (double)longest_us / 1e3, said);
    assert_int_equal(said, KITH_OVER);
    assert_true(late > 5);
    assert_int_equal(kith_close(peer, error, sizeof error), 0);
    is_slow = false;
    library_files_remove(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_slow_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
