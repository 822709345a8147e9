/* A model made ready: its net, a plan for training and one for evaluation on
 * one arena, and passes over them. Models that give their loss by hand have no
 * plan; their arena is one vector, for gradients that nobody asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "graph_state.h"

struct kith_graph {
    const struct kith_model *model;
    struct kith_model_config config;
    struct kith_graph_options options;
    struct kith_layout layout;
    struct kith_model_view *views;

    /* What a pass needs of the net; NULL without one. */
    struct kith_op *ops;
    struct kith_net_tensor *tensors;
    struct kith_net_parameter *parameters;
    size_t *offsets; /* (parameter_count) */
    uint32_t parameter_count, op_count;
    size_t classes, score_rows; /* of one example */
    size_t scores_stride;       /* of a row of scores; 0: classes */
    struct kith_plan training, evaluation;

    void *arena;
    size_t bytes;

    /* Where activations are narrower than elements. */
    struct kith_batch narrowed; /* the last batch, its images narrowed */
    void *images, *scores;      /* (rows, features); scores as elements */
    size_t features;            /* of one image */
};

static enum kith_err refuse(char *error, enum kith_err err, const char *what)
{
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES, "opening a network: %s",
                   what);
    return err;
}

static void *copy_of(const void *source, size_t count, size_t size)
{
    void *copy = malloc(count * size);
    if (copy != NULL)
        memcpy(copy, source, count * size);
    return copy;
}

/* Keeps what passes need; the net itself is large. */
static enum kith_err keep_net(struct kith_graph *network, struct kith_net *net)
{
    const uint32_t parameters = net->parameter_count;
    network->views = malloc(parameters * sizeof *network->views);
    network->offsets = malloc(parameters * sizeof *network->offsets);
    if (network->views == NULL || network->offsets == NULL)
        return KITH_ENOMEM;
    kith_layout_fill(net, network->views, &network->layout);
    for (uint32_t i = 0; i < parameters; i++)
        network->offsets[i] = net->parameters[i].view.offset;
    network->parameter_count = parameters;
    network->op_count = net->op_count;
    network->ops = copy_of(net->ops, net->op_count, sizeof *net->ops);
    network->tensors =
        copy_of(net->tensors, net->tensor_count, sizeof *net->tensors);
    network->parameters =
        copy_of(net->parameters, parameters, sizeof *net->parameters);
    const struct kith_net_tensor *scores = &net->tensors[net->scores];
    network->classes = scores->channels;
    network->score_rows = kith_net_rows(scores);
    network->features = kith_net_elements(&net->tensors[0]);
    return network->ops == NULL || network->tensors == NULL ||
                   network->parameters == NULL
               ? KITH_ENOMEM
               : KITH_OK;
}

/* Where the backend wants rows of scores apart. Only where nothing but the loss
 * reads them: an evaluation's may be read by the caller. */
static void pad_scores(struct kith_graph *network, const struct kith_net *net)
{
    const struct kith_backend *backend = network->options.backend;
    struct kith_op *writer = NULL;
    if (!network->options.training || backend->ops->scores_stride == NULL)
        return;
    for (uint32_t i = 0; i < net->op_count; i++) {
        if (net->ops[i].a == net->scores || net->ops[i].b == net->scores)
            return;
        if (net->ops[i].y == net->scores)
            writer = &network->ops[i];
    }
    KITH_ASSERT(writer != NULL && writer->operation->kind == KITH_OP_LINEAR);
    const size_t stride = backend->ops->scores_stride(network->classes);
    KITH_ASSERT(stride >= network->classes);
    if (stride == network->classes)
        return;
    network->scores_stride = stride;
    writer->as.linear.stride = stride;
}

static enum kith_err open_net(struct kith_graph *network, char *error)
{
    const struct kith_graph_options *options = &network->options;
    struct kith_net *net;
    enum kith_err err =
        kith_net_open(network->model, &network->config, &net, error);
    if (err != KITH_OK)
        return err;
    err = keep_net(network, net);
    if (err == KITH_OK)
        pad_scores(network, net);
    struct kith_planning how = {.net = net,
                                .backend = options->backend,
                                .rows = options->rows,
                                .recompute = options->recompute,
                                .weights_first = options->weights_first,
                                .scores_stride = network->scores_stride};
    if (err == KITH_OK)
        err = kith_plan_open(&how, &network->evaluation);
    how.training = true;
    if (err == KITH_OK && options->training)
        err = kith_plan_open(&how, &network->training);
    free(net);
    if (err == KITH_EINVAL)
        return refuse(error, err, "the loss does not depend on a parameter");
    if (err == KITH_ELIMIT)
        return refuse(error, err,
                      "an activation of more than 2^48 bytes; lower "
                      "train.batch");
    if (err != KITH_OK)
        return refuse(error, err, "no memory to plan it");
    const size_t a = network->training.bytes, b = network->evaluation.bytes;
    network->bytes = a > b ? a : b;
    return KITH_OK;
}

static enum kith_err open_vector(struct kith_graph *network, char *error)
{
    const size_t dim = network->model->dim(&network->config);
    const size_t trained = dim - network->config.buffers;
    network->layout = (struct kith_layout){
        .dim = dim, .decayed = trained, .trained = trained, .gossiped = dim};
    if (dim == 0)
        return KITH_OK;
    network->views = malloc(sizeof *network->views);
    if (network->views == NULL)
        return refuse(error, KITH_ENOMEM, "no memory");
    network->views[0] = (struct kith_model_view){.name = "x",
                                                 .kind = KITH_VIEW_WEIGHT,
                                                 .elements = dim,
                                                 .shape = {(uint32_t)dim},
                                                 .rank = 1};
    network->layout.views = network->views;
    network->layout.view_count = 1;
    if (network->model->loss != NULL)
        network->bytes = dim * network->options.backend->element_bytes;
    return KITH_OK;
}

static bool narrows(const struct kith_graph *network)
{
    const struct kith_backend *backend = network->options.backend;
    return kith_value_bytes(backend) != backend->element_bytes;
}

/* Images come as elements, and scores leave as elements. */
static enum kith_err take_wide(struct kith_graph *network, char *error)
{
    const struct kith_graph_options *options = &network->options;
    const size_t scores =
        options->rows * network->score_rows * network->classes;
    const size_t images = network->model->input == KITH_INPUT_IMAGES
                              ? options->rows * network->features *
                                    kith_value_bytes(options->backend)
                              : 0;
    if (!options->training)
        network->scores = options->backend->alloc(
            scores * options->backend->element_bytes, false);
    if (images > 0)
        network->images = options->backend->alloc(images, false);
    if ((images > 0 && network->images == NULL) ||
        (!options->training && network->scores == NULL))
        return refuse(error, KITH_ENOMEM,
                      "no memory for a batch; lower train.batch");
    return KITH_OK;
}

enum kith_err kith_graph_plan(const struct kith_model *model,
                              const struct kith_model_config *config,
                              const struct kith_graph_options *options,
                              struct kith_graph **out, char *error)
{
    *out = NULL;
    KITH_ASSERT(options->rows > 0);
    enum kith_err err = model->check(config, error);
    if (err != KITH_OK)
        return err;
    const char *missing = options->backend->missing();
    if (missing != NULL) {
        (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                       "backend %s is not here: %.200s", options->backend->name,
                       missing);
        return KITH_EUNSUPPORTED;
    }
    struct kith_graph *network = calloc(1, sizeof *network);
    if (network == NULL)
        return refuse(error, KITH_ENOMEM, "no memory");
    network->model = model;
    network->config = *config;
    network->options = *options;
    err = model->build != NULL ? open_net(network, error)
                               : open_vector(network, error);
    if (err != KITH_OK) {
        kith_graph_close(network);
        return err;
    }
    *out = network;
    return KITH_OK;
}

enum kith_err kith_graph_measure(const struct kith_model *model,
                                 const struct kith_model_config *config,
                                 const struct kith_graph_options *options,
                                 size_t *bytes, char *error)
{
    struct kith_graph *network;
    const enum kith_err err =
        kith_graph_plan(model, config, options, &network, error);
    if (err != KITH_OK)
        return err;
    *bytes = network->bytes;
    kith_graph_close(network);
    return KITH_OK;
}

enum kith_err kith_graph_open(const struct kith_model *model,
                              const struct kith_model_config *config,
                              const struct kith_graph_options *options,
                              struct kith_graph **out, char *error)
{
    struct kith_graph *network;
    *out = NULL;
    enum kith_err err =
        kith_graph_plan(model, config, options, &network, error);
    if (err != KITH_OK)
        return err;
    if (network->bytes > 0) {
        network->arena = options->backend->alloc(network->bytes, false);
        if (network->arena == NULL) {
            (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                           "opening a network: no memory for %zu bytes of "
                           "activations of %zu rows%s",
                           network->bytes, options->rows,
                           options->training ? "; lower train.batch"
                                             : ", those of an evaluation");
            err = KITH_ENOMEM;
        }
    }
    if (err == KITH_OK && network->ops != NULL && narrows(network))
        err = take_wide(network, error);
    if (err != KITH_OK) {
        kith_graph_close(network);
        return err;
    }
    *out = network;
    return KITH_OK;
}

void kith_graph_close(struct kith_graph *network)
{
    if (network == NULL)
        return;
    network->options.backend->release(network->arena);
    network->options.backend->release(network->images);
    network->options.backend->release(network->scores);
    kith_plan_close(&network->training);
    kith_plan_close(&network->evaluation);
    free(network->views);
    free(network->ops);
    free(network->tensors);
    free(network->parameters);
    free(network->offsets);
    free(network);
}

const struct kith_layout *kith_graph_layout(const struct kith_graph *network)
{
    return &network->layout;
}

size_t kith_graph_bytes(const struct kith_graph *network)
{
    return network->bytes;
}

void kith_graph_start(const struct kith_graph *network, uint64_t seed,
                      uint64_t entity, double *x)
{
    if (network->parameters != NULL)
        kith_layout_start(network->parameters, network->parameter_count, seed,
                          x);
    else if (network->model->start != NULL)
        network->model->start(&network->config, seed, entity, x);
    else
        memset(x, 0, network->layout.dim * sizeof *x);
}

static double cross_entropy(const struct kith_run *run,
                            const struct kith_graph *network, double scale,
                            const struct kith_step *step, uint32_t *correct)
{
    return run->backend->ops->cross_entropy(&(struct kith_loss){
        .rows = run->batch->rows * network->score_rows,
        .classes = network->classes,
        .stride = network->scores_stride,
        .labels = run->batch->labels,
        .smoothing = network->options.smoothing,
        .scale = scale,
        .logits = run->arena + run->plan->pieces[step->y].offset,
        .correct = correct});
}

/* A batch's images as the operations want them. */
static const struct kith_batch *narrow(struct kith_graph *network,
                                       const struct kith_batch *batch)
{
    if (network->images == NULL)
        return batch;
    network->narrowed = *batch;
    network->narrowed.inputs = network->images;
    network->options.backend->narrow(batch->rows * network->features,
                                     batch->inputs, network->images);
    return &network->narrowed;
}

static struct kith_run run_of(struct kith_graph *network,
                              const struct kith_plan *plan, const void *x,
                              const struct kith_batch *batch)
{
    batch = narrow(network, batch);
    KITH_ASSERT(batch->rows > 0 && batch->rows <= network->options.rows);
    return (struct kith_run){.backend = network->options.backend,
                             .ops = network->ops,
                             .tensors = network->tensors,
                             .offsets = network->offsets,
                             .plan = plan,
                             .arena = network->arena,
                             .x = (char *)(uintptr_t)x,
                             .batch = batch};
}

static double loss_by_hand(struct kith_graph *network,
                           const struct kith_pass *pass)
{
    const struct kith_backend *backend = network->options.backend;
    const size_t dim = network->layout.dim;
    const bool plain = pass->gradient != NULL && !pass->add && pass->scale == 1;
    void *gradient = plain ? pass->gradient : network->arena;
    const double loss = network->model->loss(&network->config, backend, pass->x,
                                             pass->batch, gradient);
    if (pass->gradient == NULL || plain)
        return loss;
    if (pass->add) {
        backend->add(dim, pass->scale, gradient, pass->gradient);
    } else {
        backend->copy(dim, pass->gradient, gradient);
        backend->scale(dim, pass->scale, pass->gradient);
    }
    return loss;
}

/* The loss belongs to the part that ends the network. */
static bool in_part(const struct kith_graph *network,
                    const struct kith_step *step, const struct kith_part *part)
{
    switch (step->kind) {
    case KITH_STEP_FORWARD:
        return !part->back && step->op >= part->first && step->op < part->last;
    case KITH_STEP_LOSS:
        return !part->back && part->last == network->op_count;
    case KITH_STEP_BACKWARD:
        return part->back && step->op >= part->first && step->op < part->last;
    case KITH_STEP_AGAIN:
    case KITH_STEP_ADD:
    case KITH_STEP_COPY:
        break;
    }
    return false;
}

/* Steps [first, last); part: NULL, or the only ones that are run. */
static double run_steps(struct kith_graph *network,
                        const struct kith_plan *plan,
                        const struct kith_pass *pass, uint32_t first,
                        uint32_t last, const struct kith_part *part,
                        uint32_t *correct)
{
    struct kith_run run = run_of(network, plan, pass->x, pass->batch);
    double loss = 0;
    KITH_ASSERT(first <= last && last <= plan->step_count);
    run.gradient = pass->gradient;
    run.statistics = plan == &network->training || pass->estimate;
    run.add = pass->add;
    for (uint32_t i = first; i < last; i++) {
        const struct kith_step *step = &plan->steps[i];
        if (part != NULL && !in_part(network, step, part))
            continue;
        if (step->kind != KITH_STEP_LOSS)
            kith_run_step(&run, step);
        else if (pass->batch->labels != NULL)
            loss = cross_entropy(&run, network, pass->scale, step, correct);
    }
    return loss;
}

static double run_plan(struct kith_graph *network, const struct kith_plan *plan,
                       const struct kith_pass *pass, uint32_t *correct)
{
    return run_steps(network, plan, pass, 0, plan->step_count, NULL, correct);
}

double kith_graph_loss(struct kith_graph *network, const struct kith_pass *pass,
                       uint32_t *correct)
{
    const bool training = pass->gradient != NULL;
    if (correct != NULL)
        *correct = 0;
    if (!kith_model_learns(network->model))
        return 0;
    if (network->ops == NULL)
        return loss_by_hand(network, pass);
    KITH_ASSERT(!training || network->options.training);
    return run_plan(network,
                    training ? &network->training : &network->evaluation, pass,
                    correct);
}

uint32_t kith_graph_steps(const struct kith_graph *network)
{
    return network->ops == NULL ? 1 : network->training.step_count;
}

double kith_graph_portion(struct kith_graph *network,
                          const struct kith_pass *pass, uint32_t first,
                          uint32_t last)
{
    KITH_ASSERT(pass->gradient != NULL && network->options.training);
    if (network->ops == NULL)
        return first < last ? loss_by_hand(network, pass) : 0;
    return run_steps(network, &network->training, pass, first, last, NULL,
                     NULL);
}

uint32_t kith_graph_complete(const struct kith_graph *network, size_t at,
                             size_t count)
{
    const struct kith_progress progress = {&network->training, network->ops,
                                           network->parameters,
                                           network->offsets};
    return network->ops == NULL ? count > 0
                                : kith_progress_complete(&progress, at, count);
}

unsigned kith_graph_reads(const struct kith_graph *network, uint32_t step,
                          size_t at[3], size_t count[3])
{
    const struct kith_step *const found = &network->training.steps[step];
    unsigned n = 0;
    if (network->ops == NULL || found->kind != KITH_STEP_FORWARD)
        return 0;
    const struct kith_op *op = &network->ops[found->op];
    const uint32_t read[3] = {op->weight, op->bias, op->buffers};
    for (unsigned i = 0; i < 3; i++) {
        if (read[i] == KITH_PARAMETER_NONE)
            continue;
        at[n] = network->offsets[read[i]];
        /* Variances stand behind running means. */
        count[n++] =
            (i == 2 ? 2 : 1) * network->parameters[read[i]].view.elements;
    }
    return n;
}

double kith_graph_share(const struct kith_graph *network, uint32_t steps)
{
    const struct kith_progress progress = {&network->training, network->ops,
                                           network->parameters,
                                           network->offsets};
    return network->ops == NULL ? steps > 0
                                : kith_progress_share(&progress, steps);
}

uint32_t kith_graph_operations(const struct kith_graph *network)
{
    return network->op_count;
}

double kith_graph_part(struct kith_graph *network, const struct kith_pass *pass,
                       const struct kith_part *part, uint32_t *correct)
{
    KITH_ASSERT(network->ops != NULL && network->options.training);
    const struct kith_plan *plan = &network->training;
    return run_steps(network, plan, pass, 0, plan->step_count, part, correct);
}

/* Exactly one tensor and no parameter on both sides of the cut. */
static bool cuts_clean(const struct kith_graph *network, uint32_t cut)
{
    for (uint32_t i = 0; i < network->op_count; i++) {
        const struct kith_op *op = &network->ops[i];
        for (uint32_t j = 0; j < i && i >= cut; j++) {
            const struct kith_op *before = &network->ops[j];
            const bool reads = op->a == before->y || op->b == before->y;
            if (j < cut && reads != (i == cut && j + 1 == cut))
                return false;
            const bool tied =
                (op->weight != KITH_PARAMETER_NONE &&
                 (op->weight == before->weight ||
                  op->weight == before->bias)) ||
                (op->bias != KITH_PARAMETER_NONE && op->bias == before->bias);
            if (j < cut && tied)
                return false;
        }
    }
    return true;
}

void *kith_graph_edge(struct kith_graph *network, uint32_t cut, bool back,
                      size_t rows, size_t *bytes)
{
    const struct kith_plan *plan = &network->training;
    uint32_t place = KITH_PIECE_NONE;
    if (network->ops == NULL || cut == 0 || cut >= network->op_count ||
        !cuts_clean(network, cut))
        return NULL;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct kith_step *step = &plan->steps[i];
        if (step->kind == KITH_STEP_AGAIN || step->kind == KITH_STEP_ADD ||
            step->kind == KITH_STEP_COPY)
            return NULL;
        if (step->op == cut && step->kind == KITH_STEP_FORWARD && !back)
            place = step->a;
        if (step->op == cut && step->kind == KITH_STEP_BACKWARD && back)
            place = step->dx;
    }
    if (place == KITH_PIECE_NONE || place == KITH_PIECE_INPUT)
        return NULL;
    *bytes = rows * kith_net_elements(&network->tensors[network->ops[cut].a]) *
             kith_value_bytes(network->options.backend);
    return (char *)network->arena + plan->pieces[place].offset;
}

void kith_graph_copy(const struct kith_graph *network,
                     const struct kith_part *part, const void *from, void *to)
{
    const struct kith_backend *backend = network->options.backend;
    for (uint32_t i = part->first; i < part->last; i++) {
        const uint32_t read[2] = {network->ops[i].weight, network->ops[i].bias};
        for (unsigned j = 0; j < 2; j++) {
            if (read[j] == KITH_PARAMETER_NONE)
                continue;
            const size_t at =
                network->offsets[read[j]] * backend->element_bytes;
            backend->copy(network->parameters[read[j]].view.elements,
                          (char *)to + at, (const char *)from + at);
        }
    }
}

const void *kith_graph_scores(struct kith_graph *network, const void *x,
                              const struct kith_batch *batch)
{
    KITH_ASSERT(network->ops != NULL);
    KITH_ASSERT(network->scores_stride == 0);
    const struct kith_plan *plan = &network->evaluation;
    struct kith_batch unlabelled = *batch;
    unlabelled.labels = NULL;
    (void)run_plan(
        network, plan,
        &(struct kith_pass){.x = (void *)(uintptr_t)x, .batch = &unlabelled},
        NULL);
    const void *scores =
        (char *)network->arena + plan->pieces[plan->scores].offset;
    if (!narrows(network))
        return scores;
    network->options.backend->widen(batch->rows * network->score_rows *
                                        network->classes,
                                    scores, network->scores);
    return network->scores;
}
