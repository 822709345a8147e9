/* The k largest values, as a heap whose root is the least of them.
 * See kith/top_list.h. */
#include <math.h>

#include "kith/assert.h"
#include "kith/top_list.h"

struct kith_top_list kith_top_list_of(struct kith_top_entry *entries,
                                      uint32_t room)
{
    return (struct kith_top_list){.entries = entries, .room = room};
}

/* A total order of entries with different indices. */
static bool is_less(const struct kith_top_entry *a,
                    const struct kith_top_entry *b)
{
    const double x = fabs(a->value), y = fabs(b->value);
    return x < y || (!(y < x) && a->index > b->index);
}

static bool is_behind(const struct kith_top_entry *a,
                      const struct kith_top_entry *b)
{
    return a->index > b->index;
}

typedef bool order(const struct kith_top_entry *,
                   const struct kith_top_entry *);

/* heap[at] may come after its children; no child comes before its parent then.
 */
static void sink(struct kith_top_entry *heap, uint32_t count, size_t at,
                 order *before)
{
    const struct kith_top_entry moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void rise(struct kith_top_entry *heap, size_t at)
{
    const struct kith_top_entry moved = heap[at];
    for (; at > 0 && is_less(&moved, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

void kith_top_list_offer(struct kith_top_list *list, uint32_t index,
                         double value)
{
    const struct kith_top_entry entry = {value, index};
    if (list->count < list->room) {
        list->entries[list->count] = entry;
        rise(list->entries, list->count++);
        return;
    }
    if (list->room == 0 || !is_less(&list->entries[0], &entry))
        return;
    list->entries[0] = entry;
    sink(list->entries, list->count, 0, is_less);
}

const struct kith_top_entry *
kith_top_list_least(const struct kith_top_list *list)
{
    KITH_ASSERT(list->count > 0);
    return &list->entries[0];
}

void kith_top_list_shorten(struct kith_top_list *list)
{
    KITH_ASSERT(list->count > 0);
    list->entries[0] = list->entries[--list->count];
    if (list->count > 0)
        sink(list->entries, list->count, 0, is_less);
}

/* Heapsort: no recursion, whatever a peer's values are. */
void kith_top_list_finish(struct kith_top_list *list)
{
    struct kith_top_entry *const heap = list->entries;
    for (size_t at = list->count / 2; at-- > 0;)
        sink(heap, list->count, at, is_behind);
    for (uint32_t left = list->count; left-- > 1;) {
        const struct kith_top_entry last = heap[0];
        heap[0] = heap[left];
        heap[left] = last;
        sink(heap, left, 0, is_behind);
    }
}

bool kith_top_list_sane(const struct kith_top_list *list, uint64_t dim,
                        double bound)
{
    uint64_t next = 0; /* the least index that may follow */
    if (list->count > list->room)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct kith_top_entry *entry = &list->entries[i];
        const double size = fabs(entry->value);
        if (entry->index < next || entry->index >= dim || !(size <= bound) ||
            size - size != 0)
            return false;
        next = (uint64_t)entry->index + 1;
    }
    return true;
}

/* Two lists beside each other, in order of the index. */
struct pair {
    const struct kith_top_list *ours, *theirs;
    uint32_t our_next, their_next;
};

/* The next index of either: NULL where one has none there. */
static bool step(struct pair *pair, const struct kith_top_entry **our,
                 const struct kith_top_entry **their)
{
    *our = *their = NULL;
    if (pair->our_next < pair->ours->count)
        *our = &pair->ours->entries[pair->our_next];
    if (pair->their_next < pair->theirs->count)
        *their = &pair->theirs->entries[pair->their_next];
    if (*our != NULL && *their != NULL && (*our)->index != (*their)->index) {
        if ((*our)->index < (*their)->index)
            *their = NULL;
        else
            *our = NULL;
    }
    pair->our_next += *our != NULL;
    pair->their_next += *their != NULL;
    return *our != NULL || *their != NULL;
}

static void give_back(struct kith_top_list *back,
                      const struct kith_top_entry *entry)
{
    if (entry == NULL)
        return;
    KITH_ASSERT(back->count < back->room);
    back->entries[back->count++] = *entry;
}

void kith_top_list_merge(const struct kith_top_list *ours,
                         const struct kith_top_list *theirs,
                         struct kith_top_list *merged,
                         struct kith_top_list *back_ours,
                         struct kith_top_list *back_theirs)
{
    const struct kith_top_entry *our, *their;
    struct pair pair = {.ours = ours, .theirs = theirs};
    KITH_ASSERT(back_ours->room >= ours->count);
    KITH_ASSERT(back_theirs->room >= theirs->count);
    merged->count = back_ours->count = back_theirs->count = 0;
    while (step(&pair, &our, &their))
        kith_top_list_offer(merged, our != NULL ? our->index : their->index,
                            (our != NULL ? our->value : 0) +
                                (their != NULL ? their->value : 0));
    kith_top_list_finish(merged);
    pair = (struct pair){.ours = ours, .theirs = theirs};
    for (uint32_t kept = 0; step(&pair, &our, &their);) {
        const uint32_t index = our != NULL ? our->index : their->index;
        if (kept < merged->count && merged->entries[kept].index == index) {
            kept++;
            continue;
        }
        give_back(back_ours, our);
        give_back(back_theirs, their);
    }
}
