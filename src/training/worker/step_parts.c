/* A step of training in several items, for a gradient that goes out in buckets.
 *
 *   first item   the loss, and on the way back until bucket 0 is complete
 *   the others   on, each until another bucket is or a 64th of the step's
 *                products are done
 *
 * Other items run between them: what came of a bucket is merged while the
 * layers before it are computed, and waits no longer than that 64th. x does not
 * move meanwhile. Test: unit/test_buckets.c, unit/test_sync_sgd_buckets.c */
#include "worker_state.h"

#include "kith/assert.h"

/* Tests by hand have no coefficients. */
static double asked(const struct kith_worker *worker)
{
    const double *coefficients = worker->task.coefficients;
    return coefficients == NULL ? 1 : coefficients[KITH_GOSSIP_BUCKETS];
}

bool kith_worker_in_buckets(const struct kith_worker *worker)
{
    return asked(worker) >= 2;
}

struct kith_bucket kith_worker_bucket(const struct kith_worker *worker,
                                      uint32_t bucket)
{
    const struct kith_layout *layout = worker->layout;
    return kith_bucket_of(layout->gossiped, layout->decayed,
                          worker->parts.buckets, bucket, 0, layout->gossiped);
}

/* Steps of the list after which the bucket is complete. */
static uint32_t complete_after(const struct kith_worker *worker,
                               uint32_t bucket)
{
    const struct kith_bucket values = kith_worker_bucket(worker, bucket);
    uint32_t after = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct kith_range *range = &values.ranges[i];
        if (range->count == 0)
            continue;
        const uint32_t steps =
            kith_graph_complete(worker->network, range->at, range->count);
        after = steps > after ? steps : after;
    }
    return after;
}

static void add_part(struct kith_step_parts *parts, uint32_t steps,
                     uint32_t complete)
{
    KITH_ASSERT(parts->count < KITH_BUCKETS_MAX + KITH_STEP_PARTS);
    parts->after[parts->count].steps = steps;
    parts->after[parts->count++].complete = complete;
}

void kith_worker_parts_open(struct kith_worker *worker)
{
    struct kith_step_parts *parts = &worker->parts;
    const uint32_t steps = kith_graph_steps(worker->network);
    uint32_t complete = 0;
    double said = 0;
    parts->buckets = kith_bucket_count(worker->layout->gossiped, asked(worker));
    worker->cycle *= parts->buckets;
    for (uint32_t i = 1; i < steps && parts->buckets > 1; i++) {
        const uint32_t before = complete;
        while (complete < parts->buckets &&
               complete_after(worker, complete) <= i)
            complete++;
        const double share = kith_graph_share(worker->network, i);
        if (complete == before &&
            (complete == 0 || share < said + 1.0 / KITH_STEP_PARTS))
            continue;
        add_part(parts, i, complete);
        said = share;
    }
    add_part(parts, steps, parts->buckets);
}

struct kith_range kith_worker_part_steps(const struct kith_worker *worker,
                                         uint32_t part)
{
    const struct kith_step_parts *parts = &worker->parts;
    KITH_ASSERT(part < parts->count);
    const uint32_t from = part == 0 ? 0 : parts->after[part - 1].steps;
    return (struct kith_range){from, parts->after[part].steps - from};
}

uint32_t kith_worker_complete(const struct kith_worker *worker, uint32_t parts)
{
    KITH_ASSERT(parts <= worker->parts.count);
    return parts == 0 ? 0 : worker->parts.after[parts - 1].complete;
}

void kith_worker_part_ends(struct kith_worker *worker, uint32_t part,
                           struct kith_work_result *result)
{
    const struct kith_step_parts *parts = &worker->parts;
    result->loss = parts->loss;
    result->is_part = result->finite && part + 1 < parts->count;
    result->complete = parts->after[part].complete;
}

/* Of a step's products, when so many items are done. */
static double share_after(const struct kith_worker *worker, uint32_t items)
{
    const double micro_batches = kith_worker_parts(worker);
    if (items == 0 || items >= worker->parts.count)
        return items > 0;
    const double of_last =
        kith_graph_share(worker->network, worker->parts.after[items - 1].steps);
    return (micro_batches - 1 + of_last) / micro_batches;
}

kith_ns kith_worker_item_time(const struct kith_worker *worker,
                              const struct kith_work *work, kith_ns step_ns)
{
    const double step = (double)step_ns;
    KITH_ASSERT(work->kind == KITH_WORK_TRAIN);
    if (worker->parts.count <= 1)
        return step_ns;
    return (kith_ns)(step * share_after(worker, work->part + 1)) -
           (kith_ns)(step * share_after(worker, work->part));
}
