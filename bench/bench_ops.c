/* Operations of backend cpu beside their ceilings: products beside the rate of
 * fused multiply-adds in registers, the others beside a copy of as many bytes,
 * in the same rounds, on 1 and 2 threads.
 *
 *   bench_ops            every case; BENCH_THREADS=1 for one thread alone
 *
 * Shapes: an MLP 784-512-512-10 at batch 64 and 256, a GPT block of 16 x 128
 * tokens, width 128, 4 heads. Exit status 1 where the own products of a whole
 * step stay below 0.55 of the multiply-add rate on one thread. */
#include "bench.h"

#include "kith/backend.h"
#include "src/training/backend/pool.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* One thread: CPU time, which others on the machine disturb least. */
static double seconds_now(void)
{
    return kith_pool_threads() == 1 ? bench_cpu() : bench_now();
}

enum { ROUNDS = BENCH_ROUNDS, TOKENS = 2048, WIDTH = 128, HEADS = 4 };
static volatile float sink;

/* Multiplications and additions per second, in thousands of millions, of one
 * thread: 16 chains, more than latency times units. */
enum { CHAINS = 16, TURNS = 100000 };
#ifdef __x86_64__
#define CHAIN(NAME, TARGET, TYPE, ALL, FMA, LANES)                             \
    __attribute__((target(TARGET))) static double NAME(void)                   \
    {                                                                          \
        TYPE a = ALL(0.1f), b = ALL(0.2f), c = ALL(0.3f), d = ALL(0.4f);       \
        TYPE e = a, f = b, g = c, h = d, i = a, j = b, k = c, l = d;           \
        const TYPE by = ALL(0.999f), plus = ALL(0.001f);                       \
        for (int turn = 0; turn < TURNS; turn++) {                             \
            a = FMA(a, by, plus), b = FMA(b, by, plus);                        \
            c = FMA(c, by, plus), d = FMA(d, by, plus);                        \
            e = FMA(e, by, plus), f = FMA(f, by, plus);                        \
            g = FMA(g, by, plus), h = FMA(h, by, plus);                        \
            i = FMA(i, by, plus), j = FMA(j, by, plus);                        \
            k = FMA(k, by, plus), l = FMA(l, by, plus);                        \
            /* Chains that do the same must not become one. */                 \
            __asm__ volatile("" : "+x"(e), "+x"(f), "+x"(g), "+x"(h));         \
            __asm__ volatile("" : "+x"(i), "+x"(j), "+x"(k), "+x"(l));         \
        }                                                                      \
        const TYPE all[] = {a, b, c, d, e, f, g, h, i, j, k, l};               \
        float first;                                                           \
        for (size_t n = 0; n < 12; n++) {                                      \
            memcpy(&first, &all[n], sizeof first);                             \
            sink += first;                                                     \
        }                                                                      \
        return 12.0 * 2 * LANES * TURNS;                                       \
    }
CHAIN(chain_512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16)
CHAIN(chain_256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8)
#endif

static double chain_plain(void)
{
    float a[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        a[i] = (float)i;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < CHAINS; i++)
            a[i] = a[i] * 0.999f + 0.001f;
    for (int i = 0; i < CHAINS; i++)
        sink += a[i];
    return 2.0 * CHAINS * TURNS;
}

static double chain(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return chain_512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return chain_256();
#endif
    return chain_plain();
}

static void chain_part(void *context, size_t i)
{
    ((double *)context)[i] = chain();
}

static double peak(void)
{
    double flop[KITH_POOL_THREADS_MAX] = {0}, best = 0;
    const unsigned threads = kith_pool_threads();
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        const double start = seconds_now();
        kith_pool_run(threads, chain_part, flop);
        const double seconds = seconds_now() - start;
        for (unsigned thread = 0; thread < threads; thread++)
            sum += flop[thread];
        best = 1e-9 * sum / seconds > best ? 1e-9 * sum / seconds : best;
    }
    return best;
}

/* Buffers that every case shares. */
static float *x, *y, *w, *pre, *dy, *dx, *dw, *db, *saved, *scratch;
static int32_t tokens[TOKENS];
static const struct kith_backend *cpu;

struct span {
    char *to;
    const char *from;
    size_t bytes, parts;
};

static void copy_part(void *context, size_t i)
{
    const struct span *s = context;
    const size_t each = s->bytes / s->parts;
    memcpy(s->to + i * each, s->from + i * each, each);
}

/* Bytes read and written per second, 10^9, by copies between `set` bytes. */
static double copy_rate(double set)
{
    const size_t half = (size_t)(set / 2);
    struct span s = {(char *)dx, (const char *)x, half, 16};
    double best = 0;
    for (int i = 0; i < 4; i++) {
        const double start = seconds_now();
        kith_pool_run(s.parts, copy_part, &s);
        const double rate = 1e-9 * set / (seconds_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static void linear_step(size_t rows, size_t in, size_t out,
                        enum kith_activation activation, bool data)
{
    const struct kith_linear op = {in, out, false, activation};
    cpu->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x,
                                 .weight = w,
                                 .bias = db,
                                 .saved = pre,
                                 .y = y});
    cpu->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x,
                                 .weight = w,
                                 .saved = pre,
                                 .y = y,
                                 .dy = dy,
                                 .dx = data ? dx : NULL,
                                 .dweight = dw,
                                 .dbias = db});
}

static void mlp(size_t rows)
{
    linear_step(rows, 784, 512, KITH_ACTIVATION_RELU, false);
    linear_step(rows, 512, 512, KITH_ACTIVATION_RELU, true);
    linear_step(rows, 512, 10, KITH_ACTIVATION_NONE, true);
}

static void mlp_64(void)
{
    mlp(64);
}

static void mlp_256(void)
{
    mlp(256);
}

static void block(void)
{
    linear_step(TOKENS, WIDTH, 3 * WIDTH, KITH_ACTIVATION_NONE, true);
    linear_step(TOKENS, WIDTH, WIDTH, KITH_ACTIVATION_NONE, true);
    linear_step(TOKENS, WIDTH, 4 * WIDTH, KITH_ACTIVATION_GELU, true);
    linear_step(TOKENS, 4 * WIDTH, WIDTH, KITH_ACTIVATION_NONE, true);
}

static const struct kith_attention attention = {128, HEADS, WIDTH};

static void attention_forward(void)
{
    cpu->ops->kernels[KITH_OP_ATTENTION]->forward(
        &(struct kith_arguments){.shape = &attention,
                                 .rows = 16,
                                 .x = x,
                                 .saved = saved,
                                 .y = y,
                                 .scratch = scratch});
}

static void attention_step(void)
{
    attention_forward();
    cpu->ops->kernels[KITH_OP_ATTENTION]->backward(
        &(struct kith_arguments){.shape = &attention,
                                 .rows = 16,
                                 .x = x,
                                 .y = y,
                                 .saved = saved,
                                 .dy = dy,
                                 .dx = dx,
                                 .scratch = scratch});
}

static const struct kith_norm layer = {
    .kind = KITH_NORM_LAYER, .pixels = 1, .channels = WIDTH, .epsilon = 1e-5};

static void norm_forward(void)
{
    cpu->ops->kernels[KITH_OP_NORM]->forward(
        &(struct kith_arguments){.shape = &layer,
                                 .rows = TOKENS,
                                 .x = x,
                                 .weight = w,
                                 .bias = w,
                                 .saved = saved,
                                 .y = y,
                                 .flags = KITH_STATISTICS});
}

static void norm_step(void)
{
    norm_forward();
    cpu->ops->kernels[KITH_OP_NORM]->backward(
        &(struct kith_arguments){.shape = &layer,
                                 .rows = TOKENS,
                                 .x = x,
                                 .weight = w,
                                 .y = y,
                                 .saved = saved,
                                 .dy = dy,
                                 .dx = dx,
                                 .dweight = dw,
                                 .dbias = db});
}

/* A product over one column, so that GELU is all of it. */
static void gelu(void)
{
    const struct kith_linear op = {1, 4 * WIDTH, true, KITH_ACTIVATION_GELU};
    cpu->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = TOKENS,
                                 .x = x,
                                 .weight = w,
                                 .bias = db,
                                 .saved = pre,
                                 .y = y});
}

static void loss(void)
{
    cpu->ops->cross_entropy(&(struct kith_loss){.rows = TOKENS,
                                                .classes = 65,
                                                .labels = tokens,
                                                .scale = 1,
                                                .logits = y});
}

static void loss_large(void)
{
    cpu->ops->cross_entropy(&(struct kith_loss){.rows = 32,
                                                .classes = 50304,
                                                .labels = tokens,
                                                .scale = 1,
                                                .logits = y});
}

static void dropout(void)
{
    const struct kith_dropout op = {.rate = 0.1, .seed = 1};
    cpu->ops->kernels[KITH_OP_DROPOUT]->forward(&(struct kith_arguments){
        .shape = &op, .rows = TOKENS * WIDTH, .x = x, .y = y});
}

enum { PARAMETERS = 826000 };
static void adamw(void)
{
    cpu->ops->adamw(&(struct kith_adamw){.n = PARAMETERS,
                                         .rate = 1e-6,
                                         .beta1 = 0.9,
                                         .beta2 = 0.99,
                                         .epsilon = 1e-8,
                                         .decay = 0.1,
                                         .t = 100,
                                         .g = dy,
                                         .m = pre,
                                         .v = saved,
                                         .x = y});
}

static void sgd(void)
{
    cpu->sgd(&(struct kith_sgd){.n = PARAMETERS,
                                .rate = 1e-6,
                                .momentum = 0.9,
                                .nesterov = true,
                                .gradient = dy,
                                .velocity = pre,
                                .x = y});
}

/* Multiplications and additions of a linear layer, forth and back. */
static double linear_flop(double rows, double in, double out, bool data)
{
    return 2 * rows * in * out * (data ? 3 : 2);
}

static double mlp_flop(double rows)
{
    return linear_flop(rows, 784, 512, false) +
           linear_flop(rows, 512, 522, true);
}

/* The causal half of two products forth, five back (the scores once more). */
#define ATTENTION_FLOP (2.0 * TOKENS * 128 / 2 * WIDTH)
/* Weights of 12 width^2, a pass forth and two back. */
#define BLOCK_FLOP (72.0 * TOKENS * WIDTH * WIDTH)
#define TENSOR (4.0 * TOKENS * WIDTH)

static struct {
    const char *name;
    void (*run)(void);
    double flop, bytes; /* one of them; bytes are those that must move */
    double set;         /* bytes that they lie in; 0: each moves once */
    bool providers;     /* beside each other */
} cases[] = {
    {"mlp batch 64, linear layers of a step", mlp_64, 0, 0, 0, true},
    {"mlp batch 256, linear layers of a step", mlp_256, 0, 0, 0, true},
    {"gpt block, linear layers of a step", block, BLOCK_FLOP, 0, 0, true},
    {"attention", attention_forward, 2 * ATTENTION_FLOP, 0, 0, false},
    {"attention, forth and back", attention_step, 7 * ATTENTION_FLOP, 0, 0,
     false},
    {"layer norm", norm_forward, 0, 2 * TENSOR, 0, false},
    {"layer norm, forth and back", norm_step, 0, 5 * TENSOR, 0, false},
    {"bias and gelu", gelu, 0, 2 * 4 * TENSOR, 0, false},
    {"cross-entropy, 2048 x 65", loss, 0, 8.0 * TOKENS * 65, 0, false},
    {"cross-entropy, 32 x 50304", loss_large, 0, 8.0 * 32 * 50304, 0, false},
    {"dropout", dropout, 0, 2 * TENSOR, 0, false},
    {"adamw", adamw, 0, 28.0 * PARAMETERS, 16.0 * PARAMETERS, false},
    {"sgd with momentum", sgd, 0, 20.0 * PARAMETERS, 12.0 * PARAMETERS, false},
};
enum { CASES = sizeof cases / sizeof *cases };

/* One case, alternating with its ceiling. Returns the median share. */
static double measure(size_t c, const char *provider)
{
    const bool product = cases[c].flop > 0;
    const double work = product ? cases[c].flop : cases[c].bytes;
    double times[ROUNDS], shares[ROUNDS];
    cases[c].run();
    for (int round = 0; round < ROUNDS; round++) {
        const double set = cases[c].set > 0 ? cases[c].set : work;
        const double ceiling = product ? peak() : copy_rate(set);
        double best = 1e9;
        for (int i = 0; i < 3; i++) {
            const double start = seconds_now();
            cases[c].run();
            const double seconds = seconds_now() - start;
            best = seconds < best ? seconds : best;
        }
        times[round] = 1e6 * best;
        shares[round] = 1e-9 * work / best / ceiling;
    }
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", cases[c].name, *provider ? ", " : "",
             provider);
    bench_print(name, times, ROUNDS, "us");
    return bench_print("", shares, ROUNDS,
                       product ? "of the multiply-add rate"
                               : "of a copy of as many bytes");
}

static float *random_values(size_t n)
{
    float *values = bench_alloc(n * sizeof *values);
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) * 0x1p-24f;
    }
    return values;
}

static bool all(unsigned threads)
{
    bool met = true;
    printf("\n%u thread%s\n", threads, threads == 1 ? "" : "s");
    kith_backend_threads(threads);
    for (size_t c = 0; c < CASES; c++) {
        for (size_t p = 0; p < (cases[c].providers ? KITH_PRODUCTS : 1); p++) {
            const char *const name = kith_backend_products[p];
            if (kith_backend_product(name) != KITH_OK)
                continue;
            const double share = measure(c, cases[c].providers ? name : "");
            if (cases[c].providers && p == 0 && threads == 1 && share < 0.55) {
                printf("MISSED: own products below 0.55\n");
                met = false;
            }
        }
        if (kith_backend_product("own") != KITH_OK)
            return false;
    }
    return met;
}

int main(void)
{
    cpu = kith_backend_find("cpu");
    float **const buffers[] = {&x, &y, &w, &pre, &dy, &dx, &dw, &saved};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        *buffers[i] = random_values((size_t)TOKENS * WIDTH * 16);
    db = random_values(4096);
    scratch = bench_alloc(kith_kernel_scratch(
        cpu->ops->kernels[KITH_OP_ATTENTION], &attention, 16));
    for (int32_t i = 0; i < TOKENS; i++)
        tokens[i] = i * 7 % 65;
    cases[0].flop = mlp_flop(64);
    cases[1].flop = mlp_flop(256);

    const unsigned most = (unsigned)bench_setting("BENCH_THREADS", 2);
    bool met = true;
    for (unsigned threads = 1; threads <= most; threads *= 2)
        met = all(threads) && met;
    return met ? 0 : 1;
}
