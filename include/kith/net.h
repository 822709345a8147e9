/* How a model describes its network: a string of operations over tensors.
 *
 *   kith_tensor x = kith_net_images(net, config->image);
 *   x = kith_net_conv(net, x, "conv1", (struct kith_net_conv){...});
 *   x = kith_net_linear(net, x, "fc", 10, ...);
 *   kith_net_cross_entropy(net, x);
 *
 * Building allocates nothing of the model's size; shapes are derived, and a
 * parameter's starting distribution stands where the parameter is named. The
 * first error (too many operations, a shape that does not fit) is kept and
 * ends the building; builders need no checks.
 *
 * src/training/model/operations/NAME.c holds an operation's builder and its
 * record, struct kith_operation: all that planning and running a network needs
 * to know of it. src/training/graph/ makes of them an order of steps, a place
 * in memory for each tensor and a flat vector of parameters, and runs it; the
 * numbers are the kernels' (ops.h). */
#ifndef KITH_NET_H
#define KITH_NET_H

#include "kith/model.h"
#include "kith/ops.h"

/* The index of a tensor of the net. */
typedef uint32_t kith_tensor;

/* How a parameter starts. */
enum kith_start {
    KITH_START_ZERO,
    KITH_START_ONE,
    KITH_START_NORMAL,  /* N(0, spread^2) */
    KITH_START_UNIFORM, /* U(-spread, spread) */
};

/* Input: images (height, width, channels) as values in [0, 1], or tokens. A
 * model for flat features says (1, 1, features). */
kith_tensor kith_net_images(struct kith_net *net, size_t height, size_t width,
                            size_t channels);
/* Tokens through their embedding: (rows * context, width). Views
 * TOKEN.weight and POSITION.weight; position may be NULL: none. */
kith_tensor kith_net_embed(struct kith_net *net, const char *token,
                           const char *position, struct kith_embed op,
                           double token_spread, double position_spread);

struct kith_net_linear {
    size_t out;
    bool in_out, bias;
    enum kith_activation activation;
    enum kith_start start;
    double spread;
    const char *tied; /* name of the view to use as W (out, in); or NULL */
};
/* Flattens images. Views NAME.weight, NAME.bias. */
kith_tensor kith_net_linear(struct kith_net *net, kith_tensor x,
                            const char *name, struct kith_net_linear op);

struct kith_net_conv {
    size_t out, kernel, stride, pad;
    bool bias;
    enum kith_activation activation;
    enum kith_start start;
    double spread;
};
kith_tensor kith_net_conv(struct kith_net *net, kith_tensor x, const char *name,
                          struct kith_net_conv op);

/* Views NAME.weight, NAME.bias, and for BATCH NAME.running_mean and
 * NAME.running_var. groups is for GROUP. */
kith_tensor kith_net_norm(struct kith_net *net, kith_tensor x, const char *name,
                          enum kith_norm_kind kind, size_t groups,
                          double epsilon, enum kith_activation activation);
/* Of each token. View NAME.weight. */
kith_tensor kith_net_rms_norm(struct kith_net *net, kith_tensor x,
                              const char *name, double epsilon);
kith_tensor kith_net_max_pool(struct kith_net *net, kith_tensor x,
                              size_t kernel, size_t stride, size_t pad);
kith_tensor kith_net_mean_pool(struct kith_net *net, kith_tensor x);
kith_tensor kith_net_sum(struct kith_net *net, kith_tensor a, kith_tensor b,
                         enum kith_activation activation);
kith_tensor kith_net_dropout(struct kith_net *net, kith_tensor x, double rate);
kith_tensor kith_net_attention(struct kith_net *net, kith_tensor qkv,
                               size_t heads);
/* Turns q and k by their positions, heads of an even width. */
kith_tensor kith_net_rotary(struct kith_net *net, kith_tensor qkv,
                            size_t heads);
/* A block ends here: what `recompute` keeps. */
void kith_net_block(struct kith_net *net);
/* The end: mean cross-entropy of scores x (rows, classes); the weights of the
 * linear operation that gives them are a TABLE, as those of an embedding. */
void kith_net_cross_entropy(struct kith_net *net, kith_tensor x);

/* ---- What the builders build: operations, tensors and parameters in fixed
 * arrays, because a model may not use the heap. The graph owns one of these
 * (about 2 MB, most of it never touched) while it plans. */

#define KITH_TENSOR_NONE UINT32_MAX
#define KITH_PARAMETER_NONE UINT32_MAX

/* How gradients pass an operation on the way back. */
enum kith_passage {
    KITH_PASSAGE_ADDS,     /* one call, which can add to all it writes */
    KITH_PASSAGE_APART,    /* one call, which cannot add to dx */
    KITH_PASSAGE_IN_PLACE, /* the same, and dx may be dy */
    KITH_PASSAGE_SHARED,   /* dy is every input's gradient, after a call in
                              place where there is an activation */
    KITH_PASSAGE_TABLES,   /* one call for each parameter; no dx */
};

#define KITH_OPERATION_READS_X 1u /* backward reads x whatever trains */
#define KITH_OPERATION_READS_Y 2u /* backward reads y */
/* Forward may write over this input. */
#define KITH_OPERATION_OVER_X 4u
#define KITH_OPERATION_OVER_OTHER 8u
#define KITH_OPERATION_KEEPS_SIGN                                              \
    16u                             /* above 0 stays above 0, or becomes 0     \
                                     */
#define KITH_OPERATION_TRAINING 32u /* hands x on in evaluation */

union kith_shape {
    struct kith_embed embed;
    struct kith_linear linear;
    struct kith_conv conv;
    struct kith_norm norm;
    struct kith_pool pool;
    struct kith_mean mean;
    struct kith_attention attention;
    struct kith_sum sum;
    struct kith_dropout dropout;
};

struct kith_op;
struct kith_operation {
    enum kith_op_kind kind;
    enum kith_passage passage;
    unsigned flags; /* KITH_OPERATION_... */
    /* Of an example's forward pass; NULL: none worth counting. */
    double (*flops)(const struct kith_op *op);
    /* Bytes that forward leaves for backward, of `rows` rows; NULL: none.
     * element: of weights; value: between operations. */
    size_t (*saved)(const struct kith_op *op, size_t rows, size_t element,
                    size_t value);
    /* What of the shape belongs to a pass. repeated: forward once more, for
     * the way back alone. NULL: nothing does. */
    void (*prepare)(union kith_shape *shape, const struct kith_batch *batch,
                    bool repeated);
};

/* y = operation(a, b); parameters are indices into net.parameters. */
struct kith_op {
    const struct kith_operation *operation;
    union kith_shape as;
    enum kith_activation activation;
    size_t rows;       /* of its kernels, of one example */
    bool always_saves; /* even where nobody asks for a gradient */
    uint32_t block;    /* which block it belongs to */
    kith_tensor a, b, y;
    uint32_t weight, bias, buffers; /* as in struct kith_arguments */
};

/* Per example: images (height, width, channels), flat (1, 1, channels), tokens
 * (context, 1, width). */
struct kith_net_tensor {
    size_t height, width, channels;
    bool tokens;
};

/* A parameter, in the order of naming, which is the order in which starting
 * weights are drawn; the view's offset is layout.c's to say. */
struct kith_net_parameter {
    struct kith_model_view view;
    enum kith_start start;
    double spread;
};

struct kith_net {
    enum kith_err err;
    char error[KITH_MODEL_ERROR_BYTES];
    char frozen[KITH_NAME_MAX];
    uint32_t op_count, tensor_count, parameter_count, block_count;
    kith_tensor scores; /* KITH_TENSOR_NONE until the end is named */
    uint64_t dim;
    bool tokens;
    struct kith_op ops[KITH_OPS_MAX];
    struct kith_net_tensor tensors[KITH_OPS_MAX + 1]; /* 0 is the input */
    struct kith_net_parameter parameters[KITH_OPS_MAX];
};

/* Empty, to be built. */
void kith_net_begin(struct kith_net *net, const char *frozen);
/* KITH_OK where the net is whole; else the first error, its text in error. */
enum kith_err kith_net_finish(struct kith_net *net);

/* ---- For builders. Notes the first error. */
void kith_net_fail(struct kith_net *net, enum kith_err err, const char *name,
                   const char *what);
struct kith_net_tensor kith_net_tensor_of(const struct kith_net *net,
                                          kith_tensor x);
kith_tensor kith_net_add_tensor(struct kith_net *net, const char *name,
                                struct kith_net_tensor tensor);
/* One more operation, of one row an example, which gives that tensor; NULL
 * where there is no going on. */
struct kith_op *kith_net_add(struct kith_net *net, const char *name,
                             const struct kith_operation *operation,
                             kith_tensor a, struct kith_net_tensor shape);
static inline kith_tensor kith_net_output(const struct kith_op *op)
{
    return op == NULL ? 0 : op->y;
}

struct kith_net_naming {
    const char *layer, *suffix; /* "conv1" + ".weight" */
    enum kith_view_kind kind;
    enum kith_start start;
    double spread;
    uint32_t rank, shape[4];
};
/* One more parameter: its index. */
uint32_t kith_net_add_parameter(struct kith_net *net,
                                const struct kith_net_naming *naming);
/* LAYER.weight of that shape (rank), and LAYER.SUFFIX (n). */
uint32_t kith_net_add_matrix(struct kith_net *net, const char *layer,
                             enum kith_start start, double spread,
                             uint32_t rank, const uint32_t *shape);
uint32_t kith_net_add_vector(struct kith_net *net, const char *layer,
                             const char *suffix, enum kith_start start,
                             size_t n);
/* Windows along one side; 0 where none fits. */
size_t kith_net_windows(size_t size, size_t kernel, size_t stride, size_t pad);

static inline size_t kith_net_positions(const struct kith_net_tensor *tensor)
{
    return tensor->height * tensor->width;
}

/* Values per example. */
static inline size_t kith_net_elements(const struct kith_net_tensor *tensor)
{
    return kith_net_positions(tensor) * tensor->channels;
}

/* Rows of an example where each token is one: linear layers, layer norms. */
static inline size_t kith_net_rows(const struct kith_net_tensor *tensor)
{
    return tensor->tokens ? tensor->height : 1;
}

#endif
