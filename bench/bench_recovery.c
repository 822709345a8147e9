/* What the last good model costs (src/training/worker/recovery.c) beside the
 * steps that it is kept for: 16 times TRAIN and the MERGE of a received model,
 * against the copy that keeps it, and against the 16 looks at what came. Gate:
 * the copy is at most 2 % of the steps. The looks are shown beside it. An mlp
 * of 784, 1,024, 1,024 and 10, batches of 128 (BENCH_BATCH: a step's work grows
 * with it, these costs do not), by the thread's own clock. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/backend.h"
#include "kith/worker.h"

enum { ROUNDS = 41, ROWS = 1024, FEATURES = 784 };

static double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint8_t pixels[ROWS * FEATURES];
static int32_t labels[ROWS];

static struct kith_worker *open_worker(void)
{
    static struct kith_examples examples;
    static struct kith_model_config model;
    static struct kith_split split = {.kind = KITH_SPLIT_IID};
    static struct kith_training training;
    char error[KITH_DATA_ERROR_BYTES];
    const uint32_t layers[] = {FEATURES, 1024, 1024, 10};
    memcpy(model.layers, layers, sizeof layers);
    model.layer_count = 4;
    training.optimiser = kith_optimiser_find("sgd");
    training.config.learning_rate = 1e-4;
    training.config.momentum = 0.9;
    training.batch = (uint32_t)bench_setting("BENCH_BATCH", 128);
    examples = (struct kith_examples){.element = KITH_ELEMENT_U8,
                                      .input = KITH_INPUT_IMAGES,
                                      .values = pixels,
                                      .labels = labels,
                                      .count = ROWS,
                                      .features = FEATURES,
                                      .classes = 10,
                                      .shape = {1, 1, FEATURES},
                                      .deviation = {1, 1, 1, 1}};
    const struct kith_worker_config config = {
        .task = {.seed = 1,
                 .peers = 2,
                 .model = kith_model_find("mlp"),
                 .model_config = &model,
                 .training = &training,
                 .split = &split,
                 .algorithm = kith_algorithm_find("adpsgd"),
                 .every = 1},
        .backend = kith_backend_find("cpu"),
        .train = &examples,
        .steps = 1u << 30,
        .peers = 2};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return worker;
}

static void step(struct kith_worker *worker, uint64_t number)
{
    struct kith_work_result result;
    struct kith_work_edge edge = {.peer = 1,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_ANSWERED_SENT,
                                  .inbox = KITH_SLOT_ANSWERED_INBOX};
    struct kith_work train = {.kind = KITH_WORK_TRAIN, .step = number};
    struct kith_work merge = {.kind = KITH_WORK_MERGE,
                              .pattern = KITH_PATTERN_SWAP,
                              .snapshot_first = true,
                              .edges = &edge,
                              .edge_count = 1};
    kith_worker_run(worker, &train, &result);
    if (!result.finite)
        abort();
    kith_worker_run(worker, &merge, &result);
    if (edge.refused)
        abort();
}

int main(void)
{
    double steps[ROUNDS], kept[ROUNDS], looked[ROUNDS];
    const struct kith_backend *backend = kith_backend_find("cpu");
    struct kith_worker *worker = open_worker();
    const size_t dim = kith_worker_dim(worker);
    float *good = bench_alloc(dim * sizeof *good);
    double far = 0;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)((i * 2654435761u) >> 24);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)(i % 10);
    bench_pin(0);
    for (int round = -1; round < ROUNDS; round++) {
        void *inbox = kith_worker_slot(worker, KITH_SLOT_ANSWERED_INBOX);
        memcpy(inbox, kith_worker_slot(worker, KITH_SLOT_LIVE),
               kith_worker_bytes(worker));
        const double start = cpu_now();
        for (unsigned i = 0; i < KITH_KEEP_STEPS; i++)
            step(worker, (uint64_t)(round + 1) * KITH_KEEP_STEPS + i);
        const double middle = cpu_now();
        backend->copy(dim, good, kith_worker_slot(worker, KITH_SLOT_LIVE));
        const double copied = cpu_now();
        for (unsigned i = 0; i < KITH_KEEP_STEPS; i++)
            far += backend->distance_squared(dim, inbox, good);
        if (round < 0)
            continue;
        steps[round] = (middle - start) * 1e3;
        kept[round] = (copied - middle) * 1e3;
        looked[round] = (cpu_now() - copied) * 1e3;
    }
    if (!(far >= 0))
        abort();
    printf("# %u steps, %zu parameters\n", KITH_KEEP_STEPS, dim);
    bench_print("steps and merges", steps, ROUNDS, "ms");
    bench_print("of which the last good model is kept", kept, ROUNDS, "ms");
    bench_print("of which what came is held against it", looked, ROUNDS, "ms");
    bench_ratio("steps : keeping (>= 50 is <= 2 %)", steps, kept, ROUNDS, 50);
    return 0;
}
