/* A 4-ary min-heap: children of i are 4 i + 1 .. 4 i + 4. Half as deep as a
 * binary one, and four entries of 24 bytes lie in two cache lines. */
#include "kith/heap.h"

#include "kith/assert.h"

enum { ARITY = 4 };

bool kith_heap_before(const struct kith_heap_entry *a,
                      const struct kith_heap_entry *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    if (a->peer != b->peer)
        return a->peer < b->peer;
    return a->sequence < b->sequence;
}

void kith_heap_init(struct kith_heap *heap, struct kith_heap_entry *entries,
                    size_t capacity)
{
    KITH_ASSERT(entries != NULL || capacity == 0);
    *heap = (struct kith_heap){.entries = entries, .capacity = capacity};
}

/* A hole climbs from `at`: one copy per level in place of a swap. */
bool kith_heap_push(struct kith_heap *heap, struct kith_heap_entry entry)
{
    if (heap->count == heap->capacity)
        return false;

    struct kith_heap_entry *const entries = heap->entries;
    size_t at = heap->count++;
    while (at > 0) {
        const size_t parent = (at - 1) / ARITY;
        if (!kith_heap_before(&entry, &entries[parent]))
            break;
        entries[at] = entries[parent];
        at = parent;
    }
    entries[at] = entry;
    return true;
}

static size_t least_child(const struct kith_heap *heap, size_t parent)
{
    const size_t first = ARITY * parent + 1;
    const size_t end =
        first + ARITY < heap->count ? first + ARITY : heap->count;
    size_t least = first;
    for (size_t child = first + 1; child < end; child++)
        if (kith_heap_before(&heap->entries[child], &heap->entries[least]))
            least = child;
    return least;
}

bool kith_heap_pop(struct kith_heap *heap, struct kith_heap_entry *entry)
{
    if (heap->count == 0)
        return false;

    struct kith_heap_entry *const entries = heap->entries;
    *entry = entries[0];
    heap->count--;
    const struct kith_heap_entry last = entries[heap->count];
    size_t at = 0;
    while (ARITY * at + 1 < heap->count) {
        const size_t child = least_child(heap, at);
        if (!kith_heap_before(&entries[child], &last))
            break;
        entries[at] = entries[child];
        at = child;
    }
    entries[at] = last;
    return true;
}
