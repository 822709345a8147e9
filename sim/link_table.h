/* Links, made when two peers first have to do with each other: a pool of
 * 64-byte records and an open-addressing map from the unordered pair, so that
 * peers who never speak cost nothing.
 * Test: unit/test_sim_network.c. */
#ifndef KITH_SIM_LINK_TABLE_H
#define KITH_SIM_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/assert.h"
#include "kith/err.h"
#include "kith/types.h"
#include "sim/huge_pages.h"

/* What one end believes. Nothing tells an end that the other died until a
 * RESET arrives: until then what it sends is lost. */
enum sim_side {
    SIM_SIDE_IDLE,     /* no connection */
    SIM_SIDE_DIALLING, /* it dials; what it sends waits */
    SIM_SIDE_KNOWN,    /* the other end dials; what it sends waits */
    SIM_SIDE_UP,
    SIM_SIDE_DEAD, /* up as it believes, but the other end is gone */
};

struct sim_link {
    kith_id end[2];      /* ascending */
    kith_ns last_ns[2];  /* latest arrival: end[s] -> the other one */
    uint32_t sent[2];    /* messages of end[s]: which draw is next */
    uint32_t pair;       /* 1 + index in sim_directions; 0: as usual */
    uint32_t waiting[2]; /* packets of end[s] until it is up: 1 + index */
    uint32_t next[2];    /* chain of end[s]'s links: 1 + index */
    uint32_t generation;
    uint8_t side[2]; /* enum sim_side of end[s] */
    uint8_t dialler; /* which end's dial is under way or won */
};
_Static_assert(sizeof(struct sim_link) == 64, "a cache line");

/* Ends stand in ascending order, so a peer's side is one comparison. */
SIM_INLINE unsigned sim_side_of(const struct sim_link *link, kith_id peer)
{
    KITH_DEBUG_ASSERT(link->end[0] == peer || link->end[1] == peer);
    return link->end[1] == peer;
}

/* Links are told apart by 32 more bits of the hash, so that a search does not
 * touch the links of others: each would be a cache miss. */
struct sim_slot {
    uint32_t link; /* 1 + index, 0: free */
    uint32_t tag;
};

struct sim_link_table {
    struct sim_link *links; /* (capacity) */
    uint32_t count, capacity;
    struct sim_slot *slots; /* (mask + 1) */
    uint64_t mask;
};

KITH_MUST_CHECK enum kith_err sim_link_table_open(struct sim_link_table *table);
void sim_link_table_close(struct sim_link_table *table);
/* The link of this pair, NULL: they have not met. */
const struct sim_link *sim_link_table_find(const struct sim_link_table *table,
                                           kith_id a, kith_id b,
                                           uint32_t *index);
/* The link of this pair, made if need be: *made says so. NULL: no memory. */
struct sim_link *sim_link_table_get(struct sim_link_table *table, kith_id a,
                                    kith_id b, uint32_t *index, bool *made);

/* To fetch in advance: the hash of a pair, where its search starts, and where
 * that will most likely end. */
uint64_t sim_link_table_hash(kith_id a, kith_id b);
SIM_INLINE void sim_link_table_fetch_slot(const struct sim_link_table *table,
                                          uint64_t hash)
{
    sim_fetch(&table->slots[hash & table->mask]);
}
SIM_INLINE void sim_link_table_fetch_link(const struct sim_link_table *table,
                                          uint64_t hash)
{
    uint64_t slot = hash & table->mask;
    while (table->slots[slot].link != 0 &&
           table->slots[slot].tag != (uint32_t)(hash >> 32))
        slot = (slot + 1) & table->mask;
    if (table->slots[slot].link != 0)
        sim_fetch(&table->links[table->slots[slot].link - 1]);
}

#endif
