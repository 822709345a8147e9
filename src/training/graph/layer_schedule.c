/* Steps and transfers of layers over one link: kith/balance.h. */
#include <math.h>

#include "kith/assert.h"
#include "kith/balance.h"
#include "kith/net.h"

/* Transfers of the steps that are still to come: when each is ready, NaN where
 * it has ended; when the link is free. */
struct link {
    const struct kith_layer_times *layers;
    uint32_t count;
    enum kith_send_order order;
    double ready[KITH_OPS_MAX], ended[KITH_OPS_MAX], free_s;
};

/* The next one: of those that are ready when the link is free, or first after
 * that. A transfer that has begun is not interrupted. */
static uint32_t next_of(const struct link *link, double from_s)
{
    uint32_t next = link->count;
    for (uint32_t i = 0; i < link->count; i++) {
        if (!(link->ready[i] <= from_s))
            continue;
        /* Layers come in their order: the first one found has priority. */
        if (next == link->count || (link->order == KITH_SEND_FIRST_READY &&
                                    link->ready[i] < link->ready[next]))
            next = i;
    }
    KITH_ASSERT(next < link->count);
    return next;
}

static double first_ready(const struct link *link)
{
    double first_s = INFINITY;
    for (uint32_t i = 0; i < link->count; i++)
        if (link->ready[i] < first_s)
            first_s = link->ready[i];
    return first_s;
}

/* All that the link does until this layer's transfer has ended. */
static double wait_for(struct link *link, uint32_t layer)
{
    while (!isnan(link->ready[layer])) {
        const double from_s = fmax(link->free_s, first_ready(link));
        const uint32_t next = next_of(link, from_s);
        link->free_s = from_s + link->layers[next].transfer_s;
        link->ended[next] = link->free_s;
        link->ready[next] = NAN;
    }
    return link->ended[layer];
}

/* Gradients of a layer in either order; the first layer hands nothing back. */
static double go_back(struct link *link, double now_s, uint32_t layer,
                      bool weight_first)
{
    const struct kith_layer_times *times = &link->layers[layer];
    const double back_s = layer > 0 ? times->back_s : 0;
    link->ready[layer] = now_s + times->weight_s + (weight_first ? 0 : back_s);
    return now_s + times->weight_s + back_s;
}

double kith_balance_step(const struct kith_layer_times *layers, uint32_t count,
                         enum kith_send_order order, bool weight_first)
{
    struct link link = {.layers = layers, .count = count, .order = order};
    double now_s = 0, began_s = 0, alone_s = 0;
    KITH_ASSERT(count > 0 && count <= KITH_OPS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        link.ready[i] = NAN;
        alone_s += layers[i].forward_s + layers[i].weight_s +
                   (i > 0 ? layers[i].back_s : 0) + layers[i].transfer_s;
    }
    if (order == KITH_SEND_ALONE)
        return alone_s;
    /* A step begins with what the one before left on the link, and no more:
     * from the second on all are alike. From one end of computing to the next.
     */
    for (unsigned step = 0; step < 3; step++) {
        began_s = now_s;
        for (uint32_t i = 0; i < count; i++)
            now_s = fmax(now_s, wait_for(&link, i)) + layers[i].forward_s;
        KITH_ASSERT(now_s >= began_s);
        for (uint32_t i = count; i-- > 0;)
            now_s = go_back(&link, now_s, i, weight_first);
    }
    return now_s - began_s;
}
