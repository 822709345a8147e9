/* Random masks: see mask.h. */
#include "mask.h"

#include "kith/hash.h"

static size_t count_of(const struct kith_algebra *algebra)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t count = (size_t)(share * (double)algebra->dim + 0.5);
    return count < 1 ? 1 : count < algebra->dim ? count : algebra->dim;
}

size_t mask_payload(const struct kith_algebra *algebra)
{
    return count_of(algebra) * algebra->backend->element_bytes;
}

struct mask {
    struct kith_rng rng;
    size_t count, dim, at;
};

static struct mask mask_of(const struct kith_algebra *algebra)
{
    struct mask mask = {.count = count_of(algebra), .dim = algebra->dim};
    kith_rng_init(&mask.rng, algebra->seed, KITH_STREAM_MASK,
                  kith_hash_word(KITH_HASH_START, algebra->round));
    return mask;
}

/* The next coordinate of the mask: one of run [at dim / count,
 * (at + 1) dim / count). */
static size_t next(struct mask *mask)
{
    const size_t each = mask->dim / mask->count, more = mask->dim % mask->count;
    const size_t at = mask->at++;
    const size_t first = at * each + (at < more ? at : more);
    const size_t length = each + (at < more ? 1 : 0);
    return first + kith_rng_below(&mask->rng, (uint32_t)length);
}

static void *element(const struct kith_algebra *algebra, const void *vector,
                     size_t at)
{
    return (char *)vector + at * algebra->backend->element_bytes;
}

void mask_make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    struct mask mask = mask_of(algebra);
    (void)edge;
    for (size_t i = 0; i < mask.count; i++)
        algebra->backend->copy(1, element(algebra, algebra->sent, i),
                               element(algebra, algebra->live, next(&mask)));
}

double mask_mix(struct kith_algebra *algebra, double weight)
{
    struct mask mask = mask_of(algebra);
    double added = 0;
    for (size_t i = 0; i < mask.count; i++)
        added += algebra->backend->mix(
            1, weight, element(algebra, algebra->received, i),
            element(algebra, algebra->sent, i),
            element(algebra, algebra->live, next(&mask)));
    return added;
}
