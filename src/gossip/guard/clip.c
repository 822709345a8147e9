/* Guard clip: a model is held against what came before, by identity.
 *
 *   d = |s_j - x_i|                      L[j] <- d, rejected or not
 *   m = lower median of L                where four identities are known,
 *       max(3 own movement, that)        where two or three are,
 *       3 own movement                   else
 *   w = 0 where d > 2.5 m, else min(1, m / d)
 *
 * Clipping alone runs away: what is let in moves honest models apart, which
 * raises m. Who pushes one way all the time is rejected as well: on random
 * coordinates that others do not know, after three exchanges,
 *
 *   C[j] <- 0.7 C[j] + v / |v|           rho = |C[j]| / sum of 0.7^k
 *   w = 0 where rho > 1.4 lower median of rho, of four identities or more
 *
 * An entry of an identity is one number whatever it sends and however often, so
 * m is an honest one's while fewer than half of the last 64 identities lie. The
 * threshold of few is no lower than the median: a peer that is ten times slower
 * than its two neighbours moves a tenth of what they do.
 *
 * State: 64 identities, the ones met last, of 48 bytes and 4 for each
 * coordinate: 1 MiB a peer at most, touched as they are met.
 *
 * Source: this project; after He et al., "Byzantine-Robust Decentralized
 * Learning via ClippedGossip", 2022, and Karimireddy, He and Jaggi, "Learning
 * from History for Byzantine Robust Optimization", ICML 2021.
 * Test: unit/test_guard_clip.c, unit/test_guard_runs.c. */
#include <math.h>
#include <stdint.h>

#include "kith/assert.h"
#include "kith/guard.h"

enum { IDENTITIES = 64, KNOWN = 4, FEW = 2, MET = 3 };
#define FURTHEST 2.5
#define MOVEMENTS 3.0
#define FADING 0.7
#define COHERENT 1.4

struct identity {
    kith_id peer;
    uint32_t met;       /* models of it that had a direction */
    uint64_t last;      /* `clock` when it was met; 0: unused */
    double distance;    /* of its last model */
    double total, same; /* sum of 0.7^k; rho */
};

struct clip {
    uint64_t clock;
    uint32_t known;
    struct identity identities[IDENTITIES];
    float sums[]; /* (IDENTITIES, coordinates) C */
};

static size_t bytes(size_t coordinates)
{
    return sizeof(struct clip) + IDENTITIES * coordinates * sizeof(float);
}

static bool needs_movement(const void *state)
{
    return ((const struct clip *)state)->known < KNOWN;
}

/* Of `count` values, which it sorts. */
static double lower_median(double *values, uint32_t count)
{
    KITH_ASSERT(count > 0);
    for (uint32_t i = 1; i < count; i++) {
        const double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return values[(count - 1) / 2];
}

/* Its entry; a new one takes the place of who was not met for longest. */
static struct identity *meet(struct clip *clip, kith_id peer,
                             size_t coordinates)
{
    struct identity *found = &clip->identities[0];
    for (uint32_t i = 0; i < clip->known; i++) {
        struct identity *identity = &clip->identities[i];
        if (identity->peer == peer)
            return identity;
        if (identity->last < found->last)
            found = identity;
    }
    if (clip->known < IDENTITIES)
        found = &clip->identities[clip->known++];
    *found = (struct identity){.peer = peer};
    float *const sums =
        clip->sums + (size_t)(found - clip->identities) * coordinates;
    for (size_t i = 0; i < coordinates; i++)
        sums[i] = 0;
    return found;
}

static double threshold(const struct clip *clip, double movement)
{
    double distances[IDENTITIES];
    if (clip->known < FEW)
        return MOVEMENTS * movement;
    for (uint32_t i = 0; i < clip->known; i++)
        distances[i] = clip->identities[i].distance;
    const double median = lower_median(distances, clip->known);
    return clip->known >= KNOWN ? median : fmax(MOVEMENTS * movement, median);
}

/* C and rho with this model's direction. */
static void follow(struct clip *clip, struct identity *identity,
                   const struct kith_guard_model *model)
{
    float *const sums =
        clip->sums + (size_t)(identity - clip->identities) * model->coordinates;
    double squared = 0, together = 0;
    for (size_t i = 0; i < model->coordinates; i++)
        squared += model->v[i] * model->v[i];
    if (!(squared > 0 && squared < (double)INFINITY))
        return;
    const double scale = 1 / sqrt(squared);
    for (size_t i = 0; i < model->coordinates; i++) {
        const double sum = FADING * (double)sums[i] + scale * model->v[i];
        sums[i] = (float)sum;
        together += sum * sum;
    }
    identity->total = FADING * identity->total + 1;
    identity->same = sqrt(together) / identity->total;
    identity->met++;
}

/* Does it push one way more than others do? */
static bool is_coherent(const struct clip *clip,
                        const struct identity *identity)
{
    double all[IDENTITIES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < clip->known; i++)
        if (clip->identities[i].met >= MET)
            all[count++] = clip->identities[i].same;
    return identity->met >= MET && count >= KNOWN &&
           identity->same > COHERENT * lower_median(all, count);
}

static double weigh(void *state, const struct kith_guard_model *model)
{
    struct clip *clip = state;
    const double d = model->distance;
    const double m = threshold(clip, model->movement);
    struct identity *identity = meet(clip, model->peer, model->coordinates);
    KITH_ASSERT(d >= 0 && model->movement >= 0);
    identity->last = ++clip->clock;
    identity->distance = d;
    if (!(d < (double)INFINITY && m < (double)INFINITY))
        return 0;
    follow(clip, identity, model);
    if (d > FURTHEST * m || is_coherent(clip, identity))
        return 0;
    return d > m ? m / d : 1;
}

extern const struct kith_guard kith_guard_clip;
const struct kith_guard kith_guard_clip = {
    .name = "clip",
    .paper = "after He et al., 2022",
    .summary = "clip to the median of the last distances by identity, reject "
               "beyond 2.5 of it",
    .bytes = bytes,
    .needs_movement = needs_movement,
    .looks = true,
    .weigh = weigh,
};
