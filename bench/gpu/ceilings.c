/* What the device can do at best, measured in the same run as what is compared
 * with it, beside its nominal rate. */
#include <stdio.h>
#include <string.h>

#include "bench_gpu.h"

/* ceiling.cu; not linked where there is no CUDA: copies then go through the
 * backend. */
__attribute__((weak)) void ceiling_copies(size_t bytes, double *device,
                                          double *out, double *in);

/* Dense bfloat16 with float32 sums, TFLOP/s, from the makers' data sheets; the
 * first name that the device's contains. */
static const struct {
    const char *name;
    double tflops;
} nominals[] = {
    {"H200 NVL", 835}, {"H200", 989},  {"H100 PCIe", 756}, {"H100 NVL", 835},
    {"H100", 989},     {"B200", 2250}, {"A100", 312},      {"A30", 165},
    {"L40S", 362},     {"L4", 121},    {"4090", 165},
};

static double nominal_of(const char *device)
{
    for (size_t i = 0; i < sizeof nominals / sizeof nominals[0]; i++)
        if (strstr(device, nominals[i].name) != NULL)
            return 1e12 * nominals[i].tflops;
    return 0;
}

/* ---- copies through the backend */

struct copies {
    const struct kith_backend *on;
    size_t n;
    float *a, *b, *shared;
};

static void copy_across(void *argument)
{
    const struct copies *c = argument;
    c->on->copy(c->n, c->b, c->a);
}

static void copy_down(void *argument)
{
    const struct copies *c = argument;
    c->on->copy(c->n, c->shared, c->a);
    (void)c->on->settled(c->shared, true);
}

static void copy_up(void *argument)
{
    const struct copies *c = argument;
    c->on->copy(c->n, c->b, c->shared);
}

static void backend_copies(struct machine *m, size_t n)
{
    const struct kith_backend *const on = m->single;
    struct copies c = {.on = on,
                       .n = n,
                       .a = elements(on, n, 0, 1),
                       .b = poisoned_elements(on, n),
                       .shared = on->alloc(n * sizeof(float), true)};
    const double size = 4e-9 * (double)n;
    m->copy = 2 * size / seconds_of(on, copy_across, &c);
    m->down = size / seconds_of(on, copy_down, &c);
    m->up = size / seconds_of(on, copy_up, &c);
    on->release(c.a);
    on->release(c.b);
    on->release(c.shared);
}

/* ---- products */

struct product {
    const struct kith_backend *on;
    struct kith_linear op;
    size_t rows;
    void *x, *w, *y;
};

static void multiply(void *argument)
{
    const struct product *p = argument;
    p->on->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &p->op,
                                 .rows = p->rows,
                                 .x = p->x,
                                 .weight = p->w,
                                 .y = p->y});
}

/* Many rows, so that narrowing the weights first is 1 % of a bfloat16 one. */
struct size {
    size_t rows, width;
};

static struct size size_of(const struct machine *m, bool half)
{
    return m->tiny ? (struct size){64, 64}
           : half  ? (struct size){65536, 4096}
                   : (struct size){4096, 4096};
}

/* FLOP/s of a linear layer without bias; 0 where y was not written. */
static double product_rate(const struct machine *m, bool half)
{
    const struct kith_backend *const on = half ? m->half : m->single;
    const struct size s = size_of(m, half);
    const size_t weights = s.width * s.width, values = s.rows * s.width;
    struct product p = {.on = on,
                        .op = {.in = s.width, .out = s.width, .in_out = true},
                        .rows = s.rows,
                        .x = activations(on, values, 0, 1),
                        .w = elements(on, weights, 0, 0.02),
                        .y = poisoned_activations(on, values)};
    const double took = seconds_of(on, multiply, &p);
    const bool good = written_activations(on, values, p.y);
    on->release(p.x);
    on->release(p.w);
    on->release(p.y);
    return good ? 2.0 * (double)s.rows * (double)weights / took : 0;
}

void ceilings_measure(struct machine *m)
{
    m->nominal = nominal_of(m->device);
    if (!m->emulated && ceiling_copies != NULL)
        ceiling_copies((size_t)1 << 29, &m->copy, &m->down, &m->up);
    else
        backend_copies(m, m->tiny ? 4096 : (size_t)1 << 27);
    m->single_flops = product_rate(m, false);
    if (m->half != NULL)
        m->half_flops = product_rate(m, true);
}

static void product_row(const struct machine *m, bool half)
{
    char name[80], text[96] = "no nominal rate is known";
    const struct size s = size_of(m, half);
    const double flops = half ? m->half_flops : m->single_flops;
    (void)snprintf(name, sizeof name, "product %zu x %zu x %zu, %s", s.rows,
                   s.width, s.width,
                   half ? "bfloat16" : "float32 without TF32");
    if (half && m->nominal > 0)
        (void)snprintf(text, sizeof text, "%.1f %% of nominal %.0f",
                       100 * flops / m->nominal, 1e-12 * m->nominal);
    if (flops > 0)
        row(name, 1e-12 * flops, "TFLOP/s", text, VERDICT_INFO);
    else
        row_failed(name, "y holds values that were not written");
}

void bench_ceilings(const struct machine *m)
{
    const char *const by = !m->emulated && ceiling_copies != NULL
                               ? "by the runtime"
                               : "through the backend";
    row("copy on the device, read + written", m->copy, "GB/s", by,
        VERDICT_INFO);
    row("copy out, pinned", m->down, "GB/s", by, VERDICT_INFO);
    row("copy in, pinned", m->up, "GB/s", by, VERDICT_INFO);
    product_row(m, false);
    if (m->half != NULL)
        product_row(m, true);
}
