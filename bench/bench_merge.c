/* The merge kernels beside the plain loop x = (x + y) / 2, over vectors that no
 * cache holds. Gates: mix (12 bytes per element, as the loop) >= 0.95 of the
 * loop's rate; of bfloat16 on both ends (12 bytes) <= 0.80 of the time of the
 * float32 merge against a snapshot (16). Shown beside them: the merges that
 * also read or write a snapshot, and the finite gate. BENCH_MIB: size of one
 * vector (128). */
#include "bench/bench.h"

#include "kith/backend.h"

/* Many short rounds: others share the memory that is measured. */
enum { ROUNDS = 31 };
enum kernel { PLAIN, MIX, MIX_BF16, MIX_SENT, SWAP_MIX, FINITE, KERNELS };
static const char *const names[KERNELS] = {
    "plain loop x = (x + y) / 2, 12 B",
    "mix, snapshot = x, 12 B",
    "mix_bf16, both rounded, 12 B",
    "mix against a snapshot, 16 B",
    "swap_mix, x anew beside its snapshot, 12 B",
    "finite gate, 4 B"};
static const double bytes_per_element[KERNELS] = {12, 12, 12, 16, 12, 4};

/* The ceiling. */
BENCH_BEST static void plain(size_t n, float *restrict x,
                             const float *restrict y)
{
    for (size_t i = 0; i < n; i++)
        x[i] = .5f * (x[i] + y[i]);
}

struct vectors {
    size_t n;
    float *x, *y, *sent;
    uint16_t *half, *half_sent;
    const struct kith_backend *backend;
};

static void run(const struct vectors *v, enum kernel kernel)
{
    const struct kith_backend *backend = v->backend;
    switch (kernel) {
    case PLAIN:
        plain(v->n, v->x, v->y);
        break;
    case MIX:
        (void)backend->mix(v->n, 0.5, v->y, v->x, v->x);
        break;
    case MIX_BF16:
        (void)backend->mix_bf16(v->n, 0.5, v->half, v->half_sent, v->x);
        break;
    case MIX_SENT:
        (void)backend->mix(v->n, 0.5, v->y, v->sent, v->x);
        break;
    case SWAP_MIX:
        (void)backend->swap_mix(v->n, 0.5, v->y, v->sent, v->sent, v->x);
        break;
    case FINITE:
        if (!backend->finite(v->n, v->x))
            abort();
        break;
    case KERNELS:
        break;
    }
}

int main(void)
{
    double seconds[KERNELS][ROUNDS], rates[KERNELS][ROUNDS];
    struct vectors v = {.backend = kith_backend_find("cpu")};
    v.n = (size_t)bench_setting("BENCH_MIB", 128) * ((1u << 20) / sizeof *v.x);
    bench_pin(0);
    v.x = bench_alloc(v.n * sizeof *v.x);
    v.y = bench_alloc(v.n * sizeof *v.y);
    v.sent = bench_alloc(v.n * sizeof *v.sent);
    v.half = bench_alloc(v.n * sizeof *v.half);
    v.half_sent = bench_alloc(v.n * sizeof *v.half_sent);
    for (size_t i = 0; i < v.n; i++) {
        v.x[i] = v.sent[i] = 1;
        v.y[i] = 2;
        v.half[i] = v.half_sent[i] = 0x3f80;
    }
    /* Round -1 warms up. */
    for (int round = -1; round < ROUNDS; round++) {
        for (enum kernel kernel = PLAIN; kernel < KERNELS; kernel++) {
            const double start = bench_now();
            run(&v, kernel);
            if (round >= 0)
                seconds[kernel][round] = bench_now() - start;
        }
    }
    printf("# merge kernels, vectors of %zu MiB, one thread\n",
           v.n * sizeof *v.x >> 20);
    for (enum kernel kernel = PLAIN; kernel < KERNELS; kernel++) {
        for (int round = 0; round < ROUNDS; round++)
            rates[kernel][round] = bytes_per_element[kernel] * 1e-9 *
                                   (double)v.n / seconds[kernel][round];
        bench_print(names[kernel], rates[kernel], ROUNDS, "GB/s");
    }
    bench_ratio("mix : plain loop, GB/s", rates[MIX], rates[PLAIN], ROUNDS,
                0.95);
    /* 0.80 of the time is 1.25 times the speed. */
    bench_ratio("mix against a snapshot : mix_bf16, time (>= 1.25 is <= 0.80)",
                seconds[MIX_SENT], seconds[MIX_BF16], ROUNDS, 1.25);
    return 0;
}
