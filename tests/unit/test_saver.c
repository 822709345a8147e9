/* Goal: a save beside the training is the file that a save in its place would
 * have been, of the moment when it was begun; two never overlap, a close waits,
 * and a save that fails leaves the file before it whole. Method: both ways from
 * one worker, byte by byte; training goes on while a save is under way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/saver.h"
#include "worker_fixture.h"

enum { DIM = 200000 };
static char folder[] = "/tmp/kith-saver-XXXXXX";
static char path[64], other[64], error[KITH_DATA_ERROR_BYTES];

static struct kith_worker *open_worker(struct kith_experiment *experiment)
{
    *experiment = fixture_experiment("quadratic", "sgp", 2);
    experiment->model_config.dim = DIM;
    experiment->backend = kith_backend_find("cpu");
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .steps = 100,
        .peers = 2};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    return worker;
}

static void train(struct kith_worker *worker, uint64_t step)
{
    struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
    struct kith_work_result result;
    kith_worker_run(worker, &work, &result);
    assert_true(result.finite);
}

/* A whole file; free it. */
static uint8_t *get(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void check_equal(const char *one, const char *two)
{
    size_t size, two_size;
    uint8_t *bytes = get(one, &size), *two_bytes = get(two, &two_size);
    printf("expected: %s is %s; measured: %zu and %zu bytes\n", one, two, size,
           two_size);
    assert_int_equal(size, two_size);
    assert_memory_equal(bytes, two_bytes, size);
    free(bytes);
    free(two_bytes);
}

static void begin(struct kith_saver *saver, struct kith_worker *worker,
                  uint64_t step)
{
    const struct kith_standing standing = {.step = step};
    if (kith_saver_begin(saver, worker, path, &standing, true, error) !=
        KITH_OK)
        fail_msg("%s", error);
}

static void test_moment(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    struct kith_worker *worker = open_worker(&experiment);
    struct kith_saver *saver;
    struct kith_saved saved;
    char previous[80];
    assert_int_equal(kith_saver_open(NULL, NULL, &saver), KITH_OK);
    assert_false(kith_saver_take(saver, &saved));
    train(worker, 0);
    const struct kith_standing standing = {.step = 1};
    assert_int_equal(kith_save_write(worker, other, &standing, false, error),
                     KITH_OK);

    begin(saver, worker, 1);
    train(worker, 1); /* meanwhile */
    train(worker, 2);
    kith_saver_wait(saver);
    assert_true(kith_saver_take(saver, &saved));
    assert_false(kith_saver_take(saver, &saved));
    assert_int_equal(saved.err, KITH_OK);
    assert_int_equal(saved.step, 1);
    assert_ptr_equal(saved.path, path);
    check_equal(path, other);

    /* The next one waits for the one before it: both become whole files. */
    begin(saver, worker, 3);
    train(worker, 3);
    const struct kith_standing later = {.step = 4};
    assert_int_equal(kith_save_write(worker, other, &later, false, error),
                     KITH_OK);
    begin(saver, worker, 4);
    kith_saver_close(saver); /* waits, too */
    check_equal(path, other);
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    struct kith_standing read = {.step = 0};
    assert_int_equal(kith_save_read(worker, previous, &read, error), KITH_OK);
    printf("expected: step 3 before step 4; measured: %llu\n",
           (unsigned long long)read.step);
    assert_int_equal(read.step, 3);
    unlink(previous);
    kith_worker_close(worker);
}

static void test_failure(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    struct kith_worker *worker = open_worker(&experiment);
    struct kith_saver *saver;
    struct kith_saved saved;
    char partial[80];
    const struct kith_standing standing = {.step = 1};
    assert_int_equal(kith_saver_open(NULL, NULL, &saver), KITH_OK);
    begin(saver, worker, 0);
    kith_saver_wait(saver);
    assert_true(kith_saver_take(saver, &saved));
    assert_int_equal(kith_saver_begin(saver, worker, "/proc/none/model.save",
                                      &standing, true, error),
                     KITH_OK);
    kith_saver_wait(saver);
    assert_true(kith_saver_take(saver, &saved));
    printf("expected: an error that names the path; measured: %s\n",
           saved.error);
    assert_int_not_equal(saved.err, KITH_OK);
    assert_non_null(strstr(saved.error, "/proc/none/model.save"));

    /* Nor is it forgotten when the next one begins before anybody asked. */
    assert_int_equal(kith_saver_begin(saver, worker, "/proc/none/model.save",
                                      &standing, true, error),
                     KITH_OK);
    begin(saver, worker, 2);
    kith_saver_wait(saver);
    assert_true(kith_saver_take(saver, &saved));
    printf("expected: the failure, then step 2; measured: %s, ", saved.error);
    assert_int_not_equal(saved.err, KITH_OK);
    assert_true(kith_saver_take(saver, &saved));
    printf("step %llu\n", (unsigned long long)saved.step);
    assert_int_equal(saved.err, KITH_OK);
    assert_int_equal(saved.step, 2);
    assert_false(kith_saver_take(saver, &saved));

    /* A model that is not finite replaces nothing. */
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    size_t before_size, after_size;
    uint8_t *before = get(path, &before_size);
    const struct kith_worker_content content = kith_worker_content(worker);
    ((float *)content.model)[7] = NAN;
    begin(saver, worker, 1);
    kith_saver_wait(saver);
    assert_true(kith_saver_take(saver, &saved));
    assert_int_equal(saved.err, KITH_ENONFINITE);
    uint8_t *after = get(path, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    assert_int_not_equal(access(partial, F_OK), 0);
    free(before);
    free(after);
    kith_saver_close(saver);
    kith_saver_close(NULL);
    kith_worker_close(worker);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/a.save", folder);
    (void)snprintf(other, sizeof other, "%s/b.save", folder);
    return 0;
}

static int tear_down(void **state)
{
    char previous[80];
    (void)state;
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    (void)unlink(previous);
    (void)unlink(path);
    (void)unlink(other);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moment),
        cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
