/* See flows.h. A binary heap of ends in which each flow knows its place. */
#include "sim/flows.h"

#include <math.h>

#include "kith/assert.h"
#include "sim/huge_pages.h"

enum kith_err sim_flows_open(struct sim_flows_in_time *flows,
                             uint32_t link_count)
{
    KITH_ASSERT(link_count > 0);
    *flows = (struct sim_flows_in_time){.flows = NULL};
    return sim_rates_open(&flows->rates, link_count);
}

void sim_flows_close(struct sim_flows_in_time *flows)
{
    KITH_ASSERT(flows->count <= flows->capacity);
    sim_rates_close(&flows->rates);
    sim_pages_free(flows->flows, flows->capacity * sizeof *flows->flows);
    sim_pages_free(flows->heap, flows->capacity * sizeof *flows->heap);
    *flows = (struct sim_flows_in_time){.flows = NULL};
}

/* ---- ends */

static bool is_before(const struct sim_flows_in_time *flows, uint32_t a,
                      uint32_t b)
{
    const struct sim_flow *one = &flows->flows[a], *other = &flows->flows[b];
    KITH_DEBUG_ASSERT(a == b || one->sequence != other->sequence);
    if (one->end_ns != other->end_ns)
        return one->end_ns < other->end_ns;
    return one->sequence < other->sequence;
}

static void put(struct sim_flows_in_time *flows, uint32_t at, uint32_t flow)
{
    KITH_DEBUG_ASSERT(at < flows->count);
    flows->heap[at] = flow;
    flows->flows[flow].place = at + 1;
}

/* From the hole at `at`, up or down, to where the flow belongs. */
static void sift(struct sim_flows_in_time *flows, uint32_t at, uint32_t flow)
{
    const uint32_t *heap = flows->heap;
    KITH_DEBUG_ASSERT(at < flows->count);
    for (; at > 0 && is_before(flows, flow, heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        put(flows, at, heap[(at - 1) / 2]);
    for (uint32_t child; (child = 2 * at + 1) < flows->count; at = child) {
        if (child + 1 < flows->count &&
            is_before(flows, heap[child + 1], heap[child]))
            child++;
        if (!is_before(flows, heap[child], flow))
            break;
        put(flows, at, heap[child]);
    }
    put(flows, at, flow);
}

static void take_out(struct sim_flows_in_time *flows, uint32_t flow)
{
    const uint32_t at = flows->flows[flow].place - 1;
    KITH_ASSERT(at < flows->count && flows->heap[at] == flow);
    flows->flows[flow].place = 0;
    const uint32_t last = flows->heap[--flows->count];
    if (last != flow)
        sift(flows, at, last);
}

/* ---- flows */

static bool reserve(struct sim_flows_in_time *flows, uint32_t flow)
{
    if (flow < flows->capacity)
        return true;
    const size_t old = flows->capacity, capacity = 2 * (size_t)flow + 64;
    KITH_ASSERT(flow < UINT32_MAX / 4);
    struct sim_flow *grown = sim_pages(capacity * sizeof *grown);
    uint32_t *heap = sim_pages(capacity * sizeof *heap);
    if (grown == NULL || heap == NULL) {
        sim_pages_free(grown, capacity * sizeof *grown);
        sim_pages_free(heap, capacity * sizeof *heap);
        return false;
    }
    for (size_t i = 0; i < old; i++)
        grown[i] = flows->flows[i];
    for (size_t i = 0; i < flows->count; i++)
        heap[i] = flows->heap[i];
    sim_pages_free(flows->flows, old * sizeof *grown);
    sim_pages_free(flows->heap, old * sizeof *heap);
    flows->flows = grown;
    flows->heap = heap;
    flows->capacity = (uint32_t)capacity;
    return true;
}

enum kith_err sim_flows_begin(struct sim_flows_in_time *flows, uint32_t flow,
                              const uint32_t *path, unsigned links,
                              uint64_t bytes, kith_ns now_ns)
{
    KITH_ASSERT(bytes > 0 && now_ns >= 0);
    if (!reserve(flows, flow))
        return KITH_ENOMEM;
    const enum kith_err err = sim_rates_add(&flows->rates, flow, path, links);
    if (err != KITH_OK)
        return err;
    KITH_ASSERT(flows->flows[flow].place == 0);
    flows->flows[flow] = (struct sim_flow){.left = (double)bytes,
                                           .at_ns = now_ns,
                                           .end_ns = KITH_NEVER,
                                           .sequence = flows->begun++};
    flows->count++;
    sift(flows, flows->count - 1, flow);
    return KITH_OK;
}

static double left_at(const struct sim_flow *flow, double rate, kith_ns now_ns)
{
    KITH_ASSERT(now_ns >= flow->at_ns);
    const double left = flow->left - rate * (double)(now_ns - flow->at_ns);
    return left > 0 ? left : 0;
}

double sim_flows_end(struct sim_flows_in_time *flows, uint32_t flow,
                     kith_ns now_ns)
{
    KITH_ASSERT(flow < flows->capacity);
    take_out(flows, flow);
    const double rate = flows->rates.flows[flow].rate;
    sim_rates_remove(&flows->rates, flow);
    return left_at(&flows->flows[flow], rate, now_ns);
}

/* A nanosecond from now at the earliest, so that an instant has an end. */
static kith_ns end_of(const struct sim_flow *flow, double rate)
{
    KITH_ASSERT(rate > 0);
    const double wait_ns = ceil(flow->left / rate - 1e-3);
    return kith_ns_add(flow->at_ns, wait_ns > 1 ? kith_ns_from(wait_ns) : 1);
}

enum kith_err sim_flows_share(struct sim_flows_in_time *flows, kith_ns now_ns)
{
    const enum kith_err err = sim_rates_solve(&flows->rates);
    if (err != KITH_OK)
        return err;
    const struct sim_rate_list *affected = &flows->rates.flows_affected;
    for (uint32_t i = 0; i < affected->count; i++) {
        const struct sim_rate_flow *solved =
            &flows->rates.flows[affected->items[i]];
        struct sim_flow *flow = &flows->flows[affected->items[i]];
        if (solved->rate == solved->old_rate)
            continue;
        flow->left = left_at(flow, solved->old_rate, now_ns);
        flow->at_ns = now_ns;
        flow->end_ns = end_of(flow, solved->rate);
        sift(flows, flow->place - 1, affected->items[i]);
    }
    return KITH_OK;
}
