/* What a step of synchronous training computes beside what it sends, layer by
 * layer, and how a layer is best divided among peers.
 *
 * A layer is an operation with a weight and products: of an example
 *
 *   flops     forward and back, three times its products
 *   weights   |w|
 *   inputs    values that it reads
 *
 * N peers share a minibatch of B examples, in 4-byte values:
 *
 *   data      each has all weights and B / N examples    4 (2 - o) weights
 *   model     each has 1 / N of the weights              4 inputs B
 *   hybrid    G groups that divide the examples, and the weights inside:
 *                                   4 (inputs B / G + weights G / N)
 *
 * bytes a peer and step, o the share of sending that goes on while it receives.
 * Model is preferred where (2 - o) weights > inputs B; what is then sent is
 * least at G = (N B inputs / weights)^(1/2).
 *
 * A gradient may travel while those of the layers before it are computed, and
 * while the next step is under way, up to its own layer (kith_balance_step).
 *
 * Source: Das et al., "Distributed Deep Learning Using Synchronous Stochastic
 * Gradient Descent", 2016; G is derived here. Test: unit/test_balance.c */
#ifndef KITH_BALANCE_H
#define KITH_BALANCE_H

#include "kith/net.h"

KITH_BEGIN_DECLS

struct kith_layer {
    char name[KITH_NAME_MAX]; /* of its weight, without ".weight" */
    size_t weights;
    double inputs, flops; /* of an example */
};

/* The model's layers in the order in which they run. *left: values of the model
 * that no layer has (biases, norms, embeddings).
 *
 *   layers  (KITH_OPS_MAX)
 *
 * KITH_EINVAL, KITH_ELIMIT: as kith_model_measure; KITH_EUNSUPPORTED: a model
 * without a network. Cost: the model is described once; no memory of its size.
 */
KITH_MUST_CHECK enum kith_err kith_balance_layers(
    const struct kith_model *model, const struct kith_model_config *config,
    struct kith_layer *layers, uint32_t *count, size_t *left, char *error);

/* FLOP of an example for each byte of dividing by data, at o = 1. */
double kith_balance_ratio(const struct kith_layer *layer);

enum kith_division { KITH_DIVIDE_DATA, KITH_DIVIDE_MODEL, KITH_DIVIDE_HYBRID };
struct kith_partition {
    enum kith_division division;
    uint32_t groups; /* N: data; 1: model */
    double bytes;    /* of a peer and step */
};
/* Groups are a divisor of the peers: that which sends least.
 *
 *   peers, batch  at least 1; batch of all peers together
 *   overlap       o, in [0, 1] */
struct kith_partition kith_balance_split(const struct kith_layer *layer,
                                         uint32_t peers, double batch,
                                         double overlap);

/* Peers that divide a minibatch by data before sending takes as long as
 * computing: B flops rate / (speed bytes), of all layers and the values left.
 *
 *   speed  FLOP/s of a peer
 *   rate   bytes/s of a peer, in each direction */
double kith_balance_peers_max(const struct kith_layer *layers, uint32_t count,
                              size_t left, double batch, double overlap,
                              double speed, double rate);

/* Seconds of one layer in a step of a peer; transfer: the sum of its gradient,
 * there and back. */
struct kith_layer_times {
    double forward_s, weight_s, back_s, transfer_s;
};
enum kith_send_order {
    KITH_SEND_ALONE,       /* nothing is computed meanwhile */
    KITH_SEND_FIRST_READY, /* as gradients come: the last layer's first */
    KITH_SEND_BY_LAYER,    /* the first layer's before all others: it is needed
                              first */
};
/* Seconds from one step to the next, once all steps are alike: layers forward,
 * each when its own transfer has ended; then back, the gradient of a layer's
 * weights before that of its input or behind it. One link, which finishes what
 * it has begun.
 *
 *   layers  (count), in the order in which they run; at most KITH_OPS_MAX
 *
 * Cost: O(count^2). Test: unit/test_layer_schedule.c (T5.1) */
double kith_balance_step(const struct kith_layer_times *layers, uint32_t count,
                         enum kith_send_order order, bool weight_first);

KITH_END_DECLS

#endif
