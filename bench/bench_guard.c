/* What a guard costs: the MERGE of a received model with each guard beside that
 * of guard none, alternating. Gate: at most 1.15 times the time. Models of
 * eight neighbours in turn, each its own distance away, as large as
 * bench_recovery's: an mlp of 784, 1,024, 1,024 and 10. */
#include "bench/bench.h"
#include "bench/mlp_worker.h"

enum { ROUNDS = 101, PEERS = 8 };

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
        struct kith_worker *without = open_worker(NULL, NULL, 1024);
        struct kith_worker *with = open_worker(guard, NULL, 1024);
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
