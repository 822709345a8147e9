/* A step of training in several items, for a gradient that goes out in buckets.
 *
 *   forward   each item as far as it needs no further bucket of the last
 *             gradient; those that it needs are stepped along first
 *   back      the first item until bucket 0 is complete, the others until
 *             another one is
 *
 * and no further than a 64th of the step's products. Other items run between
 * them: what came of a bucket is merged while other layers are computed, and
 * waits no longer than that 64th.
 *
 * The way forward is one item where the first layers' buckets come last, where
 * the optimiser has to see the whole gradient, and where the step's batch has
 * parts. Test: unit/test_buckets.c, unit/test_sync_sgd_buckets.c */
#include <stdlib.h>

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

static double urgent(const struct kith_worker *worker)
{
    return worker->task.coefficients[KITH_GOSSIP_URGENT];
}

static bool goes_forward_in_parts(const struct kith_worker *worker)
{
    const struct kith_training *training = worker->task.training;
    return kith_worker_in_buckets(worker) && urgent(worker) > 1 &&
           training->optimiser->is_elementwise && training->config.clip == 0 &&
           kith_worker_parts(worker) == 1 &&
           kith_graph_steps(worker->network) > 1;
}

static uint64_t all_of(const struct kith_worker *worker)
{
    return worker->parts.buckets == 64
               ? UINT64_MAX
               : (UINT64_C(1) << worker->parts.buckets) - 1;
}

static bool overlaps(const struct kith_range *range, size_t at, size_t count)
{
    return range->at < at + count && at < range->at + range->count;
}

/* Buckets with values that this step of the way forward reads. */
static uint64_t reads(const struct kith_worker *worker, uint32_t step)
{
    size_t at[3], count[3];
    uint64_t mask = 0;
    const unsigned ranges = kith_graph_reads(worker->network, step, at, count);
    for (uint32_t b = 0; b < worker->parts.buckets; b++) {
        const struct kith_bucket bucket = kith_worker_bucket(worker, b);
        for (unsigned i = 0; i < ranges; i++)
            if (overlaps(&bucket.ranges[0], at[i], count[i]) ||
                overlaps(&bucket.ranges[1], at[i], count[i]))
                mask |= UINT64_C(1) << b;
    }
    return mask;
}

/* Places of the sending order up to the last of these buckets. */
static uint32_t places(const struct kith_worker *worker, uint64_t buckets)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < worker->parts.buckets; p++)
        if (buckets >>
                kith_bucket_at(worker->parts.buckets, urgent(worker), p) &
            1u)
            count = p + 1;
    return count;
}

static void add_part(struct kith_step_parts *parts, uint32_t steps,
                     uint32_t complete, uint64_t needs)
{
    KITH_ASSERT(parts->count < KITH_STEP_PARTS_MAX);
    parts->each[parts->count++] =
        (struct kith_step_part){steps, complete, needs};
}

/* Parts of the way forward up to step `end`, which is the loss. The last of
 * them goes on until there is something to send. */
static void cut_forward(struct kith_worker *worker, uint32_t end)
{
    uint64_t needs = reads(worker, 0);
    double said = 0;
    for (uint32_t i = 1; i < end; i++) {
        const uint64_t more = reads(worker, i) & ~needs;
        const double share = kith_graph_share(worker->network, i);
        if (more == 0 && share < said + 1.0 / KITH_STEP_PARTS)
            continue;
        add_part(&worker->parts, i, 0, needs);
        needs |= more;
        said = share;
    }
}

static void cut_back(struct kith_worker *worker, uint32_t from)
{
    struct kith_step_parts *parts = &worker->parts;
    const uint32_t steps = kith_graph_steps(worker->network);
    uint32_t complete = 0;
    double said = 0;
    for (uint32_t i = from; i < steps && parts->buckets > 1; i++) {
        const uint32_t before = complete;
        while (complete < parts->buckets &&
               complete_after(worker, complete) <= i)
            complete++;
        const double share = kith_graph_share(worker->network, i);
        if (complete == before &&
            (complete == 0 || share < said + 1.0 / KITH_STEP_PARTS))
            continue;
        add_part(parts, i, complete,
                 parts->count == parts->of_loss ? all_of(worker) : 0);
        said = share;
    }
    add_part(parts, steps, parts->buckets,
             parts->count == parts->of_loss ? all_of(worker) : 0);
}

bool kith_worker_parts_open(struct kith_worker *worker)
{
    struct kith_step_parts *parts = &worker->parts;
    if (worker->lender != NULL) {
        *parts = worker->lender->parts;
        worker->cycle *= parts->buckets;
        return true;
    }
    parts->each = calloc(KITH_STEP_PARTS_MAX, sizeof *parts->each);
    if (parts->each == NULL)
        return false;
    parts->buckets = kith_bucket_count(worker->layout->gossiped, asked(worker));
    worker->cycle *= parts->buckets;
    const uint32_t loss = kith_graph_complete(worker->network, 0, 0);
    if (goes_forward_in_parts(worker))
        cut_forward(worker, loss - 1);
    parts->of_loss = parts->count;
    cut_back(worker, loss);
    return true;
}

void kith_worker_parts_close(struct kith_worker *worker)
{
    if (worker->lender == NULL)
        free(worker->parts.each);
}

struct kith_range kith_worker_part_steps(const struct kith_worker *worker,
                                         uint32_t part)
{
    const struct kith_step_parts *parts = &worker->parts;
    KITH_ASSERT(part < parts->count);
    const uint32_t from = part == 0 ? 0 : parts->each[part - 1].steps;
    return (struct kith_range){from, parts->each[part].steps - from};
}

uint32_t kith_worker_complete(const struct kith_worker *worker, uint32_t parts)
{
    KITH_ASSERT(parts <= worker->parts.count);
    return parts == 0 ? 0 : worker->parts.each[parts - 1].complete;
}

uint64_t kith_worker_part_needs(const struct kith_worker *worker, uint32_t part)
{
    const struct kith_step_parts *parts = &worker->parts;
    return part < parts->of_loss ? parts->each[part].needs : 0;
}

void kith_worker_part_ends(struct kith_worker *worker, uint32_t part,
                           struct kith_work_result *result)
{
    const struct kith_step_parts *parts = &worker->parts;
    result->loss = parts->loss;
    result->is_part = result->finite && part + 1 < parts->count;
    result->complete = parts->each[part].complete;
    const uint32_t next = result->is_part ? part + 1 : 0;
    if (parts->buckets > 1)
        result->needs = places(worker, parts->each[next].needs);
}

/* Of a step's products, when so many items are done. */
static double share_after(const struct kith_worker *worker, uint32_t items)
{
    const double micro_batches = kith_worker_parts(worker);
    if (items == 0 || items >= worker->parts.count)
        return items > 0;
    const double of_last =
        kith_graph_share(worker->network, worker->parts.each[items - 1].steps);
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
