/* Goal: work items do to the vectors what work.h and worker.h say. Method: two
 * or three workers, driven by hand in place of a core; vectors are compared
 * through float64. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker_run.h"

enum { DIM = 37 };

/* Swap between a and b with training in between: the sum of both models moves
 * only by the gradients, and undo takes a side back. */
static void swap_on(const char *backend_name)
{
    struct kith_experiment experiment =
        fixture_experiment("consensus", "adpsgd", 2);
    experiment.backend = kith_backend_find(backend_name);
    const double unit = experiment.backend->element_bytes == 4
                            ? (double)FLT_EPSILON
                            : DBL_EPSILON;
    struct kith_worker *a = open_worker(&experiment, NULL, 0, 10);
    struct kith_worker *b = open_worker(&experiment, NULL, 1, 10);
    double before_a[DIM], before_b[DIM], after_a[DIM], after_b[DIM];
    kith_worker_read(a, before_a);
    kith_worker_read(b, before_b);
    struct kith_work_edge active = {.peer = 1,
                                    .weight = 0.5,
                                    .sent = KITH_SLOT_INITIATED_SENT,
                                    .inbox = KITH_SLOT_INITIATED_INBOX};
    struct kith_work_edge served = {.peer = 0,
                                    .weight = 0.5,
                                    .sent = KITH_SLOT_ANSWERED_SENT,
                                    .inbox = KITH_SLOT_ANSWERED_INBOX};

    run(a, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                              .pattern = KITH_PATTERN_SWAP,
                              .edges = &active,
                              .edge_count = 1});
    /* consensus learns nothing: TRAIN must leave x alone. */
    train(a, 3);
    carry(a, KITH_SLOT_INITIATED_SENT, b, KITH_SLOT_ANSWERED_INBOX);
    run(b, (struct kith_work){.kind = KITH_WORK_MERGE,
                              .pattern = KITH_PATTERN_SWAP,
                              .snapshot_first = true,
                              .edges = &served,
                              .edge_count = 1});
    carry(b, KITH_SLOT_ANSWERED_SENT, a, KITH_SLOT_INITIATED_INBOX);
    run(a, (struct kith_work){.kind = KITH_WORK_MERGE,
                              .pattern = KITH_PATTERN_SWAP,
                              .edges = &active,
                              .edge_count = 1});

    kith_worker_read(a, after_a);
    kith_worker_read(b, after_b);
    assert_true(active.delta_sum == -served.delta_sum);
    assert_true(active.delta_sum < 0 || active.delta_sum > 0);
    for (size_t i = 0; i < DIM; i++) {
        const double mean = (before_a[i] + before_b[i]) / 2;
        assert_true(fabs(after_a[i] - mean) <= 8 * unit);
        assert_true(fabs(after_b[i] - mean) <= 8 * unit);
    }

    run(b, (struct kith_work){.kind = KITH_WORK_UNDO,
                              .pattern = KITH_PATTERN_SWAP,
                              .edges = &served,
                              .edge_count = 1});
    kith_worker_read(b, after_b);
    /* x + delta - delta: one rounding each of numbers below 8. */
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(after_b[i] - before_b[i]) <= 8 * unit);
    kith_worker_close(a);
    kith_worker_close(b);
}

static void test_swap(void **state)
{
    (void)state;
    swap_on("naive64");
    swap_on("naive32");
    swap_on("cpu");
}

/* Where sums are exact (small multiples of a power of two) undo is, too. */
static void test_undo_is_exact_on_exact_sums(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("consensus", "adpsgd", 2);
    experiment.backend = kith_backend_find("cpu");
    struct kith_worker *a = open_worker(&experiment, NULL, 0, 10);
    float *x = kith_worker_slot(a, KITH_SLOT_LIVE);
    float *inbox = kith_worker_slot(a, KITH_SLOT_ANSWERED_INBOX), kept[DIM];
    for (size_t i = 0; i < DIM; i++) {
        x[i] = kept[i] = (float)i / 8;
        inbox[i] = (float)(DIM - i) / 4;
    }
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_ANSWERED_SENT,
                                  .inbox = KITH_SLOT_ANSWERED_INBOX};
    run(a, (struct kith_work){.kind = KITH_WORK_MERGE,
                              .snapshot_first = true,
                              .edges = &edge,
                              .edge_count = 1});
    x = kith_worker_slot(a, KITH_SLOT_LIVE);
    assert_true(memcmp(x, kept, sizeof kept) != 0);
    run(a, (struct kith_work){
               .kind = KITH_WORK_UNDO, .edges = &edge, .edge_count = 1});
    x = kith_worker_slot(a, KITH_SLOT_LIVE);
    assert_memory_equal(x, kept, sizeof kept);
    kith_worker_close(a);
}

static void read_slot(struct kith_worker *worker, uint32_t slot, double *out)
{
    memcpy(out, kith_worker_slot(worker, slot), DIM * sizeof *out);
}

/* Snapshots are x itself until x changes: whatever changes it then, they keep
 * what they were taken of, and x is what it would be with copies. */
static void test_snapshots_stay(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("quadratic", "adpsgd", 2);
    struct kith_worker *a = open_worker(&experiment, NULL, 0, 10);
    struct kith_worker *b = open_worker(&experiment, NULL, 1, 10);
    struct kith_work_edge active = {.weight = 0.5,
                                    .sent = KITH_SLOT_INITIATED_SENT,
                                    .inbox = KITH_SLOT_INITIATED_INBOX};
    struct kith_work_edge served = {.weight = 0.5,
                                    .sent = KITH_SLOT_ANSWERED_SENT,
                                    .inbox = KITH_SLOT_ANSWERED_INBOX};
    const struct kith_work snapshot = {.kind = KITH_WORK_SNAPSHOT,
                                       .pattern = KITH_PATTERN_SWAP,
                                       .edges = &active,
                                       .edge_count = 1};
    const struct kith_work serve = {.kind = KITH_WORK_MERGE,
                                    .pattern = KITH_PATTERN_SWAP,
                                    .snapshot_first = true,
                                    .edges = &served,
                                    .edge_count = 1};
    const struct kith_work merge = {.kind = KITH_WORK_MERGE,
                                    .pattern = KITH_PATTERN_SWAP,
                                    .edges = &active,
                                    .edge_count = 1};
    double x[DIM], first[DIM], second[DIM], got[DIM], other[DIM];
    train(b, 2);
    read_slot(b, KITH_SLOT_LIVE, other);
    for (unsigned round = 0; round < 3; round++) {
        read_slot(a, KITH_SLOT_LIVE, first);
        run(a, snapshot);
        if (round > 0)
            train(a, 1);
        read_slot(a, KITH_SLOT_LIVE, second);
        carry(b, KITH_SLOT_LIVE, a, KITH_SLOT_ANSWERED_INBOX);
        run(a, serve);
        read_slot(a, KITH_SLOT_LIVE, x);
        for (size_t i = 0; i < DIM; i++)
            assert_true(x[i] == second[i] + 0.5 * (other[i] - second[i]));
        if (round > 1)
            train(a, 1);
        read_slot(a, KITH_SLOT_INITIATED_SENT, got);
        assert_memory_equal(got, first, sizeof first);
        read_slot(a, KITH_SLOT_ANSWERED_SENT, got);
        assert_memory_equal(got, second, sizeof second);

        read_slot(a, KITH_SLOT_LIVE, x);
        carry(b, KITH_SLOT_LIVE, a, KITH_SLOT_INITIATED_INBOX);
        run(a, merge);
        read_slot(a, KITH_SLOT_LIVE, got);
        for (size_t i = 0; i < DIM; i++)
            assert_true(got[i] == x[i] + 0.5 * (other[i] - first[i]));
        read_slot(a, KITH_SLOT_ANSWERED_SENT, got);
        assert_memory_equal(got, second, sizeof second);

        run(a, (struct kith_work){.kind = KITH_WORK_UNDO,
                                  .pattern = KITH_PATTERN_SWAP,
                                  .edges = &served,
                                  .edge_count = 1});
        read_slot(a, KITH_SLOT_ANSWERED_SENT, got);
        assert_memory_equal(got, second, sizeof second);
    }

    /* Nothing happened in between: the merge moves x, the snapshot stays. */
    read_slot(a, KITH_SLOT_LIVE, first);
    run(a, snapshot);
    run(a, merge);
    read_slot(a, KITH_SLOT_LIVE, x);
    read_slot(a, KITH_SLOT_INITIATED_SENT, got);
    assert_memory_equal(got, first, sizeof first);
    for (size_t i = 0; i < DIM; i++)
        assert_true(x[i] == first[i] + 0.5 * (other[i] - first[i]));
    kith_worker_close(a);
    kith_worker_close(b);
}

/* An insider's next two models: what goes to all of a round is one, and x stays
 * as it is. */
static void test_spoils_so_many(void **state)
{
    (void)state;
    const struct kith_experiment experiment =
        fixture_experiment("consensus", "dpsgd", 3);
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 10);
    struct kith_work_edge edges[2] = {
        {.peer = 1, .weight = 0.25, .sent = KITH_SLOT_ROUND_SENT},
        {.peer = 2, .weight = 0.5, .sent = KITH_SLOT_ROUND_SENT}};
    double x[DIM], got[DIM];
    kith_worker_read(worker, x);
    const struct kith_lie lie = {KITH_LIE_HUGE, 1e19, 2};
    kith_worker_lie(worker, &lie);
    for (unsigned round = 0; round < 4; round++) {
        run(worker, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                       .pattern = KITH_PATTERN_ROUND,
                                       .edges = edges,
                                       .edge_count = 2});
        read_slot(worker, KITH_SLOT_ROUND_SENT, got);
        for (size_t i = 0; i < DIM; i++)
            assert_true(got[i] == (round < 2 ? copysign(1e19, x[i]) : x[i]));
        read_slot(worker, KITH_SLOT_LIVE, got);
        assert_memory_equal(got, x, sizeof x);
    }
    kith_worker_close(worker);
}

/* Three peers of a round: x_0 moves to the weighted mean; an edge that brought
 * nothing moves nothing. */
static void test_round(void **state)
{
    (void)state;
    const struct kith_experiment experiment =
        fixture_experiment("consensus", "dpsgd", 3);
    struct kith_worker *worker[3];
    double x[3][DIM], after[DIM];
    for (kith_id i = 0; i < 3; i++) {
        worker[i] = open_worker(&experiment, NULL, i, 10);
        kith_worker_read(worker[i], x[i]);
    }
    struct kith_work_edge edges[2] = {{.peer = 1,
                                       .weight = 0.25,
                                       .sent = KITH_SLOT_ROUND_SENT,
                                       .inbox = kith_slot_inbox(0, 0)},
                                      {.peer = 2,
                                       .weight = 0.5,
                                       .sent = KITH_SLOT_ROUND_SENT,
                                       .inbox = kith_slot_inbox(1, 0)}};
    run(worker[0], (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                      .pattern = KITH_PATTERN_ROUND,
                                      .edges = edges,
                                      .edge_count = 2});
    carry(worker[1], KITH_SLOT_LIVE, worker[0], kith_slot_inbox(0, 0));
    carry(worker[2], KITH_SLOT_LIVE, worker[0], kith_slot_inbox(1, 0));
    run(worker[0], (struct kith_work){.kind = KITH_WORK_MERGE,
                                      .pattern = KITH_PATTERN_ROUND,
                                      .edges = edges,
                                      .edge_count = 2});
    kith_worker_read(worker[0], after);
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(after[i] - (0.25 * x[0][i] + 0.25 * x[1][i] +
                                     0.5 * x[2][i])) <= 8 * DBL_EPSILON);

    edges[1].inbox = KITH_SLOT_NONE;
    kith_worker_read(worker[0], x[0]);
    run(worker[0], (struct kith_work){.kind = KITH_WORK_MERGE,
                                      .pattern = KITH_PATTERN_ROUND,
                                      .snapshot_first = true,
                                      .edges = edges,
                                      .edge_count = 2});
    kith_worker_read(worker[0], after);
    assert_true(edges[1].delta_sum == 0);
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(after[i] - (0.75 * x[0][i] + 0.25 * x[1][i])) <=
                    8 * DBL_EPSILON);
    for (kith_id i = 0; i < 3; i++)
        kith_worker_close(worker[i]);
}

/* Push-sum: x and weight are split and added, z = x / w is what counts, and
 * the gradient is taken and applied there: z -= rate (z - b). Who gives away
 * over and over keeps its z. */
static void test_push(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("quadratic", "sgp", 2);
    struct kith_worker *a = open_worker(&experiment, NULL, 0, 10);
    struct kith_worker *b = open_worker(&experiment, NULL, 1, 10);
    double z[DIM], again[DIM];
    train(a, 2);
    train(b, 2);
    kith_worker_read(a, z);
    struct kith_work_edge edge = {.peer = 1,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_NONE};
    run(a, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                              .pattern = KITH_PATTERN_PUSH,
                              .edges = &edge,
                              .edge_count = 1});
    assert_true(kith_worker_scalars(a)[0] == 0.5);
    assert_true(edge.scalars_sent[0] == 0.5);
    kith_worker_read(a, again);
    for (size_t i = 0; i < DIM; i++) /* Halving is exact. */
        assert_true(again[i] == z[i]);

    /* One plain step at weight 1/2. */
    const double momentum = experiment.train.config.momentum;
    assert_true(momentum == 0);
    const struct kith_model *model = experiment.model;
    double gradient[DIM];
    const struct kith_batch batch = {.rows = 1, .entity = 0, .seed = 7};
    (void)model->loss(&experiment.model_config, experiment.backend, z, &batch,
                      gradient);
    train(a, 1);
    kith_worker_read(a, again);
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(again[i] - (z[i] - 0.1 * gradient[i])) < 1e-14);
    assert_true(kith_worker_scalars(a)[0] == 0.5);

    struct kith_work_edge in = {
        .peer = 0, .sent = KITH_SLOT_NONE, .inbox = KITH_SLOT_ANSWERED_INBOX};
    in.scalars_received[0] = edge.scalars_sent[0];
    carry(a, KITH_SLOT_INITIATED_SENT, b, KITH_SLOT_ANSWERED_INBOX);
    run(b, (struct kith_work){.kind = KITH_WORK_MERGE,
                              .pattern = KITH_PATTERN_PUSH,
                              .edges = &in,
                              .edge_count = 1});
    assert_true(kith_worker_scalars(b)[0] == 1.5);
    assert_true(edge.delta_sum == -in.delta_sum);

    /* The share never arrived: it comes home. */
    run(a, (struct kith_work){.kind = KITH_WORK_UNDO,
                              .pattern = KITH_PATTERN_PUSH,
                              .edges = &edge,
                              .edge_count = 1});
    assert_true(kith_worker_scalars(a)[0] == 1);

    kith_worker_read(a, z);
    for (unsigned times = 0; times < 2000; times++) {
        run(a, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                  .pattern = KITH_PATTERN_PUSH,
                                  .edges = &edge,
                                  .edge_count = 1});
        assert_true(edge.scalars_sent[0] > 0);
    }
    kith_worker_read(a, again);
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(again[i] - z[i]) <= 1e-12 * fabs(z[i]));
    kith_worker_close(a);
    kith_worker_close(b);
}

/* A receive without a copy: the caller's memory takes the slot's place. */
static void test_swap_memory(void **state)
{
    (void)state;
    const struct kith_experiment experiment =
        fixture_experiment("consensus", "adpsgd", 2);
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 10);
    double own[DIM] = {3};
    void *old = kith_worker_swap(worker, KITH_SLOT_INITIATED_INBOX, own);
    assert_ptr_equal(kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX), own);
    assert_ptr_equal(kith_worker_swap(worker, KITH_SLOT_INITIATED_INBOX, old),
                     own);
    for (uint32_t slot = 0; slot <= KITH_SLOT_ANSWERED_INBOX; slot++)
        assert_int_equal((uintptr_t)kith_worker_slot(worker, slot) % 64, 0);
    kith_worker_close(worker);
}

/* What open takes for exchanges, by hand: 16 slots of pairs, of which snapshots
 * and what is pulled are whole; a ring's snapshot, inboxes and pulls. A wire
 * packs inboxes alone, and reads into vectors of its own. */
static void test_measure(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("consensus", "adpsgd", 2);
    experiment.backend = kith_backend_find("naive32");
    experiment.model_config.dim = 4096;
    struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .peers = 2};
    struct kith_worker_memory memory;
    const size_t whole = 4096 * sizeof(float), blocks = 4096 / 256;

    config.task.exchanges = 4;
    assert_int_equal(kith_worker_measure(&config, &memory), KITH_OK);
    assert_int_equal(memory.slots, 16 * whole);
    assert_int_equal(memory.wire + memory.algorithm, 0);

    config.task.exchanges = 1;
    config.task.format = kith_format_find("moniqua4");
    assert_int_equal(kith_worker_measure(&config, &memory), KITH_OK);
    assert_int_equal(memory.slots, 3 * whole + whole / 8 + 4 * blocks);
    assert_int_equal(memory.wire, (3 + 2) * whole + 2 * blocks * sizeof(float));

    config.task.format = NULL;
    config.task.algorithm = kith_algorithm_find("extra");
    config.edges_max = 2;
    assert_int_equal(kith_worker_measure(&config, &memory), KITH_OK);
    assert_int_equal(memory.slots, (2 + 1 + 2 * 2) * whole);
    assert_int_equal(memory.algorithm, 2 * whole);
}

/* A merge may carry running variances below 0: they end at 0, and what that
 * added is booked; means and weights move as ever. Frozen views stay here. */
static void test_variances(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("resnet", "adpsgd", 2);
    experiment.model_config = (struct kith_model_config){
        .image = {4, 4, 1}, .classes = 2, .depth = 20, .frozen = "conv1"};
    const struct kith_model_size size =
        kith_model_size_of(experiment.model, &experiment.model_config);
    static const uint8_t images[16 * 4];
    static const int32_t labels[4] = {0, 1, 0, 1};
    struct kith_examples examples = fixture_examples(images, labels, 4, 16, 2);
    experiment.train.batch = 2;
    experiment.data.split.kind = KITH_SPLIT_IID;
    struct kith_worker *worker = open_worker(&experiment, &examples, 0, 6);
    assert_int_equal(kith_worker_bytes(worker), size.gossiped * sizeof(double));
    assert_int_equal(size.dim - size.gossiped, 3 * 3 * 16); /* conv1 */

    struct kith_work_edge edge = {.peer = 1,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_INITIATED_INBOX};
    double *live = kith_worker_slot(worker, KITH_SLOT_LIVE);
    double *inbox = kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX);
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .edges = &edge,
                                         .edge_count = 1});
    double before = 0, after = 0, frozen[3 * 3 * 16];
    for (size_t i = 0; i < size.gossiped; i++) {
        inbox[i] = live[i] - 8; /* each moves by -4 */
        before += live[i];
    }
    memcpy(frozen, live + size.gossiped, sizeof frozen);
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .edges = &edge,
                                         .edge_count = 1});
    live = kith_worker_slot(worker, KITH_SLOT_LIVE);
    size_t zeros = 0;
    for (size_t i = 0; i < size.gossiped; i++) {
        zeros += live[i] == 0;
        after += live[i];
    }
    assert_int_equal(zeros, (size.gossiped - size.trained) / 2);
    assert_true(fabs(after - before - edge.delta_sum) < 1e-6);
    assert_memory_equal(frozen, live + size.gossiped, sizeof frozen);
    kith_worker_close(worker);
}

/* More vectors than there is memory for are refused before any is taken. */
static void test_memory(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("quadratic", "adpsgd", 2);
    experiment.model_config.dim = 1u << 20;
    experiment.backend = kith_backend_find("naive32");
    struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .steps = 1,
        .together = UINT32_MAX,
        .peers = 1};
    struct kith_worker *worker;

    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_ENOMEM);

    assert_non_null(strstr(error, "4294967295 times the model's vectors"));
    assert_non_null(strstr(error, "GiB of memory"));
    config.together = 1;
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_OK);
    kith_worker_close(worker);
}

/* A model without parameters: messages of no bytes, in every algorithm. */
static void empty_with(const struct kith_algorithm *algorithm)
{
    char text[256];
    struct kith_experiment experiment;
    if (algorithm->flags & KITH_SHARES_GRADIENTS)
        return; /* There are none: refused, unit/test_sync_sgd. */
    snprintf(text, sizeof text,
             "name: e\npeers: 3\nmodel: {kind: none}\nstop: {steps: 9}\n"
             "gossip: {algorithm: %s, topology: %s}\n",
             algorithm->name,
             algorithm->schedule != NULL          ? algorithm->schedule
             : algorithm->flags & KITH_NEEDS_TREE ? "path"
                                                  : "ring");
    if (kith_experiment_parse("e.yaml", text, strlen(text), NULL, 0,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 9);
    const enum kith_pattern pattern = algorithm->pattern;
    struct kith_work_edge edge = {
        .peer = 1,
        .weight = 0.25,
        .sent = pattern != KITH_PATTERN_ROUND ? KITH_SLOT_INITIATED_SENT
                : algorithm->flags & KITH_SENDS_EDGE_MESSAGES
                    ? kith_slot_outbox(0)
                    : KITH_SLOT_ROUND_SENT,
        .inbox = pattern == KITH_PATTERN_ROUND ? kith_slot_inbox(0, 0)
                                               : KITH_SLOT_INITIATED_INBOX};
    memcpy(edge.scalars_received, algorithm->scalars_start,
           sizeof edge.scalars_received);
    struct kith_work work = {.pattern = pattern,
                             .step = 1,
                             .edges = &edge,
                             .edge_count = pattern != KITH_PATTERN_NONE};
    assert_int_equal(kith_worker_payload(worker), 0);
    work.kind = KITH_WORK_SNAPSHOT;
    assert_true(run(worker, work).finite);
    work.kind = KITH_WORK_MERGE;
    assert_true(run(worker, work).finite);
    kith_worker_close(worker);
    kith_experiment_close(&experiment);
}

static void test_empty(void **state)
{
    (void)state;
    for (size_t i = 0; kith_algorithms[i] != NULL; i++)
        empty_with(kith_algorithms[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_undo_is_exact_on_exact_sums),
        cmocka_unit_test(test_snapshots_stay),
        cmocka_unit_test(test_spoils_so_many),
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_swap_memory),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_variances),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
