/* The problems themselves: shapes around the vector widths, strides, padding,
 * kernels and groups, one row and several. */
#include "ops_cases.h"

#define PAIR_OF(k) ((k) * (k))

static void linear_shape(const struct ops_case *c, const struct kith_ops *ops,
                         struct ops_shape *shape)
{
    const struct kith_linear *op = &c->op.linear;
    const size_t bytes =
        kith_kernel_scratch(ops->kernels[KITH_OP_LINEAR], op, c->rows);
    *shape =
        (struct ops_shape){.in = {c->rows * op->in, op->in * op->out, op->out},
                           .out = c->rows * op->out,
                           .slot = {c->rows * op->out, bytes / 4 + 1}};
}

static void linear_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_LINEAR]->forward(&(struct kith_arguments){
        .shape = &c->op.linear,
        .scratch = p->slot[1],
        .rows = c->rows,
        .x = p->in[0],
        .weight = p->in[1],
        .bias = p->in[2],
        .saved =
            c->op.linear.activation == KITH_ACTIVATION_GELU ? p->slot[0] : NULL,
        .y = p->y});
}

static void linear_backward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &c->op.linear,
                                 .scratch = p->slot[1],
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .saved = p->slot[0],
                                 .y = p->y,
                                 .dy = p->dy,
                                 .dx = p->gradient[0],
                                 .dweight = p->gradient[1],
                                 .dbias = p->gradient[2],
                                 .flags = p->add});
}

static const struct ops_kind linear = {linear_shape, linear_forward,
                                       linear_backward, 6, true};

static void conv_shape(const struct ops_case *c, const struct kith_ops *ops,
                       struct ops_shape *shape)
{
    const struct kith_conv *op = &c->op.conv;
    const size_t elements =
        kith_kernel_scratch(ops->kernels[KITH_OP_CONV], op, c->rows) / 4 + 1;
    *shape = (struct ops_shape){
        .in = {c->rows * op->height * op->width * op->in,
               PAIR_OF(op->kernel) * op->in * op->out, op->out},
        .out = c->rows * op->out_height * op->out_width * op->out,
        .slot = {elements}};
}

static void conv_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_CONV]->forward(
        &(struct kith_arguments){.shape = &c->op.conv,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .bias = p->in[2],
                                 .y = p->y,
                                 .scratch = p->slot[0]});
}

static void conv_backward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_CONV]->backward(
        &(struct kith_arguments){.shape = &c->op.conv,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .y = p->y,
                                 .dy = p->dy,
                                 .dx = p->gradient[0],
                                 .dweight = p->gradient[1],
                                 .dbias = p->gradient[2],
                                 .scratch = p->slot[0],
                                 .flags = p->add});
}

static const struct ops_kind conv = {conv_shape, conv_forward, conv_backward, 6,
                                     true};

static void norm_shape(const struct ops_case *c, const struct kith_ops *ops,
                       struct ops_shape *shape)
{
    (void)ops;
    const struct kith_norm *op = &c->op.norm;
    const size_t n = c->rows * op->pixels * op->channels;
    *shape = (struct ops_shape){
        .in = {n, op->channels, op->channels},
        .out = n,
        .slot = {2 * op->channels, kith_norm_saved(op, c->rows)}};
}

static void norm_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_NORM]->forward(
        &(struct kith_arguments){.shape = &c->op.norm,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .bias = p->in[2],
                                 .buffers = p->slot[0],
                                 .saved = p->slot[1],
                                 .y = p->y,
                                 .flags = KITH_STATISTICS});
}

static void norm_backward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_NORM]->backward(
        &(struct kith_arguments){.shape = &c->op.norm,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .y = p->y,
                                 .saved = p->slot[1],
                                 .dy = p->dy,
                                 .dx = p->gradient[0],
                                 .dweight = p->gradient[1],
                                 .dbias = p->gradient[2],
                                 .flags = p->add});
}

static const struct ops_kind norm = {norm_shape, norm_forward, norm_backward, 6,
                                     true};

static void rms_shape(const struct ops_case *c, const struct kith_ops *ops,
                      struct ops_shape *shape)
{
    (void)ops;
    const size_t n = c->rows * c->op.norm.channels;
    *shape = (struct ops_shape){
        .in = {n, c->op.norm.channels}, .out = n, .slot = {c->rows}};
}

static void rms_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_RMS_NORM]->forward(
        &(struct kith_arguments){.shape = &c->op.norm,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .saved = p->slot[0],
                                 .y = p->y});
}

static void rms_backward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_RMS_NORM]->backward(
        &(struct kith_arguments){.shape = &c->op.norm,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .weight = p->in[1],
                                 .saved = p->slot[0],
                                 .dy = p->dy,
                                 .dx = p->gradient[0],
                                 .dweight = p->gradient[1],
                                 .flags = p->add});
}

static const struct ops_kind rms = {rms_shape, rms_forward, rms_backward, 2,
                                    true};

static void pool_shape(const struct ops_case *c, const struct kith_ops *ops,
                       struct ops_shape *shape)
{
    (void)ops;
    const struct kith_pool *op = &c->op.pool;
    const size_t out = c->rows * op->out_height * op->out_width * op->channels;
    *shape = (struct ops_shape){
        .in = {c->rows * op->height * op->width * op->channels},
        .out = out,
        .slot = {out}};
}

static void pool_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_MAX_POOL]->forward(
        &(struct kith_arguments){.shape = &c->op.pool,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .y = p->y,
                                 .saved = p->slot[0]});
}

static void pool_backward(const struct ops_case *c, struct ops_pass *p)
{
    if (p->gradient[0] != NULL)
        p->ops->kernels[KITH_OP_MAX_POOL]->backward(
            &(struct kith_arguments){.shape = &c->op.pool,
                                     .rows = c->rows,
                                     .saved = p->slot[0],
                                     .dy = p->dy,
                                     .dx = p->gradient[0],
                                     .flags = p->add});
}

static const struct ops_kind pool = {pool_shape, pool_forward, pool_backward, 0,
                                     true};

static void mean_shape(const struct ops_case *c, const struct kith_ops *ops,
                       struct ops_shape *shape)
{
    (void)ops;
    *shape = (struct ops_shape){
        .in = {c->rows * c->op.mean.pixels * c->op.mean.channels},
        .out = c->rows * c->op.mean.channels};
}

static void mean_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_MEAN_POOL]->forward(&(struct kith_arguments){
        .shape = &(struct kith_mean){c->op.mean.pixels, c->op.mean.channels},
        .rows = c->rows,
        .x = p->in[0],
        .y = p->y});
}

static void mean_backward(const struct ops_case *c, struct ops_pass *p)
{
    if (p->gradient[0] != NULL)
        p->ops->kernels[KITH_OP_MEAN_POOL]->backward(&(struct kith_arguments){
            .shape =
                &(struct kith_mean){c->op.mean.pixels, c->op.mean.channels},
            .rows = c->rows,
            .dy = p->dy,
            .dx = p->gradient[0],
            .flags = p->add});
}

static const struct ops_kind mean = {mean_shape, mean_forward, mean_backward, 0,
                                     true};

static void sum_shape(const struct ops_case *c, const struct kith_ops *ops,
                      struct ops_shape *shape)
{
    (void)ops;
    const size_t n = c->op.sum.n;
    *shape = (struct ops_shape){.in = {n, n}, .out = n};
}

static void sum_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_SUM]->forward(&(struct kith_arguments){
        .rows = c->op.sum.n,
        .shape = &(struct kith_sum){c->op.sum.activation},
        .x = p->in[0],
        .other = p->in[1],
        .y = p->y});
}

/* Its kernel works in place: what the inputs get is dy. */
static void sum_backward(const struct ops_case *c, struct ops_pass *p)
{
    const struct kith_sum plain = {KITH_ACTIVATION_NONE};
    const struct kith_dropout nothing = {.rate = 0};
    struct kith_arguments a = {.shape =
                                   &(struct kith_sum){c->op.sum.activation},
                               .rows = c->op.sum.n,
                               .y = p->y,
                               .dy = p->dy,
                               .flags = p->add};
    p->ops->kernels[KITH_OP_SUM]->backward(&a);
    for (size_t i = 0; i < 2; i++) {
        const bool add = p->add & KITH_ADD_DATA;
        a = (struct kith_arguments){.shape = add ? (const void *)&plain
                                                 : (const void *)&nothing,
                                    .rows = c->op.sum.n,
                                    .x = p->dy,
                                    .other = p->gradient[i],
                                    .y = p->gradient[i]};
        if (p->gradient[i] != NULL)
            p->ops->kernels[add ? KITH_OP_SUM : KITH_OP_DROPOUT]->forward(&a);
    }
}

static const struct ops_kind sum = {sum_shape, sum_forward, sum_backward, 0,
                                    true};

static void dropout_shape(const struct ops_case *c, const struct kith_ops *ops,
                          struct ops_shape *shape)
{
    (void)ops;
    *shape = (struct ops_shape){.in = {c->rows}, .out = c->rows};
}

static void dropout_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_DROPOUT]->forward(&(struct kith_arguments){
        .shape = &c->op.dropout, .rows = c->rows, .x = p->in[0], .y = p->y});
}

static void dropout_backward(const struct ops_case *c, struct ops_pass *p)
{
    if (p->gradient[0] != NULL)
        p->ops->kernels[KITH_OP_DROPOUT]->backward(
            &(struct kith_arguments){.shape = &c->op.dropout,
                                     .rows = c->rows,
                                     .dy = p->dy,
                                     .dx = p->gradient[0]});
}

static const struct ops_kind dropout = {dropout_shape, dropout_forward,
                                        dropout_backward, 0, false};

/* Tokens that repeat, and leave some of the vocabulary untouched. */
#define TOKENS_MAX 64
static const int32_t *tokens_of(const struct ops_case *c)
{
    static int32_t tokens[TOKENS_MAX];
    for (size_t i = 0; i < TOKENS_MAX; i++)
        tokens[i] = (int32_t)(i * i % c->op.embed.vocabulary);
    return tokens;
}

static void embed_shape(const struct ops_case *c, const struct kith_ops *ops,
                        struct ops_shape *shape)
{
    (void)ops;
    const struct kith_embed *op = &c->op.embed;
    *shape = (struct ops_shape){
        .in = {op->vocabulary * op->width, op->context * op->width},
        .out = c->rows * op->context * op->width};
}

static void embed_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_EMBED]->forward(
        &(struct kith_arguments){.shape = &c->op.embed,
                                 .rows = c->rows,
                                 .x = tokens_of(c),
                                 .weight = p->in[0],
                                 .bias = p->in[1],
                                 .y = p->y});
}

static void embed_backward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_EMBED]->backward(
        &(struct kith_arguments){.shape = &c->op.embed,
                                 .rows = c->rows,
                                 .x = tokens_of(c),
                                 .dy = p->dy,
                                 .dweight = p->gradient[0],
                                 .dbias = p->gradient[1],
                                 .flags = p->add});
}

static const struct ops_kind embed = {embed_shape, embed_forward,
                                      embed_backward, 3, true};

static void attention_shape(const struct ops_case *c,
                            const struct kith_ops *ops, struct ops_shape *shape)
{
    const struct kith_attention *op = &c->op.attention;
    const size_t tokens = c->rows * op->context;
    *shape = (struct ops_shape){
        .in = {tokens * 3 * op->width},
        .out = tokens * op->width,
        .slot = {
            tokens * op->heads,
            kith_kernel_scratch(ops->kernels[KITH_OP_ATTENTION], op, c->rows) /
                    4 +
                1}};
}

static void attention_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_ATTENTION]->forward(
        &(struct kith_arguments){.shape = &c->op.attention,
                                 .rows = c->rows,
                                 .x = p->in[0],
                                 .saved = p->slot[0],
                                 .y = p->y,
                                 .scratch = p->slot[1]});
}

static void attention_backward(const struct ops_case *c, struct ops_pass *p)
{
    if (p->gradient[0] != NULL)
        p->ops->kernels[KITH_OP_ATTENTION]->backward(
            &(struct kith_arguments){.shape = &c->op.attention,
                                     .rows = c->rows,
                                     .x = p->in[0],
                                     .y = p->y,
                                     .saved = p->slot[0],
                                     .dy = p->dy,
                                     .dx = p->gradient[0],
                                     .scratch = p->slot[1]});
}

static const struct ops_kind attention = {attention_shape, attention_forward,
                                          attention_backward, 0, false};

static void rotary_shape(const struct ops_case *c, const struct kith_ops *ops,
                         struct ops_shape *shape)
{
    (void)ops;
    const size_t n =
        c->rows * c->op.attention.context * 3 * c->op.attention.width;
    *shape = (struct ops_shape){.in = {n}, .out = n};
}

static void rotary_forward(const struct ops_case *c, struct ops_pass *p)
{
    p->ops->kernels[KITH_OP_ROTARY]->forward(&(struct kith_arguments){
        .shape = &c->op.attention, .rows = c->rows, .x = p->in[0], .y = p->y});
}

static void rotary_backward(const struct ops_case *c, struct ops_pass *p)
{
    if (p->gradient[0] != NULL)
        p->ops->kernels[KITH_OP_ROTARY]->backward(
            &(struct kith_arguments){.shape = &c->op.attention,
                                     .rows = c->rows,
                                     .dy = p->dy,
                                     .dx = p->gradient[0]});
}

static const struct ops_kind rotary = {rotary_shape, rotary_forward,
                                       rotary_backward, 0, false};

#define NONE KITH_ACTIVATION_NONE
#define RELU KITH_ACTIVATION_RELU
#define GELU KITH_ACTIVATION_GELU

#define LINEAR(n, inputs, outputs, transposed, how)                            \
    {                                                                          \
        .name = "linear " #inputs "->" #outputs, .rows = n,                    \
        .op.linear = {inputs, outputs, transposed, how}, .kind = &linear       \
    }
#define OUT_OF(size, k, s, p) (((size) + 2 * (p) - (k)) / (s) + 1)
#define CONV(n, h, w, inputs, outputs, k, s, p, how)                           \
    {                                                                          \
        .name = "conv " #h "x" #w " " #inputs "->" #outputs " k" #k " s" #s    \
                " p" #p,                                                       \
        .rows = n, .op.conv = {h,                                              \
                               w,                                              \
                               inputs,                                         \
                               outputs,                                        \
                               k,                                              \
                               s,                                              \
                               p,                                              \
                               OUT_OF(h, k, s, p),                             \
                               OUT_OF(w, k, s, p),                             \
                               how},                                           \
        .kind = &conv                                                          \
    }
#define NORM(n, which, size, c, g, how)                                        \
    {                                                                          \
        .name = "norm " #which " " #size "x" #c, .rows = n,                    \
        .op.norm = {KITH_NORM_##which, size, c, g, 1e-5, 0.1, how},            \
        .kind = &norm                                                          \
    }
#define RMS(n, c)                                                              \
    {                                                                          \
        .name = "rms norm " #c, .rows = n,                                     \
        .op.norm = {KITH_NORM_LAYER, 1, c, 1, 1e-5, 0, NONE}, .kind = &rms     \
    }
#define POOL(n, h, w, c, k, s, p)                                              \
    {                                                                          \
        .name = "max_pool " #h "x" #w "x" #c " k" #k " s" #s " p" #p,          \
        .rows = n,                                                             \
        .op.pool = {h, w, c, k, s, p, OUT_OF(h, k, s, p), OUT_OF(w, k, s, p)}, \
        .kind = &pool                                                          \
    }
#define MEAN(n, size, c)                                                       \
    {                                                                          \
        .name = "mean_pool " #size "x" #c, .rows = n, .op.mean = {size, c},    \
        .kind = &mean                                                          \
    }
#define SUM(size, how)                                                         \
    {                                                                          \
        .name = "sum " #size, .rows = 1, .op.sum = {size, how}, .kind = &sum   \
    }
#define DROPOUT(size, share)                                                   \
    {                                                                          \
        .name = "dropout " #size, .rows = size,                                \
        .op.dropout = {share, 7, 3, 11, 2}, .kind = &dropout                   \
    }
#define EMBED(n, context, vocabulary, width)                                   \
    {                                                                          \
        .name = "embed " #width, .rows = n,                                    \
        .op.embed = {context, vocabulary, width}, .kind = &embed               \
    }
#define ATTENTION(n, context, heads, width)                                    \
    {                                                                          \
        .name = "attention " #context " " #heads "x" #width, .rows = n,        \
        .op.attention = {context, heads, width}, .kind = &attention            \
    }

#define ROTARY(n, context, heads, width)                                       \
    {                                                                          \
        .name = "rotary " #context " " #heads "x" #width, .rows = n,           \
        .op.attention = {context, heads, width}, .kind = &rotary               \
    }

const struct ops_case ops_cases[] = {
    LINEAR(5, 7, 3, false, NONE),
    LINEAR(1, 19, 33, true, RELU),
    LINEAR(6, 16, 20, true, GELU),
    LINEAR(4, 33, 17, false, GELU),
    LINEAR(3, 8, 16, false, RELU),
    CONV(2, 5, 5, 3, 4, 3, 1, 1, NONE),
    CONV(1, 6, 7, 1, 16, 3, 1, 1, RELU),
    CONV(2, 7, 5, 16, 5, 3, 2, 1, NONE),
    CONV(1, 8, 8, 5, 18, 1, 2, 0, NONE),
    CONV(2, 4, 5, 16, 33, 1, 1, 0, RELU),
    CONV(1, 9, 9, 2, 3, 7, 2, 3, RELU),
    CONV(1, 6, 6, 2, 2, 2, 2, 0, NONE),
    CONV(1, 7, 6, 2, 3, 3, 3, 2, NONE),
    CONV(1, 3, 3, 4, 3, 3, 1, 0, RELU),
    CONV(1, 2, 2, 3, 2, 1, 1, 1, NONE),
    CONV(3, 1, 33, 17, 20, 1, 1, 0, NONE),
    CONV(2, 4, 35, 3, 17, 3, 1, 1, RELU),
    CONV(1, 5, 4, 35, 40, 3, 1, 1, NONE),
    NORM(3, BATCH, 4, 5, 1, NONE),
    NORM(2, BATCH, 9, 33, 1, RELU),
    NORM(2, GROUP, 6, 6, 3, NONE),
    NORM(3, GROUP, 5, 32, 4, RELU),
    NORM(2, GROUP, 3, 20, 20, NONE),
    NORM(4, LAYER, 1, 19, 1, NONE),
    NORM(3, LAYER, 1, 48, 1, NONE),
    RMS(1, 5),
    RMS(4, 19),
    RMS(3, 48),
    RMS(5, 160),
    POOL(2, 6, 6, 5, 2, 2, 0),
    POOL(1, 7, 5, 17, 3, 2, 1),
    POOL(1, 5, 5, 16, 3, 3, 0),
    MEAN(2, 9, 5),
    MEAN(1, 4, 35),
    SUM(37, NONE),
    SUM(50, RELU),
    DROPOUT(50, 0.3),
    EMBED(2, 5, 12, 7),
    EMBED(1, 4, 30, 32),
    ATTENTION(2, 5, 2, 6),
    ATTENTION(1, 19, 2, 34),
    ATTENTION(2, 33, 1, 16),
    ROTARY(2, 5, 2, 8),
    ROTARY(1, 17, 1, 34),
    ROTARY(1, 3, 1, 260),
};
const size_t ops_case_count = sizeof ops_cases / sizeof ops_cases[0];
