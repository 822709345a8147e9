/* Random masks: see mask.h. */
#include "mask.h"

#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"

static size_t count_of(const struct kith_algebra *algebra)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t rounded = (size_t)(share * (double)algebra->dim + 0.5);
    const size_t count = rounded < 1 ? 1 : rounded;
    return count < algebra->dim ? count : algebra->dim;
}

size_t kith_mask_payload(const struct kith_algebra *algebra)
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

/* Coordinates that are drawn together, and before those of the group before
 * are touched: they stand far apart in memory, which is asked for ahead, into
 * the second cache: it takes more requests at a time than the first. */
enum { TOGETHER = 128 };

struct group {
    size_t at, count; /* of the message's values */
    size_t places[TOGETHER];
};

/* The next of the mask: out of each run [at dim / count, (at + 1) dim / count)
 * one. None are left: a group of 0. */
static void draw(const struct kith_algebra *algebra, struct mask *mask,
                 struct group *group)
{
    const size_t left = mask->count - mask->at;
    group->at = mask->at;
    group->count = left < TOGETHER ? left : TOGETHER;
    mask->at += group->count;
    /* Nor has a mask of no coordinates runs. */
    if (group->count == 0)
        return;
    const size_t each = mask->dim / mask->count, more = mask->dim % mask->count;
    const size_t longer = more < group->at ? 0 : more - group->at;
    const size_t first = longer < group->count ? longer : group->count;
    uint32_t offsets[TOGETHER];
    kith_rng_below_each(&mask->rng, (uint32_t)each + 1, offsets, first);
    kith_rng_below_each(&mask->rng, (uint32_t)each, offsets + first,
                        group->count - first);
    for (size_t i = 0; i < group->count; i++) {
        const size_t run = group->at + i;
        group->places[i] = run * each + (run < more ? run : more) + offsets[i];
        __builtin_prefetch(
            kith_algorithm_at(algebra, algebra->live, group->places[i]), 0, 2);
    }
}

/* `bytes` is known where this is inlined. */
static inline void take(const char *x, const struct group *group, char *values,
                        size_t bytes)
{
    for (size_t i = 0; i < group->count; i++)
        memcpy(values + i * bytes, x + group->places[i] * bytes, bytes);
}

static inline void put(char *x, const struct group *group, const char *values,
                       size_t bytes)
{
    for (size_t i = 0; i < group->count; i++)
        memcpy(x + group->places[i] * bytes, values + i * bytes, bytes);
}

static bool is_host(const struct kith_backend *backend)
{
    return backend->host == backend;
}

/* values <- x at the group's places. */
static void gather(const struct kith_algebra *algebra,
                   const struct group *group, void *values)
{
    if (algebra->backend->element_bytes == sizeof(float))
        take(algebra->live, group, values, sizeof(float));
    else
        take(algebra->live, group, values, sizeof(double));
}

size_t kith_mask_places(const struct kith_algebra *algebra)
{
    return is_host(algebra->backend) ? 0 : count_of(algebra);
}

/* All places, for a backend with memory of its own. */
static const uint32_t *draw_all(const struct kith_algebra *algebra,
                                struct mask *mask)
{
    uint32_t *const places = algebra->places;
    struct group group;
    KITH_ASSERT(mask->dim <= UINT32_MAX);
    for (draw(algebra, mask, &group); group.count > 0;
         draw(algebra, mask, &group))
        for (size_t i = 0; i < group.count; i++)
            places[group.at + i] = (uint32_t)group.places[i];
    return places;
}

void kith_mask_make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    struct mask mask = mask_of(algebra);
    struct group groups[2];
    (void)edge;
    if (!is_host(algebra->backend)) {
        algebra->backend->gather(mask.count, draw_all(algebra, &mask),
                                 algebra->live, algebra->sent);
        return;
    }
    draw(algebra, &mask, &groups[0]);
    for (unsigned g = 0; groups[g].count > 0; g = 1 - g) {
        draw(algebra, &mask, &groups[1 - g]);
        gather(algebra, &groups[g],
               kith_algorithm_at(algebra, algebra->sent, groups[g].at));
    }
}

/* They are mixed side by side, as any vector is. */
static double mix_group(struct kith_algebra *algebra, double weight,
                        const struct group *group)
{
    const struct kith_backend *backend = algebra->backend;
    const void *received =
        kith_algorithm_at(algebra, algebra->received, group->at);
    const void *sent = kith_algorithm_at(algebra, algebra->sent, group->at);
    double beside[TOGETHER], added = 0; /* of any element's size */
    gather(algebra, group, beside);
    added = backend->mix(group->count, weight, received, sent, beside);
    if (backend->element_bytes == sizeof(float))
        put(algebra->live, group, (const char *)beside, sizeof(float));
    else
        put(algebra->live, group, (const char *)beside, sizeof(double));
    return added;
}

double kith_mask_mix(struct kith_algebra *algebra, double weight)
{
    struct mask mask = mask_of(algebra);
    struct group groups[2];
    double added = 0;
    if (!is_host(algebra->backend))
        return algebra->backend->mix_at(
            mask.count, weight, draw_all(algebra, &mask), algebra->received,
            algebra->sent, algebra->live);
    draw(algebra, &mask, &groups[0]);
    for (unsigned g = 0; groups[g].count > 0; g = 1 - g) {
        draw(algebra, &mask, &groups[1 - g]);
        added += mix_group(algebra, weight, &groups[g]);
    }
    return added;
}
