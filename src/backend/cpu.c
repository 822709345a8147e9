/* Backend cpu: products by OpenBLAS, everything else by our own loops in
 * float32, vectorised for the widest instruction set this CPU has.
 * Results may differ between CPUs: OpenBLAS picks its kernels too. */
#include "cpu.h"

#include <cblas.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "series.h"

const struct kith_cpu_loops *const kith_cpu_loops[] = {
#ifdef KITH_CPU_X86
    &kith_cpu_avx512, &kith_cpu_avx2,
#endif
    &kith_cpu_portable, NULL};

/* The widest supported loops. Every thread would choose the same, so a race
 * here only does the choosing twice. */
static const struct kith_cpu_loops *loops(void)
{
    static _Atomic(const struct kith_cpu_loops *) chosen;
    const struct kith_cpu_loops *found =
        atomic_load_explicit(&chosen, memory_order_relaxed);
    if (found != NULL)
        return found;
    size_t i = 0;
    while (!kith_cpu_loops[i]->supported())
        i++;
    atomic_store_explicit(&chosen, kith_cpu_loops[i], memory_order_relaxed);
    return kith_cpu_loops[i];
}

void kith_backend_threads(unsigned count)
{
    KITH_ASSERT(count > 0 && count <= INT_MAX);
    openblas_set_num_threads((int)count);
}

static void cpu_copy(size_t n, void *target, const void *source)
{
    if (n > 0)
        memmove(target, source, n * sizeof(float));
}

static void cpu_scale(size_t n, double factor, void *x)
{
    loops()->scale(n, (float)factor, x);
}

static void cpu_add(size_t n, double factor, const void *x, void *y)
{
    loops()->add(n, (float)factor, x, y);
}

static double cpu_mix(size_t n, double weight, const void *received,
                      const void *sent, void *x)
{
    return loops()->mix(n, (float)weight, received, sent, x);
}

static double cpu_swap_mix(size_t n, double weight, const void *received,
                           const void *sent, void *x)
{
    return loops()->swap_mix(n, (float)weight, received, sent, x);
}

static double cpu_mix_bf16(size_t n, double weight, const uint16_t *received,
                           const void *sent, void *x)
{
    return loops()->mix_bf16(n, (float)weight, received, sent, x);
}

static double cpu_sum(size_t n, const void *x)
{
    return loops()->sum(n, x);
}

static double cpu_distance_squared(size_t n, const void *x, const void *y)
{
    return loops()->distance_squared(n, x, y);
}

static bool cpu_finite(size_t n, const void *x)
{
    return loops()->finite(n, x);
}

static void cpu_read(size_t n, const void *x, double *out)
{
    const float *v = x;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)v[i];
}

static void cpu_write(size_t n, const double *in, void *x)
{
    float *v = x;
    for (size_t i = 0; i < n; i++)
        v[i] = (float)in[i];
}

static void cpu_gemm(bool transpose_a, bool transpose_b, size_t m, size_t n,
                     size_t k, double alpha, const void *a, const void *b,
                     double beta, void *c)
{
    KITH_ASSERT(m <= INT_MAX && n <= INT_MAX && k <= INT_MAX);
    if (m == 0 || n == 0)
        return;
    const blasint rows = (blasint)m, columns = (blasint)n, depth = (blasint)k;
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, rows, columns, depth,
                (float)alpha, a, transpose_a ? rows : depth, b,
                transpose_b ? depth : columns, (float)beta, c, columns);
}

static void cpu_add_bias(size_t rows, size_t n, const void *bias, bool relu,
                         void *y)
{
    loops()->add_bias(rows, n, bias, relu, y);
}

static void cpu_column_sum(size_t rows, size_t n, const void *d, void *out)
{
    loops()->column_sum(rows, n, d, out);
}

static void cpu_relu_backward(size_t n, const void *y, void *d)
{
    loops()->relu_backward(n, y, d);
}

/* One row: its loss, its gradient in place of its logits. Each exponential is
 * taken once and parked in the row; exp in float64, since rows * classes is
 * small beside the products (under 1 % of a step). */
static double cross_entropy_row(size_t classes, size_t label, double scale,
                                float *row, bool *right)
{
    size_t best = 0;
    for (size_t j = 1; j < classes; j++) {
        if (row[j] > row[best])
            best = j;
    }
    *right = best == label;
    const double top = (double)row[best], own = (double)row[label];
    double sum = 0;
    for (size_t j = 0; j < classes; j++) {
        const double e = kith_exp((double)row[j] - top);
        row[j] = (float)e;
        sum += e;
    }
    const float factor = (float)(scale / sum);
    for (size_t j = 0; j < classes; j++)
        row[j] *= factor;
    row[label] -= (float)scale;
    return kith_log(sum) + top - own;
}

static double cpu_cross_entropy(size_t rows, size_t classes,
                                const uint8_t *labels, void *logits,
                                uint32_t *correct)
{
    float *row = logits;
    double loss = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < rows; i++, row += classes) {
        KITH_ASSERT(labels[i] < classes);
        bool right;
        loss += cross_entropy_row(classes, labels[i], 1.0 / (double)rows, row,
                                  &right);
        count += right;
    }
    if (correct != NULL)
        *correct = count;
    return loss / (double)rows;
}

static bool cpu_sgd(size_t n, double rate, double momentum, double decay,
                    const void *gradient, void *velocity, void *x)
{
    return loops()->sgd(n, (float)rate, (float)momentum, (float)decay, gradient,
                        velocity, x);
}

static void cpu_from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    loops()->from_bytes(n, bytes, y);
}

extern const struct kith_backend kith_backend_cpu;
const struct kith_backend kith_backend_cpu = {
    .name = "cpu",
    .summary = "float32, OpenBLAS and vectorised loops",
    .element_bytes = sizeof(float),
    .copy = cpu_copy,
    .scale = cpu_scale,
    .add = cpu_add,
    .mix = cpu_mix,
    .swap_mix = cpu_swap_mix,
    .mix_bf16 = cpu_mix_bf16,
    .sum = cpu_sum,
    .distance_squared = cpu_distance_squared,
    .finite = cpu_finite,
    .read = cpu_read,
    .write = cpu_write,
    .gemm = cpu_gemm,
    .add_bias = cpu_add_bias,
    .column_sum = cpu_column_sum,
    .relu_backward = cpu_relu_backward,
    .cross_entropy = cpu_cross_entropy,
    .sgd = cpu_sgd,
    .from_bytes = cpu_from_bytes,
};
