/* Random masks: see mask.h. */
#include "mask.h"

#include "kith/hash.h"

static size_t count_of(const struct kith_algebra *algebra)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t rounded = (size_t)(share * (double)algebra->dim + 0.5);
    const size_t count = rounded < 1 ? 1 : rounded;
    return count < algebra->dim ? count : algebra->dim;
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

/* Coordinates that are drawn before any is touched: memory is slow where they
 * stand far apart, and may be asked for ahead. */
enum { TOGETHER = 256 };

struct places {
    void *of[TOGETHER]; /* elements of x */
    size_t count;
};

static void draw(struct kith_algebra *algebra, struct mask *mask,
                 struct places *places)
{
    const size_t left = mask->count - mask->at;
    places->count = left < TOGETHER ? left : TOGETHER;
    for (size_t i = 0; i < places->count; i++) {
        places->of[i] = element(algebra, algebra->live, next(mask));
        __builtin_prefetch(places->of[i], 1);
    }
}

void mask_make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    struct mask mask = mask_of(algebra);
    struct places places;
    (void)edge;
    while (mask.at < mask.count) {
        char *to = element(algebra, algebra->sent, mask.at);
        draw(algebra, &mask, &places);
        for (size_t i = 0; i < places.count; i++)
            algebra->backend->copy(1, element(algebra, to, i), places.of[i]);
    }
}

/* In the host's memory they are mixed side by side, as any vector is. */
static double mix_places(struct kith_algebra *algebra, double weight,
                         const void *received, const void *sent,
                         const struct places *places)
{
    const struct kith_backend *backend = algebra->backend;
    double beside[TOGETHER], added = 0; /* of any element's size */
    if (backend->host != backend) {
        for (size_t i = 0; i < places->count; i++)
            added += backend->mix(1, weight, element(algebra, received, i),
                                  element(algebra, sent, i), places->of[i]);
        return added;
    }
    for (size_t i = 0; i < places->count; i++)
        backend->copy(1, element(algebra, beside, i), places->of[i]);
    added = backend->mix(places->count, weight, received, sent, beside);
    for (size_t i = 0; i < places->count; i++)
        backend->copy(1, places->of[i], element(algebra, beside, i));
    return added;
}

double mask_mix(struct kith_algebra *algebra, double weight)
{
    struct mask mask = mask_of(algebra);
    struct places places;
    double added = 0;
    while (mask.at < mask.count) {
        const void *received = element(algebra, algebra->received, mask.at);
        const void *sent = element(algebra, algebra->sent, mask.at);
        draw(algebra, &mask, &places);
        added += mix_places(algebra, weight, received, sent, &places);
    }
    return added;
}
