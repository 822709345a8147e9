/* What sparse exchanges do on one core beside sending, in nanoseconds of CPU
 * time: what docs/papers_costs.md charges and no other benchmark measures. 25 *
 * 10^6 Gaussian values, the largest 1 %.
 *
 *   offer       gTop-k, gs-SGD: every value to a list of the k largest, a value
 *   merge       gTop-k: two such lists become one, an entry of both
 *   scatter     two-level: y[place] += value at rising places of a shard of an
 *               eighth, a value
 *   compress, decompress, add    update-sets: top-k-2bit, a value of the vector
 *   norms       LARS: |w| and |g| of a layer, a value (docs/papers.md, PTO)
 */
#include "bench/bench.h"

#include <math.h>

#include "kith/compressor.h"
#include "kith/lars_parts.h"
#include "kith/rng.h"
#include "kith/top_list.h"

enum { ROUNDS = 7, DIM = 25000000, KEPT = DIM / 100, SHARD = DIM / 8 };
enum series { OFFER, MERGE, SCATTER, COMPRESS, DECOMPRESS, ADD, NORMS, SERIES };
static const char *const names[SERIES] = {"offer",
                                          "merge",
                                          "scatter",
                                          "top-k-2bit: compress",
                                          "top-k-2bit: decompress",
                                          "add",
                                          "norms of LARS"};

struct bench {
    const struct kith_backend *backend;
    struct kith_compression how;
    float *x, *y;
    uint8_t *wire;
    struct kith_top_entry *entries; /* (5, KEPT) */
    struct kith_top_list ours, theirs;
};

/* The sum of four uniform draws has the shape that matters here. */
static void fill(float *x, uint64_t stream)
{
    struct kith_rng rng;
    kith_rng_init(&rng, stream, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < DIM; i++)
        x[i] = (float)(kith_rng_double(&rng) + kith_rng_double(&rng) +
                       kith_rng_double(&rng) + kith_rng_double(&rng) - 2);
}

static struct kith_top_list list_at(const struct bench *bench, unsigned which)
{
    return kith_top_list_of(bench->entries + (size_t)which * KEPT, KEPT);
}

static struct kith_top_list choose(const struct bench *bench, unsigned which,
                                   const float *x)
{
    struct kith_top_list list = list_at(bench, which);
    for (uint32_t i = 0; i < DIM; i++)
        kith_top_list_offer(&list, i, (double)x[i]);
    kith_top_list_finish(&list);
    return list;
}

static double offer(struct bench *bench)
{
    const double began = bench_cpu();
    bench->ours = choose(bench, 0, bench->x);
    return (bench_cpu() - began) / DIM;
}

static double merge(struct bench *bench)
{
    struct kith_top_list merged = list_at(bench, 2);
    struct kith_top_list ours = list_at(bench, 3), theirs = list_at(bench, 4);
    const double began = bench_cpu();
    kith_top_list_merge(&bench->ours, &bench->theirs, &merged, &ours, &theirs);
    return (bench_cpu() - began) / (2.0 * KEPT);
}

static double scatter(struct bench *bench)
{
    const double began = bench_cpu();
    for (unsigned site = 0; site < 8; site++)
        for (uint32_t n = 0; n < KEPT / 8; n++)
            bench->y[bench->ours.entries[8 * n + site].index % SHARD] +=
                (float)bench->ours.entries[8 * n + site].value;
    return (bench_cpu() - began) / (KEPT / 8 * 8.0);
}

static double norms(struct bench *bench)
{
    const struct kith_model_view view = {.elements = DIM, .rank = 1};
    const struct kith_layout layout = {DIM, DIM, DIM, DIM, &view, 1};
    const struct kith_optimiser_config config = {.trust = 1};
    const struct kith_optimiser_step step = {.config = &config,
                                             .backend = bench->backend,
                                             .layout = &layout,
                                             .gradient = bench->y,
                                             .x = bench->x};
    float rate;
    struct kith_lars_gather gather = {
        .step = &step, .workers = 1, .rates = &rate};
    const double began = bench_cpu();
    kith_lars_gather_compute(&gather, 0);
    return (bench_cpu() - began) / DIM;
}

static double take(struct bench *bench, enum series series)
{
    const double began = bench_cpu();
    bool ok = true;
    switch (series) {
    case OFFER:
        return offer(bench);
    case MERGE:
        return merge(bench);
    case SCATTER:
        return scatter(bench);
    case NORMS:
        return norms(bench);
    case COMPRESS:
        ok = kith_compress(&bench->how, bench->x, 1, bench->wire);
        break;
    case DECOMPRESS:
        ok = kith_decompress(&bench->how, bench->wire, 1, bench->y);
        break;
    case ADD:
        bench->backend->add(DIM, 1, bench->x, bench->y);
        break;
    case SERIES:
        break;
    }
    if (!ok)
        abort();
    return (bench_cpu() - began) / DIM;
}

int main(void)
{
    static double spent[SERIES][ROUNDS];
    struct bench bench = {.backend = kith_backend_find("cpu")};
    bench_pin(0);
    bench.how = (struct kith_compression){
        .compressor = kith_compressor_find("top-k-2bit"),
        .config = kith_compressor_defaults(),
        .backend = bench.backend,
        .dim = DIM};
    bench.x = bench_alloc(DIM * sizeof(float));
    bench.y = bench_alloc(DIM * sizeof(float));
    bench.wire = bench_alloc(kith_compression_bytes(&bench.how));
    bench.entries = bench_alloc(5 * KEPT * sizeof *bench.entries);
    fill(bench.x, 1);
    fill(bench.y, 2);
    bench.theirs = choose(&bench, 1, bench.y);
    printf("# %d values, the largest %d\n", DIM, KEPT);
    for (int round = -1; round < ROUNDS; round++)
        for (unsigned s = 0; s < SERIES; s++) {
            const double taken = 1e9 * take(&bench, s);
            if (round >= 0)
                spent[s][round] = taken;
        }
    for (unsigned s = 0; s < SERIES; s++)
        bench_print(names[s], spent[s], ROUNDS, "ns");
    return 0;
}
