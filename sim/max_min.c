/* See max_min.h. Filling takes the links by the share that their flows without
 * a rate would get: whoever stops at one link leaves the others at least as
 * large a share as before, so a heap whose keys are too small is put right
 * where it is looked at. */
#include "sim/max_min.h"

#include <string.h>

#include "kith/assert.h"
#include "sim/huge_pages.h"

/* ---- memory */

/* Zeroed behind the old content; false: there is none. */
static bool grow(void **items, uint32_t old, uint32_t count, size_t size)
{
    KITH_ASSERT(count > old);
    void *grown = old == 0 ? sim_pages(count * size)
                           : sim_pages_grow(*items, old * size, count * size);
    if (grown == NULL)
        return false;
    *items = grown;
    return true;
}

static bool list_add(struct sim_rate_list *list, uint32_t item)
{
    if (list->count == list->capacity) {
        const uint32_t capacity = 2 * list->capacity + 64;
        void *items = list->items;
        if (capacity > UINT32_MAX / 4 ||
            !grow(&items, list->capacity, capacity, sizeof *list->items))
            return false;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

static void list_close(struct sim_rate_list *list)
{
    sim_pages_free(list->items, list->capacity * sizeof *list->items);
    *list = (struct sim_rate_list){.items = NULL};
}

enum kith_err sim_rates_open(struct sim_rates *rates, uint32_t link_count)
{
    KITH_ASSERT(link_count > 0);
    *rates = (struct sim_rates){.link_count = link_count};
    rates->links = sim_pages(link_count * sizeof *rates->links);
    rates->heap = sim_pages(link_count * sizeof *rates->heap);
    return rates->links && rates->heap ? KITH_OK : KITH_ENOMEM;
}

void sim_rates_close(struct sim_rates *rates)
{
    sim_pages_free(rates->links, rates->link_count * sizeof *rates->links);
    sim_pages_free(rates->heap, rates->link_count * sizeof *rates->heap);
    sim_pages_free(rates->flows, rates->flow_capacity * sizeof *rates->flows);
    list_close(&rates->seeds);
    list_close(&rates->links_affected);
    list_close(&rates->flows_affected);
    *rates = (struct sim_rates){.links = NULL};
}

/* ---- flows on links: a flow's place on a link is SIM_PATH_LINKS flow + k */

static bool change(struct sim_rates *rates, uint32_t link)
{
    if (rates->links[link].changed)
        return true;
    rates->links[link].changed = list_add(&rates->seeds, link);
    return rates->links[link].changed;
}

void sim_rates_capacity(struct sim_rates *rates, uint32_t link, double capacity)
{
    KITH_ASSERT(link < rates->link_count && capacity > 0);
    KITH_ASSERT(rates->links[link].first == 0);
    rates->links[link].capacity = capacity;
}

/* Where the k-th link of a flow's path names its neighbours in the chain. */
static uint32_t *neighbour(struct sim_rates *rates, uint32_t place, bool next)
{
    KITH_DEBUG_ASSERT(place > 0);
    struct sim_rate_flow *flow = &rates->flows[(place - 1) / SIM_PATH_LINKS];
    const uint32_t k = (place - 1) % SIM_PATH_LINKS;
    return next ? &flow->next[k] : &flow->previous[k];
}

enum kith_err sim_rates_add(struct sim_rates *rates, uint32_t flow,
                            const uint32_t *path, unsigned links)
{
    KITH_ASSERT(links > 0 && links <= SIM_PATH_LINKS);
    if (flow >= rates->flow_capacity) {
        const uint32_t capacity = 2 * flow + 64;
        void *flows = rates->flows;
        if (flow > UINT32_MAX / (4 * SIM_PATH_LINKS) ||
            !grow(&flows, rates->flow_capacity, capacity, sizeof *rates->flows))
            return KITH_ENOMEM;
        rates->flows = flows;
        rates->flow_capacity = capacity;
    }
    struct sim_rate_flow *added = &rates->flows[flow];
    KITH_ASSERT(added->links == 0);
    for (unsigned k = 0; k < links; k++)
        if (!change(rates, path[k]))
            return KITH_ENOMEM;
    *added =
        (struct sim_rate_flow){.links = (uint8_t)links, .bottleneck = path[0]};
    for (unsigned k = 0; k < links; k++) {
        struct sim_rate_link *link = &rates->links[path[k]];
        const uint32_t place = 1 + SIM_PATH_LINKS * flow + k;
        KITH_ASSERT(path[k] < rates->link_count && link->capacity > 0);
        added->link[k] = path[k];
        added->next[k] = link->first;
        if (link->first != 0)
            *neighbour(rates, link->first, false) = place;
        link->first = place;
    }
    return KITH_OK;
}

/* A link that cannot be listed is found by whoever solves: it cannot either. */
void sim_rates_remove(struct sim_rates *rates, uint32_t flow)
{
    KITH_ASSERT(flow < rates->flow_capacity);
    struct sim_rate_flow *removed = &rates->flows[flow];
    KITH_ASSERT(removed->links > 0);
    for (unsigned k = 0; k < removed->links; k++) {
        const uint32_t next = removed->next[k], before = removed->previous[k];
        if (next != 0)
            *neighbour(rates, next, false) = before;
        if (before != 0)
            *neighbour(rates, before, true) = next;
        else
            rates->links[removed->link[k]].first = next;
        rates->out_of_memory |= !change(rates, removed->link[k]);
    }
    removed->links = 0;
}

/* ---- who is affected */

/* Its rate is found anew, and its links with it. */
static bool affect(struct sim_rates *rates, uint32_t flow)
{
    struct sim_rate_flow *affected = &rates->flows[flow];
    KITH_DEBUG_ASSERT(affected->links > 0);
    if (affected->affected == rates->solution)
        return true;
    affected->affected = rates->solution;
    affected->old_rate = affected->rate;
    bool done = list_add(&rates->flows_affected, flow);
    for (unsigned k = 0; k < affected->links; k++) {
        struct sim_rate_link *link = &rates->links[affected->link[k]];
        if (link->affected != rates->solution)
            done = done && list_add(&rates->links_affected, affected->link[k]);
        link->affected = rates->solution;
    }
    return done;
}

/* Does this flow, whose rate stands, still have its bottleneck, and does it
 * leave the others theirs? The link is full, its flows that were affected have
 * at most `fastest`, those that stopped there have that. */
static bool stands(const struct sim_rate_link *link, uint32_t index,
                   const struct sim_rate_flow *flow)
{
    const double more = 1 + SIM_RATE_TOLERANCE;
    const bool is_full = link->rest <= SIM_RATE_TOLERANCE * link->capacity;
    KITH_DEBUG_ASSERT(flow->rate > 0);
    if (link->stops && flow->rate > link->fastest * more)
        return false;
    return flow->bottleneck != index ||
           (is_full && flow->rate * more >= link->fastest);
}

/* False: no memory. */
static bool affect_on(struct sim_rates *rates, uint32_t link, bool all)
{
    uint32_t place = rates->links[link].first;
    KITH_DEBUG_ASSERT(link < rates->link_count);
    while (place != 0) {
        const uint32_t flow = (place - 1) / SIM_PATH_LINKS;
        const struct sim_rate_flow *on = &rates->flows[flow];
        if (on->affected != rates->solution &&
            (all || !stands(&rates->links[link], link, on)) &&
            !affect(rates, flow))
            return false;
        place = *neighbour(rates, place, true);
    }
    return true;
}

/* ---- filling */

static bool is_before(const struct sim_rate_key *a,
                      const struct sim_rate_key *b)
{
    KITH_DEBUG_ASSERT(a->share >= 0 && b->share >= 0);
    return a->share != b->share ? a->share < b->share : a->link < b->link;
}

static void sift_down(struct sim_rates *rates, uint32_t at)
{
    struct sim_rate_key *heap = rates->heap;
    const struct sim_rate_key key = heap[at];
    KITH_DEBUG_ASSERT(at < rates->heap_count);
    for (uint32_t child; (child = 2 * at + 1) < rates->heap_count; at = child) {
        if (child + 1 < rates->heap_count &&
            is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &key))
            break;
        heap[at] = heap[child];
    }
    heap[at] = key;
}

static double share_of(const struct sim_rate_link *link)
{
    KITH_DEBUG_ASSERT(link->open > 0);
    return link->rest > 0 ? link->rest / link->open : 0;
}

/* What the flows that are not affected leave of each link. */
static void begin_filling(struct sim_rates *rates)
{
    rates->heap_count = 0;
    for (uint32_t i = 0; i < rates->links_affected.count; i++) {
        const uint32_t index = rates->links_affected.items[i];
        struct sim_rate_link *link = &rates->links[index];
        double used = 0;
        link->open = 0;
        link->fastest = 0;
        link->stops = false;
        for (uint32_t place = link->first; place != 0;
             place = *neighbour(rates, place, true)) {
            const struct sim_rate_flow *flow =
                &rates->flows[(place - 1) / SIM_PATH_LINKS];
            if (flow->affected == rates->solution)
                link->open++;
            else
                used += flow->rate;
        }
        KITH_DEBUG_ASSERT(link->open > 0);
        link->rest = link->capacity - used;
        rates->heap[rates->heap_count++] =
            (struct sim_rate_key){share_of(link), index};
    }
    for (uint32_t at = rates->heap_count / 2; at-- > 0;)
        sift_down(rates, at);
    for (uint32_t i = 0; i < rates->flows_affected.count; i++)
        rates->flows[rates->flows_affected.items[i]].rate = -1; /* open */
}

/* The link is full: its flows that are open stop at this rate. */
static void stop_at(struct sim_rates *rates, uint32_t index, double rate)
{
    KITH_DEBUG_ASSERT(rate >= 0);
    for (uint32_t place = rates->links[index].first; place != 0;
         place = *neighbour(rates, place, true)) {
        struct sim_rate_flow *flow =
            &rates->flows[(place - 1) / SIM_PATH_LINKS];
        if (flow->rate >= 0)
            continue;
        flow->rate = rate;
        flow->bottleneck = index;
        for (unsigned k = 0; k < flow->links; k++) {
            struct sim_rate_link *link = &rates->links[flow->link[k]];
            link->rest -= rate;
            link->fastest = rate;
            link->open--;
        }
    }
    rates->links[index].stops = true;
}

static void fill(struct sim_rates *rates)
{
    begin_filling(rates);
    while (rates->heap_count > 0) {
        struct sim_rate_key *top = &rates->heap[0];
        const struct sim_rate_link *link = &rates->links[top->link];
        const double share = link->open > 0 ? share_of(link) : top->share;
        if (link->open > 0 && share > top->share) {
            top->share = share;
            sift_down(rates, 0);
            continue;
        }
        if (link->open > 0)
            stop_at(rates, top->link, top->share);
        *top = rates->heap[--rates->heap_count];
        if (rates->heap_count > 0)
            sift_down(rates, 0);
    }
}

enum kith_err sim_rates_solve(struct sim_rates *rates)
{
    bool done = !rates->out_of_memory;
    rates->flows_affected.count = rates->links_affected.count = 0;
    rates->solution++;
    KITH_ASSERT(rates->solution != 0);
    for (uint32_t i = 0; i < rates->seeds.count; i++) {
        rates->links[rates->seeds.items[i]].changed = false;
        done = done && affect_on(rates, rates->seeds.items[i], true);
    }
    rates->seeds.count = 0;
    for (uint32_t before = 0; done && rates->flows_affected.count > before;) {
        before = rates->flows_affected.count;
        fill(rates);
        const uint32_t links = rates->links_affected.count;
        for (uint32_t i = 0; done && i < links; i++)
            done = affect_on(rates, rates->links_affected.items[i], false);
    }
    return done ? KITH_OK : KITH_ENOMEM;
}
