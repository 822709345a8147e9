/* Kernels one by one, at the sizes of GPT-2 124M and ResNet-50. What a kernel
 * writes was NaN before; what it reads stays as it is, or is written with the
 * same values, so that every call does the same work. */
#include "bench_gpu.h"

#include <stdio.h>

struct ceiling {
    double bytes, flops; /* GB/s, FLOP/s */
};

struct layer {
    const struct kith_backend *on;
    const char *name;
    struct ceiling most;
    size_t rows, width;
    struct kith_linear linear;
    struct kith_norm norm;
    struct kith_attention attention;
    struct kith_embed embed;
    struct kith_conv conv;
    int32_t *tokens;
    void *x, *y, *dy, *dx, *w, *dw, *shift, *dshift, *pre, *saved, *buffers,
        *scratch;
};

static void close_layer(struct layer *l)
{
    void *const all[] = {l->x,       l->y,       l->dy,     l->dx,  l->w,
                         l->dw,      l->shift,   l->dshift, l->pre, l->saved,
                         l->buffers, l->scratch, l->tokens};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        l->on->release(all[i]);
}

static double bytes_of(const struct kith_backend *on)
{
    return on->activation_bytes == 2 ? 2 : 4;
}

/* One row. amount: GB or FLOP of a call; out: (n) activations it writes, or
 * elements. */
struct written {
    const void *out;
    size_t n;
    bool elements;
};

static bool holds(const struct kith_backend *on, struct written w)
{
    return w.elements ? written_elements(on, w.n, w.out)
                      : written_activations(on, w.n, w.out);
}

static void timed(struct layer *l, const char *way, void (*run)(void *),
                  double amount, bool flops, struct written w)
{
    char text[96];
    const double took = seconds_of(l->on, run, l);
    const double most = flops ? 1e-12 * l->most.flops : l->most.bytes;
    (void)snprintf(text, sizeof text, "%s, %s%s", l->on->name, l->name, way);
    row_rate(text, took, amount / took * (flops ? 1e-12 : 1),
             flops ? "TFLOP/s" : "GB/s", most,
             flops ? "the product" : "the copy on the device", holds(l->on, w));
}

/* ---- products */

static void run_linear(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &l->linear,
                                 .scratch = l->scratch,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .bias = l->shift,
                                 .saved = l->pre,
                                 .y = l->y});
}

static void run_linear_back(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &l->linear,
                                 .scratch = l->scratch,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .saved = l->pre,
                                 .y = l->y,
                                 .dy = l->dy,
                                 .dx = l->dx,
                                 .dweight = l->dw,
                                 .dbias = l->dshift});
}

static void *scratch_for(const struct kith_backend *on,
                         const struct kith_linear *op, size_t rows)
{
    const size_t bytes =
        kith_kernel_scratch(on->ops->kernels[KITH_OP_LINEAR], op, rows);
    return bytes == 0 ? NULL : on->alloc(bytes, false);
}

static void linear(const struct kith_backend *on, struct ceiling most,
                   const char *name, size_t rows, struct kith_linear op)
{
    const bool gelu = op.activation == KITH_ACTIVATION_GELU;
    struct layer l = {.on = on,
                      .name = name,
                      .most = most,
                      .linear = op,
                      .rows = rows,
                      .x = activations(on, rows * op.in, 0, 1),
                      .w = elements(on, op.in * op.out, 0, 0.02),
                      .shift = elements(on, op.out, 0, 0.02),
                      .pre =
                          gelu ? poisoned_activations(on, rows * op.out) : NULL,
                      .y = poisoned_activations(on, rows * op.out),
                      .dx = poisoned_activations(on, rows * op.in),
                      .dw = poisoned_elements(on, op.in * op.out),
                      .dshift = poisoned_elements(on, op.out),
                      .scratch = scratch_for(on, &op, rows)};
    const double flops = 2.0 * (double)rows * (double)op.in * (double)op.out;
    timed(&l, "", run_linear, flops, true,
          (struct written){l.y, rows * op.out, false});
    on->release(l.pre);
    /* The slope of GELU is 1 there, so that dy keeps its values. */
    l.pre = gelu ? activations(on, rows * op.out, 8, 1) : NULL;
    l.dy = activations(on, rows * op.out, 0, 1);
    timed(&l, ", back", run_linear_back, 2 * flops, true,
          (struct written){l.dw, op.in * op.out, true});
    if (!holds(on, (struct written){l.dx, rows * op.in, false}))
        row_failed(name, "dx holds values that were not written");
    close_layer(&l);
}

/* ---- norms */

static void run_norm(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_NORM]->forward(
        &(struct kith_arguments){.shape = &l->norm,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .bias = l->shift,
                                 .buffers = l->buffers,
                                 .saved = l->saved,
                                 .y = l->y,
                                 .flags = KITH_STATISTICS});
}

static void run_norm_back(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_NORM]->backward(
        &(struct kith_arguments){.shape = &l->norm,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .y = l->y,
                                 .saved = l->saved,
                                 .dy = l->dy,
                                 .dx = l->dx,
                                 .dweight = l->dw,
                                 .dbias = l->dshift});
}

static void norm(const struct kith_backend *on, struct ceiling most,
                 const char *name, size_t rows, struct kith_norm op)
{
    const size_t n = rows * op.pixels * op.channels;
    struct layer l = {.on = on,
                      .name = name,
                      .most = most,
                      .rows = rows,
                      .norm = op,
                      .x = activations(on, n, 0, 1),
                      .y = poisoned_activations(on, n),
                      .dy = activations(on, n, 0, 1),
                      .dx = poisoned_activations(on, n),
                      .w = elements(on, op.channels, 1, 0.1),
                      .dw = poisoned_elements(on, op.channels),
                      .shift = elements(on, op.channels, 0, 0.1),
                      .dshift = poisoned_elements(on, op.channels),
                      .saved =
                          poisoned_elements(on, kith_norm_saved(&op, rows)),
                      .buffers = elements(on, 2 * op.channels, 1, 0.1)};
    const double size = 1e-9 * (double)n * bytes_of(on);
    timed(&l, "", run_norm, 2 * size, false, (struct written){l.y, n, false});
    timed(&l, ", back", run_norm_back, 3 * size, false,
          (struct written){l.dx, n, false});
    close_layer(&l);
}

/* ---- attention */

static void run_attention(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_ATTENTION]->forward(
        &(struct kith_arguments){.shape = &l->attention,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .saved = l->saved,
                                 .y = l->y,
                                 .scratch = l->scratch});
}

static void run_attention_back(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_ATTENTION]->backward(
        &(struct kith_arguments){.shape = &l->attention,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .y = l->y,
                                 .saved = l->saved,
                                 .dy = l->dy,
                                 .dx = l->dx,
                                 .scratch = l->scratch});
}

static void attention(const struct kith_backend *on, struct ceiling most,
                      const char *name, size_t rows, struct kith_attention op)
{
    const size_t n = rows * op.context * op.width;
    struct layer l = {
        .on = on,
        .name = name,
        .most = most,
        .rows = rows,
        .attention = op,
        .x = activations(on, 3 * n, 0, 1),
        .y = poisoned_activations(on, n),
        .dy = activations(on, n, 0, 1),
        .dx = poisoned_activations(on, 3 * n),
        .saved = poisoned_elements(on, rows * op.heads * op.context),
        .scratch = on->alloc(
            kith_kernel_scratch(on->ops->kernels[KITH_OP_ATTENTION], &op, rows),
            false)};
    /* Half of two products, tokens x tokens; five on the way back. */
    const double flops = 2.0 * (double)n * (double)op.context;
    timed(&l, "", run_attention, flops, true, (struct written){l.y, n, false});
    timed(&l, ", back", run_attention_back, 2.5 * flops, true,
          (struct written){l.dx, 3 * n, false});
    close_layer(&l);
}

/* ---- embedding and loss */

static void run_embed(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_EMBED]->forward(
        &(struct kith_arguments){.shape = &l->embed,
                                 .rows = l->rows,
                                 .x = l->tokens,
                                 .weight = l->w,
                                 .bias = l->shift,
                                 .y = l->y});
}

static void run_embed_back(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_EMBED]->backward(
        &(struct kith_arguments){.shape = &l->embed,
                                 .rows = l->rows,
                                 .x = l->tokens,
                                 .dy = l->dy,
                                 .dweight = l->dw,
                                 .dbias = l->dshift,
                                 .flags = KITH_ADD_WEIGHTS});
}

static void run_loss(void *argument)
{
    const struct layer *l = argument;
    struct kith_found found;
    l->on->step_begin();
    (void)l->on->ops->cross_entropy(&(struct kith_loss){.rows = l->rows,
                                                        .classes = l->width,
                                                        .labels = l->tokens,
                                                        .scale = 1,
                                                        .logits = l->x});
    l->on->step_end(&found);
}

/* Tokens that the device reads, too: a few words are frequent, as in text. */
static int32_t *word_tokens(const struct kith_backend *on, size_t n,
                            size_t vocabulary)
{
    int32_t *const tokens = on->alloc(n * sizeof *tokens, true);
    for (size_t i = 0; tokens != NULL && i < n; i++)
        tokens[i] = (int32_t)(i % 7 < 2 ? i % 7 : i * 2654435761u % vocabulary);
    return tokens;
}

static void embed(const struct kith_backend *on, struct ceiling most,
                  size_t rows, struct kith_embed op)
{
    const size_t tokens = rows * op.context, n = tokens * op.width;
    struct layer l = {.on = on,
                      .name = "embedding",
                      .most = most,
                      .rows = rows,
                      .embed = op,
                      .tokens = word_tokens(on, tokens, op.vocabulary),
                      .y = poisoned_activations(on, n),
                      .dy = activations(on, n, 0, 1),
                      .w = elements(on, op.vocabulary * op.width, 0, 1),
                      .dw = elements(on, op.vocabulary * op.width, 0, 1),
                      .shift = elements(on, op.context * op.width, 0, 1),
                      .dshift = elements(on, op.context * op.width, 0, 1)};
    const double size = 1e-9 * (double)n * bytes_of(on);
    timed(&l, "", run_embed, size, false, (struct written){l.y, n, false});
    timed(&l, ", back", run_embed_back, size, false,
          (struct written){l.dw, op.vocabulary * op.width, true});
    close_layer(&l);
}

static void loss(const struct kith_backend *on, struct ceiling most,
                 size_t tokens, size_t vocabulary)
{
    char name[48];
    const size_t n = tokens * vocabulary;
    (void)snprintf(name, sizeof name, "loss over %zu", vocabulary);
    struct layer l = {.on = on,
                      .name = name,
                      .most = most,
                      .rows = tokens,
                      .width = vocabulary,
                      .tokens = word_tokens(on, tokens, vocabulary),
                      .x = activations(on, n, 0, 1)};
    timed(&l, "", run_loss, 2e-9 * (double)n * bytes_of(on), false,
          (struct written){l.x, n, false});
    close_layer(&l);
}

/* ---- convolutions */

static void run_conv(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_CONV]->forward(
        &(struct kith_arguments){.shape = &l->conv,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .y = l->y,
                                 .scratch = l->scratch});
}

static void run_conv_back(void *argument)
{
    const struct layer *l = argument;
    l->on->ops->kernels[KITH_OP_CONV]->backward(
        &(struct kith_arguments){.shape = &l->conv,
                                 .rows = l->rows,
                                 .x = l->x,
                                 .weight = l->w,
                                 .y = l->y,
                                 .dy = l->dy,
                                 .dx = l->dx,
                                 .dweight = l->dw,
                                 .scratch = l->scratch});
}

static void conv(const struct kith_backend *on, struct ceiling most,
                 const char *name, size_t rows, struct kith_conv op)
{
    const size_t in = rows * op.height * op.width * op.in;
    const size_t out = rows * op.out_height * op.out_width * op.out;
    const size_t weights = op.kernel * op.kernel * op.in * op.out;
    const size_t scratch =
        kith_kernel_scratch(on->ops->kernels[KITH_OP_CONV], &op, rows);
    struct layer l = {.on = on,
                      .name = name,
                      .most = most,
                      .rows = rows,
                      .conv = op,
                      .x = activations(on, in, 0, 1),
                      .dx = poisoned_activations(on, in),
                      .y = poisoned_activations(on, out),
                      .dy = activations(on, out, 0, 1),
                      .w = elements(on, weights, 0, 0.05),
                      .dw = poisoned_elements(on, weights),
                      .scratch =
                          scratch > 0 ? on->alloc(scratch, false) : NULL};
    const double flops =
        2.0 * (double)out * (double)(op.kernel * op.kernel * op.in);
    timed(&l, "", run_conv, flops, true, (struct written){l.y, out, false});
    timed(&l, ", back", run_conv_back, 2 * flops, true,
          (struct written){l.dw, weights, true});
    if (!holds(on, (struct written){l.dx, in, false}))
        row_failed(name, "dx holds values that were not written");
    close_layer(&l);
}

/* ---- the sizes */

static void text_kernels(const struct kith_backend *on, struct ceiling most,
                         size_t rows)
{
    const enum kith_activation none = KITH_ACTIVATION_NONE;
    const size_t tokens = rows * 1024;
    linear(on, most, "qkv 768 -> 2304", tokens,
           (struct kith_linear){768, 2304, true, none, 0});
    linear(on, most, "proj 768 -> 768", tokens,
           (struct kith_linear){768, 768, true, none, 0});
    linear(on, most, "fc 768 -> 3072, gelu", tokens,
           (struct kith_linear){768, 3072, true, KITH_ACTIVATION_GELU, 0});
    linear(on, most, "proj 3072 -> 768", tokens,
           (struct kith_linear){3072, 768, true, none, 0});
    linear(on, most, "head 768 -> 50257", tokens,
           (struct kith_linear){768, 50257, false, none, 0});
    linear(on, most, "head 768 -> 50304", tokens,
           (struct kith_linear){768, 50304, false, none, 0});
    norm(on, most, "layer norm of 768", tokens,
         (struct kith_norm){KITH_NORM_LAYER, 1, 768, 1, 1e-5, 0, none});
    attention(on, most, "attention, 12 heads of 64", rows,
              (struct kith_attention){1024, 12, 768});
    attention(on, most, "attention, 6 heads of 128", rows,
              (struct kith_attention){1024, 6, 768});
    embed(on, most, rows, (struct kith_embed){1024, 50304, 768});
    loss(on, most, tokens, 50257);
    loss(on, most, tokens, 50304);
}

static void image_kernels(const struct kith_backend *on, struct ceiling most,
                          size_t rows)
{
    const enum kith_activation none = KITH_ACTIVATION_NONE;
    norm(on, most, "batch norm 28x28x512", rows,
         (struct kith_norm){KITH_NORM_BATCH, 28 * 28, 512, 1, 1e-5, 0.1,
                            KITH_ACTIVATION_RELU});
    conv(on, most, "conv 1x1, 28x28x512 -> 128", rows,
         (struct kith_conv){28, 28, 512, 128, 1, 1, 0, 28, 28, none});
    conv(on, most, "conv 3x3, 28x28x128", rows,
         (struct kith_conv){28, 28, 128, 128, 3, 1, 1, 28, 28, none});
    conv(on, most, "conv 7x7, 224x224x3", rows,
         (struct kith_conv){224, 224, 3, 64, 7, 2, 3, 112, 112, none});
}

/* The same kernels, as large as the emulation can do. */
static void tiny_kernels(const struct kith_backend *on, struct ceiling most)
{
    const enum kith_activation none = KITH_ACTIVATION_NONE;
    linear(on, most, "fc 32 -> 64, gelu", 32,
           (struct kith_linear){32, 64, true, KITH_ACTIVATION_GELU, 0});
    linear(on, most, "head 32 -> 67", 32,
           (struct kith_linear){32, 67, false, none, 0});
    norm(on, most, "layer norm of 32", 32,
         (struct kith_norm){KITH_NORM_LAYER, 1, 32, 1, 1e-5, 0, none});
    norm(on, most, "batch norm 4x4x8", 4,
         (struct kith_norm){KITH_NORM_BATCH, 16, 8, 1, 1e-5, 0.1,
                            KITH_ACTIVATION_RELU});
    attention(on, most, "attention, 2 heads of 64", 1,
              (struct kith_attention){20, 2, 128});
    embed(on, most, 2, (struct kith_embed){16, 67, 32});
    loss(on, most, 32, 67);
    conv(on, most, "conv 3x3, 8x8x8", 2,
         (struct kith_conv){8, 8, 8, 8, 3, 1, 1, 8, 8, none});
}

void bench_kernels(const struct machine *m)
{
    const struct kith_backend *const backends[] = {m->half, m->single};
    for (int k = 0; k < 2; k++) {
        const struct kith_backend *const on = backends[k];
        const struct ceiling most = {m->copy,
                                     k == 0 ? m->half_flops : m->single_flops};
        if (on == NULL)
            continue;
        if (m->tiny) {
            tiny_kernels(on, most);
            continue;
        }
        text_kernels(on, most, k == 0 ? 16 : 4);
        image_kernels(on, most, k == 0 ? 128 : 32);
    }
    bench_flat(m);
}
