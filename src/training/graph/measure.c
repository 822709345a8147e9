/* How large a model is, from its description alone.
 *
 * Operations: 2 for each multiply-add of linear, convolution and attention
 * products; the half of an attention that the causal mask leaves out is
 * counted, as is the custom (PaLM, appendix B), all else is not. Training has
 * two products more for each, the gradients of the weight and of the input; of
 * the first layer's input, too, as is the custom. Where views are frozen those
 * that nobody wants are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_state.h"

bool kith_model_learns(const struct kith_model *model)
{
    return model->build != NULL || model->loss != NULL;
}

/* Products on the way back for each one forward, 0 to 2. *wanted: of tensors,
 * does a gradient lead to what trains? */
static double way_back(const struct kith_net *net, const struct kith_op *op,
                       bool frozen, bool *wanted)
{
    const bool below =
        wanted[op->a] || (op->b != KITH_TENSOR_NONE && wanted[op->b]);
    const bool weight = kith_planner_trains(net, op->weight);
    wanted[op->y] = below || weight || kith_planner_trains(net, op->bias);
    if (!frozen)
        return 2;
    /* Without a weight both factors of a product are inputs. */
    if (op->weight == KITH_PARAMETER_NONE)
        return below ? 2 : 0;
    return (double)weight + (double)below;
}

static enum kith_err count_flops(const struct kith_net *net,
                                 struct kith_model_size *size)
{
    bool *wanted = calloc(net->tensor_count, sizeof *wanted);
    if (wanted == NULL)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < net->op_count; i++) {
        const struct kith_op *op = &net->ops[i];
        if (op->operation->flops == NULL) {
            (void)way_back(net, op, false, wanted);
            continue;
        }
        const double flops = op->operation->flops(op);
        size->flops += flops;
        size->training_flops +=
            flops * (1 + way_back(net, op, size->gossiped < size->dim, wanted));
    }
    free(wanted);
    return KITH_OK;
}

static enum kith_err measure_net(const struct kith_model *model,
                                 const struct kith_model_config *config,
                                 struct kith_model_size *size, char *error)
{
    struct kith_net *net = NULL;
    enum kith_err err = kith_net_open(model, config, &net, error);
    if (err != KITH_OK)
        return err;
    struct kith_layout layout;
    kith_layout_fill(net, NULL, &layout);
    const struct kith_net_tensor *input = &net->tensors[0];
    *size =
        (struct kith_model_size){.dim = layout.dim,
                                 .trained = layout.trained,
                                 .gossiped = layout.gossiped,
                                 .features = kith_net_elements(input),
                                 .classes = net->tensors[net->scores].channels};
    for (uint32_t i = 0; i < net->parameter_count; i++)
        size->layers += net->parameters[i].view.offset < layout.decayed;
    err = count_flops(net, size);
    if (err != KITH_OK)
        (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                       "no memory to measure model %s", model->name);
    free(net);
    return err;
}

enum kith_err kith_model_measure(const struct kith_model *model,
                                 const struct kith_model_config *config,
                                 struct kith_model_size *size, char *error)
{
    *size = (struct kith_model_size){.dim = 0};
    const enum kith_err err = model->check(config, error);
    if (err != KITH_OK)
        return err;
    if (model->build != NULL)
        return measure_net(model, config, size, error);
    size->gossiped = model->dim(config);
    size->dim = model->absent ? 0 : size->gossiped;
    size->trained = size->gossiped - config->buffers;
    size->layers = size->gossiped > 0;
    return KITH_OK;
}

struct kith_model_size
kith_model_size_of(const struct kith_model *model,
                   const struct kith_model_config *config)
{
    struct kith_model_size size;
    char error[KITH_MODEL_ERROR_BYTES];
    if (kith_model_measure(model, config, &size, error) != KITH_OK)
        size = (struct kith_model_size){.dim = 0};
    return size;
}

enum kith_err kith_net_open(const struct kith_model *model,
                            const struct kith_model_config *config,
                            struct kith_net **out, char *error)
{
    *out = NULL;
    struct kith_net *net = malloc(sizeof *net);
    if (net == NULL) {
        (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                       "no memory to describe model %s", model->name);
        return KITH_ENOMEM;
    }
    kith_net_begin(net, config->frozen);
    model->build(config, net);
    const enum kith_err err = kith_net_finish(net);
    if (err != KITH_OK) {
        if (strncmp(net->error, "model.", 6) == 0)
            memcpy(error, net->error, sizeof net->error);
        else
            (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                           "model.kind: model %s cannot be built so: %.180s",
                           model->name, net->error);
        free(net);
        return err;
    }
    *out = net;
    return KITH_OK;
}
