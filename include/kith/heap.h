/* A 4-ary min-heap of events ordered by (time, peer, sequence): a total order,
 * so ties never depend on insertion luck. Storage is the caller's. */
#ifndef KITH_HEAP_H
#define KITH_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/types.h"

struct kith_heap_entry {
    kith_ns time_ns;
    kith_id peer;
    uint32_t value;    /* the caller's: an index, a kind */
    uint64_t sequence; /* that peer's own counter */
};

struct kith_heap {
    struct kith_heap_entry *entries; /* (capacity) */
    size_t count, capacity;
};

void kith_heap_init(struct kith_heap *heap, struct kith_heap_entry *entries,
                    size_t capacity);
/* False when full. O(log n). */
bool kith_heap_push(struct kith_heap *heap, struct kith_heap_entry entry);
/* False when empty. O(log n). */
bool kith_heap_pop(struct kith_heap *heap, struct kith_heap_entry *entry);
bool kith_heap_before(const struct kith_heap_entry *a,
                      const struct kith_heap_entry *b);

#endif
