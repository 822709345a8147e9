/* What a format costs the worker: SNAPSHOT and MERGE of an exchange in each,
 * beside float32, alternating, with guard none and with clip. Bytes a value
 * that pass through memory: float32 16 and, for the step's first write to a
 * snapshot that stands, 8 more (here: none stands); bfloat16 6 and 12, int8 5
 * and 10; clip adds a pass over both messages. An mlp of 784, 1,024, 1,024 and
 * 10, which fits the last cache, and one of 784, 4,096, 4,096 and 10, which
 * does not. */
#include "bench/bench.h"
#include "bench/mlp_worker.h"

enum { ROUNDS = 21, PEERS = 8, FORMATS_MAX = 8 };

/* Milliseconds of CPU time of a snapshot and of the merge with what came from
 * somebody near. */
static void exchange(struct kith_worker *worker, unsigned turn,
                     double *snapshot, double *merge)
{
    struct kith_work_result result;
    struct kith_work_edge edge = {.peer = 1 + turn % PEERS,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_ANSWERED_SENT,
                                  .inbox = KITH_SLOT_ANSWERED_INBOX};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_SWAP,
                             .edges = &edge,
                             .edge_count = 1};
    const double began = bench_cpu();
    kith_worker_run(worker, &work, &result);
    const double taken = bench_cpu();
    memcpy(kith_worker_slot(worker, KITH_SLOT_ANSWERED_INBOX),
           kith_worker_slot(worker, KITH_SLOT_ANSWERED_SENT),
           kith_worker_payload(worker));
    const double received = bench_cpu();
    work.kind = KITH_WORK_MERGE;
    kith_worker_run(worker, &work, &result);
    *snapshot = 1e3 * (taken - began);
    *merge = 1e3 * (bench_cpu() - received);
}

static void measure(uint32_t width, const struct kith_guard *guard)
{
    static double snapshots[FORMATS_MAX][ROUNDS], merges[FORMATS_MAX][ROUNDS];
    static double both[FORMATS_MAX][ROUNDS];
    struct kith_worker *workers[FORMATS_MAX] = {NULL};
    unsigned count = 0;
    for (; count < FORMATS_MAX && kith_formats[count] != NULL; count++)
        workers[count] = open_worker(guard, kith_formats[count], width);
    printf("# %zu parameters, guard %s\n", kith_worker_dim(workers[0]),
           guard == NULL ? "none" : guard->name);
    for (int round = -4; round < ROUNDS; round++)
        for (unsigned f = 0; f < count; f++) {
            double snapshot, merge;
            exchange(workers[f], (unsigned)(round + 4), &snapshot, &merge);
            if (round < 0)
                continue;
            snapshots[f][round] = snapshot;
            merges[f][round] = merge;
            both[f][round] = snapshot + merge;
        }
    for (unsigned f = 0; f < count; f++) {
        char name[80];
        (void)snprintf(name, sizeof name, "%s: snapshot",
                       kith_formats[f]->name);
        bench_print(name, snapshots[f], ROUNDS, "ms");
        (void)snprintf(name, sizeof name, "%s: merge", kith_formats[f]->name);
        bench_print(name, merges[f], ROUNDS, "ms");
        if (f > 0)
            bench_ratio("float32 : it, snapshot and merge", both[0], both[f],
                        ROUNDS, 0);
    }
    for (unsigned f = 0; f < count; f++)
        kith_worker_close(workers[f]);
}

int main(void)
{
    const uint32_t widths[] = {1024, 4096};
    bench_pin(0);
    for (unsigned w = 0; w < 2; w++) {
        measure(widths[w], NULL);
        measure(widths[w], kith_guard_find("clip"));
    }
    return 0;
}
