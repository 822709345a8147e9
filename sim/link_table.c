/* The map of links; see link_table.h. Linear probing at most half full. */
#include "sim/link_table.h"

#include "kith/assert.h"
#include "sim/huge_pages.h"

#define LINKS_MIN 64u

/* Small at first: most runs know few of the pairs that they could have. */
enum kith_err sim_link_table_open(struct sim_link_table *table)
{
    *table = (struct sim_link_table){.capacity = LINKS_MIN,
                                     .mask = 2 * LINKS_MIN - 1};
    table->links = sim_pages(table->capacity * sizeof *table->links);
    table->slots = sim_pages((table->mask + 1) * sizeof *table->slots);
    if (!table->links || !table->slots) {
        sim_link_table_close(table);
        return KITH_ENOMEM;
    }
    return KITH_OK;
}

void sim_link_table_close(struct sim_link_table *table)
{
    sim_pages_free(table->links, table->capacity * sizeof *table->links);
    sim_pages_free(table->slots, (table->mask + 1) * sizeof *table->slots);
    *table = (struct sim_link_table){0};
}

uint64_t sim_link_table_hash(kith_id a, kith_id b)
{
    KITH_ASSERT(a != b);
    /* The finaliser of MurmurHash3: neighbours' ranks differ by little. */
    const uint64_t low = a < b ? a : b, high = a < b ? b : a;
    uint64_t key = low << 32 | high;
    key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return key ^ key >> 33;
}

/* Where a link that is not there yet goes. */
static struct sim_slot *free_slot(struct sim_link_table *table, uint64_t hash)
{
    KITH_ASSERT(table->count <= table->capacity);
    uint64_t slot = hash & table->mask;
    while (table->slots[slot].link != 0)
        slot = (slot + 1) & table->mask;
    return &table->slots[slot];
}

/* Links are told by index, so that records may move; only slots have to be
 * found anew. */
static bool table_grow(struct sim_link_table *table)
{
    KITH_ASSERT(table->count == table->capacity);
    if (table->capacity >= UINT32_MAX / 4)
        return false;
    const uint32_t capacity = 2 * table->capacity;
    const uint64_t slots = 2 * (uint64_t)capacity;
    struct sim_slot *fresh = sim_pages(slots * sizeof *fresh);
    if (!fresh)
        return false;
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
        const uint64_t hash =
            sim_link_table_hash(links[i].end[0], links[i].end[1]);
        *free_slot(table, hash) =
            (struct sim_slot){.link = i + 1, .tag = (uint32_t)(hash >> 32)};
    }
    return true;
}

/* The lower rank first: a pair has one link, whoever asks. */
const struct sim_link *sim_link_table_find(const struct sim_link_table *table,
                                           kith_id a, kith_id b,
                                           uint32_t *index)
{
    KITH_ASSERT(a != b);
    const kith_id low = a < b ? a : b, high = a < b ? b : a;
    const uint64_t hash = sim_link_table_hash(low, high);
    for (uint64_t slot = hash & table->mask; table->slots[slot].link != 0;
         slot = (slot + 1) & table->mask) {
        if (table->slots[slot].tag != (uint32_t)(hash >> 32))
            continue;
        *index = table->slots[slot].link - 1;
        const struct sim_link *link = &table->links[*index];
        if (link->end[0] == low && link->end[1] == high)
            return link;
    }
    return NULL;
}

struct sim_link *sim_link_table_get(struct sim_link_table *table, kith_id a,
                                    kith_id b, uint32_t *index, bool *made)
{
    *made = sim_link_table_find(table, a, b, index) == NULL;
    if (!*made)
        return &table->links[*index];
    const kith_id low = a < b ? a : b, high = a < b ? b : a;
    const uint64_t hash = sim_link_table_hash(low, high);
    const uint32_t tag = (uint32_t)(hash >> 32);
    if (table->count == table->capacity && !table_grow(table))
        return NULL;
    *index = table->count++;
    *free_slot(table, hash) = (struct sim_slot){.link = *index + 1, .tag = tag};
    table->links[*index] = (struct sim_link){.end = {low, high}};
    return &table->links[*index];
}
