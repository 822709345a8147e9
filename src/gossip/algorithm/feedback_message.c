/* Messages of sums with error feedback, and the way down: see feedback.h. */
#include <math.h>
#include <string.h>

#include "feedback.h"
#include "kith/assert.h"

/* Where things stand in a message, in bytes. */
struct layout {
    size_t kept; /* k */
    size_t values, places, bits, phi, bytes;
};

static struct layout layout_of(const struct kith_algebra *algebra)
{
    const size_t element = algebra->backend->element_bytes;
    struct layout layout = {.kept = kith_feedback_kept(algebra, 1),
                            .values = sizeof(uint32_t)};
    layout.places = layout.values + layout.kept * element;
    layout.bits = layout.places + layout.kept * sizeof(uint32_t);
    layout.phi = layout.bits + (layout.kept + 7) / 8;
    layout.bytes = layout.phi + layout.kept * element;
    return layout;
}

size_t kith_feedback_bytes(const struct kith_algebra *algebra)
{
    return layout_of(algebra).bytes;
}

bool kith_feedback_sends(const struct kith_algebra *algebra)
{
    kith_id to[KITH_DEGREE_MAX];
    return kith_topology_neighbours(algebra->graph, algebra->self,
                                    algebra->round, to, NULL) > 0;
}

void kith_feedback_write_list(struct kith_algebra *algebra,
                              const struct kith_top_list *list)
{
    const struct layout layout = layout_of(algebra);
    char *const message = algebra->sent;
    KITH_ASSERT(list->count <= layout.kept);
    memcpy(message, &list->count, sizeof list->count);
    for (uint32_t n = 0; n < list->count; n++) {
        kith_feedback_put(algebra, message + layout.values, n,
                          list->entries[n].value);
        memcpy(message + layout.places + n * sizeof(uint32_t),
               &list->entries[n].index, sizeof(uint32_t));
    }
}

bool kith_feedback_read_list(const struct kith_algebra *algebra,
                             struct kith_top_list *list)
{
    const struct layout layout = layout_of(algebra);
    const char *const message = algebra->received;
    uint32_t count;
    memcpy(&count, message, sizeof count);
    if (count > list->room)
        return false;
    for (; list->count < count; list->count++) {
        struct kith_top_entry *const entry = &list->entries[list->count];
        entry->value =
            kith_feedback_get(algebra, message + layout.values, list->count);
        memcpy(&entry->index,
               message + layout.places + list->count * sizeof(uint32_t),
               sizeof(uint32_t));
    }
    return kith_top_list_sane(list, algebra->dim, FEEDBACK_VALUE_MAX);
}

/* Is what the child of round up `phase` sent in entries that came into L by
 * `born`? */
static bool holds_child(const struct kith_algebra *algebra, uint64_t phase,
                        double born)
{
    const uint64_t merged = (uint64_t)*kith_feedback_merged(algebra);
    return (merged >> phase & UINT64_C(1)) != 0 &&
           born <= (double)(FEEDBACK_CHILD + phase);
}

/* The block of phi that a cycle brings. */
struct block {
    size_t from, count;
};
static struct block block_of(const struct kith_algebra *algebra)
{
    const size_t most = layout_of(algebra).kept, d = algebra->dim;
    const uint64_t cycle = algebra->round / kith_collective_phases(algebra);
    KITH_ASSERT(most > 0);
    const size_t from = (size_t)(cycle % ((d + most - 1) / most)) * most;
    return (struct block){from, d - from < most ? d - from : most};
}

void kith_feedback_write_down(struct kith_algebra *algebra)
{
    const struct layout layout = layout_of(algebra);
    const struct block block = block_of(algebra);
    const struct kith_top_list list = kith_feedback_gather(algebra);
    const uint64_t phase =
        kith_collective_phases(algebra) - 1 - kith_collective_phase(algebra);
    char *const message = algebra->sent;
    unsigned char *const bits = (unsigned char *)message + layout.bits;
    kith_feedback_write_list(algebra, &list);
    for (uint32_t n = 0; n < list.count; n++) {
        const double born = kith_feedback_get(
            algebra, algebra->vectors[FEEDBACK_BORN], list.entries[n].index);
        if (holds_child(algebra, phase, born))
            bits[n / 8] = (unsigned char)(bits[n / 8] | 1u << n % 8);
    }
    for (size_t i = 0; i < block.count; i++)
        kith_feedback_put(algebra, message + layout.phi, i,
                          kith_feedback_get(algebra,
                                            algebra->vectors[FEEDBACK_PHI],
                                            block.from + i));
}

/* G takes the place of L; what it holds of this peer's L was here before. */
static void hold(struct kith_algebra *algebra, const struct kith_top_list *list)
{
    const unsigned char *const bits =
        (const unsigned char *)algebra->received + layout_of(algebra).bits;
    void *const born = algebra->vectors[FEEDBACK_BORN];
    uint32_t n = 0;
    for (size_t i = 0; i < algebra->dim; i++) {
        const double before = kith_feedback_get(algebra, born, i);
        const bool is_in = n < list->count && list->entries[n].index == i;
        const bool ours = is_in && (bits[n / 8] >> n % 8 & 1) != 0;
        kith_feedback_put(algebra, algebra->vectors[FEEDBACK_LIST], i,
                          is_in ? list->entries[n].value : 0);
        kith_feedback_put(algebra, born, i,
                          !is_in                              ? FEEDBACK_ABSENT
                          : ours && before != FEEDBACK_ABSENT ? before
                                                              : FEEDBACK_NEVER);
        n += is_in;
    }
    KITH_ASSERT(n == list->count);
}

/* Are the values of phi such as a model may have? */
static bool is_phi_sane(const struct kith_algebra *algebra)
{
    const char *const phi =
        (const char *)algebra->received + layout_of(algebra).phi;
    const size_t count = block_of(algebra).count;
    size_t sane = 0;
    while (sane < count &&
           fabs(kith_feedback_get(algebra, phi, sane)) <= FEEDBACK_VALUE_MAX)
        sane++;
    return sane == count;
}

/* The block that came takes the place of ours; returns what x changed by. */
static double take_block(struct kith_algebra *algebra)
{
    const char *const phi =
        (const char *)algebra->received + layout_of(algebra).phi;
    const struct block block = block_of(algebra);
    double changed = 0;
    for (size_t i = 0; i < block.count; i++) {
        const size_t at = block.from + i;
        const double value = kith_feedback_get(algebra, phi, i);
        changed += value - kith_feedback_get(algebra, algebra->live, at);
        kith_feedback_put(algebra, algebra->vectors[FEEDBACK_PHI], at, value);
        kith_feedback_put(algebra, algebra->live, at, value);
    }
    return changed;
}

/* All of it at once: e, phi and x fit each other even where this peer's cycle
 * ends here. */
bool kith_feedback_merge_down(struct kith_algebra *algebra,
                              struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    struct kith_top_list list = kith_feedback_list(algebra, FEEDBACK_THEIRS);
    if (models == 0)
        return false;
    edge->refused = models > algebra->peers ||
                    !kith_feedback_read_list(algebra, &list) ||
                    !is_phi_sane(algebra);
    if (edge->refused)
        return false;
    hold(algebra, &list);
    algebra->scalars[COLLECTIVE_COUNT] = models;
    edge->delta_sum = kith_feedback_apply(algebra);
    edge->delta_sum += take_block(algebra);
    return true;
}
