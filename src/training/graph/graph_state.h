/* The network floor: a net's operations, ordered and given memory.
 *
 *   layout.c    order of the views in the flat vector, starting weights
 *   step_list.c      the list of steps: forward, loss, backward, what is run
 * again backward.c  the steps on the way back, and who owns which gradient
 *   arena.c     an offset for every buffer by its life in that list
 *   graph_run.c       one step on a backend
 *   graph.c   opening, and passes over the list
 *   progress.c  which of a gradient is final after some of the steps
 *   measure.c   sizes and operations without memory of the model's size */
#ifndef KITH_TRAINING_GRAPH_GRAPH_STATE_H
#define KITH_TRAINING_GRAPH_GRAPH_STATE_H

#include "kith/model.h"
#include "kith/net.h"

/* ---- measure.c */

/* The model's net, built; free() gives it back. */
KITH_MUST_CHECK enum kith_err
kith_net_open(const struct kith_model *model,
              const struct kith_model_config *config, struct kith_net **net,
              char *error);

/* ---- layout.c */

/* Sets every parameter's offset in `net`. views (net->parameter_count) by
 * offset. */
void kith_layout_fill(struct kith_net *net, struct kith_model_view *views,
                      struct kith_layout *layout);
/* Draws the parameters in the order in which they were named. */
void kith_layout_start(const struct kith_net_parameter *parameters,
                       uint32_t count, uint64_t seed, double *x);

/* ---- step_list.c, backward.c */

/* A piece of the arena: alive from its first step to its last. */
struct kith_piece {
    size_t bytes, offset;
    uint32_t first, last;
};
/* A bound for the arithmetic: all pieces together stay below 2^64 bytes. */
#define KITH_PIECE_BYTES_MAX ((size_t)1 << 48)
#define KITH_PIECE_NONE UINT32_MAX
#define KITH_PIECE_INPUT (UINT32_MAX - 1) /* the batch's own */

enum kith_step_kind {
    KITH_STEP_FORWARD,
    KITH_STEP_AGAIN, /* forward once more: buffers of norms stand still */
    KITH_STEP_LOSS,
    KITH_STEP_BACKWARD,
    KITH_STEP_ADD,  /* dx <- dx + dy */
    KITH_STEP_COPY, /* dx <- dy */
};

/* Pieces by what they hold; KITH_PIECE_NONE is a NULL pointer. */
struct kith_step {
    enum kith_step_kind kind;
    uint32_t op;
    kith_tensor tensor; /* ADD, COPY: whose size */
    uint32_t a, b, y;
    uint32_t saved;   /* pre, saved or which */
    uint32_t scratch; /* of the operation, for this step alone */
    uint32_t dy, dx;
    bool weight, bias; /* BACKWARD: write this parameter's gradient */
    unsigned add;
};

/* A step without pieces. */
static inline struct kith_step kith_step_of(enum kith_step_kind kind,
                                            uint32_t op)
{
    return (struct kith_step){.kind = kind,
                              .op = op,
                              .a = KITH_PIECE_NONE,
                              .b = KITH_PIECE_NONE,
                              .y = KITH_PIECE_NONE,
                              .saved = KITH_PIECE_NONE,
                              .scratch = KITH_PIECE_NONE,
                              .dy = KITH_PIECE_NONE,
                              .dx = KITH_PIECE_NONE};
}

struct kith_plan {
    struct kith_step *steps; /* (step_count) */
    struct kith_piece *pieces;
    uint32_t step_count, step_room, piece_count, piece_room;
    uint32_t scores; /* the piece of the net's scores */
    size_t bytes;    /* of the arena */
    size_t floor;    /* most bytes alive at one step: no plan needs less */
};

struct kith_planning {
    const struct kith_net *net;
    const struct kith_backend *backend;
    size_t rows;
    bool training, recompute, weights_first;
    size_t scores_stride; /* elements of a row of scores; 0: its classes */
};
/* KITH_ENOMEM, or KITH_EINVAL: a parameter that the loss does not depend on. */
KITH_MUST_CHECK enum kith_err kith_plan_open(const struct kith_planning *how,
                                             struct kith_plan *plan);
void kith_plan_close(struct kith_plan *plan);

/* What the way back wants of a tensor's values. */
enum kith_need {
    KITH_NEED_NONE,
    KITH_NEED_SIGN,  /* which are above 0: dropout in place keeps that */
    KITH_NEED_VALUE, /* each as it was */
};

/* What the planner knows of a tensor so far. */
struct kith_planned {
    uint32_t place; /* the piece that holds its values */
    enum kith_need need, hold;
    uint32_t reader_last; /* operation that reads it last, forward */
    bool wanted;          /* its gradient leads to a parameter that trains */
    bool kept;            /* recompute: stands between blocks */
    bool used;            /* recompute: read by what is run again */
    uint32_t gradient;
};

struct kith_planner {
    struct kith_planning how;
    const struct kith_net *net;
    struct kith_plan *plan;
    struct kith_planned *tensors; /* (tensor_count) */
    uint32_t *saved;              /* (op_count) piece for the way back */
    bool *written;                /* (parameter_count) has a gradient */
    uint32_t *owners;             /* (piece_room) gradients in a piece that
                                     wait for their operation */
    enum kith_err err;
};

/* Bytes of one value between operations. */
static inline size_t kith_value_bytes(const struct kith_backend *backend)
{
    return backend->activation_bytes > 0 ? backend->activation_bytes
                                         : backend->element_bytes;
}

/* Parts of the planner that backward.c uses. */
uint32_t kith_planner_tensor(struct kith_planner *planner, kith_tensor tensor);
uint32_t kith_planner_scratch(struct kith_planner *planner,
                              const struct kith_op *op);
void kith_planner_step(struct kith_planner *planner, struct kith_step step);
bool kith_planner_trains(const struct kith_net *net, uint32_t parameter);
/* Does the backward step read its input? What is not read need not live until
 * then. */
bool kith_planner_reads_x(const struct kith_net *net, const struct kith_op *op);
void kith_planner_backward(struct kith_planner *planner, uint32_t op);

/* Pieces that live at the same time never overlap; 64-byte aligned. Sets
 * offsets, bytes and floor. */
KITH_MUST_CHECK enum kith_err kith_arena_place(struct kith_plan *plan);

/* ---- progress.c: how far a step has come after some of its list */

struct kith_progress {
    const struct kith_plan *plan;
    const struct kith_op *ops;
    const struct kith_net_parameter *parameters;
    const size_t *offsets; /* (parameters) */
};
/* Steps after which values [at, at + count) of the gradient are final. */
uint32_t kith_progress_complete(const struct kith_progress *progress, size_t at,
                                size_t count);
/* Products of the first `steps` of all. */
double kith_progress_share(const struct kith_progress *progress,
                           uint32_t steps);

/* ---- graph_run.c */

struct kith_run {
    const struct kith_backend *backend;
    const struct kith_op *ops;
    const struct kith_net_tensor *tensors;
    const size_t *offsets; /* (parameter_count) in x */
    const struct kith_plan *plan;
    char *arena, *x, *gradient;
    const struct kith_batch *batch;
    bool statistics; /* norms use the batch's, and move their buffers */
    bool add;        /* to the gradient that stands there */
};
/* Any step but LOSS. */
void kith_run_step(const struct kith_run *run, const struct kith_step *step);

#endif
