/* Offsets: the largest piece first, each at the lowest place that is free for
 * the whole of its life. First fit over intervals in that order stays within a
 * few per cent of the floor for chains of layers (Pisarchyk and Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020). */
#include <stdlib.h>

#include "kith/assert.h"
#include "graph_state.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static int by_bytes(const void *a, const void *b)
{
    const struct kith_piece *one = *(struct kith_piece *const *)a;
    const struct kith_piece *two = *(struct kith_piece *const *)b;
    if (one->bytes != two->bytes)
        return one->bytes > two->bytes ? -1 : 1;
    if (one->first != two->first)
        return one->first < two->first ? -1 : 1;
    /* The same array: a total order, whatever qsort does. */
    return one < two ? -1 : one > two;
}

static bool meet(const struct kith_piece *a, const struct kith_piece *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* placed (count) is sorted by offset; the piece takes its place among them. */
static void place_one(const struct kith_piece **placed, uint32_t count,
                      struct kith_piece *piece)
{
    size_t at = 0;
    uint32_t i = 0;
    for (; i < count; i++) {
        const struct kith_piece *other = placed[i];
        if (!meet(piece, other))
            continue;
        if (other->offset >= at + aligned(piece->bytes))
            break;
        const size_t end = other->offset + aligned(other->bytes);
        at = end > at ? end : at;
    }
    piece->offset = at;
    uint32_t k = count;
    for (; k > 0 && placed[k - 1]->offset > at; k--)
        placed[k] = placed[k - 1];
    placed[k] = piece;
}

/* The most bytes alive at one step. */
static enum kith_err find_floor(struct kith_plan *plan)
{
    size_t *alive = calloc((size_t)plan->step_count + 1, sizeof *alive);
    if (alive == NULL)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < plan->piece_count; i++)
        for (uint32_t s = plan->pieces[i].first; s <= plan->pieces[i].last; s++)
            alive[s] += aligned(plan->pieces[i].bytes);
    plan->floor = 0;
    for (uint32_t s = 0; s < plan->step_count; s++)
        plan->floor = alive[s] > plan->floor ? alive[s] : plan->floor;
    free(alive);
    return KITH_OK;
}

enum kith_err kith_arena_place(struct kith_plan *plan)
{
    const uint32_t count = plan->piece_count;
    plan->bytes = 0;
    struct kith_piece **order = malloc((count + 1) * sizeof *order);
    const struct kith_piece **placed = malloc((count + 1) * sizeof *placed);
    const bool complete = order != NULL && placed != NULL;
    for (uint32_t i = 0; complete && i < count; i++)
        order[i] = &plan->pieces[i];
    if (complete) {
        qsort(order, count, sizeof *order, by_bytes);
        for (uint32_t i = 0; i < count; i++) {
            KITH_ASSERT(order[i]->first <= order[i]->last);
            place_one(placed, i, order[i]);
            const size_t end = order[i]->offset + aligned(order[i]->bytes);
            plan->bytes = end > plan->bytes ? end : plan->bytes;
        }
    }
    free(order);
    free(placed);
    return complete ? find_floor(plan) : KITH_ENOMEM;
}
