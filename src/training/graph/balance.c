/* Layers of a net and the bytes that dividing them takes: kith/balance.h. */
#include "kith/balance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_state.h"
#include "kith/assert.h"

#define VALUE_BYTES 4.0

static void name_layer(struct kith_layer *layer, const char *view)
{
    static const char suffix[] = ".weight";
    const size_t length = strlen(view), end = sizeof suffix - 1;
    const bool has = length > end && strcmp(view + length - end, suffix) == 0;
    (void)snprintf(layer->name, sizeof layer->name, "%.*s",
                   (int)(has ? length - end : length), view);
}

/* false: not a layer. */
static bool read_layer(const struct kith_net *net, const struct kith_op *op,
                       struct kith_layer *layer)
{
    if (op->operation->flops == NULL || op->weight == KITH_PARAMETER_NONE)
        return false;
    const struct kith_model_view *view = &net->parameters[op->weight].view;
    name_layer(layer, view->name);
    layer->weights = view->elements;
    layer->inputs = (double)kith_net_elements(&net->tensors[op->a]);
    layer->flops = 3 * op->operation->flops(op);
    return true;
}

enum kith_err kith_balance_layers(const struct kith_model *model,
                                  const struct kith_model_config *config,
                                  struct kith_layer *layers, uint32_t *count,
                                  size_t *left, char *error)
{
    struct kith_model_size size;
    struct kith_net *net = NULL;
    *count = 0;
    enum kith_err err = kith_model_measure(model, config, &size, error);
    if (err == KITH_OK && model->build == NULL) {
        (void)snprintf(error, KITH_MODEL_ERROR_BYTES, "model %s has no layers",
                       model->name);
        err = KITH_EUNSUPPORTED;
    }
    if (err == KITH_OK)
        err = kith_net_open(model, config, &net, error);
    if (err != KITH_OK)
        return err;
    *left = size.dim;
    for (uint32_t i = 0; i < net->op_count; i++) {
        KITH_ASSERT(*count < KITH_OPS_MAX);
        if (read_layer(net, &net->ops[i], &layers[*count]))
            *left -= layers[(*count)++].weights;
    }
    free(net);
    return KITH_OK;
}

static double data_bytes(double weights, double overlap)
{
    return VALUE_BYTES * (2 - overlap) * weights;
}

double kith_balance_ratio(const struct kith_layer *layer)
{
    KITH_ASSERT(layer->weights > 0);
    return layer->flops / data_bytes((double)layer->weights, 1);
}

static double hybrid_bytes(const struct kith_layer *layer, uint32_t peers,
                           double batch, uint32_t groups)
{
    return VALUE_BYTES * (layer->inputs * batch / groups +
                          (double)layer->weights * groups / peers);
}

struct kith_partition kith_balance_split(const struct kith_layer *layer,
                                         uint32_t peers, double batch,
                                         double overlap)
{
    const double weights = (double)layer->weights;
    KITH_ASSERT(peers >= 1 && batch >= 1 && overlap >= 0 && overlap <= 1);
    struct kith_partition split = {KITH_DIVIDE_DATA, peers,
                                   data_bytes(weights, overlap)};
    if (peers == 1)
        split.bytes = 0;
    if (peers == 1 || !((2 - overlap) * weights > layer->inputs * batch))
        return split;
    split = (struct kith_partition){KITH_DIVIDE_MODEL, 1,
                                    VALUE_BYTES * layer->inputs * batch};
    /* Of what sends as little, fewer groups, but more than one. */
    for (uint32_t groups = peers - 1; groups > 1; groups--) {
        const double bytes = hybrid_bytes(layer, peers, batch, groups);
        if (peers % groups == 0 && bytes <= split.bytes)
            split = (struct kith_partition){KITH_DIVIDE_HYBRID, groups, bytes};
    }
    return split;
}

double kith_balance_peers_max(const struct kith_layer *layers, uint32_t count,
                              size_t left, double batch, double overlap,
                              double speed, double rate)
{
    double flops = 0, weights = (double)left;
    KITH_ASSERT(speed > 0 && rate > 0);
    for (uint32_t i = 0; i < count; i++) {
        flops += layers[i].flops;
        weights += (double)layers[i].weights;
    }
    return batch * flops * rate / (speed * data_bytes(weights, overlap));
}
