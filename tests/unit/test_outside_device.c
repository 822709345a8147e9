/* Goal: a caller's vectors in a device's memory are x while items run, and z
 * after, bit for bit as those of the host are; they are read behind what the
 * caller's stream was told, and that stream reads what was written. Method:
 * workers of model `program` on cpu and on the CUDA module's emulation, which
 * does what it is told at once, and as late as streams and events allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"
#include "worker_run.h"

enum { HALVES = 1 << 16, A = 1501, B = HALVES, C = HALVES, DIM = A + B + C };
enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */

static const struct kith_backend *gpu, *half;
static void (*set_order)(int order);
static void *(*new_stream)(void);
static void (*tell_copy)(void *stream, void *target, const void *source,
                         size_t bytes);
static void (*synchronise)(void *stream);
static void (*set_late)(long queries);
static void (*choose)(int device);
static int (*chosen)(void);

/* The caller's, on the host: 2^16 of each kind of half are all there are. */
struct values {
    float a[A];
    uint16_t b[B], c[C];
};
static struct kith_experiment experiment;

static struct kith_worker *open_on(const struct kith_backend *backend,
                                   const char *algorithm)
{
    experiment = fixture_experiment("program", algorithm, 2);
    experiment.model_config.dim = DIM;
    experiment.backend = backend;
    return open_worker(&experiment, NULL, 0, 100);
}

static void fill(struct values *values, bool finite)
{
    double a[A];
    cuda_fill(a, A, 1);
    for (size_t i = 0; i < A; i++)
        values->a[i] = (float)(a[i] / 3);
    for (size_t i = 0; i < HALVES; i++) {
        const bool brain = (i & 0x7f80u) != 0x7f80u;
        const bool ieee = (i & 0x7c00u) != 0x7c00u;
        values->b[i] = brain || !finite ? (uint16_t)i : 0x3f80u;
        values->c[i] = ieee || !finite ? (uint16_t)i : 0x3c00u;
    }
}

static void name(struct kith_outside vectors[3], void *a, void *b, void *c)
{
    vectors[0] = (struct kith_outside){a, A, KITH_OUTSIDE_FLOAT32};
    vectors[1] = (struct kith_outside){b, B, KITH_OUTSIDE_BFLOAT16};
    vectors[2] = (struct kith_outside){c, C, KITH_OUTSIDE_FLOAT16};
}

/* What an exchange makes of x: the middle between it and an inbox of halves. */
static void exchange(struct kith_worker *worker)
{
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_INITIATED_INBOX};
    float *inbox = kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX);
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_SWAP,
                             .edges = &edge,
                             .edge_count = 1};
    (void)run(worker, work);
    assert_int_equal(kith_worker_outgoing(worker, edge.sent, true),
                     KITH_OUTGOING_READY);
    for (size_t i = 0; i < DIM; i++)
        inbox[i] = (float)(i % 7) / 8;
    kith_worker_arrived(worker, KITH_SLOT_INITIATED_INBOX);
    work.kind = KITH_WORK_MERGE;
    (void)run(worker, work);
}

static bool on_host(const char *algorithm, double weight, bool exchanges,
                    struct values *values)
{
    struct kith_outside vectors[3];
    struct kith_worker *worker = open_on(kith_backend_find("cpu"), algorithm);
    name(vectors, values->a, values->b, values->c);
    if (weight != 1)
        kith_worker_scalars(worker)[0] = weight;
    const bool finite = kith_worker_take_in(worker, vectors, 3);
    if (exchanges)
        exchange(worker);
    kith_worker_give_out(worker, vectors, 3);
    kith_worker_close(worker);
    return finite;
}

/* The same with vectors on the device, which a stream of the caller's writes
 * before and reads behind, and overwrites as soon as they have been taken.
 * `kith_first`: what kith is told is asked for before what that stream is. */
static bool on_device(const char *algorithm, double weight, bool exchanges,
                      bool kith_first, struct values *values)
{
    static struct values other;
    struct kith_outside vectors[3];
    struct kith_worker *worker = open_on(gpu, algorithm);
    struct values *const there = gpu->alloc(sizeof *there, false);
    void *const stream = new_stream();
    assert_non_null(there);
    name(vectors, &there->a, &there->b, &there->c);
    for (int i = 0; i < 3; i++)
        assert_null(gpu->outside->misplaced(vectors[i].data));
    memset(&other, 0x55, sizeof other);
    kith_worker_set_stream(worker, stream);
    if (weight != 1)
        kith_worker_scalars(worker)[0] = weight;
    gpu->outside->leave(stream); /* alloc() clears it on its own */
    tell_copy(stream, there, values, sizeof *values);
    const bool finite = kith_worker_take_in(worker, vectors, 3);
    tell_copy(stream, there, &other, sizeof other);
    if (exchanges)
        exchange(worker);
    kith_worker_give_out(worker, vectors, 3);
    if (kith_first)
        (void)gpu->finite(DIM, kith_worker_slot(worker, KITH_SLOT_LIVE));
    tell_copy(stream, &other, there, sizeof other);
    synchronise(stream);
    memcpy(values, &other, sizeof other);
    gpu->release(there);
    kith_worker_close(worker);
    assert_null(gpu->failed());
    return finite;
}

static void compare(const char *algorithm, double weight, bool finite,
                    bool exchanges)
{
    static struct values host, device;
    fill(&host, finite);
    assert_int_equal(on_host(algorithm, weight, exchanges, &host), finite);
    for (int at = 0; at < 2 * ORDERS; at++) {
        const int order = at / 2;
        const bool kith_first = at % 2 != 0;
        size_t differ = 0;
        set_order(order);
        fill(&device, finite);
        assert_int_equal(
            on_device(algorithm, weight, exchanges, kith_first, &device),
            finite);
        set_order(EARLY);
        differ += memcmp(host.a, device.a, sizeof host.a) != 0;
        for (size_t i = 0; i < HALVES; i++)
            differ += host.b[i] != device.b[i] || host.c[i] != device.c[i];
        printf("%s, order %d, %s first: expected: 0 values differ; measured: "
               "%zu\n",
               algorithm, order, kith_first ? "kith" : "the caller", differ);
        assert_int_equal(differ, 0);
    }
}

/* Every half there is, and those that are no numbers. */
static void test_there_and_back(void **state)
{
    (void)state;
    compare("adpsgd", 1, false, false);
}

static void test_exchange(void **state)
{
    (void)state;
    compare("adpsgd", 1, true, true);
}

/* Push-sum's z beside its x. */
static void test_weight(void **state)
{
    (void)state;
    compare("sgp", 0.75, true, false);
}

/* What is taken leaves on a stream of its own, while the loop's next step runs
 * to its end on the caller's, whose values are not in it. */
static void test_snapshot_leaves(void **state)
{
    (void)state;
    static struct values values, next;
    struct kith_outside vectors[3];
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_INITIATED_INBOX};
    const struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .edges = &edge,
                                   .edge_count = 1};
    fill(&values, true);
    struct kith_worker *worker = open_on(gpu, "adpsgd");
    struct values *const there = gpu->alloc(sizeof *there, false);
    void *const stream = new_stream();
    name(vectors, &there->a, &there->b, &there->c);
    kith_worker_set_stream(worker, stream);
    set_order(LATE);
    set_late(2);
    tell_copy(stream, there, &values, sizeof values);
    assert_true(kith_worker_take_in(worker, vectors, 3));
    (void)run(worker, work);

    assert_int_equal(kith_worker_outgoing(worker, edge.sent, false),
                     KITH_OUTGOING_WAITS);
    tell_copy(stream, there, &next, sizeof next);
    synchronise(stream);
    assert_int_equal(kith_worker_outgoing(worker, edge.sent, false),
                     KITH_OUTGOING_WAITS);
    assert_int_equal(kith_worker_outgoing(worker, edge.sent, true),
                     KITH_OUTGOING_READY);
    assert_memory_equal(kith_worker_slot(worker, edge.sent), values.a,
                        sizeof values.a);

    set_late(0);
    set_order(EARLY);
    gpu->release(there);
    kith_worker_close(worker);
}

/* Of a thread that computes on another device besides. */
static void test_current_device(void **state)
{
    (void)state;
    choose(1);
    compare("adpsgd", 1, true, true);
    printf("expected: device 1 is current; measured: %d\n", chosen());
    assert_int_equal(chosen(), 1);
    choose(0);
}

static void test_misplaced(void **state)
{
    (void)state;
    static float here[4];
    const char *where = gpu->outside->misplaced(here);
    printf("expected: where it lies; measured: %s\n",
           where == NULL ? "nothing" : where);
    assert_non_null(where);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half) ||
        cuda_emulation("kith_emulate_order") == NULL)
        return 77;
    cuda_find(&set_order, "kith_emulate_order");
    cuda_find(&new_stream, "kith_emulate_stream");
    cuda_find(&tell_copy, "kith_emulate_copy");
    cuda_find(&synchronise, "kith_emulate_synchronise");
    cuda_find(&set_late, "kith_emulate_late");
    cuda_find(&choose, "kith_emulate_choose");
    cuda_find(&chosen, "kith_emulate_chosen");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_snapshot_leaves),
        cmocka_unit_test(test_current_device),
        cmocka_unit_test(test_misplaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
