/* What a guard costs: the MERGE of a received model with each guard beside that
 * of guard none, alternating. Gate: at most 1.15 times the time. Models of
 * eight neighbours in turn, each its own distance away, as large as
 * bench_recovery's: an mlp of 784, 1,024, 1,024 and 10. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "kith/worker.h"

enum { ROUNDS = 101, PEERS = 8 };

static struct kith_worker *open_worker(const struct kith_guard *guard)
{
    static struct kith_model_config model;
    static struct kith_split split = {.kind = KITH_SPLIT_IID};
    static struct kith_training training = {.batch = 1};
    static const uint8_t pixels[784];
    static const int32_t labels[1];
    static struct kith_examples examples = {.element = KITH_ELEMENT_U8,
                                            .input = KITH_INPUT_IMAGES,
                                            .values = pixels,
                                            .labels = labels,
                                            .count = 1,
                                            .features = 784,
                                            .classes = 10,
                                            .shape = {1, 1, 784},
                                            .deviation = {1, 1, 1, 1}};
    const uint32_t layers[] = {784, 1024, 1024, 10};
    char error[KITH_DATA_ERROR_BYTES];
    memcpy(model.layers, layers, sizeof layers);
    model.layer_count = 4;
    training.optimiser = kith_optimiser_find("sgd");
    training.config.learning_rate = 1e-4;
    const struct kith_worker_config config = {
        .task = {.seed = 1,
                 .peers = 1,
                 .model = kith_model_find("mlp"),
                 .model_config = &model,
                 .training = &training,
                 .split = &split,
                 .algorithm = kith_algorithm_find("adpsgd"),
                 .guard = guard,
                 .every = 1},
        .backend = kith_backend_find("cpu"),
        .train = &examples,
        .steps = 1u << 30,
        .peers = 1};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    struct kith_work train = {.kind = KITH_WORK_TRAIN};
    struct kith_work_result result;
    kith_worker_run(worker, &train, &result);
    if (!result.finite)
        abort();
    return worker;
}

/* Milliseconds. */
static double merge(struct kith_worker *worker, unsigned turn)
{
    struct kith_work_result result;
    struct kith_work_edge edge = {.peer = 1 + turn % PEERS,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_ANSWERED_SENT,
                                  .inbox = KITH_SLOT_ANSWERED_INBOX};
    struct kith_work work = {.kind = KITH_WORK_MERGE,
                             .pattern = KITH_PATTERN_SWAP,
                             .snapshot_first = true,
                             .edges = &edge,
                             .edge_count = 1};
    const size_t dim = kith_worker_dim(worker);
    const float *x = kith_worker_slot(worker, KITH_SLOT_LIVE);
    float *y = kith_worker_slot(worker, KITH_SLOT_ANSWERED_INBOX);
    for (size_t i = 0; i < dim; i++)
        y[i] = x[i] + 1e-6f * (float)((i * 2654435761u + turn) % 97) *
                          (float)(1 + turn % PEERS);
    const double start = bench_now();
    kith_worker_run(worker, &work, &result);
    if (edge.refused)
        abort();
    return (bench_now() - start) * 1e3;
}

int main(void)
{
    double plain[ROUNDS], guarded[ROUNDS];
    bench_pin(0);
    for (unsigned g = 0; kith_guards[g] != NULL; g++) {
        const struct kith_guard *guard = kith_guards[g];
        if (guard->weigh == NULL)
            continue;
        struct kith_worker *without = open_worker(NULL);
        struct kith_worker *with = open_worker(guard);
        for (int round = -16; round < ROUNDS; round++) {
            const double a = merge(without, (unsigned)(round + 16));
            const double b = merge(with, (unsigned)(round + 16));
            if (round < 0)
                continue;
            plain[round] = a;
            guarded[round] = b;
        }
        printf("# guard %s, %zu parameters\n", guard->name,
               kith_worker_dim(with));
        bench_print("merge without a guard", plain, ROUNDS, "ms");
        bench_print("merge with it", guarded, ROUNDS, "ms");
        bench_ratio("without : with (>= 0.87 is <= 1.15)", plain, guarded,
                    ROUNDS, 0.87);
        kith_worker_close(without);
        kith_worker_close(with);
    }
    return 0;
}
