/* What a format costs: pack and unpack alone, beside a copy of the values, and
 * the worker's items. A copy passes 8 bytes a value through memory, and so do
 * pack and unpack of moniqua beside what travels: one writes what is kept of a
 * snapshot, the other reads it. Of the others they pass 4.
 *
 * The items are SNAPSHOT and MERGE of an exchange in each, beside float32,
 * alternating, with guard none and with clip. Bytes a value that pass through
 * memory: float32 16 and, for the step's first write to a snapshot that stands,
 * 8 more (here: none stands); bfloat16 6 and 12, int8 5 and 10; clip adds a
 * pass over both messages. An mlp of 784, 1,024, 1,024 and 10, which fits the
 * last cache, and one of 784, 4,096, 4,096 and 10, which does not. */
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

enum { PACK, UNPACK, WAYS };

/* Two models that have lately been as far apart as they are. */
struct pair {
    size_t n, bytes; /* of values; of `memory` */
    char *memory;
    float *ours, *theirs; /* (n) */
    float *kept, *out;    /* (n) of ours; of theirs, as it is read */
    float *reach, *apart; /* (blocks) */
    void *sent, *received;
};
enum { VECTORS = 8, STAGGER = 1088 };

/* No two begin at the same place of a page: a load that follows a store to the
 * same place of another page waits for it (moniqua8's pack then took 0.76 ns a
 * value in place of 0.50). */
static void *vector_at(const struct pair *pair, size_t index)
{
    return pair->memory + index * (pair->bytes / VECTORS / 64 * 64);
}

/* On a grid of fractions, so that no compiler makes other numbers of it. */
static struct pair open_pair(size_t n)
{
    const size_t each = (n * sizeof(float) + 4095) / 4096 * 4096 + STAGGER;
    struct pair pair = {.n = n, .bytes = VECTORS * each};
    uint32_t state = 1;
    pair.memory = bench_alloc(pair.bytes);
    pair.ours = vector_at(&pair, 0);
    pair.theirs = vector_at(&pair, 1);
    pair.kept = vector_at(&pair, 2);
    pair.out = vector_at(&pair, 3);
    pair.reach = vector_at(&pair, 4);
    pair.apart = vector_at(&pair, 5);
    pair.sent = vector_at(&pair, 6);
    pair.received = vector_at(&pair, 7);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        pair.ours[i] = (float)(int32_t)(state & 0xffff00u) * 0x1p-28f;
        pair.theirs[i] = pair.ours[i] + (float)(state >> 24) * 0x1p-20f;
    }
    for (size_t b = 0; b < kith_modular_blocks(n); b++)
        pair.reach[b] = 0x1p-12f;
    return pair;
}

/* What a peer packs of its own values, and reads of theirs; their message is
 * written outside the clock. Seconds of CPU time. */
static void codec(const struct kith_format *format, const struct pair *pair,
                  double spent[WAYS])
{
    const struct kith_backend *const host = kith_backend_find("cpu");
    const struct kith_modular_cover cover = {
        .n = pair->n, .count = kith_modular_blocks(pair->n)};
    const struct kith_modular_pair read = {.received = pair->received,
                                           .sent = pair->sent,
                                           .kept = pair->kept,
                                           .out = pair->out};
    const bool is_modular = format->residue_bits > 0;
    if (is_modular)
        (void)kith_modular_pack(format, host, &cover, pair->theirs, pair->reach,
                                pair->received, pair->out);
    else
        format->pack(host, pair->n, pair->theirs, pair->received);
    const double began = bench_cpu();
    if (is_modular)
        (void)kith_modular_pack(format, host, &cover, pair->ours, pair->reach,
                                pair->sent, pair->kept);
    else
        format->pack(host, pair->n, pair->ours, pair->sent);
    const double packed = bench_cpu();
    size_t count = cover.count;
    if (is_modular)
        count =
            kith_modular_unpack(format, host, &cover, &read, pair->apart).read;
    else
        format->unpack(host, pair->n, pair->received, 0, pair->n, pair->out);
    spent[PACK] = packed - began;
    spent[UNPACK] = bench_cpu() - packed;
    if (count != cover.count)
        abort(); /* a block that is left out costs less */
}

/* Nanoseconds a value. */
static void print_codec(const struct kith_format *format, const double *copies,
                        double spent[WAYS][ROUNDS])
{
    static const char *const ways[WAYS] = {"pack", "unpack"};
    char name[80];
    (void)snprintf(name, sizeof name, "memcpy, beside %s", format->name);
    bench_print(name, copies, ROUNDS, "ns a value");
    for (unsigned way = 0; way < WAYS; way++) {
        (void)snprintf(name, sizeof name, "%s: %s", format->name, ways[way]);
        bench_print(name, spent[way], ROUNDS, "ns a value");
        bench_ratio("memcpy : it", copies, spent[way], ROUNDS, 0);
    }
}

/* A copy right before each format, as the machine drifts. */
static void measure_codecs(size_t n)
{
    static double copies[FORMATS_MAX][ROUNDS];
    static double spent[FORMATS_MAX][WAYS][ROUNDS];
    struct pair pair = open_pair(n);
    printf("# %zu values, pack and unpack\n", n);
    for (int round = -2; round < ROUNDS; round++)
        for (unsigned f = 0; kith_formats[f] != NULL; f++) {
            double seconds[WAYS];
            if (kith_formats[f]->raw)
                continue;
            const double began = bench_cpu();
            memcpy(pair.out, pair.ours, n * sizeof(float));
            const double copied = bench_cpu() - began;
            codec(kith_formats[f], &pair, seconds);
            if (round < 0)
                continue;
            copies[f][round] = 1e9 * copied / (double)n;
            for (unsigned way = 0; way < WAYS; way++)
                spent[f][way][round] = 1e9 * seconds[way] / (double)n;
        }
    for (unsigned f = 0; kith_formats[f] != NULL; f++)
        if (!kith_formats[f]->raw)
            print_codec(kith_formats[f], copies[f], spent[f]);
    (void)munmap(pair.memory, pair.bytes);
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
        measure_codecs((size_t)(784 + widths[w] + 10) * widths[w]);
        measure(widths[w], NULL);
        measure(widths[w], kith_guard_find("clip"));
    }
    return 0;
}
