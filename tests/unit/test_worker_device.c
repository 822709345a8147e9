/* Goal: a worker whose vectors lie on a device lets a snapshot leave while it
 * trains on, fetches what arrives, goes on where there is no room for copies,
 * and keeps and sends nothing once the device has failed. Method: the CUDA
 * module's emulation, told to copy late, to have no memory, and to break. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_cases.h"
#include "worker_run.h"

enum { ROWS = 32, FEATURES = 12, CLASSES = 4, ECC = 214 };

static const struct kith_backend *gpu, *half;
static void (*late)(long queries);
static void (*fail_after)(long launches, int code);
static void (*memory)(size_t bytes);
static void (*pinnable)(size_t bytes);
static size_t (*pinned)(void);

static struct kith_examples examples;
static struct kith_experiment experiment;

static struct kith_worker *open_on(const struct kith_backend *backend)
{
    static uint8_t images[ROWS * FEATURES];
    static int32_t labels[ROWS];
    static const uint32_t layers[] = {FEATURES, 9, CLASSES};
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(i * 37 % 251);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)(i % CLASSES);
    examples = fixture_examples(images, labels, ROWS, FEATURES, CLASSES);
    experiment = fixture_experiment("mlp", "adpsgd", 2);
    fixture_layers(&experiment, layers, 3);
    experiment.data.split.kind = KITH_SPLIT_IID;
    experiment.backend = backend;
    return open_worker(&experiment, &examples, 0, 100);
}

static void snapshot(struct kith_worker *worker)
{
    struct kith_work_edge edge = {.sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_NONE};
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .edges = &edge,
                                         .edge_count = 1});
}

static double merge(struct kith_worker *worker)
{
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_INITIATED_INBOX};
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .edges = &edge,
                                         .edge_count = 1});
    return edge.delta_sum;
}

static double *parameters(struct kith_worker *worker)
{
    double *z = malloc(kith_worker_dim(worker) * sizeof *z);
    assert_non_null(z);
    kith_worker_read(worker, z);
    return z;
}

static enum kith_outgoing outgoing(struct kith_worker *worker, bool wait)
{
    return kith_worker_outgoing(worker, KITH_SLOT_INITIATED_SENT, wait);
}

/* What is sent is x when the snapshot was taken, however late it comes and
 * however far training has gone. */
static void test_snapshot_comes_late(void **state)
{
    (void)state;
    struct kith_worker *worker = open_on(gpu);
    const size_t dim = kith_worker_dim(worker);
    train(worker, 2);
    double *taken = parameters(worker);
    for (unsigned round = 0; round < 2; round++) {
        late(3);
        snapshot(worker);
        for (unsigned i = 0; i < 3 && round == 0; i++)
            assert_int_equal(outgoing(worker, false), KITH_OUTGOING_WAITS);
        train(worker, 1); /* Asked by nobody, it stays on its way. */
        assert_int_equal(outgoing(worker, round == 1), KITH_OUTGOING_READY);
        late(0);
        const float *sent = kith_worker_slot(worker, KITH_SLOT_INITIATED_SENT);
        double *now = parameters(worker);
        bool moved = false;
        for (size_t i = 0; i < dim; i++) {
            assert_true(fabs((double)sent[i] - taken[i]) <= 0);
            moved = moved || fabs(now[i] - taken[i]) > 0;
        }
        assert_true(moved);
        free(taken);
        taken = now;
    }
    free(taken);
    kith_worker_close(worker);
}

/* An exchange with training in between; returns the model and the shift. */
static double *exchange(bool early, long copies, double *shift)
{
    struct kith_worker *worker = open_on(gpu);
    late(copies);
    snapshot(worker);
    float *inbox = kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX);
    for (size_t i = 0; i < kith_worker_dim(worker); i++)
        inbox[i] = (float)i / 16;
    if (early)
        kith_worker_arrived(worker, KITH_SLOT_INITIATED_INBOX);
    train(worker, 3);
    *shift = merge(worker);
    snapshot(worker); /* over the old one, which nobody has asked for */
    train(worker, 1);
    assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
    late(0);
    double *z = parameters(worker);
    assert_null(kith_worker_failed(worker));
    kith_worker_close(worker);
    return z;
}

/* Early or not, late or not, and without room on the device for what is
 * exchanged: the same bits. */
static void test_exchanges_agree(void **state)
{
    (void)state;
    double shift, other;
    struct kith_worker *worker = open_on(gpu);
    const size_t dim = kith_worker_dim(worker);
    kith_worker_close(worker);
    double *want = exchange(false, 0, &shift);
    for (unsigned kind = 0; kind < 3; kind++) {
        double *got = exchange(kind > 0, kind == 1 ? 1000 : 0, &other);
        assert_memory_equal(got, want, dim * sizeof *got);
        assert_true(fabs(other - shift) <= 0);
        free(got);
    }
    free(want);
}

static void test_no_room_for_copies(void **state)
{
    (void)state;
    double *z[2];
    size_t dim = 0;
    for (unsigned round = 0; round < 2; round++) {
        struct kith_worker *worker = open_on(gpu);
        dim = kith_worker_dim(worker);
        train(worker, 1); /* All scratch is taken. */
        if (round == 1)
            memory(1);
        snapshot(worker);
        assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
        float *inbox = kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX);
        const float *sent = kith_worker_slot(worker, KITH_SLOT_INITIATED_SENT);
        for (size_t i = 0; i < dim; i++)
            inbox[i] = sent[i] + (float)i / 16;
        kith_worker_arrived(worker, KITH_SLOT_INITIATED_INBOX);
        (void)merge(worker);
        train(worker, 1);
        z[round] = parameters(worker);
        assert_null(kith_worker_failed(worker));
        memory(0);
        kith_worker_close(worker);
    }
    assert_memory_equal(z[0], z[1], dim * sizeof(double));
    free(z[0]);
    free(z[1]);
}

/* A worker without data, so that all that it pins is what it exchanges. */
static enum kith_err open_exchange(const char *algorithm, uint32_t dim,
                                   struct kith_worker **worker)
{
    experiment = fixture_experiment("consensus", algorithm, 3);
    experiment.model_config.dim = dim;
    experiment.backend = gpu;
    const bool rounds =
        experiment.gossip.algorithm->pattern == KITH_PATTERN_ROUND;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = gpu,
        .steps = 10,
        .edges_max = rounds ? 2 : 0,
        .peers = 3};
    return kith_worker_open(&config, worker, error);
}

/* With two neighbours; whole: vectors as long as the model, parts: a third. */
static void test_only_what_is_used_is_pinned(void **state)
{
    (void)state;
    enum { DIM = 3 * 1600 };
    static const struct {
        const char *algorithm;
        unsigned whole, parts;
    } cases[] = {
        {"local", 0, 0},
        {"adpsgd", 16, 0},        /* sent, received, as either side, 4 times */
        {"gossip-push", 4, 0},    /* likewise, and models that are pulled */
        {"dpsgd", 2 + 1 + 4, 0},  /* pulled; one sent; received, two rounds */
        {"sgp-sync", 2 + 6, 0},   /* one sent to each */
        {"allreduce-ring", 2, 5}, /* a third of the model travels */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kith_worker *worker = NULL;
        const size_t before = pinned();
        assert_int_equal(open_exchange(cases[i].algorithm, DIM, &worker),
                         KITH_OK);
        const size_t values = cases[i].whole * DIM + cases[i].parts * DIM / 3;
        if (pinned() - before != values * sizeof(float))
            fail_msg("%s pins %zu bytes, not %zu", cases[i].algorithm,
                     pinned() - before, values * sizeof(float));
        kith_worker_close(worker);
        assert_int_equal(pinned(), before);
    }
}

static void test_pinning_is_refused(void **state)
{
    (void)state;
    enum { DIM = 1 << 19, SLOTS = 16 };
    struct kith_worker *worker = NULL;
    const size_t before = pinned(), needed = SLOTS * DIM * sizeof(float);
    pinnable(before + needed - 1);
    assert_int_equal(open_exchange("adpsgd", DIM, &worker), KITH_ENOMEM);
    assert_non_null(strstr(error, "pin 32.0 MiB for the 16 vectors"));
    assert_int_equal(pinned(), before);
    pinnable(before + needed);
    assert_int_equal(open_exchange("adpsgd", DIM, &worker), KITH_OK);
    kith_worker_close(worker);

    /* Batches, which are pinned next. */
    worker = open_on(gpu);
    const size_t vector = (kith_worker_bytes(worker) + 63) / 64 * 64;
    kith_worker_close(worker);
    pinnable(before + SLOTS * vector);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = gpu,
        .train = &examples,
        .steps = 10,
        .peers = 2};
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_ENOMEM);
    assert_non_null(strstr(error, "batches of 0.0 MiB each, pinned"));
    assert_non_null(strstr(error, "train.batch"));
    assert_null(gpu->failed());
    pinnable(0);
    assert_int_equal(pinned(), before);
}

static enum kith_err save(struct kith_worker *worker, const char *path)
{
    const struct kith_standing standing = {.best = (double)NAN};
    return kith_save_write(worker, path, &standing, true, error);
}

static char *content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    (void)fclose(file);
    return bytes;
}

/* The save at `path` is refused with `err` and what was there before stays. */
static void save_refused(struct kith_worker *worker, const char *path,
                         enum kith_err err, const char *word)
{
    size_t before_bytes, after_bytes;
    char *before = content(path, &before_bytes);
    char partial[64];
    assert_int_equal(save(worker, path), err);
    assert_non_null(strstr(error, word));
    char *after = content(path, &after_bytes);
    assert_int_equal(after_bytes, before_bytes);
    assert_memory_equal(after, before, before_bytes);
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    assert_int_not_equal(access(partial, F_OK), 0);
    free(before);
    free(after);
}

static const char path[] = "test_worker_device.save";

/* On any backend: a model that a step has spoiled neither leaves nor takes the
 * place of a good save, until a neighbour's is adopted. */
static void test_not_finite(void **state)
{
    (void)state;
    const struct kith_backend *on[] = {gpu, kith_backend_find("cpu")};
    for (size_t i = 0; i < 2; i++) {
        struct kith_worker *worker = open_on(on[i]);
        snapshot(worker);
        assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
        assert_int_equal(save(worker, path), KITH_OK);
        experiment.train.config.learning_rate = 1e38;
        /* Back to the state before, which is no better at that rate. */
        struct kith_work_result result = {.finite = true};
        for (uint64_t step = 0;
             step < 20 && (result.finite || result.recovered); step++)
            result = run(worker, (struct kith_work){.kind = KITH_WORK_TRAIN,
                                                    .step = step});
        assert_false(result.finite || result.recovered);
        /* The one that was taken before may still go. */
        assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
        snapshot(worker);
        assert_int_equal(outgoing(worker, true), KITH_OUTGOING_NEVER);
        save_refused(worker, path, KITH_ENONFINITE, "not finite");

        float *inbox = kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX);
        memset(inbox, 0, kith_worker_bytes(worker));
        struct kith_work_edge edge = {.sent = KITH_SLOT_INITIATED_SENT,
                                      .inbox = KITH_SLOT_INITIATED_INBOX};
        (void)run(worker, (struct kith_work){.kind = KITH_WORK_ADOPT,
                                             .pattern = KITH_PATTERN_PULL,
                                             .edges = &edge,
                                             .edge_count = 1});
        snapshot(worker);
        assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
        assert_int_equal(save(worker, path), KITH_OK);
        kith_worker_close(worker);
    }
}

/* The last test, for a device that breaks stays broken. */
static void test_device_fails(void **state)
{
    (void)state;
    struct kith_worker *worker = open_on(gpu);
    struct kith_score score;
    train(worker, 2);
    double *z = parameters(worker);
    snapshot(worker);
    assert_int_equal(outgoing(worker, true), KITH_OUTGOING_READY);
    assert_int_equal(save(worker, path), KITH_OK);

    fail_after(4, ECC); /* in the middle of a step */
    const struct kith_work_result result =
        run(worker, (struct kith_work){.kind = KITH_WORK_TRAIN, .step = 2});
    assert_false(result.finite);
    const char *why = kith_worker_failed(worker);
    assert_non_null(why);
    assert_non_null(strstr(why, "GPU 0 (emulated)"));
    assert_non_null(strstr(why, "ECC"));
    assert_non_null(strstr(why, "nvidia-smi"));

    /* Nothing leaves, not even what was taken before; nothing is kept. */
    assert_int_equal(outgoing(worker, true), KITH_OUTGOING_NEVER);
    snapshot(worker);
    assert_int_equal(outgoing(worker, true), KITH_OUTGOING_NEVER);
    kith_worker_arrived(worker, KITH_SLOT_INITIATED_INBOX);
    save_refused(worker, path, KITH_EDEVICE, "ECC");
    assert_int_equal(kith_evaluate(&experiment, gpu, &examples, z, &score),
                     KITH_EDEVICE);
    assert_true(isnan(score.loss));
    kith_worker_close(worker);

    struct kith_worker *again = NULL;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = gpu,
        .train = &examples,
        .steps = 10,
        .peers = 2};
    assert_int_equal(kith_worker_open(&config, &again, error), KITH_EDEVICE);
    assert_non_null(strstr(error, "ECC"));

    /* The save is whole, and another backend can look at it. */
    double *kept;
    size_t dim;
    uint64_t step;
    experiment.backend = kith_backend_find("cpu");
    const struct kith_task task = kith_experiment_task(&experiment, NULL);
    assert_int_equal(kith_save_parameters(&task, experiment.backend, path,
                                          &kept, &dim, &step, error),
                     KITH_OK);
    assert_memory_equal(kept, z, dim * sizeof *z);
    free(kept);
    free(z);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cuda_find(&late, "kith_emulate_late");
    cuda_find(&fail_after, "kith_emulate_fail");
    cuda_find(&memory, "kith_emulate_memory");
    cuda_find(&pinnable, "kith_emulate_pinnable");
    cuda_find(&pinned, "kith_emulate_pinned");
    if (late == NULL) {
        printf("skipped: a device cannot be told to fail\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_comes_late),
        cmocka_unit_test(test_exchanges_agree),
        cmocka_unit_test(test_no_room_for_copies),
        cmocka_unit_test(test_only_what_is_used_is_pinned),
        cmocka_unit_test(test_pinning_is_refused),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_device_fails),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(path);
    (void)remove("test_worker_device.save.previous");
    return failed;
}
