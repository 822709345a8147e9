/* What a merge does with messages that stay packed: part by part, each part in
 * the first cache, so that a pass over two messages reads their bytes and
 * writes nothing but x.
 *
 *   SNAPSHOT  x                 -> slot            4 + 2 bytes a value (bf16)
 *   guard     |Q(r) - Q(s)|^2                      2 + 2
 *   MERGE     x += w (Q(r) - Q(s))                 2 + 2 + 8
 *
 * Parts are summed in one order: deltas of both ends stay exact opposites.
 * Test: unit/test_packing.c; bench/bench_packing.c. */
#include "kith/assert.h"
#include "worker_state.h"

/* Values; whole blocks of every format. Both parts take half of a first
 * cache of 32 KiB in float32. */
enum { PART = 2048 };

struct part {
    _Alignas(64) char values[PART * sizeof(double)];
};

static size_t part_at(const struct kith_worker *worker, size_t from)
{
    const size_t left = worker->packing.count - from;
    KITH_ASSERT(worker->packing.streams && from < worker->packing.count);
    return left < PART ? left : PART;
}

/* The gate has seen what was received; an own message that it would refuse is
 * merged by nobody. */
static void read_part(const struct kith_worker *worker, uint32_t slot,
                      size_t from, size_t count, struct part *part)
{
    const struct kith_packing *packing = &worker->packing;
    packing->format->unpack(worker->backend->host, packing->count,
                            worker->slots[slot], from, count, part->values);
}

double kith_worker_packed_sum(const struct kith_worker *worker, uint32_t slot)
{
    struct part part;
    double sum = 0;
    for (size_t at = 0, count; at < worker->packing.count; at += count) {
        count = part_at(worker, at);
        read_part(worker, slot, at, count, &part);
        sum += worker->backend->sum(count, part.values);
    }
    return sum;
}

double kith_worker_packed_distance(const struct kith_worker *worker,
                                   uint32_t slot, uint32_t other,
                                   const void *vector)
{
    const size_t size = worker->backend->element_bytes;
    const struct kith_format *format = worker->packing.format;
    struct part part, own;
    double squared = 0;
    if (format->distance_squared != NULL && vector == NULL)
        return format->distance_squared(
            worker->backend->host, worker->packing.count, worker->slots[slot],
            other == KITH_SLOT_NONE ? NULL : worker->slots[other]);
    for (size_t at = 0, count; at < worker->packing.count; at += count) {
        const void *from = NULL;
        count = part_at(worker, at);
        read_part(worker, slot, at, count, &part);
        if (other != KITH_SLOT_NONE) {
            read_part(worker, other, at, count, &own);
            from = own.values;
        } else if (vector != NULL) {
            from = (const char *)vector + at * size;
        }
        squared += worker->backend->distance_squared(count, part.values, from);
    }
    return squared;
}

void kith_worker_packed_read(const struct kith_worker *worker, uint32_t slot,
                             size_t from, size_t count, double *out)
{
    struct part part;
    KITH_ASSERT(count <= PART || from == 0);
    for (size_t at = from, end = from + count, some; at < end; at += some) {
        some = end - at < PART ? end - at : PART;
        read_part(worker, slot, at, some, &part);
        worker->backend->host->read(some, part.values, out + (at - from));
    }
}

void kith_worker_packed_mix(struct kith_worker *worker, kith_mix_edge *mix,
                            const struct kith_algebra *algebra,
                            struct kith_work_edge *edge)
{
    const size_t size = worker->backend->element_bytes;
    const struct kith_format *format = worker->packing.format;
    struct part received, sent;
    struct kith_algebra here = *algebra;
    struct kith_work_edge merged = *edge;
    double sum = 0;
    here.received = received.values;
    here.sent = sent.values;
    here.dim = 0;
    mix(&here, &merged); /* the weight, which may be the rule's own */
    if (format->mix != NULL && mix == worker->algorithm->merge) {
        edge->weight = merged.weight;
        edge->delta_sum =
            format->mix(worker->backend->host, worker->packing.count,
                        merged.weight, worker->slots[edge->inbox],
                        worker->slots[edge->sent], algebra->live);
        return;
    }
    for (size_t at = 0; at < worker->packing.count; at += here.dim) {
        here.dim = part_at(worker, at);
        here.live = (char *)algebra->live + at * size;
        read_part(worker, edge->inbox, at, here.dim, &received);
        read_part(worker, edge->sent, at, here.dim, &sent);
        merged = *edge;
        mix(&here, &merged);
        sum += merged.delta_sum;
    }
    /* What a merge says and no more: whose edge it is others read meanwhile. */
    edge->weight = merged.weight;
    edge->refused = merged.refused;
    edge->delta_sum = sum;
}
