/* Goal: a caller's vectors of each type are x while items run, and z after;
 * halves are rounded as the standard says. Method: a worker of model `program`;
 * every one of 2^16 halves there and back, ties by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/half.h"
#include "worker_fixture.h"

static char error[KITH_DATA_ERROR_BYTES];

static struct kith_worker *open_worker(struct kith_experiment *experiment,
                                       const char *algorithm, uint32_t dim)
{
    *experiment = fixture_experiment("program", algorithm, 2);
    experiment->model_config.dim = dim;
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

static void test_halves(void **state)
{
    (void)state;
    enum { COUNT = 1 << 16 };
    static uint16_t halves[COUNT], back[COUNT];
    static double z[COUNT];
    struct kith_experiment experiment;
    struct kith_worker *worker = open_worker(&experiment, "adpsgd", COUNT);
    const struct kith_outside in = {halves, COUNT, KITH_OUTSIDE_FLOAT16};
    const struct kith_outside out = {back, COUNT, KITH_OUTSIDE_FLOAT16};
    for (uint32_t i = 0; i < COUNT; i++)
        halves[i] = (uint16_t)i;
    assert_false(kith_worker_take_in(worker, &in, 1)); /* infinities, NaN */
    kith_worker_give_out(worker, &out, 1);
    uint32_t differ = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool nan = (i & 0x7fffu) > 0x7c00u;
        differ += nan ? (back[i] & 0x7fffu) <= 0x7c00u : back[i] != halves[i];
    }
    printf("expected: 0 of 65536 halves differ; measured: %u\n", differ);
    assert_int_equal(differ, 0);
    kith_worker_read(worker, z);
    assert_true(z[1] == 0x1p-24 && z[0x3ff] == 0x1p-14 - 0x1p-24);
    assert_true(z[0x3c00] == 1 && z[0xbc01] == -1 - 0x1p-10);
    assert_true(z[0x7bff] == 65504 && isinf(z[0x7c00]) && isnan(z[0x7c01]));
    kith_worker_close(worker);
}

static void test_rounding(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t half;
    } ties[] = {{1 + 0x1p-11f, 0x3c00},
                {1 + 0x1.8p-10f, 0x3c02},
                {1 + 0x1.01p-11f, 0x3c01},
                {65519.99f, 0x7bff},
                {65520, 0x7c00},
                {0x1p-25f, 0},
                {0x1.8p-24f, 2},
                {0x1.000002p-25f, 1},
                {-0x1.ff8p-15f, 0x83ff},
                {-0x1.fffp-15f, 0x8400},
                {0x1p-149f, 0},
                {-0.f, 0x8000}};
    enum { COUNT = sizeof ties / sizeof *ties };
    float values[COUNT];
    uint16_t halves[COUNT];
    struct kith_experiment experiment;
    struct kith_worker *worker = open_worker(&experiment, "adpsgd", COUNT);
    const struct kith_outside in = {values, COUNT, KITH_OUTSIDE_FLOAT32};
    const struct kith_outside out = {halves, COUNT, KITH_OUTSIDE_FLOAT16};
    for (size_t i = 0; i < COUNT; i++)
        values[i] = ties[i].value;
    assert_true(kith_worker_take_in(worker, &in, 1));
    kith_worker_give_out(worker, &out, 1);
    for (size_t i = 0; i < COUNT; i++) {
        printf("%a expected: %04x; measured: %04x\n", (double)ties[i].value,
               ties[i].half, halves[i]);
        assert_int_equal(halves[i], ties[i].half);
    }
    /* The one that became infinite is not booked. */
    const struct kith_rounded rounded = kith_worker_rounded(worker);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const double lost =
            (double)kith_from_half(ties[i].half) - (double)values[i];
        sum += isfinite(lost) ? lost : 0;
        squares += isfinite(lost) ? lost * lost : 0;
    }
    assert_true(sum < -0x1p-10 && rounded.sum == sum);
    assert_true(rounded.squares == squares);
    kith_worker_close(worker);
}

/* Several vectors in a row, and push-sum's z beside its x. */
static void test_parts(void **state)
{
    (void)state;
    enum { A = 1500, B = 1, C = 2500 };
    static float a[A], b[B];
    static uint16_t c[C];
    static double z[A + B + C];
    struct kith_experiment experiment;
    struct kith_worker *worker = open_worker(&experiment, "sgp", A + B + C);
    const struct kith_outside vectors[] = {{a, A, KITH_OUTSIDE_FLOAT32},
                                           {b, B, KITH_OUTSIDE_FLOAT32},
                                           {c, C, KITH_OUTSIDE_BFLOAT16}};
    for (int i = 0; i < A; i++)
        a[i] = (float)i;
    b[0] = -7;
    for (int i = 0; i < C; i++)
        c[i] = 0x3f80;                     /* 1 */
    kith_worker_scalars(worker)[0] = 0.25; /* its weight: z = 4 x */
    assert_true(kith_worker_take_in(worker, vectors, 3));
    const float *x = kith_worker_slot(worker, KITH_SLOT_LIVE);
    assert_true(x[8] == 2 && x[A] == -1.75f && x[A + B] == 0.25f);
    kith_worker_read(worker, z);
    assert_true(z[8] == 8 && z[A] == -7 && z[A + B + C - 1] == 1);
    memset(a, 0, sizeof a);
    memset(c, 0, sizeof c);
    kith_worker_give_out(worker, vectors, 3);
    assert_true(a[1499] == 1499 && b[0] == -7 && c[C - 1] == 0x3f80);
    b[0] = NAN;
    assert_false(kith_worker_take_in(worker, vectors, 3));
    kith_worker_close(worker);
}

/* Values that are averaged plainly, whatever the method does with the mean:
 * running statistics would turn negative by an outer momentum. */
static void test_buffers(void **state)
{
    (void)state;
    enum { TRAINED = 3, BUFFERS = 2, DIM = TRAINED + BUFFERS };
    float ours[DIM] = {4, 4, 4, 4, 4}, z[DIM];
    struct kith_experiment experiment =
        fixture_experiment("program", "diloco", 2);
    experiment.gossip.coefficients[KITH_GOSSIP_MOMENTUM] = 0.9;
    experiment.gossip.coefficients[KITH_GOSSIP_RATE] = 0.7;
    experiment.model_config.dim = DIM;
    experiment.model_config.buffers = BUFFERS;
    experiment.backend = kith_backend_find("cpu");
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .steps = 100,
        .edges_max = 1,
        .peers = 2};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    const struct kith_outside vectors = {ours, DIM, KITH_OUTSIDE_FLOAT32};
    assert_true(kith_worker_take_in(worker, &vectors, 1));
    kith_worker_begin_outside(worker);
    kith_worker_begin_step(worker, 0);
    for (int i = 0; i < DIM; i++)
        ours[i] = 2; /* the loop's steps */
    assert_true(kith_worker_take_in(worker, &vectors, 1));
    /* The mean with a neighbour at 0 is 1: D = 3, m = 3. */
    struct kith_work_edge edge = {.peer = 1,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_ROUND_SENT,
                                  .inbox = kith_slot_inbox(0, 0)};
    struct kith_work work = {.kind = KITH_WORK_MERGE,
                             .pattern = KITH_PATTERN_ROUND,
                             .snapshot_first = true,
                             .edges = &edge,
                             .edge_count = 1};
    struct kith_work_result result;
    memset(kith_worker_slot(worker, edge.inbox), 0, sizeof ours);
    kith_worker_run(worker, &work, &result);
    const struct kith_outside out = {z, DIM, KITH_OUTSIDE_FLOAT32};
    kith_worker_give_out(worker, &out, 1);
    for (int i = 0; i < DIM; i++) {
        const double expected = i < TRAINED ? 4 - 0.7 * (3 + 0.9 * 3) : 1;
        printf("expected: %.3f; measured: %.3f\n", expected, (double)z[i]);
        assert_true(fabs(z[i] - expected) < 1e-6);
    }
    kith_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
