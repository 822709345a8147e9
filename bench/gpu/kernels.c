/* Kernels one by one, at the sizes of GPT-2 124M and ResNet-50. */
#include "bench_gpu.h"

#include <stdint.h>
#include <stdio.h>

/* ---- products */

struct dense {
    const struct kith_backend *on;
    struct kith_linear op;
    size_t rows;
    void *x, *w, *bias, *pre, *y, *dw;
};

static void dense_forward(void *argument)
{
    const struct dense *d = argument;
    d->on->ops->linear(&d->op, d->rows, d->x, d->w, d->bias, d->pre, d->y);
}

static void dense_backward(void *argument)
{
    const struct dense *d = argument;
    d->on->ops->linear_backward(&d->op, d->rows, d->x, d->w, d->pre, d->y, d->y,
                                d->x, d->dw, d->bias, 0);
}

/* FLOP/s forward. */
static double dense_line(const struct kith_backend *on, const char *name,
                         size_t rows, size_t in, size_t out,
                         enum kith_activation activation, double peak)
{
    char text[96];
    struct dense d = {.on = on,
                      .op = {in, out, true, activation},
                      .rows = rows,
                      .x = activations(on, rows * in, 1),
                      .w = elements(on, in * out, 0.02),
                      .bias = elements(on, out, 0.02),
                      .pre = activation == KITH_ACTIVATION_GELU
                                 ? activations(on, rows * out, 1)
                                 : NULL,
                      .y = activations(on, rows * out, 1),
                      .dw = elements(on, in * out, 1)};
    const double flops = 2.0 * (double)rows * (double)in * (double)out;
    const double forward = seconds_of(on, dense_forward, &d);
    (void)snprintf(text, sizeof text, "%s, %s", on->name, name);
    line(text, forward, flops / forward * 1e-12, "TFLOP/s", peak * 1e-12);
    const double backward = seconds_of(on, dense_backward, &d);
    (void)snprintf(text, sizeof text, "%s, %s, back", on->name, name);
    line(text, backward, 2 * flops / backward * 1e-12, "TFLOP/s", peak * 1e-12);
    void *const all[] = {d.x, d.w, d.bias, d.pre, d.y, d.dw};
    for (size_t i = 0; i < 6; i++)
        on->release(all[i]);
    return flops / forward;
}

/* ---- flat vectors */

struct vectors {
    const struct kith_backend *on;
    size_t n;
    void *x, *y, *z, *g;
    float *shared;
    bool fetched;
};

static void mix(void *argument)
{
    const struct vectors *v = argument;
    (void)v->on->mix(v->n, 0.5, v->y, v->z, v->x);
}

static void mix_alone(void *argument)
{
    const struct vectors *v = argument;
    (void)v->on->mix(v->n, 0.5, v->y, v->x, v->x);
}

static void swap_mix(void *argument)
{
    const struct vectors *v = argument;
    (void)v->on->swap_mix(v->n, 0.5, v->y, v->z, v->x);
}

static void gate(void *argument)
{
    const struct vectors *v = argument;
    (void)v->on->finite(v->n, v->x);
}

static void snapshot(void *argument)
{
    const struct vectors *v = argument;
    v->on->copy(v->n, v->shared, v->x);
    (void)v->on->settled(v->shared, true);
}

static void receive(void *argument)
{
    const struct vectors *v = argument;
    v->on->arrived(v->shared, v->n * sizeof(float));
    (void)v->on->mix(v->n, 0.5, v->shared, v->z, v->x);
}

static void adamw(void *argument)
{
    const struct vectors *v = argument;
    struct kith_found found;
    v->on->step_begin();
    (void)v->on->ops->adamw(v->n, 1e-4, 0.9, 0.95, 1e-8, 0.1, 7, v->g, v->y,
                            v->z, v->x);
    v->on->step_end(&found);
}

static void vectors(const struct machine *m)
{
    const struct kith_backend *on = m->single;
    const size_t n = (size_t)124 << 20;
    struct vectors v = {.on = on,
                        .n = n,
                        .x = elements(on, n, 1),
                        .y = elements(on, n, 1),
                        .z = elements(on, n, 1),
                        .g = elements(on, n, 1e-3),
                        .shared = on->alloc(n * sizeof(float), true)};
    const double size = (double)n * 1e-9;
    double t = seconds_of(on, mix, &v);
    line("mix, snapshot apart, 16 B", t, 16 * size / t, "GB/s", m->copy);
    const double merge = 16 * size / t / m->copy;
    t = seconds_of(on, mix_alone, &v);
    line("mix, snapshot = x, 12 B", t, 12 * size / t, "GB/s", m->copy);
    t = seconds_of(on, swap_mix, &v);
    line("swap_mix, 16 B", t, 16 * size / t, "GB/s", m->copy);
    t = seconds_of(on, gate, &v);
    line("finite gate, 4 B", t, 4 * size / t, "GB/s", m->copy);
    t = seconds_of(on, adamw, &v);
    line("adamw, 28 B", t, 28 * size / t, "GB/s", m->copy);
    t = seconds_of(on, snapshot, &v);
    line("snapshot into pinned memory, 4 B", t, 4 * size / t, "GB/s", m->out);
    claim("snapshot : pinned copy out", 4 * size / t / m->out, ">=", 0.85);
    claim("merge : copy on the device", merge, ">=", 0.85);
    t = seconds_of(on, receive, &v);
    line("fetch and merge what was received, 4 B", t, 4 * size / t, "GB/s",
         m->in);
    void *const all[] = {v.x, v.y, v.z, v.g, v.shared};
    for (size_t i = 0; i < 5; i++)
        on->release(all[i]);
}

/* ---- what stands between products */

struct layer {
    const struct kith_backend *on;
    size_t rows, width;
    struct kith_norm norm;
    struct kith_attention attention;
    struct kith_embed embed;
    struct kith_conv conv;
    int32_t *tokens;
    void *x, *y, *dy, *dx, *w, *shift, *saved, *buffers, *scratch;
};

static void norm_forward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->norm(&l->norm, l->rows, true, l->x, l->w, l->shift, l->buffers,
                     l->saved, l->y);
}

static void norm_backward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->norm_backward(&l->norm, l->rows, l->x, l->w, l->y, l->saved,
                              l->dy, l->dx, l->w, l->shift, 0);
}

static void attention_forward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->attention(&l->attention, l->rows, l->x, l->saved, l->y,
                          l->scratch);
}

static void attention_backward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->attention_backward(&l->attention, l->rows, l->x, l->y, l->saved,
                                   l->dy, l->dx, l->scratch);
}

static void embed_backward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->embed_backward(&l->embed, l->rows, l->tokens, l->dy, l->w,
                               l->shift, KITH_ADD_WEIGHTS);
}

static void loss(void *argument)
{
    const struct layer *l = argument;
    struct kith_found found;
    l->on->step_begin();
    (void)l->on->ops->cross_entropy(l->rows, l->width, l->tokens, 0, 1, l->x,
                                    NULL);
    l->on->step_end(&found);
}

static void conv_forward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->conv(&l->conv, l->rows, l->x, l->w, NULL, l->y, l->scratch);
}

static void conv_backward(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->conv_backward(&l->conv, l->rows, l->x, l->w, l->y, l->dy, l->dx,
                              l->shift, NULL, l->scratch, 0);
}

static void layer_close(struct layer *l)
{
    void *const all[] = {l->x,     l->y,     l->dy,      l->dx,      l->w,
                         l->shift, l->saved, l->buffers, l->scratch, l->tokens};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        l->on->release(all[i]);
}

static size_t bytes_of(const struct kith_backend *on)
{
    return on->activation_bytes == 2 ? 2 : 4;
}

static void norms(const struct machine *m, const struct kith_backend *on,
                  struct kith_norm norm, size_t rows, const char *name)
{
    const size_t n = rows * norm.pixels * norm.channels;
    struct layer l = {.on = on,
                      .rows = rows,
                      .norm = norm,
                      .x = activations(on, n, 1),
                      .y = activations(on, n, 1),
                      .dy = activations(on, n, 1),
                      .dx = activations(on, n, 1),
                      .w = elements(on, norm.channels, 1),
                      .shift = elements(on, norm.channels, 1),
                      .saved = elements(on, kith_norm_saved(&norm, rows), 1),
                      .buffers = elements(on, 2 * norm.channels, 1)};
    char text[96];
    const double size = (double)(n * bytes_of(on)) * 1e-9;
    double t = seconds_of(on, norm_forward, &l);
    (void)snprintf(text, sizeof text, "%s, %s", on->name, name);
    line(text, t, 2 * size / t, "GB/s", m->copy);
    t = seconds_of(on, norm_backward, &l);
    (void)snprintf(text, sizeof text, "%s, %s, back", on->name, name);
    line(text, t, 3 * size / t, "GB/s", m->copy);
    layer_close(&l);
}

static void attention(const struct machine *m, const struct kith_backend *on,
                      size_t rows)
{
    const struct kith_attention op = {1024, 12, 768};
    const size_t n = rows * op.context * op.width;
    struct layer l = {
        .on = on,
        .rows = rows,
        .attention = op,
        .x = activations(on, 3 * n, 1),
        .y = activations(on, n, 1),
        .dy = activations(on, n, 1),
        .dx = activations(on, 3 * n, 1),
        .saved = elements(on, rows * op.heads * op.context, 1),
        .scratch = on->alloc(on->ops->attention_scratch(&op, rows), false)};
    char text[96];
    /* Half of two products, tokens x tokens. */
    const double flops = 2.0 * (double)n * (double)op.context;
    const double peak = on == m->half ? m->half_flops : m->single_flops;
    double t = seconds_of(on, attention_forward, &l);
    (void)snprintf(text, sizeof text, "%s, attention", on->name);
    line(text, t, flops / t * 1e-12, "TFLOP/s", peak * 1e-12);
    t = seconds_of(on, attention_backward, &l);
    (void)snprintf(text, sizeof text, "%s, attention, back", on->name);
    line(text, t, 2.5 * flops / t * 1e-12, "TFLOP/s", peak * 1e-12);
    layer_close(&l);
}

static void words(const struct machine *m, const struct kith_backend *on,
                  size_t rows)
{
    const struct kith_embed op = {1024, 50304, 768};
    const size_t tokens = rows * op.context;
    struct layer l = {.on = on,
                      .rows = rows,
                      .embed = op,
                      .tokens = on->alloc(tokens * sizeof(int32_t), true),
                      .dy = activations(on, tokens * op.width, 1),
                      .w = elements(on, op.vocabulary * op.width, 1),
                      .shift = elements(on, op.context * op.width, 1)};
    char text[96];
    /* A few words are frequent, as in text. */
    for (size_t i = 0; i < tokens; i++)
        l.tokens[i] = (int32_t)(i % 7 < 2 ? i % 7 : i * 2654435761u % 50257);
    const double size = (double)(tokens * op.width * bytes_of(on)) * 1e-9;
    double t = seconds_of(on, embed_backward, &l);
    (void)snprintf(text, sizeof text, "%s, embedding, back", on->name);
    line(text, t, size / t, "GB/s", m->copy);
    l.width = op.vocabulary;
    l.rows = tokens;
    on->release(l.dy);
    l.dy = NULL;
    l.x = activations(on, tokens * op.vocabulary, 1);
    t = seconds_of(on, loss, &l);
    (void)snprintf(text, sizeof text, "%s, loss over 50304", on->name);
    line(text, t, 2e-9 * (double)(tokens * op.vocabulary * bytes_of(on)) / t,
         "GB/s", m->copy);
    layer_close(&l);
}

static void conv(const struct machine *m, const struct kith_backend *on,
                 struct kith_conv op, size_t rows, const char *name)
{
    const size_t in = rows * op.height * op.width * op.in;
    const size_t out = rows * op.out_height * op.out_width * op.out;
    const size_t weights = op.kernel * op.kernel * op.in * op.out;
    struct layer l = {.on = on,
                      .rows = rows,
                      .conv = op,
                      .x = activations(on, in, 1),
                      .dx = activations(on, in, 1),
                      .y = activations(on, out, 1),
                      .dy = activations(on, out, 1),
                      .w = elements(on, weights, 0.05),
                      .shift = elements(on, weights, 0.05)};
    char text[96];
    const double flops =
        2.0 * (double)out * (double)(op.kernel * op.kernel * op.in);
    const double peak = on == m->half ? m->half_flops : m->single_flops;
    double t = seconds_of(on, conv_forward, &l);
    (void)snprintf(text, sizeof text, "%s, %s", on->name, name);
    line(text, t, flops / t * 1e-12, "TFLOP/s", peak * 1e-12);
    t = seconds_of(on, conv_backward, &l);
    (void)snprintf(text, sizeof text, "%s, %s, back", on->name, name);
    line(text, t, 2 * flops / t * 1e-12, "TFLOP/s", peak * 1e-12);
    layer_close(&l);
}

void bench_kernels(struct machine *m)
{
    m->single_flops = dense_line(m->single, "product 4096", 4096, 4096, 4096,
                                 KITH_ACTIVATION_NONE, 0);
    m->half_flops = dense_line(m->half, "product 8192", 8192, 8192, 8192,
                               KITH_ACTIVATION_NONE, 0);
    vectors(m);
    for (int k = 0; k < 2; k++) {
        const struct kith_backend *on = k == 0 ? m->half : m->single;
        const double peak = k == 0 ? m->half_flops : m->single_flops;
        const size_t rows = k == 0 ? 16 : 4;
        (void)dense_line(on, "fc 768 -> 3072, gelu", rows * 1024, 768, 3072,
                         KITH_ACTIVATION_GELU, peak);
        (void)dense_line(on, "qkv 768 -> 2304", rows * 1024, 768, 2304,
                         KITH_ACTIVATION_NONE, peak);
        norms(m, on,
              (struct kith_norm){KITH_NORM_LAYER, 1, 768, 1, 1e-5, 0,
                                 KITH_ACTIVATION_NONE},
              rows * 1024, "layer norm of 768");
        norms(m, on,
              (struct kith_norm){KITH_NORM_BATCH, 28 * 28, 512, 1, 1e-5, 0.1,
                                 KITH_ACTIVATION_RELU},
              rows * 8, "batch norm 28x28x512");
        attention(m, on, rows);
        words(m, on, rows);
        conv(m, on,
             (struct kith_conv){28, 28, 128, 128, 3, 1, 1, 28, 28,
                                KITH_ACTIVATION_NONE},
             rows * 8, "conv 3x3, 28x28x128");
        conv(m, on,
             (struct kith_conv){224, 224, 3, 64, 7, 2, 3, 112, 112,
                                KITH_ACTIVATION_NONE},
             rows * 8, "conv 7x7, 224x224x3");
    }
}
