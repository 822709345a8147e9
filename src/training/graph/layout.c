/* Order in the flat vector, and starting weights.
 *
 *   decayed | vectors | buffers | frozen      each in the order of naming
 *
 * Starting weights are drawn in float64 in the order of naming, one stream for
 * all, so that neither the layout nor what is frozen changes a weight. */
#include <math.h>

#include "kith/assert.h"
#include "graph_state.h"

enum { CLASS_DECAYED, CLASS_VECTORS, CLASS_BUFFERS, CLASS_FROZEN, CLASSES };

static int class_of(const struct kith_model_view *view)
{
    if (view->frozen)
        return CLASS_FROZEN;
    switch (view->kind) {
    case KITH_VIEW_WEIGHT:
    case KITH_VIEW_TABLE:
        return CLASS_DECAYED;
    case KITH_VIEW_MEAN:
    case KITH_VIEW_VARIANCE:
        return CLASS_BUFFERS;
    case KITH_VIEW_VECTOR:
        break;
    }
    return CLASS_VECTORS;
}

void kith_layout_fill(struct kith_net *net, struct kith_model_view *views,
                      struct kith_layout *layout)
{
    size_t at = 0, ends[CLASSES];
    uint32_t count = 0;
    for (int class = 0; class < CLASSES; class ++) {
        for (uint32_t i = 0; i < net->parameter_count; i++) {
            struct kith_model_view *view = &net->parameters[i].view;
            if (class_of(view) != class)
                continue;
            view->offset = at;
            at += view->elements;
            if (views != NULL)
                views[count] = *view;
            count++;
        }
        ends[class] = at;
    }
    KITH_ASSERT(count == net->parameter_count);
    *layout = (struct kith_layout){.dim = at,
                                   .decayed = ends[CLASS_DECAYED],
                                   .trained = ends[CLASS_VECTORS],
                                   .gossiped = ends[CLASS_BUFFERS],
                                   .views = views,
                                   .view_count = count};
}

/* Box and Muller, one of the pair: a draw per weight whatever its place. */
static double draw_normal(struct kith_rng *rng)
{
    static const double turn = 6.283185307179586;
    const double radius = sqrt(-2 * log(1 - kith_rng_double(rng)));
    return radius * cos(turn * kith_rng_double(rng));
}

void kith_layout_start(const struct kith_net_parameter *parameters,
                       uint32_t count, uint64_t seed, double *x)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_WEIGHTS, 0);
    for (uint32_t p = 0; p < count; p++) {
        double *w = x + parameters[p].view.offset;
        const size_t n = parameters[p].view.elements;
        const double spread = parameters[p].spread;
        switch (parameters[p].start) {
        case KITH_START_ZERO:
        case KITH_START_ONE:
            for (size_t i = 0; i < n; i++)
                w[i] = parameters[p].start == KITH_START_ONE;
            break;
        case KITH_START_NORMAL:
            for (size_t i = 0; i < n; i++)
                w[i] = spread * draw_normal(&rng);
            break;
        case KITH_START_UNIFORM:
            for (size_t i = 0; i < n; i++)
                w[i] = (2 * kith_rng_double(&rng) - 1) * spread;
            break;
        }
    }
}
