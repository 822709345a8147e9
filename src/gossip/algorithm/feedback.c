/* Vectors of sums with error feedback: see feedback.h. */
#include "feedback.h"

#include <math.h>

#include "kith/assert.h"

size_t kith_feedback_kept(const struct kith_algebra *algebra, double multiple)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t d = algebra->dim;
    KITH_ASSERT(multiple >= 0);
    const double wanted = multiple * share * (double)d + 0.5;
    const size_t rounded = wanted < (double)d ? (size_t)wanted : d;
    const size_t least = rounded < 1 ? 1 : rounded;
    return least < d ? least : d;
}

struct kith_top_list kith_feedback_list(const struct kith_algebra *algebra,
                                        unsigned which)
{
    const size_t kept = kith_feedback_kept(algebra, 1);
    struct kith_top_entry *const entries = algebra->scratch;
    return kith_top_list_of(entries + which * kept, (uint32_t)kept);
}

/* As a vector keeps it. */
static double rounded(const struct kith_algebra *algebra, double value)
{
    return algebra->backend->element_bytes == sizeof value
               ? value
               : (double)(float)value;
}

/* v_i */
static double difference(const struct kith_algebra *algebra, size_t i)
{
    return kith_feedback_get(algebra, algebra->vectors[FEEDBACK_RESIDUAL], i) +
           (kith_feedback_get(algebra, algebra->vectors[FEEDBACK_PHI], i) -
            kith_feedback_get(algebra, algebra->live, i));
}

double kith_feedback_claim(const struct kith_algebra *algebra, size_t i)
{
    const double v = difference(algebra, i);
    return fabs(v) <= FEEDBACK_VALUE_MAX ? rounded(algebra, v) : 0;
}

/* Nothing is kept for neighbours, so that there is a place for it. */
double *kith_feedback_merged(const struct kith_algebra *algebra)
{
    return &algebra->edge_scalars[0];
}

void kith_feedback_largest(const struct kith_algebra *algebra,
                           struct kith_top_list *list)
{
    KITH_ASSERT(list->count == 0);
    for (size_t i = 0; i < algebra->dim; i++) {
        const double value = kith_feedback_claim(algebra, i);
        if (value != 0)
            kith_top_list_offer(list, (uint32_t)i, value);
    }
    kith_top_list_finish(list);
}

void kith_feedback_hold_own(struct kith_algebra *algebra,
                            const struct kith_top_list *list)
{
    void *const sums = algebra->vectors[FEEDBACK_LIST];
    void *const born = algebra->vectors[FEEDBACK_BORN];
    algebra->backend->clear(algebra->dim, sums);
    algebra->backend->clear(algebra->dim, born);
    for (uint32_t n = 0; n < list->count; n++) {
        const struct kith_top_entry *const entry = &list->entries[n];
        KITH_ASSERT(entry->index < algebra->dim);
        kith_feedback_put(algebra, sums, entry->index, entry->value);
        kith_feedback_put(algebra, born, entry->index, FEEDBACK_OWN);
    }
}

struct kith_top_list kith_feedback_gather(const struct kith_algebra *algebra)
{
    const void *const sums = algebra->vectors[FEEDBACK_LIST];
    const void *const born = algebra->vectors[FEEDBACK_BORN];
    struct kith_top_list list = kith_feedback_list(algebra, FEEDBACK_OURS);
    for (size_t i = 0; i < algebra->dim && list.count < list.room; i++)
        if (kith_feedback_get(algebra, born, i) != FEEDBACK_ABSENT)
            list.entries[list.count++] = (struct kith_top_entry){
                kith_feedback_get(algebra, sums, i), (uint32_t)i};
    return list;
}

/* What an entry was rounded to is what was sent: the rest of it stays. */
double kith_feedback_apply(struct kith_algebra *algebra)
{
    void *const *const of = algebra->vectors;
    const double factor = algebra->coefficients[KITH_GOSSIP_RATE] /
                          algebra->scalars[COLLECTIVE_COUNT];
    double changed = 0;
    KITH_ASSERT(algebra->scalars[COLLECTIVE_COUNT] >= 1);
    for (size_t i = 0; i < algebra->dim; i++) {
        const double born = kith_feedback_get(algebra, of[FEEDBACK_BORN], i);
        const double x = kith_feedback_get(algebra, algebra->live, i);
        const double used =
            born == FEEDBACK_OWN ? kith_feedback_claim(algebra, i) : 0;
        const double left = difference(algebra, i) - used;
        const double phi =
            kith_feedback_get(algebra, of[FEEDBACK_PHI], i) -
            factor * kith_feedback_get(algebra, of[FEEDBACK_LIST], i);
        kith_feedback_put(algebra, of[FEEDBACK_RESIDUAL], i,
                          fabs(left) <= FEEDBACK_VALUE_MAX ? left : 0);
        kith_feedback_put(algebra, of[FEEDBACK_PHI], i, phi);
        kith_feedback_put(algebra, algebra->live, i, phi);
        changed += rounded(algebra, phi) - x;
    }
    return changed;
}
