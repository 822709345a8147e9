/* Goal: a checkpoint brings a run back bit for bit, and a damaged or foreign
 * one is refused by name with the worker untouched. Method: train, save, go on;
 * load into a fresh worker, go on; compare, for every optimiser and both
 * widths. Then truncate everywhere and flip a bit of every byte; write onto a
 * full disk and over what others planted; have Python's safetensors read it
 * where that is installed. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_fixture.h"

static char folder[] = "/tmp/kith-save-XXXXXX";
static char path[64], other[64], error[KITH_RESUME_ERROR_BYTES];
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
    experiment.train.accumulate = 1;
    experiment.train.config.beta1 = 0.9;
    experiment.train.config.beta2 = 0.99;
    experiment.train.config.epsilon = 1e-8;
    experiment.train.config.trust = 0.1;
    experiment.data.split.kind = KITH_SPLIT_IID;
    return experiment;
}

static struct kith_worker *open_worker(const struct kith_experiment *experiment,
                                       kith_id self)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
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

/* A whole file; free it. */
static uint8_t *get(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    uint8_t *bytes = malloc(1 << 16);
    assert_non_null(file);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 16, file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(*size, 1, (1 << 16) - 1);
    return bytes;
}

static void train(struct kith_worker *worker, uint64_t from, uint64_t to)
{
    for (uint64_t step = from; step < to; step++) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
        struct kith_work_result result;
        kith_worker_run(worker, &work, &result);
    }
}

static enum kith_err save(struct kith_worker *worker, const char *name,
                          uint64_t step)
{
    const struct kith_standing standing = {.step = step,
                                           .elapsed_ns = 5 * KITH_S + 1,
                                           .loss_sum = 0.1,
                                           .loss_count = 3,
                                           .best = 1.0 / 3,
                                           .best_step = 2,
                                           .stale = 4};
    return kith_save_write(worker, name, &standing, true, error);
}

/* One optimiser on one backend, half way saved and gone on with. */
static void check_resume(const struct kith_experiment *experiment)
{
    struct kith_worker *first = open_worker(experiment, 1);
    struct kith_worker *second = open_worker(experiment, 1);
    const size_t dim = kith_worker_dim(first);
    double a[64], b[64];
    struct kith_standing standing = {.step = 0};
    train(first, 0, 11);
    kith_worker_scalars(first)[0] = 0.75;
    if (save(first, path, 11) != KITH_OK)
        fail_msg("%s", error);
    double *z = NULL;
    size_t saved_dim = 0;
    uint64_t step = 0;
    const struct kith_task task = kith_experiment_task(experiment, NULL);
    if (kith_save_parameters(&task, experiment->backend, path, &z, &saved_dim,
                             &step, error) != KITH_OK)
        fail_msg("%s", error);
    kith_worker_read(first, a);
    assert_int_equal(saved_dim, dim);
    assert_int_equal(step, 11);
    assert_memory_equal(z, a, dim * sizeof *a);
    free(z);

    train(second, 0, 3); /* Whatever it did before is gone. */
    if (kith_save_read(second, path, &standing, error) != KITH_OK)
        fail_msg("%s", error);
    assert_string_equal(error, ""); /* the same machine */
    assert_int_equal(standing.step, 11);
    assert_int_equal(standing.elapsed_ns, 5 * KITH_S + 1);
    assert_true(standing.loss_sum == 0.1 && standing.best == 1.0 / 3);
    assert_int_equal(standing.loss_count, 3);
    assert_int_equal(standing.best_step, 2);
    assert_int_equal(standing.stale, 4);
    train(first, 11, 60);
    train(second, 11, 60);
    kith_worker_read(first, a);
    kith_worker_read(second, b);
    assert_memory_equal(a, b, dim * sizeof *a);
    /* And all that the optimiser keeps: the two would save the same file. */
    assert_int_equal(save(first, path, 60), KITH_OK);
    assert_int_equal(save(second, other, 60), KITH_OK);
    size_t sizes[2];
    uint8_t *files[2] = {get(path, &sizes[0]), get(other, &sizes[1])};
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(files[0], files[1], sizes[0]);
    free(files[0]);
    free(files[1]);
    kith_worker_close(first);
    kith_worker_close(second);
}

static void test_resume(void **state)
{
    (void)state;
    static const char *const backends[] = {"naive32", "naive64", "cpu"};
    for (unsigned k = 0; k < 3; k++) {
        for (unsigned i = 0; kith_optimisers[i] != NULL; i++) {
            struct kith_experiment experiment = make_experiment();
            experiment.backend = kith_backend_find(backends[k]);
            experiment.train.optimiser = kith_optimisers[i];
            check_resume(&experiment);
        }
    }
}

/* PATH + an ending; the last four stay valid. */
static const char *ending(const char *text)
{
    static char names[4][96];
    static unsigned next;
    char *name = names[next++ % 4];
    (void)snprintf(name, sizeof names[0], "%s%s", path, text);
    return name;
}

static uint64_t step_of(struct kith_worker *worker, const char *name)
{
    struct kith_standing standing = {.step = 0};
    if (kith_save_read(worker, name, &standing, error) != KITH_OK)
        fail_msg("%s", error);
    return standing.step;
}

static void test_previous_is_kept(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    const struct kith_standing best = {.step = 9, .best = NAN};
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(save(worker, path, i), KITH_OK);
    assert_int_equal(step_of(worker, path), 3);
    assert_int_equal(step_of(worker, ending(".previous")), 2);
    /* Killed between the two renames: both names are one file, and a link to it
     * is left. The next save does what it would have done. */
    assert_int_equal(unlink(ending(".previous")), 0);
    assert_int_equal(link(path, ending(".previous")), 0);
    assert_int_equal(link(path, ending(".previous.partial")), 0);
    assert_int_equal(save(worker, path, 4), KITH_OK);
    assert_int_equal(step_of(worker, path), 4);
    assert_int_equal(step_of(worker, ending(".previous")), 3);
    assert_int_not_equal(access(ending(".previous.partial"), F_OK), 0);
    assert_int_not_equal(access(ending(".partial"), F_OK), 0);
    /* The best one has no previous. */
    assert_int_equal(kith_save_write(worker, path, &best, false, error),
                     KITH_OK);
    assert_int_equal(step_of(worker, path), 9);
    assert_int_equal(step_of(worker, ending(".previous")), 3);
    kith_worker_close(worker);
}

static void expect_refusal(struct kith_worker *worker, const char *name,
                           enum kith_err want, const char *part)
{
    double before[64], after[64];
    struct kith_standing standing = {.step = 99};
    kith_worker_read(worker, before);
    assert_int_equal(kith_save_read(worker, name, &standing, error), want);
    if (strstr(error, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, part);
    assert_non_null(strstr(error, name));
    kith_worker_read(worker, after);
    assert_int_equal(standing.step, 99);
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
    struct kith_standing standing = {.step = 0};
    size_t size;
    train(worker, 0, 5);
    assert_int_equal(save(worker, path, 5), KITH_OK);
    uint8_t *bytes = get(path, &size);
    assert_in_range(size, 600, 8192);

    for (size_t cut = 0; cut < size; cut += 7) {
        put(other, bytes, cut);
        expect_refusal(worker, other, KITH_EPARSE, "truncated");
    }
    bytes[size] = 0;
    put(other, bytes, size + 1);
    expect_refusal(worker, other, KITH_EPARSE, "checksum");
    /* Every byte, every region: the length, the texts, the hash, the data. */
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (uint8_t)(1u << at % 8);
        put(other, bytes, size);
        if (kith_save_read(worker, other, &standing, error) == KITH_OK)
            fail_msg("byte %zu flipped, and believed", at);
        bytes[at] ^= (uint8_t)(1u << at % 8);
    }
    assert_int_equal(standing.step, 0);
    bytes[size - 40] ^= 1;
    put(other, bytes, size);
    expect_refusal(worker, other, KITH_EPARSE, "checksum");
    bytes[size - 40] ^= 1;
    bytes[12] ^= 1;
    put(other, bytes, size);
    expect_refusal(worker, other, KITH_EVERSION, "not a checkpoint of kith");
    bytes[12] ^= 1;
    put(other, bytes, size);
    assert_int_equal(step_of(worker, other), 5);
    free(bytes);
    kith_worker_close(worker);
}

static void test_foreign(void **state)
{
    (void)state;
    static const char source[] = "{name: a, peers: 2, seed: 7, stop: {steps: "
                                 "9}, model: {kind: consensus, dim: 3}}";
    struct kith_experiment experiment = make_experiment();
    char text[sizeof source];
    memcpy(text, source, sizeof source);
    experiment.source = text;
    struct kith_worker *worker = open_worker(&experiment, 0);
    assert_int_equal(save(worker, path, 5), KITH_OK);
    kith_worker_close(worker);

    worker = open_worker(&experiment, 1);
    expect_refusal(worker, path, KITH_EMISMATCH, "another peer");
    kith_worker_close(worker);
    struct kith_worker_config alone = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .train = &examples,
        .steps = 100,
        .peers = 2};
    struct kith_experiment named = experiment;
    alone.task = kith_experiment_task(&experiment, &named);
    assert_int_equal(kith_worker_open(&alone, &worker, error), KITH_OK);
    expect_refusal(worker, path, KITH_EMISMATCH, "not to kith train");
    kith_worker_close(worker);
    experiment.seed++;
    worker = open_worker(&experiment, 0);
    expect_refusal(worker, path, KITH_EMISMATCH,
                   "another experiment: its model.kind is consensus, this "
                   "run's is mlp");
    expect_refusal(worker, "/nowhere/save", KITH_ENOENT, "/nowhere/save");
    assert_int_equal(save(worker, "/nowhere/save", 1), KITH_ENOENT);
    assert_non_null(strstr(error, "/nowhere/save"));
    kith_worker_close(worker);
    experiment.seed--;
    experiment.backend = kith_backend_find("naive64");
    worker = open_worker(&experiment, 0);
    expect_refusal(worker, path, KITH_EMISMATCH, "another experiment");
    kith_worker_close(worker);
    experiment.backend = kith_backend_find("naive32");
    experiment.train.optimiser = kith_optimiser_find("adamw");
    worker = open_worker(&experiment, 0);
    expect_refusal(worker, path, KITH_EMISMATCH, "another experiment");
    kith_worker_close(worker);
}

/* Times are added up: what would overflow is refused. */
static void test_elapsed(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    const struct kith_standing standing = {.step = 5, .elapsed_ns = INT64_MAX};
    assert_int_equal(kith_save_write(worker, path, &standing, false, error),
                     KITH_OK);
    expect_refusal(worker, path, KITH_EPARSE, "its place in the run");
    kith_worker_close(worker);
}

/* naive32 and cpu are the same experiment, to the last bits apart. */
static void test_other_machine(void **state)
{
    (void)state;
    struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    assert_int_equal(save(worker, path, 5), KITH_OK);
    kith_worker_close(worker);
    experiment.backend = kith_backend_find("cpu");
    worker = open_worker(&experiment, 0);
    assert_int_equal(step_of(worker, path), 5);
    assert_non_null(strstr(error, "last bits may differ"));
    assert_non_null(strstr(error, "on backend naive32"));
    assert_non_null(strstr(error, "this is kith "));
    assert_non_null(strstr(error, "on backend cpu"));
    kith_worker_close(worker);
}

/* What is refused makes room for the one before it, and is kept aside. */
static void test_fall_back(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    struct kith_standing standing = {.step = 0};
    (void)unlink(path);
    (void)unlink(ending(".previous"));
    assert_int_equal(kith_save_resume(worker, path, &standing, error),
                     KITH_ENOENT);
    assert_int_equal(save(worker, path, 1), KITH_OK);
    put(path, (const uint8_t *)"junk", 4);
    assert_int_equal(kith_save_resume(worker, path, &standing, error),
                     KITH_EPARSE); /* and there is no other */
    (void)unlink(path);
    assert_int_equal(save(worker, path, 1), KITH_OK);
    assert_int_equal(save(worker, path, 2), KITH_OK);
    assert_int_equal(kith_save_resume(worker, path, &standing, error), KITH_OK);
    assert_string_equal(error, "");
    assert_int_equal(standing.step, 2);

    put(path, (const uint8_t *)"a file of someone else's", 24);
    assert_int_equal(kith_save_resume(worker, path, &standing, error), KITH_OK);
    assert_int_equal(standing.step, 1);
    assert_non_null(strstr(error, "not a checkpoint of kith"));
    assert_non_null(strstr(error, "at step 1"));
    assert_int_equal(access(ending(".refused"), F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    /* Nothing good is lost by the next save. */
    assert_int_equal(save(worker, path, 3), KITH_OK);
    assert_int_equal(step_of(worker, ending(".previous")), 1);

    put(path, (const uint8_t *)"", 0);
    put(ending(".previous"), (const uint8_t *)"x", 1);
    assert_int_equal(kith_save_resume(worker, path, &standing, error),
                     KITH_EPARSE);
    assert_non_null(strstr(error, "; and reading"));
    assert_non_null(strstr(error, "take them away"));
    kith_worker_close(worker);
}

/* A limit on the size of files stands for a full disk; the old save is left
 * alone. */
static void test_full_disk(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    struct rlimit limit;
    assert_int_equal(save(worker, path, 5), KITH_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = {100, limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const enum kith_err err = save(worker, path, 6);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(err, KITH_ENOSPC);
    assert_int_equal(step_of(worker, path), 5);
    assert_int_not_equal(access(ending(".partial"), F_OK), 0);
    kith_worker_close(worker);
}

/* What stands at PATH.partial is replaced: a link is not followed, and nobody
 * waits for the reader of a FIFO. */
static void test_planted(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    struct kith_worker *worker = open_worker(&experiment, 0);
    struct stat about;
    FILE *file = fopen(ending(".other"), "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    const char *target = ending(".other");
    assert_int_equal(symlink(target, ending(".partial")), 0);
    assert_int_equal(save(worker, path, 7), KITH_OK);
    assert_int_equal(stat(target, &about), 0);
    assert_int_equal(about.st_size, 0);
    assert_int_equal(unlink(target), 0);

    assert_int_equal(mkfifo(ending(".partial"), 0600), 0);
    assert_int_equal(save(worker, path, 8), KITH_OK);
    assert_int_equal(step_of(worker, path), 8);
    assert_int_not_equal(access(ending(".partial"), F_OK), 0);
    kith_worker_close(worker);
}

/* A float64 that no float32 holds would begin a run with an infinity. */
static void test_init_width(void **state)
{
    (void)state;
    struct kith_experiment experiment = make_experiment();
    experiment.gossip.algorithm = kith_algorithm_find("adpsgd");
    experiment.backend = kith_backend_find("naive64");
    struct kith_worker *wide = open_worker(&experiment, 0);
    *(double *)kith_worker_slot(wide, KITH_SLOT_LIVE) = 1e300;
    assert_int_equal(save(wide, path, 1), KITH_OK);
    assert_int_equal(kith_worker_init(wide, path, NULL, error), KITH_OK);
    kith_worker_close(wide);
    experiment.backend = kith_backend_find("naive32");
    struct kith_worker *narrow = open_worker(&experiment, 0);

    assert_int_equal(kith_worker_init(narrow, path, NULL, error),
                     KITH_ENONFINITE);

    assert_non_null(strstr(error, "not finite here"));
    kith_worker_close(narrow);
}

/* Another program's reader: the names, shapes and values of the views. */
static void test_python(void **state)
{
    (void)state;
    const struct kith_experiment experiment = make_experiment();
    if (system("python3 -c 'import safetensors.numpy' 2>/dev/null") != 0)
        skip();
    struct kith_worker *worker = open_worker(&experiment, 0);
    char command[640];
    double x[64];
    assert_int_equal(save(worker, path, 5), KITH_OK);
    kith_worker_read(worker, x);
    (void)snprintf(command, sizeof command,
                   "python3 -c 'import safetensors.numpy as s; "
                   "t = s.load_file(\"%s\"); w = t[\"fc1.weight\"]; "
                   "assert w.shape == (5, 1), w.shape; "
                   "assert str(w.dtype) == \"float32\"; "
                   "assert w[0, 0] == %.17g, w; "
                   "assert t[\"optimiser.0.fc1.weight\"].shape == (5, 1)'",
                   path, x[0]);
    assert_int_equal(system(command), 0);
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
    (void)unlink(path);
    (void)unlink(other);
    (void)unlink(ending(".previous"));
    (void)unlink(ending(".refused"));
    (void)snprintf(path, sizeof path, "%s/other.save", folder);
    (void)unlink(ending(".previous"));
    return rmdir(folder);
}

/* A peer that keeps no vector and whose model is spoilt takes its save's, with
 * the weight and the place in the data that it has now; the save before, where
 * that does not last; none where there is none, and nothing after both. */
static void test_goes_back(void **state)
{
    (void)state;
    struct kith_experiment experiment = make_experiment();
    experiment.train.recover_from_save = true;
    struct kith_worker *worker = open_worker(&experiment, 1);
    const size_t dim = kith_worker_dim(worker);
    double a[2][64], b[64], worst[64];
    struct kith_work_result result = {.finite = false};
    struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = 13};
    for (size_t i = 0; i < dim; i++)
        worst[i] = 1e30;
    kith_worker_go_back(worker, ending(".none"), &result);
    assert_false(result.recovered);
    for (unsigned i = 0; i < 2; i++) {
        train(worker, 5 * i, 5 * i + 5);
        kith_worker_scalars(worker)[0] = 0.75;
        kith_worker_read(worker, a[1 - i]);
        assert_int_equal(save(worker, path, 5 * i + 5), KITH_OK);
    }
    train(worker, 10, 13);
    kith_worker_scalars(worker)[0] = 0.25;
    for (unsigned round = 0; round < 3; round++) {
        experiment.backend->write(dim, worst,
                                  kith_worker_slot(worker, KITH_SLOT_LIVE));
        kith_worker_run(worker, &work, &result);
        assert_false(result.finite || result.recovered);
        const struct kith_place place = kith_worker_place(worker);
        kith_worker_go_back(worker, path, &result);
        assert_true(result.recovered == (round < 2));
        const struct kith_place now = kith_worker_place(worker);
        assert_int_equal(now.epoch, place.epoch);
        assert_int_equal(now.cursor, place.cursor);
        if (round == 2)
            continue;
        assert_true(kith_worker_scalars(worker)[0] == 0.25);
        kith_worker_read(worker, b);
        for (size_t i = 0; i < dim; i++)
            assert_true(fabs(b[i] - a[round][i]) <= 1e-6 * (1 + fabs(b[i])));
    }
    kith_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_other_machine),
        cmocka_unit_test(test_fall_back),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_elapsed),
        cmocka_unit_test(test_init_width),
        cmocka_unit_test(test_previous_is_kept),
        cmocka_unit_test(test_goes_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
