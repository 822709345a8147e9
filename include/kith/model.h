/* A model: a flat vector of parameters with named views, a loss, a gradient.
 *
 * Most models describe a network: their `build` strings together operations of
 * ops.h through net.h, and everything else follows from that. A few for tests
 * of theory (quadratic, consensus, none) give their loss by hand. One file, one
 * line in src/training/model/models.def; every backend runs every model.
 *
 * The vector holds, in this order, so that each class is one range:
 *
 *   [0, decayed)         weights that weight decay pulls at
 *   [decayed, trained)   biases, scales and shifts: no decay
 *   [trained, gossiped)  buffers (running statistics): averaged with plain
 *                        convex weights, never given momentum, clamped >= 0
 *                        where they are variances
 *   [gossiped, dim)      frozen: neither trained nor gossiped
 *
 * Test: unit/test_model.c checks every gradient by finite differences in
 * float64; tests/parity holds models against PyTorch. */
#ifndef KITH_MODEL_H
#define KITH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"
#include "kith/err.h"
#include "kith/limits.h"
#include "kith/rng.h"

enum kith_input { KITH_INPUT_NONE, KITH_INPUT_IMAGES, KITH_INPUT_TOKENS };

/* vgg and resnet: BATCH or GROUP; gpt: LAYER or RMS; not given, the first. */
enum kith_model_norm {
    KITH_MODEL_NORM_DEFAULT,
    KITH_MODEL_NORM_BATCH,
    KITH_MODEL_NORM_GROUP,
    KITH_MODEL_NORM_LAYER,
    KITH_MODEL_NORM_RMS,
};

/* Every key that some model reads; 0 is "not given". */
struct kith_model_config {
    uint32_t layers[KITH_LAYERS_MAX]; /* mlp, logistic: sizes, input first */
    uint32_t layer_count;
    uint32_t dim;     /* quadratic, consensus, program: parameters */
    uint32_t buffers; /* program: the last of them are averaged plainly */
    double spread;    /* quadratic: standard deviation of the targets b_i, */
    double start;     /* of a vector at which all start, */
    double apart;     /* and of how far each peer starts from it */

    uint32_t image[3]; /* cnn, vgg, resnet: height, width, channels */
    uint32_t classes;
    uint32_t channels[KITH_LAYERS_MAX]; /* cnn: of each convolution */
    uint32_t channel_count;
    uint32_t depth; /* vgg, resnet: layers as named; gpt: blocks */
    enum kith_model_norm norm;
    bool rotary;         /* gpt: rotary positions in place of learned ones */
    uint32_t heads;      /* gpt */
    uint32_t width;      /* gpt: of the residual stream */
    uint32_t context;    /* gpt: tokens of a sequence */
    uint32_t vocabulary; /* gpt */
    double dropout;      /* after what the paper names */
    char frozen[KITH_NAME_MAX]; /* views whose name starts so are frozen; "" */
};

/* Of running statistics: buffer <- buffer + momentum (batch's - buffer). */
#define KITH_BUFFER_MOMENTUM 0.1

enum kith_view_kind {
    KITH_VIEW_WEIGHT,   /* decays */
    KITH_VIEW_VECTOR,   /* bias, scale, shift: does not decay */
    KITH_VIEW_MEAN,     /* buffer */
    KITH_VIEW_VARIANCE, /* buffer, >= 0 */
    KITH_VIEW_TABLE,    /* embedding, or the weights that give the scores:
                           decays; muon leaves it to adamw */
};

struct kith_model_view {
    char name[KITH_NAME_MAX]; /* gpt: Hugging Face's, e.g.
                                 "h.0.attn.c_attn.weight" */
    enum kith_view_kind kind;
    bool frozen;
    size_t offset, elements;
    uint32_t shape[4], rank; /* as stored; elements = their product */
};

/* Where everything stands in the flat vector. */
struct kith_layout {
    size_t dim, decayed, trained, gossiped;
    const struct kith_model_view *views; /* (view_count), by offset */
    uint32_t view_count;
};

/* One batch: images, tokens, or nothing (quadratic, consensus, none). */
struct kith_batch {
    const void *inputs;    /* images (rows, features); tokens: int32_t (rows,
                              context) */
    const int32_t *labels; /* (rows); tokens: (rows, context), the next one */
    size_t rows;
    uint64_t entity;     /* the peer, for models with a target per peer */
    uint64_t seed, step; /* for dropout */
};

struct kith_net; /* kith/net.h */

/* Keys of `model:` in an experiment that a model reads. X(NAME, key) */
#define KITH_MODEL_KEYS(X)                                                     \
    X(LAYERS, "layers")                                                        \
    X(DIM, "dim")                                                              \
    X(RUN, "run")                                                              \
    X(SPREAD, "spread")                                                        \
    X(START, "start")                                                          \
    X(APART, "apart")                                                          \
    X(IMAGE, "image")                                                          \
    X(CLASSES, "classes")                                                      \
    X(CHANNELS, "channels")                                                    \
    X(DEPTH, "depth")                                                          \
    X(NORM, "norm")                                                            \
    X(HEADS, "heads")                                                          \
    X(WIDTH, "width")                                                          \
    X(CONTEXT, "context")                                                      \
    X(VOCABULARY, "vocabulary")                                                \
    X(POSITIONS, "positions")                                                  \
    X(DROPOUT, "dropout")                                                      \
    X(FROZEN, "frozen")
enum kith_model_key {
#define KITH_X(name, key) KITH_MODEL_KEY_##name,
    KITH_MODEL_KEYS(KITH_X)
#undef KITH_X
        KITH_MODEL_KEY_COUNT
};
#define KITH_MODEL_READS(name) (1u << KITH_MODEL_KEY_##name)

struct kith_model {
    const char *name, *paper, *summary;
    enum kith_input input;
    unsigned keys; /* KITH_MODEL_READS(...) of each key it reads */
    bool reports;  /* its own program says how good it is */
    bool absent;   /* dim() values are nobody's: messages have their size */
    /* A shape that people use, in words and as keys, for lists; NULL: the model
     * has no network. */
    const char *example;
    struct kith_model_config shape;
    /* KITH_EINVAL, KITH_ELIMIT: the configuration makes no sense; `error`
     * (KITH_MODEL_ERROR_BYTES) is "model.KEY: what was found; what is allowed".
     */
    enum kith_err (*check)(const struct kith_model_config *config, char *error);
    /* A network; or NULL and the three below. Never called on a configuration
     * that check refuses. */
    void (*build)(const struct kith_model_config *config, struct kith_net *net);

    size_t (*dim)(const struct kith_model_config *config);
    /* Starting weights, float64; NULL: zeros. */
    void (*start)(const struct kith_model_config *config, uint64_t seed,
                  uint64_t entity, double *x);
    /* Where the loss of this peer alone is least, (dim) float64; NULL: no such
     * point is known. */
    void (*target)(const struct kith_model_config *config, uint64_t seed,
                   uint64_t entity, double *b);
    /* The loss at x, and always its gradient (dim). NULL where build is, or
     * there is nothing to learn (consensus, none). */
    double (*loss)(const struct kith_model_config *config,
                   const struct kith_backend *backend, const void *x,
                   const struct kith_batch *batch, void *gradient);
};

extern const struct kith_model *const kith_models[];
const struct kith_model *kith_model_find(const char *name);
#define KITH_MODEL_ERROR_BYTES 256

/* Checks the configuration and says how large the model is, without memory of
 * the model's size. features: values per example (images), tokens per sequence
 * (tokens) or 0; classes: classes, vocabulary or 0. */
struct kith_model_size {
    size_t dim, trained, gossiped, features, classes; /* absent: dim is 0 */
    uint32_t layers;       /* weight tensors that train */
    double flops;          /* of one row's forward pass */
    double training_flops; /* three times that, less what frozen views save */
};
KITH_MUST_CHECK enum kith_err
kith_model_measure(const struct kith_model *model,
                   const struct kith_model_config *config,
                   struct kith_model_size *size, char *error);
/* The same of a configuration that was checked before; all 0 where memory is
 * short. */
struct kith_model_size
kith_model_size_of(const struct kith_model *model,
                   const struct kith_model_config *config);
/* True where there is something to learn. */
bool kith_model_learns(const struct kith_model *model);

/* A model made ready to run on one backend with batches of up to `rows`: the
 * order of operations, and memory for activations and their gradients, planned
 * once so that buffers whose lives do not overlap share their place. */
struct kith_graph;
struct kith_graph_options {
    const struct kith_backend *backend;
    size_t rows;
    bool training;    /* false: no gradients will be asked for */
    bool recompute;   /* keep only what stands between blocks; the way back runs
                         each block forward once more (Chen et al., 2016) */
    double smoothing; /* of labels */
    bool weights_first; /* on the way back a layer's gradient is complete before
                           that of its input is begun: it is sent sooner. The
                           same to the bit */
};
KITH_MUST_CHECK enum kith_err
kith_graph_open(const struct kith_model *model,
                const struct kith_model_config *config,
                const struct kith_graph_options *options,
                struct kith_graph **network, char *error);
void kith_graph_close(struct kith_graph *network);
/* A network without its memory: it has a layout and bytes, and runs nothing. */
KITH_MUST_CHECK enum kith_err
kith_graph_plan(const struct kith_model *model,
                const struct kith_model_config *config,
                const struct kith_graph_options *options,
                struct kith_graph **network, char *error);
/* What kith_graph_bytes() would be, without taking them.
 * Test: unit/test_model.c */
KITH_MUST_CHECK enum kith_err kith_graph_measure(
    const struct kith_model *model, const struct kith_model_config *config,
    const struct kith_graph_options *options, size_t *bytes, char *error);
const struct kith_layout *kith_graph_layout(const struct kith_graph *n);
/* Bytes of its activations on the backend. */
size_t kith_graph_bytes(const struct kith_graph *network);
/* Starting weights, float64 (dim), the same for every peer of a seed. */
void kith_graph_start(const struct kith_graph *network, uint64_t seed,
                      uint64_t entity, double *x);

/* Loss of a batch at x, (dim) on the backend. With a gradient (trained), that
 * is written too, or added to with `add`, times `scale`; batch statistics and
 * dropout are as in training, and buffers within x move. Without: evaluation.
 * *correct (may be NULL): rows classified rightly. */
struct kith_pass {
    void *x, *gradient;
    const struct kith_batch *batch;
    double scale; /* 1 / micro-batches */
    bool add;
    bool estimate; /* no gradient, but batch statistics move the buffers */
};
double kith_graph_loss(struct kith_graph *network, const struct kith_pass *pass,
                       uint32_t *correct);
/* A pass over a part of the network, for a model whose operations lie on
 * several machines: the steps of operations [first, last) alone, forward or on
 * their way back, in this network's own memory. What stands before the part
 * must have been put there: see kith_graph_edge. A gradient is wanted in
 * either direction; forward it is not touched. The loss comes from the forward
 * part that ends the network. Bit for bit what kith_graph_loss does.
 * Test: unit/test_central_pipeline.c. */
struct kith_part {
    uint32_t first, last;
    bool back;
};
/* A pass in portions, for a gradient that is sent while it is computed: steps
 * [first, last) of the list, one portion after another from 0 to
 * kith_graph_steps(), with the same `pass`. Bit for bit what kith_graph_loss
 * does; the loss comes of the portion that has it. A model that gives its loss
 * by hand is one step. Test: unit/test_buckets.c */
uint32_t kith_graph_steps(const struct kith_graph *network);
double kith_graph_portion(struct kith_graph *network,
                          const struct kith_pass *pass, uint32_t first,
                          uint32_t last);
/* Steps after which these values of the gradient do not change any more. */
uint32_t kith_graph_complete(const struct kith_graph *network, size_t at,
                             size_t count);
/* What step `step` of the way forward reads of x, up to three ranges; of other
 * steps none. */
unsigned kith_graph_reads(const struct kith_graph *network, uint32_t step,
                          size_t at[3], size_t count[3]);
/* Products of the first `steps` of all, in [0, 1]: what they take of a step. */
double kith_graph_share(const struct kith_graph *network, uint32_t steps);
uint32_t kith_graph_operations(const struct kith_graph *network);
double kith_graph_part(struct kith_graph *network, const struct kith_pass *pass,
                       const struct kith_part *part, uint32_t *correct);
/* Where the one tensor stands that crosses between operations cut - 1 and cut,
 * or its gradient: copied from network to network, it joins parts. *bytes of
 * `rows` examples. NULL: several cross, or recompute is on: no place to cut. */
void *kith_graph_edge(struct kith_graph *network, uint32_t cut, bool back,
                      size_t rows, size_t *bytes);
/* to <- from, of the parameters that the part's operations read alone. */
void kith_graph_copy(const struct kith_graph *network,
                     const struct kith_part *part, const void *from, void *to);
/* Scores of a batch without labels: (rows, classes), tokens: (rows, context,
 * vocabulary), on the backend, valid until the next call. */
const void *kith_graph_scores(struct kith_graph *network, const void *x,
                              const struct kith_batch *batch);

#endif
