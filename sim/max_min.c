/* See max_min.h. What was filled below the lowest rate that has to change is as
 * it was; from there on each link touched is looked at when filling comes to
 * the rate at which its open flows would be stopped, or at which it stopped
 * flows before. */
#include "sim/max_min.h"

#include <math.h>

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

/* ---- links by the rate at which something happens to them */

static double share_of(const struct sim_rate_link *link)
{
    KITH_DEBUG_ASSERT(link->open > 0);
    return link->rest > 0 ? link->rest / link->open : 0;
}

/* INFINITY: nothing does. */
static double key_of(const struct sim_rate_link *link)
{
    const double share = link->open > 0 ? share_of(link) : INFINITY;
    KITH_DEBUG_ASSERT(link->level >= 0);
    return link->level > 0 && link->level < share ? link->level : share;
}

static bool is_before(const struct sim_rates *rates, uint32_t a, uint32_t b)
{
    const double one = rates->links[a].key, other = rates->links[b].key;
    KITH_DEBUG_ASSERT(one >= 0 && other >= 0);
    return one != other ? one < other : a < b;
}

static void put(struct sim_rates *rates, uint32_t at, uint32_t link)
{
    KITH_DEBUG_ASSERT(at < rates->heap_count);
    rates->heap[at] = link;
    rates->links[link].place = at + 1;
}

/* From the hole at `at`, up or down, to where the link belongs. */
static void sift(struct sim_rates *rates, uint32_t at, uint32_t link)
{
    const uint32_t *heap = rates->heap;
    KITH_DEBUG_ASSERT(at < rates->heap_count);
    for (; at > 0 && is_before(rates, link, heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        put(rates, at, heap[(at - 1) / 2]);
    for (uint32_t child; (child = 2 * at + 1) < rates->heap_count; at = child) {
        if (child + 1 < rates->heap_count &&
            is_before(rates, heap[child + 1], heap[child]))
            child++;
        if (!is_before(rates, heap[child], link))
            break;
        put(rates, at, heap[child]);
    }
    put(rates, at, link);
}

/* To where its key belongs, into the heap or out of it. */
static void rank(struct sim_rates *rates, uint32_t index)
{
    struct sim_rate_link *link = &rates->links[index];
    link->key = key_of(link);
    if (!isinf(link->key)) {
        if (link->place == 0)
            rates->heap_count++;
        sift(rates, link->place == 0 ? rates->heap_count - 1 : link->place - 1,
             index);
    } else if (link->place > 0) {
        const uint32_t at = link->place - 1;
        const uint32_t last = rates->heap[--rates->heap_count];
        KITH_DEBUG_ASSERT(rates->heap[at] == index);
        link->place = 0;
        if (last != index)
            sift(rates, at, last);
    }
}

/* ---- filling */

/* What the flows with a rate leave of it, and the rate of those that have their
 * bottleneck here. */
static void touch(struct sim_rates *rates, uint32_t index)
{
    struct sim_rate_link *link = &rates->links[index];
    KITH_DEBUG_ASSERT(link->touched != rates->solution);
    link->touched = rates->solution;
    link->rest = link->capacity;
    link->level = 0;
    link->open = 0;
    for (uint32_t place = link->first; place != 0;
         place = *neighbour(rates, place, true)) {
        const struct sim_rate_flow *flow =
            &rates->flows[(place - 1) / SIM_PATH_LINKS];
        if (flow->rate < 0) {
            link->open++;
            continue;
        }
        link->rest -= flow->rate;
        if (flow->bottleneck == index && flow->affected != rates->solution &&
            flow->rate > link->level)
            link->level = flow->rate;
    }
    rank(rates, index);
}

/* The flow's rate will be another one, if not lower than what is being filled.
 * False: no memory. */
static bool open_flow(struct sim_rates *rates, uint32_t index)
{
    struct sim_rate_flow *flow = &rates->flows[index];
    KITH_DEBUG_ASSERT(flow->affected != rates->solution);
    flow->affected = rates->solution;
    flow->old_rate = flow->rate;
    flow->rate = -1;
    for (unsigned k = 0; k < flow->links; k++) {
        struct sim_rate_link *link = &rates->links[flow->link[k]];
        if (link->touched != rates->solution) {
            touch(rates, flow->link[k]);
            continue;
        }
        link->rest += flow->old_rate;
        link->open++;
        rank(rates, flow->link[k]);
    }
    return list_add(&rates->flows_affected, index);
}

/* The flows on this link that have kept their rates so far and are faster than
 * `rate`, or have their bottleneck here where it is negative. */
static bool open_on(struct sim_rates *rates, uint32_t index, double rate,
                    uint32_t *opened)
{
    *opened = 0;
    for (uint32_t place = rates->links[index].first; place != 0;
         place = *neighbour(rates, place, true)) {
        const uint32_t at = (place - 1) / SIM_PATH_LINKS;
        const struct sim_rate_flow *flow = &rates->flows[at];
        if (flow->affected == rates->solution ||
            !(rate >= 0 ? flow->rate > rate : flow->bottleneck == index))
            continue;
        ++*opened;
        if (!open_flow(rates, at))
            return false;
    }
    return true;
}

/* The link is full: its open flows stop at this rate. Others' shares can only
 * grow by that: their keys are put right when they are looked at. */
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
            rates->links[flow->link[k]].rest -= rate;
            rates->links[flow->link[k]].open--;
        }
    }
}

/* The next link, at its rate: either it was full there before, and is so still
 * or its flows go on; or its open flows get no more, unless faster ones give.
 */
static bool fill_link(struct sim_rates *rates, uint32_t index)
{
    struct sim_rate_link *link = &rates->links[index];
    const double rate = link->key;
    uint32_t opened = 0;
    if (rate < key_of(link)) {
        rank(rates, index);
        return true;
    }
    if (link->level > 0 && rate == link->level) {
        link->level = 0;
        if (link->rest - link->open * rate >
                SIM_RATE_TOLERANCE * link->capacity &&
            !open_on(rates, index, -1, &opened))
            return false;
    } else {
        if (!open_on(rates, index, rate * (1 + SIM_RATE_TOLERANCE), &opened))
            return false;
        if (opened == 0)
            stop_at(rates, index, rate);
    }
    rank(rates, index);
    return true;
}

/* Flows that came have no rate. */
static bool open_new(struct sim_rates *rates, uint32_t link)
{
    KITH_DEBUG_ASSERT(rates->links[link].touched == rates->solution);
    for (uint32_t place = rates->links[link].first; place != 0;
         place = *neighbour(rates, place, true)) {
        const uint32_t flow = (place - 1) / SIM_PATH_LINKS;
        if (rates->flows[flow].rate == 0 && !open_flow(rates, flow))
            return false;
    }
    return true;
}

enum kith_err sim_rates_solve(struct sim_rates *rates)
{
    bool done = !rates->out_of_memory;
    rates->flows_affected.count = rates->heap_count = 0;
    rates->solution++;
    KITH_ASSERT(rates->solution != 0);
    for (uint32_t i = 0; i < rates->seeds.count; i++) {
        const uint32_t link = rates->seeds.items[i];
        rates->links[link].changed = false;
        if (rates->links[link].touched != rates->solution)
            touch(rates, link);
        done = done && open_new(rates, link);
    }
    rates->seeds.count = 0;
    while (done && rates->heap_count > 0)
        done = fill_link(rates, rates->heap[0]);
    return done ? KITH_OK : KITH_ENOMEM;
}
