/* An exchange's hooks, part by part. See kith/algorithm.h. */
#include "parts.h"

#include <string.h>

#include "kith/assert.h"

/* Elements: a handful of vectors' parts fit the nearest cache, and the sums of
 * parts are few. */
enum { PART = 1024 };

/* What of an algebra is a part's own. */
struct part {
    struct kith_algebra algebra;
    void *vectors[KITH_ALGORITHM_VECTORS_MAX];
    void *edges[KITH_DEGREE_MAX * KITH_EDGE_VECTORS_MAX];
    const void *inboxes[KITH_DEGREE_MAX];
};

static size_t part_size(const struct kith_algebra *whole)
{
    const bool host = whole->backend->host == whole->backend;
    return host && whole->dim > PART ? PART : whole->dim;
}

static void *moved(const void *vector, size_t bytes)
{
    return vector == NULL ? NULL : (char *)vector + bytes;
}

/* Elements [at, at + count) of every vector. */
static void part_open(struct part *part, const struct kith_algebra *whole,
                      unsigned vectors, uint32_t inboxes, size_t at,
                      size_t count)
{
    struct kith_algebra *algebra = &part->algebra;
    const size_t bytes = at * whole->backend->element_bytes;
    *algebra = *whole;
    algebra->dim = count;
    algebra->rest = whole->rest + whole->dim - count;
    algebra->trained = whole->trained <= at          ? 0
                       : whole->trained - at < count ? whole->trained - at
                                                     : count;
    algebra->live = moved(whole->live, bytes);
    algebra->sent = moved(whole->sent, bytes);
    algebra->received = moved(whole->received, bytes);
    for (unsigned i = 0; i < vectors; i++)
        part->vectors[i] = moved(whole->vectors[i], bytes);
    const uint32_t copies = whole->edge_count * whole->edge_vectors;
    for (uint32_t i = 0; i < copies; i++)
        part->edges[i] = moved(whole->edges[i], bytes);
    for (uint32_t i = 0; i < inboxes; i++)
        part->inboxes[i] = moved(whole->inboxes[i], bytes);
    algebra->vectors = part->vectors;
    algebra->edges = part->edges;
    algebra->inboxes = part->inboxes;
}

double algorithm_in_parts(struct kith_algebra *whole, unsigned vectors,
                          uint32_t inboxes, algorithm_part run, void *argument)
{
    const size_t size = part_size(whole);
    struct part part;
    double sum = 0;
    KITH_ASSERT(whole->edge_vectors <= KITH_EDGE_VECTORS_MAX);
    for (size_t at = 0; at < whole->dim; at += size) {
        const size_t left = whole->dim - at;
        part_open(&part, whole, vectors, inboxes, at,
                  left < size ? left : size);
        sum += run(&part.algebra, argument);
    }
    return sum;
}

/* One hook for all parts: each begins with the scalars as they were, so that
 * they change once. */
struct call {
    const struct kith_algorithm *algorithm;
    void (*hook)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    struct kith_work_edge *edge;
    const struct kith_work_edge *edges;
    uint32_t edge_count;
    double scalars[KITH_SCALARS_MAX];
    double edge_scalars[KITH_DEGREE_MAX * KITH_EDGE_SCALARS];
};

static size_t edge_bytes(const struct kith_algebra *algebra)
{
    return algebra->edge_scalars == NULL
               ? 0
               : algebra->edge_count * KITH_EDGE_SCALARS * sizeof(double);
}

static double call_part(struct kith_algebra *algebra, void *argument)
{
    struct call *call = argument;
    for (unsigned i = 0; i < call->algorithm->scalar_count; i++)
        algebra->scalars[i] = call->scalars[i];
    if (edge_bytes(algebra) > 0)
        memcpy(algebra->edge_scalars, call->edge_scalars, edge_bytes(algebra));
    if (call->hook == NULL)
        return call->algorithm->finish(algebra, call->edges, call->edge_count);
    call->edge->delta_sum = 0;
    call->hook(algebra, call->edge);
    return call->edge->delta_sum;
}

static bool is_whole(const struct kith_algorithm *algorithm,
                     const struct kith_algebra *algebra)
{
    return !algorithm->elementwise || part_size(algebra) == algebra->dim;
}

static double call_all(struct call *call, struct kith_algebra *algebra)
{
    for (unsigned i = 0; i < call->algorithm->scalar_count; i++)
        call->scalars[i] = algebra->scalars[i];
    if (edge_bytes(algebra) > 0)
        memcpy(call->edge_scalars, algebra->edge_scalars, edge_bytes(algebra));
    return algorithm_in_parts(algebra, call->algorithm->vectors,
                              call->edge_count, call_part, call);
}

static void call_edge(const struct kith_algorithm *algorithm,
                      struct kith_algebra *algebra, struct kith_work_edge *edge,
                      void (*hook)(struct kith_algebra *algebra,
                                   struct kith_work_edge *edge))
{
    if (is_whole(algorithm, algebra)) {
        hook(algebra, edge);
        return;
    }
    struct call call = {.algorithm = algorithm, .hook = hook, .edge = edge};
    const double sum = call_all(&call, algebra);
    edge->delta_sum = sum;
}

void kith_algorithm_make(const struct kith_algorithm *algorithm,
                         struct kith_algebra *algebra,
                         struct kith_work_edge *edge)
{
    call_edge(algorithm, algebra, edge, algorithm->make);
}

void kith_algorithm_merge(const struct kith_algorithm *algorithm,
                          struct kith_algebra *algebra,
                          struct kith_work_edge *edge)
{
    call_edge(algorithm, algebra, edge, algorithm->merge);
}

double kith_algorithm_finish(const struct kith_algorithm *algorithm,
                             struct kith_algebra *algebra,
                             const struct kith_work_edge *edges,
                             uint32_t edge_count)
{
    if (is_whole(algorithm, algebra))
        return algorithm->finish(algebra, edges, edge_count);
    struct call call = {
        .algorithm = algorithm, .edges = edges, .edge_count = edge_count};
    return call_all(&call, algebra);
}
