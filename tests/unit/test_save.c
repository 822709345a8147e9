/* Goal: a save brings a run back bit for bit, and a damaged or foreign one is
 * refused by name with the worker untouched. Method: train, save, go on; load
 * into a fresh worker, go on; compare. Then truncate at and flip a bit in every
 * part of the file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_fixture.h"

static char folder[] = "/tmp/kith-save-XXXXXX";
static char path[64], other[64], error[KITH_DATA_ERROR_BYTES];
static uint8_t images[40];
static int32_t labels[40];
static struct kith_examples examples;

static struct kith_experiment make_experiment(void)
{
    struct kith_experiment experiment = fixture_experiment("mlp", "sgp", 2);
    const uint32_t layers[] = {1, 5, 2};
    fixture_layers(&experiment, layers, 3);
    experiment.backend = kith_backend_find("naive32");
    experiment.train.config.momentum = 0.9;
    experiment.train.batch = 3;
    experiment.data.split.kind = KITH_SPLIT_IID;
    return experiment;
}

static struct kith_worker *open_worker(const struct kith_experiment *experiment,
                                       kith_id self)
{
    const struct kith_worker_config config = {.experiment = experiment,
                                              .backend = experiment->backend,
                                              .train = &examples,
                                              .self = self,
                                              .steps = 100,
                                              .peers = 2};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    return worker;
}

static void train(struct kith_worker *worker, uint64_t from, uint64_t to)
{
    for (uint64_t step = from; step < to; step++) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
        struct kith_work_result result;
        kith_worker_run(worker, &work, &result);
    }
}

static void test_resume(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *first = open_worker(&experiment, 1);
    struct kith_worker *second = open_worker(&experiment, 1);
    const size_t dim = kith_worker_dim(first);
    double a[64], b[64];
    uint64_t step = 0;
    train(first, 0, 11);
    kith_worker_scalars(first)[0] = 0.75;
    if (kith_save_write(first, path, 11, error) != KITH_OK)
        fail_msg("%s", error);
    double *z = NULL;
    size_t saved_dim = 0;
    if (kith_save_parameters(&experiment, path, &z, &saved_dim, &step, error) !=
        KITH_OK)
        fail_msg("%s", error);
    kith_worker_read(first, a);
    assert_int_equal(saved_dim, dim);
    assert_int_equal(step, 11);
    assert_memory_equal(z, a, dim * sizeof *a);
    free(z);

    train(second, 0, 3); /* Whatever it did before is gone. */
    if (kith_save_read(second, path, &step, error) != KITH_OK)
        fail_msg("%s", error);
    assert_int_equal(step, 11);
    train(first, 11, 60);
    train(second, 11, 60);

    kith_worker_read(first, a);
    kith_worker_read(second, b);
    assert_memory_equal(a, b, dim * sizeof *a);
    kith_worker_close(first);
    kith_worker_close(second);
}

static size_t file_size(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (size_t)status.st_size : 0;
}

static void test_previous_is_kept(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    char previous[80], partial[80];
    uint64_t step = 0;
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(kith_save_write(worker, path, i, error), KITH_OK);
    assert_int_equal(kith_save_read(worker, path, &step, error), KITH_OK);
    assert_int_equal(step, 3);
    assert_int_equal(kith_save_read(worker, previous, &step, error), KITH_OK);
    assert_int_equal(step, 2);
    assert_int_equal(file_size(partial), 0);
    kith_worker_close(worker);
}

static void expect_refusal(struct kith_worker *worker, const char *name,
                           enum kith_err want, const char *part)
{
    double before[64], after[64];
    uint64_t step = 99;
    kith_worker_read(worker, before);
    assert_int_equal(kith_save_read(worker, name, &step, error), want);
    if (strstr(error, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, part);
    kith_worker_read(worker, after);
    assert_int_equal(step, 99);
    assert_memory_equal(before, after,
                        kith_worker_dim(worker) * sizeof *before);
}

static void put(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_damage(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    uint8_t bytes[4096];
    uint64_t step = 0;
    assert_int_equal(kith_save_write(worker, path, 5, error), KITH_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(size, 200, sizeof bytes - 1);

    for (size_t cut = 0; cut < size; cut += 7) {
        put(other, bytes, cut);
        expect_refusal(worker, other, KITH_EPARSE, "truncated");
    }
    put(other, bytes, size + 1);
    expect_refusal(worker, other, KITH_EPARSE, "follows its end");
    /* Every byte after the magic: refused for one reason or another. */
    for (size_t at = 16; at < size; at++) {
        bytes[at] ^= 0x10;
        put(other, bytes, size);
        assert_int_not_equal(kith_save_read(worker, other, &step, error),
                             KITH_OK);
        bytes[at] ^= 0x10;
    }
    bytes[size - 40] ^= 1;
    put(other, bytes, size);
    expect_refusal(worker, other, KITH_EPARSE, "checksum");
    bytes[size - 40] ^= 1;
    bytes[11] = '2';
    put(other, bytes, size);
    expect_refusal(worker, other, KITH_EVERSION, "kith-save-v1");
    bytes[11] = '1';
    put(other, bytes, size);
    assert_int_equal(kith_save_read(worker, other, &step, error), KITH_OK);
    kith_worker_close(worker);
}

static void test_foreign(void **state)
{
    (void)state;
    struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    assert_int_equal(kith_save_write(worker, path, 5, error), KITH_OK);
    kith_worker_close(worker);

    worker = open_worker(&experiment, 1);
    expect_refusal(worker, path, KITH_EMISMATCH, "another peer");
    kith_worker_close(worker);
    experiment.seed++;
    worker = open_worker(&experiment, 0);
    expect_refusal(worker, path, KITH_EMISMATCH, "another experiment");
    expect_refusal(worker, "/nowhere/save", KITH_ENOENT, "/nowhere/save");
    assert_int_equal(kith_save_write(worker, "/nowhere/save", 1, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "/nowhere/save"));
    kith_worker_close(worker);
    experiment.seed--;
    experiment.backend = kith_backend_find("naive64");
    worker = open_worker(&experiment, 0);
    expect_refusal(worker, path, KITH_EMISMATCH, "another");
    kith_worker_close(worker);
}

/* A weight that is no weight would make every parameter one of the kind. */
static void test_bad_weight(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, 0, -0.5};
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *writer = open_worker(&experiment, 0);
    struct kith_worker *reader = open_worker(&experiment, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double *z;
        size_t dim;
        uint64_t step;
        kith_worker_scalars(writer)[0] = bad[i];
        assert_int_equal(kith_save_write(writer, path, 5, error), KITH_OK);
        expect_refusal(reader, path, KITH_EPARSE, "not a positive number");
        assert_true(kith_worker_scalars(reader)[0] == 1);
        assert_int_equal(
            kith_save_parameters(&experiment, path, &z, &dim, &step, error),
            KITH_EPARSE);
        assert_null(z);
    }
    kith_worker_scalars(writer)[0] = 0.25;
    uint64_t step = 0;
    assert_int_equal(kith_save_write(writer, path, 5, error), KITH_OK);
    assert_int_equal(kith_save_read(reader, path, &step, error), KITH_OK);
    assert_true(kith_worker_scalars(reader)[0] == 0.25);
    kith_worker_close(writer);
    kith_worker_close(reader);
}

/* /dev/full stands for a full disk; the old save is left alone. */
static void test_full_disk(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    char partial[80];
    uint64_t step = 0;
    assert_int_equal(kith_save_write(worker, path, 5, error), KITH_OK);
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(symlink("/dev/full", partial), 0);
    assert_int_equal(kith_save_write(worker, path, 6, error), KITH_ENOSPC);
    assert_int_equal(kith_save_read(worker, path, &step, error), KITH_OK);
    assert_int_equal(step, 5);
    assert_int_not_equal(access(partial, F_OK), 0);
    kith_worker_close(worker);
}

static int make_folder(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof images; i++) {
        images[i] = (uint8_t)(i * 6);
        labels[i] = i > 20;
    }
    examples = fixture_examples(images, labels, 40, 1, 2);
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/model.save", folder);
    (void)snprintf(other, sizeof other, "%s/other.save", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char previous[80];
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    (void)unlink(path);
    (void)unlink(other);
    (void)unlink(previous);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_bad_weight),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_previous_is_kept),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
