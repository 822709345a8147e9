/* What a count sketch costs: adding a vector, with places hashed each time and
 * with places that are kept, all at once and in 20 blocks; estimates of all;
 * the largest 800; merging two tables. Nanoseconds of CPU time a coordinate and
 * row, beside a pass that adds a vector to another (12 bytes a coordinate),
 * which is what memory alone would allow, in the same rounds.
 *
 * A place is 4 products of 61 by 32 bits and one for the range: hashed, they
 * are half to two thirds of adding ("hashes alone : add, hashed"); kept, they
 * cost 4 bytes a coordinate and row of streaming, and what is left is a cell at
 * a random place. Tables of 5 x 5,000 (100 kB) and 5 x 500,000 (10 MB, which no
 * cache but the last holds). */
#include "bench/bench.h"
#include "kith/sketch.h"

/* 4 Mi coordinates: 16 MiB, and 80 MiB of kept places. */
enum { ROUNDS = 15, DIM = 1 << 22, ROWS = 5, LARGEST = 800, BLOCKS = 20 };

enum series {
    STREAM,
    HASHES,
    ADD_HASHED,
    ADD_KEPT,
    ADD_BLOCKS,
    ADD_FIXED,
    ESTIMATE,
    LARGEST_OF,
    MERGE,
    SERIES
};
static const char *const names[SERIES] = {
    [STREAM] = "stream: y <- y + x",
    [HASHES] = "hashes alone",
    [ADD_HASHED] = "add, hashed",
    [ADD_KEPT] = "add, places kept",
    [ADD_BLOCKS] = "add, places kept, 20 blocks",
    [ADD_FIXED] = "add, places kept, fixed point",
    [ESTIMATE] = "estimates of all, places kept",
    [LARGEST_OF] = "the 800 largest, places kept",
    [MERGE] = "merge",
};

struct bench {
    float *x, *y;
    double *estimates;
    struct kith_sketch_family hashed, kept, blocks, fixed;
    struct kith_sketch of_hashed, of_kept, of_blocks, of_fixed;
    void *again; /* memory for a family that is hashed anew */
};

static void must(enum kith_err err)
{
    if (err == KITH_OK)
        return;
    fprintf(stderr, "bench_sketch: %s\n", kith_err_text(err));
    exit(1);
}

static void open_sketch(struct kith_sketch_config config, bool is_cached,
                        struct kith_sketch_family *family,
                        struct kith_sketch *sketch)
{
    must(kith_sketch_family_init(
        bench_alloc(kith_sketch_family_size(&config, is_cached)), &config,
        is_cached, family));
    kith_sketch_init(bench_alloc(kith_sketch_size(&config)), family, sketch);
}

static struct bench *open_bench(uint32_t columns)
{
    static struct bench bench;
    struct kith_sketch_config config = {.seed = 42,
                                        .dim = DIM,
                                        .rows = ROWS,
                                        .columns = columns,
                                        .blocks = 1,
                                        .cells = KITH_SKETCH_FLOAT32};
    uint32_t state = 1;
    bench.x = bench_alloc(DIM * sizeof(float));
    bench.y = bench_alloc(DIM * sizeof(float));
    bench.estimates = bench_alloc(DIM * sizeof(double));
    bench.again = bench_alloc(kith_sketch_family_size(&config, true));
    for (size_t i = 0; i < DIM; i++) {
        state = state * 1664525u + 1013904223u;
        bench.x[i] = (float)(int32_t)(state & 0xffff00u) * 0x1p-28f;
    }
    open_sketch(config, false, &bench.hashed, &bench.of_hashed);
    open_sketch(config, true, &bench.kept, &bench.of_kept);
    config.blocks = BLOCKS;
    open_sketch(config, true, &bench.blocks, &bench.of_blocks);
    config.blocks = 1;
    config.cells = KITH_SKETCH_FIXED64;
    config.fraction = 20;
    open_sketch(config, true, &bench.fixed, &bench.of_fixed);
    return &bench;
}

static BENCH_BEST void stream(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add(struct kith_sketch *sketch, const float *x)
{
    kith_sketch_init(sketch->cells, sketch->family, sketch);
    must(kith_sketch_add_float32(sketch, 0, DIM, x));
}

static void run(struct bench *bench, enum series what)
{
    static struct kith_top_entry entries[LARGEST];
    struct kith_top_list list = kith_top_list_of(entries, LARGEST);
    struct kith_sketch_family family;
    switch (what) {
    case STREAM:
        stream(DIM, bench->x, bench->y);
        break;
    case HASHES:
        must(kith_sketch_family_init(bench->again, &bench->kept.config, true,
                                     &family));
        break;
    case ADD_HASHED:
        add(&bench->of_hashed, bench->x);
        break;
    case ADD_KEPT:
        add(&bench->of_kept, bench->x);
        break;
    case ADD_BLOCKS:
        add(&bench->of_blocks, bench->x);
        break;
    case ADD_FIXED:
        add(&bench->of_fixed, bench->x);
        break;
    case ESTIMATE:
        kith_sketch_estimate(&bench->of_kept, 0, DIM, bench->estimates);
        break;
    case LARGEST_OF:
        kith_sketch_largest(&bench->of_kept, &list);
        break;
    case MERGE:
        must(kith_sketch_merge(&bench->of_hashed, &bench->of_kept));
        break;
    case SERIES:
        break;
    }
}

/* What a series has passed over, to divide its time by. */
static double units_of(enum series what, uint32_t columns)
{
    if (what == STREAM)
        return DIM;
    return what == MERGE ? (double)ROWS * columns : (double)ROWS * DIM;
}

static void measure(uint32_t columns)
{
    static double spent[SERIES][ROUNDS];
    struct bench *bench = open_bench(columns);
    printf("# %d coordinates, %d x %u\n", DIM, ROWS, columns);
    for (int round = -1; round < ROUNDS; round++)
        for (enum series what = 0; what < SERIES; what++) {
            const double began = bench_cpu();
            run(bench, what);
            if (round >= 0)
                spent[what][round] =
                    1e9 * (bench_cpu() - began) / units_of(what, columns);
        }
    for (enum series what = 0; what < SERIES; what++)
        bench_print(names[what], spent[what], ROUNDS,
                    what == STREAM  ? "ns a coordinate"
                    : what == MERGE ? "ns a cell"
                                    : "ns a coordinate and row");
    bench_ratio("hashes alone : add, hashed", spent[HASHES], spent[ADD_HASHED],
                ROUNDS, 0);
    bench_ratio("stream : add, hashed, a row", spent[STREAM], spent[ADD_HASHED],
                ROUNDS, 0);
    bench_ratio("stream : add, places kept, a row", spent[STREAM],
                spent[ADD_KEPT], ROUNDS, 0);
    bench_ratio("stream : estimates, places kept, a row", spent[STREAM],
                spent[ESTIMATE], ROUNDS, 0);
}

int main(void)
{
    bench_pin(0);
    measure(5000);
    measure(500000);
    return 0;
}
