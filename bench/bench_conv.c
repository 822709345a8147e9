/* Convolutions of the small image models: forward, gradient of the data,
 * gradient of the weights, each as a share of the FMA peak of the same round.
 *
 *   bench_conv         prints shares on 1 and on 2 threads
 *   bench_conv serve   for conv_torch.py: answers "shape pass threads seconds"
 *                      with seconds per call
 *
 * Target: 0.60 for 3 x 3 windows over 16 to 64 channels. A first layer of one
 * channel has nine products per value it must store, and is bound by that. */
#include "bench/peak.h"

#include "kith/backend.h"
#include "kith/rng.h"

struct shape {
    const char *name;
    struct kith_conv op;
    size_t rows;
};

#define SQUARE(size, ins, outs, k, s, p, n)                                    \
    {                                                                          \
#size "x" #size "x" #ins " -> " #outs ", " #k "x" #k "/" #s,           \
            {size, size, ins, outs, k, s, p, (size + 2 * p - k) / s + 1,       \
             (size + 2 * p - k) / s + 1, KITH_ACTIVATION_NONE },               \
             n                                                                 \
    }
static const struct shape shapes[] = {
    SQUARE(28, 1, 16, 3, 1, 1, 64),   SQUARE(14, 16, 32, 3, 1, 1, 64),
    SQUARE(32, 3, 16, 3, 1, 1, 128),  SQUARE(32, 16, 16, 3, 1, 1, 128),
    SQUARE(32, 16, 32, 3, 2, 1, 128), SQUARE(32, 16, 32, 1, 2, 0, 128),
    SQUARE(16, 32, 32, 3, 1, 1, 128), SQUARE(16, 32, 64, 3, 2, 1, 128),
    SQUARE(8, 64, 64, 3, 1, 1, 128),
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], PASSES = 3 };
static const char *const passes[PASSES] = {"forward", "data", "weights"};

/* Room for the largest shape. */
static float *x, *w, *y, *dy, *dx, *dw, *scratch;

static float *noise(size_t n, uint64_t entity)
{
    float *values = bench_alloc(n * sizeof *values);
    struct kith_rng rng;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, entity);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(2 * kith_rng_double(&rng) - 1);
    return values;
}

static double flops_of(const struct shape *s)
{
    const struct kith_conv *op = &s->op;
    return 2.0 * (double)(s->rows * op->out_height * op->out_width *
                          op->kernel * op->kernel * op->in * op->out);
}

static void run_once(const struct shape *s, int pass)
{
    const struct kith_ops *ops = kith_backend_find("cpu")->ops;
    if (pass == 0)
        ops->kernels[KITH_OP_CONV]->forward(
            &(struct kith_arguments){.shape = &s->op,
                                     .rows = s->rows,
                                     .x = x,
                                     .weight = w,
                                     .y = y,
                                     .scratch = scratch});
    else
        ops->kernels[KITH_OP_CONV]->backward(
            &(struct kith_arguments){.shape = &s->op,
                                     .rows = s->rows,
                                     .x = x,
                                     .weight = w,
                                     .y = y,
                                     .dy = dy,
                                     .dx = pass == 1 ? dx : NULL,
                                     .dweight = pass == 2 ? dw : NULL,
                                     .scratch = scratch});
}

/* Seconds per call over at least so many seconds. */
static double run_for(const struct shape *s, int pass, unsigned threads,
                      double seconds)
{
    const double start = peak_clock(threads);
    double now = start;
    int calls = 0;
    for (; now - start < seconds; now = peak_clock(threads), calls++)
        run_once(s, pass);
    return (now - start) / calls;
}

static void prepare(void)
{
    const struct kith_ops *ops = kith_backend_find("cpu")->ops;
    const size_t most = (size_t)128 * 32 * 32 * 32;
    size_t bytes = 0;
    for (size_t i = 0; i < SHAPES; i++) {
        const size_t needed = kith_kernel_scratch(
            ops->kernels[KITH_OP_CONV], &shapes[i].op, shapes[i].rows);
        bytes = needed > bytes ? needed : bytes;
    }
    x = noise(most, 1);
    w = noise(9 * 64 * 64, 2);
    dy = noise(most, 3);
    y = bench_alloc(most * sizeof *y);
    dx = bench_alloc(most * sizeof *dx);
    dw = bench_alloc(9 * 64 * 64 * sizeof *dw);
    scratch = bench_alloc(bytes);
}

static int serve(void)
{
    unsigned shape, pass, threads;
    double seconds;
    while (scanf("%u %u %u %lf", &shape, &pass, &threads, &seconds) == 4) {
        if (shape >= SHAPES || pass >= PASSES || threads < 1 || threads > 64 ||
            !(seconds <= 60))
            return 1;
        kith_backend_threads(threads);
        printf("%.9f\n", run_for(&shapes[shape], (int)pass, threads, seconds));
        fflush(stdout);
    }
    return 0;
}

static void measure(const struct shape *s, int pass, unsigned threads)
{
    const double seconds = bench_setting("BENCH_SECONDS", 0.03);
    double share[BENCH_ROUNDS], ours[BENCH_ROUNDS];
    run_once(s, pass);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        const double peak = peak_measure(threads);
        ours[round] = flops_of(s) / run_for(s, pass, threads, seconds);
        share[round] = peak > 0 ? ours[round] / peak : 0;
    }
    const struct bench_spread speed = bench_spread_of(ours, BENCH_ROUNDS);
    const struct bench_spread of_peak = bench_spread_of(share, BENCH_ROUNDS);
    const bool counts = s->op.in >= 16 && s->op.kernel == 3;
    printf("%-26s %-8s %u  %8.1f GFLOP/s  %.3f [%.3f..%.3f] of peak%s\n",
           s->name, passes[pass], threads, 1e-9 * speed.median, of_peak.median,
           of_peak.least, of_peak.most,
           !counts                  ? ""
           : of_peak.median >= 0.60 ? ", target 0.60 met"
                                    : ", target 0.60 MISSED");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    prepare();
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    const unsigned most = (unsigned)bench_setting("BENCH_THREADS", 2);
    for (unsigned threads = 1; threads <= most; threads++) {
        kith_backend_threads(threads);
        printf("# peak on %u thread(s): %.1f GFLOP/s\n", threads,
               1e-9 * peak_measure(threads));
        for (size_t i = 0; i < SHAPES; i++)
            for (int pass = 0; pass < PASSES; pass++)
                measure(&shapes[i], pass, threads);
    }
    return 0;
}
