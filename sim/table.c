/* The map of links; see table.h. Linear probing at most half full. */
#include "sim/table.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "sim/memory.h"

#define LINKS_MIN 64u

enum kith_err sim_table_open(struct sim_table *table)
{
    *table =
        (struct sim_table){.capacity = LINKS_MIN, .mask = 2 * LINKS_MIN - 1};
    table->links = sim_pages(table->capacity * sizeof *table->links);
    table->slots = sim_pages((table->mask + 1) * sizeof *table->slots);
    if (!table->links || !table->slots) {
        sim_table_close(table);
        return KITH_ENOMEM;
    }
    return KITH_OK;
}

void sim_table_close(struct sim_table *table)
{
    sim_pages_free(table->links, table->capacity * sizeof *table->links);
    sim_pages_free(table->slots, (table->mask + 1) * sizeof *table->slots);
    *table = (struct sim_table){0};
}

static uint64_t slot_of(const struct sim_table *table, kith_id low,
                        kith_id high)
{
    /* The finaliser of MurmurHash3: neighbours' ranks differ by little. */
    uint64_t key = (uint64_t)low << 32 | high;
    key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    key ^= key >> 33;
    return key & table->mask;
}

static bool table_grow(struct sim_table *table)
{
    if (table->capacity >= UINT32_MAX / 4) {
        return false;
    }
    const uint32_t capacity = 2 * table->capacity;
    const uint64_t slots = 2 * (uint64_t)capacity;
    uint32_t *fresh = sim_pages(slots * sizeof *fresh);
    if (!fresh) {
        return false;
    }
    struct sim_link *links =
        sim_pages_grow(table->links, table->capacity * sizeof *table->links,
                       capacity * sizeof *table->links);
    if (!links) {
        sim_pages_free(fresh, slots * sizeof *fresh);
        return false;
    }
    sim_pages_free(table->slots, (table->mask + 1) * sizeof *table->slots);
    table->links = links;
    table->capacity = capacity;
    table->slots = fresh;
    table->mask = slots - 1;
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t slot = slot_of(table, links[i].end[0], links[i].end[1]);
        while (fresh[slot] != 0) {
            slot = (slot + 1) & table->mask;
        }
        fresh[slot] = i + 1;
    }
    return true;
}

uint64_t sim_table_slot(const struct sim_table *table, kith_id a, kith_id b)
{
    return a < b ? slot_of(table, a, b) : slot_of(table, b, a);
}

struct sim_link *sim_table_get(struct sim_table *table, kith_id a, kith_id b,
                               uint32_t *index, bool *made)
{
    KITH_ASSERT(a != b);
    const kith_id low = a < b ? a : b, high = a < b ? b : a;
    *made = false;
    uint64_t slot = slot_of(table, low, high);
    while (table->slots[slot] != 0) {
        struct sim_link *link = &table->links[table->slots[slot] - 1];
        if (link->end[0] == low && link->end[1] == high) {
            *index = table->slots[slot] - 1;
            return link;
        }
        slot = (slot + 1) & table->mask;
    }
    if (table->count == table->capacity) {
        if (!table_grow(table)) {
            return NULL;
        }
        slot = slot_of(table, low, high);
        while (table->slots[slot] != 0) {
            slot = (slot + 1) & table->mask;
        }
    }
    *index = table->count++;
    table->slots[slot] = *index + 1;
    table->links[*index] = (struct sim_link){.end = {low, high}};
    *made = true;
    return &table->links[*index];
}
