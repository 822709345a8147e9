/* Backend cpu-bf16: cpu, but for the products of linear layers, which multiply
 * bfloat16 and add in float32, by oneDNN on avx512_bf16 or AMX.
 *
 *   y = activation(r(x) r(W) + b);  dx = r(dv) r(W)^T;  dW = r(x)^T r(dv)
 *
 * r rounds to the nearest bfloat16. Weights, gradients, activations and the
 * optimiser stay in float32, and so do biases, norms, attention, convolutions
 * and the loss: a rounded copy lives in scratch, for one product. A product is
 * cut into parts by its shape alone, so that threads change no bit.
 * Micikevicius et al., "Mixed Precision Training", ICLR 2018. */
#include "kith/assert.h"
#include "kith/backend.h"

#include "cpu_ops.h"
#include "cpu_text.h"
#include "onednn.h"
#include "pool.h"

/* In dnnl_cpu_isa_t, whose larger sets hold the bits of the smaller. */
enum { AVX512_BF16 = 0xe7 };

static const char *bf16_missing(void)
{
    const struct kith_onednn *const library = kith_onednn();
    if (library == NULL)
        return "oneDNN is not installed; install libdnnl.so.2 (Debian: "
               "libdnnl2)";
    if (library->bf16 == NULL)
        return "this oneDNN has no dnnl_gemm_bf16bf16f32";
    if ((library->isa & AVX512_BF16) != AVX512_BF16)
        return "this CPU has neither avx512_bf16 nor AMX, without which "
               "bfloat16 is slower than float32";
    return NULL;
}

/* Elements that one part rounds: half a second-level cache with their copy. */
enum { PART = 1 << 16 };

struct rounding {
    size_t n;
    const float *from;
    uint16_t *to;
};

static void round_part(void *context, size_t i)
{
    const struct rounding *r = context;
    const size_t at = i * PART, left = r->n - at;
    kith_cpu_best()->to_bf16(left < PART ? left : PART, r->from + at,
                             r->to + at);
}

static void round_all(size_t n, const void *from, uint16_t *to)
{
    struct rounding r = {n, from, to};
    kith_pool_run((n + PART - 1) / PART, round_part, &r);
}

/* A row-major matrix whose rows have `stride` elements, or its transpose. */
struct matrix {
    const uint16_t *at;
    size_t stride;
    bool turned;
};

/* C (m, n) <- [C +] A (m, k) B (k, n), rows of C being n apart; then, where
 * `finish`, what struct kith_product says. */
struct product {
    size_t m, n, k;
    struct matrix a, b;
    float *c, *pre;
    bool add, finish;
    const float *bias;
    enum kith_activation activation;
    size_t rows, columns; /* of one part */
    size_t across;        /* parts side by side */
};

/* Sides of parts are multiples of SIDE; parts are at most so large, so that
 * what follows finds C in the cache, and no fewer, so that threads share the
 * work. Larger ones are faster: the library copies A and B for each. */
enum { SIDE = 128, LARGE = 512 * 1024, PARTS = 4 };

static size_t half(size_t side)
{
    return (side / 2 + SIDE - 1) / SIDE * SIDE;
}

static size_t parts_of(const struct product *p)
{
    return (p->m + p->rows - 1) / p->rows * p->across;
}

static void cut(struct product *p)
{
    p->rows = p->m;
    p->columns = p->n;
    p->across = 1;
    while (p->rows * p->columns > LARGE || parts_of(p) < PARTS) {
        if (p->rows >= p->columns && p->rows >= 2 * SIDE)
            p->rows = half(p->rows);
        else if (p->columns >= 2 * SIDE)
            p->columns = half(p->columns);
        else
            return;
        p->across = (p->n + p->columns - 1) / p->columns;
    }
}

static void product_part(void *context, size_t i)
{
    const struct product *p = context;
    const size_t m0 = i / p->across * p->rows;
    const size_t n0 = i % p->across * p->columns;
    const size_t m = kith_least(p->rows, p->m - m0);
    const size_t n = kith_least(p->columns, p->n - n0);
    const size_t at = m0 * p->n + n0;
    const int status = kith_onednn_alone()->bf16(
        p->a.turned ? 'T' : 'N', p->b.turned ? 'T' : 'N', (int64_t)m,
        (int64_t)n, (int64_t)p->k, 1,
        p->a.at + (p->a.turned ? m0 : m0 * p->a.stride), (int64_t)p->a.stride,
        p->b.at + (p->b.turned ? n0 * p->b.stride : n0), (int64_t)p->b.stride,
        p->add ? 1 : 0, p->c + at, (int64_t)p->n);
    KITH_ASSERT(status == 0);
    if (p->finish)
        kith_cpu_best()->text->finish(
            (struct kith_rows){m, n, p->n},
            p->bias == NULL ? NULL : p->bias + n0, p->activation,
            p->pre == NULL ? NULL : p->pre + at, p->c + at);
}

static void product_run(struct product p)
{
    KITH_ASSERT(p.m > 0 && p.n > 0 && p.k > 0);
    cut(&p);
    kith_pool_run(parts_of(&p), product_part, &p);
}

/* Scratch holds two rounded matrices, each on a cache line. */
static size_t lines(size_t elements)
{
    return (elements + 31) / 32 * 32;
}

static size_t bf16_linear_scratch(const void *shape, size_t rows)
{
    const struct kith_linear *op = shape;
    const size_t x = lines(rows * op->in), w = lines(op->in * op->out);
    const size_t dy = lines(rows * op->out);
    const size_t forward = x + w, backward = dy + (x > w ? x : w);
    return (forward > backward ? forward : backward) * sizeof(uint16_t);
}

static void bf16_linear(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    uint16_t *const left = a->scratch;
    uint16_t *const right = left + lines(a->rows * op->in);
    round_all(a->rows * op->in, a->x, left);
    round_all(op->in * op->out, a->weight, right);
    product_run((struct product){
        .m = a->rows,
        .n = op->out,
        .k = op->in,
        .a = {left, op->in, false},
        .b = {right, op->in_out ? op->out : op->in, !op->in_out},
        .c = a->y,
        .pre = a->saved,
        .finish = true,
        .bias = a->bias,
        .activation = op->activation});
}

/* dW (as W is stored) <- [dW +] x^T dy */
static void weights_backward(const struct kith_arguments *a, const uint16_t *x,
                             const uint16_t *dy)
{
    const struct kith_linear *op = a->shape;
    const struct matrix input = {x, op->in, op->in_out};
    const struct matrix d = {dy, op->out, !op->in_out};
    product_run((struct product){.m = op->in_out ? op->in : op->out,
                                 .n = op->in_out ? op->out : op->in,
                                 .k = a->rows,
                                 .a = op->in_out ? input : d,
                                 .b = op->in_out ? d : input,
                                 .c = a->dweight,
                                 .add = a->flags & KITH_ADD_WEIGHTS});
}

static void bf16_linear_backward(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    uint16_t *const d = a->scratch;
    uint16_t *const other = d + lines(a->rows * op->out);
    kith_cpu_linear_slope(a);
    if (a->dx != NULL || a->dweight != NULL)
        round_all(a->rows * op->out, a->dy, d);
    if (a->dx != NULL) {
        round_all(op->in * op->out, a->weight, other);
        product_run((struct product){
            .m = a->rows,
            .n = op->in,
            .k = op->out,
            .a = {d, op->out, false},
            .b = {other, op->in_out ? op->out : op->in, op->in_out},
            .c = a->dx,
            .add = a->flags & KITH_ADD_DATA});
    }
    if (a->dweight != NULL) {
        round_all(a->rows * op->in, a->x, other);
        weights_backward(a, other, d);
    }
}

static const struct kith_kernel bf16_linear_kernel = {
    .scratch = bf16_linear_scratch,
    .forward = bf16_linear,
    .backward = bf16_linear_backward};

/* The kernels of cpu, but for one. */
#define kith_cpu_linear_kernel bf16_linear_kernel
static const struct kith_ops bf16_ops = {
    KITH_OPERATIONS(KITH_CPU_KERNEL).cross_entropy = kith_cpu_cross_entropy,
    .adamw = kith_cpu_adamw,
};

#define RECORD kith_backend_cpu_bf16
#define NAME "cpu-bf16"
#define SUMMARY "cpu, but linear layers multiply bfloat16; float32 weights"
#define OPS bf16_ops
#define MISSING bf16_missing
#include "cpu.inc.h"
