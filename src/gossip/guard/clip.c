/* Guard clip: a model is held against what came before, by identity.
 *
 *   d = |s_j - x_i|                      L[j] <- d, rejected or not
 *   m = lower median of L                where four identities are known,
 *       max(3 own movement, that)        where two or three are,
 *       3 own movement                   else
 *   w = 1                                to 2 m
 *       2 m / d                          to 2.5 m
 *       2 m / d (5 m - d) / 2.5 m        to 5 m
 *       0                                beyond
 *
 * Clipping alone runs away: what is let in moves honest models apart, which
 * raises m. Letting nothing in beyond 2.5 m forgets an honest peer whose data
 * are very unlike: as the learning rate falls, all distances shrink but its
 * own, the less so the less it is heard. Clipping to m itself holds half of all
 * honest models back, which costs where they are far apart, and does not stop
 * old models, either: near noisy ones they are no further than others, and pull
 * all the time. Two more are rejected, on random coordinates that others do not
 * know. Who does not learn: its way since its last model is short beside ours,
 * and others' is not,
 *
 *   r = |s_j - s_j'| / |x_i - x_i'|      R[j] <- (R[j] + r) / 2
 *   w = 0 where R[j] < 0.25 lower median of R, of three identities or more
 *
 * (halves, for one snapshot may answer two exchanges); and, after three, who
 * pushes one way:
 *
 *   C[j] <- 0.7 C[j] + v / |v|           rho = |C[j]| / sum of 0.7^k
 *   w = 0 where rho > 1.4 lower median of rho, of four identities or more
 *
 * where of whose |v|^2 more than a quarter is what the wire has rounded lately
 * is not rejected, and counts as no less than .6: rounding goes no way, and
 * beside it an honest peer whose data are unlike seems to push.
 *
 * Who was away is far, and most neighbours of a graph may stand on our side of
 * what parted us: who misses more than 16 turns, of half of those known each,
 * is clipped alone, whatever its distance, a quarter as many times, not
 * counting those that are nearer than its last, and to no less than twice our
 * own way between two models of one that was there. Where our side has settled,
 * m is little beside the way back: a count alone ended in the midst of it, and
 * 2 m alone took longer than the half that was parted. Only while it is within
 * our own norm,
 *
 *   |v| <= |x_i|                         on the random coordinates
 *
 * as halves are that trained apart for half of a run (0.6 at most), and turned
 * or scaled models are not. A liar is away for four turns for each that it is
 * spared.
 *
 * Who has done its own steps goes on answering, and others may have ended, too:
 * then a liar would be the only one that speaks, for as long as it likes. Of
 * each two more models are let in, for those of the last steps may be under
 * way.
 *
 * An entry of an identity is one number whatever it sends and however often, so
 * m is an honest one's while fewer than half of the last 64 identities lie. The
 * threshold of few is no lower than the median: a peer that is ten times slower
 * than its two neighbours moves a tenth of what they do.
 *
 * State: 64 identities, the ones met last, of 80 bytes and 12 for each
 * coordinate: 774 KiB a peer at most, touched as they are met, rows of
 * 1,024 coordinates by whole pages. Of one that was met once C is made of s_j'
 * - x_i' when it is met again, and identities that were held against one
 * snapshot share it: 4 to 8 bytes for each coordinate, then.
 *
 * Source: this project; after He et al., "Byzantine-Robust Decentralized
 * Learning via ClippedGossip", 2022, and Karimireddy, He and Jaggi, "Learning
 * from History for Byzantine Robust Optimization", ICML 2021; w d descends as
 * Hampel's, "The Influence Curve and its Role in Robust Estimation", 1974.
 * Test: unit/test_guard_clip.c, unit/test_guard_runs.c. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/guard.h"

enum { IDENTITIES = 64, KNOWN = KITH_GUARD_NEIGHBOURS, FEW = 2, MET = 3 };
enum { AWAY = 16, AFTER = 2 };
/* What is kept of identities, rows of (coordinates) each: s_j', x_i', C. */
enum { THEIRS, OURS, SUMS, KEPT };
/* Of C: 0; (s_j' - x_i') / |s_j' - x_i'|, exactly; what its row holds. */
enum { SUMS_NONE, SUMS_OF_ONE, SUMS_KEPT };
#define NEAR 2.0
#define FAR 2.5
#define FURTHEST 5.0
#define MOVEMENTS 3.0
#define FADING 0.7
#define COHERENT 1.4
#define ROUNDED 0.25
#define UNHEARD 0.6
#define STILL 0.25
#define STRIDES 2.0

struct identity {
    kith_id peer;
    uint32_t met;       /* models of it that had a direction */
    uint64_t last;      /* `clock` when it was met; 0: unused */
    uint64_t turn;      /* the one after that of then; 0: unused */
    double distance;    /* of its last model */
    double total, same; /* sum of 0.7^k; rho */
    double rounded;     /* share of |v|^2, the mean of 0.7^k */
    double way;         /* R */
    uint32_t ways;      /* of which R is the mean */
    bool was_seen;      /* s_j' and x_i' are there */
    uint8_t sums;       /* SUMS_... */
    uint8_t ours;       /* the row of x_i', which others may share */
    uint32_t after;     /* models since own steps were done */
    uint32_t spared;    /* models that are clipped, not rejected, unless nearer
                         * than the last one: those are not counted */
};

/* What few identities touch stands in front; before it, at the state's
 * beginning: (KEPT, IDENTITIES, coordinates) float, written before read. */
struct clip {
    uint64_t clock, turn;
    uint32_t known, met;         /* identities; of this turn */
    double way;                  /* our own, between two models of one */
    uint8_t sharers[IDENTITIES]; /* identities, of each row of x_i' */
    struct identity identities[IDENTITIES];
};
_Static_assert(sizeof(struct identity) == 80, "as it is said above");

static size_t rows_bytes(size_t coordinates)
{
    return IDENTITIES * KEPT * coordinates * sizeof(float);
}

static size_t bytes(size_t coordinates)
{
    return rows_bytes(coordinates) + sizeof(struct clip);
}

/* Rows of all identities are a whole number of cache lines. */
static struct clip *clip_of(void *state, size_t coordinates)
{
    return (void *)((char *)state + rows_bytes(coordinates));
}

static void begin(void *state, size_t coordinates)
{
    KITH_ASSERT(coordinates <= KITH_GUARD_COORDINATES);
    clip_of(state, coordinates)->known = 0;
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

static float *row(struct clip *clip, unsigned what, size_t index,
                  size_t coordinates)
{
    KITH_ASSERT(what < KEPT && index < IDENTITIES);
    float *const rows = (void *)((char *)clip - rows_bytes(coordinates));
    return rows + (what * IDENTITIES + index) * coordinates;
}

/* Rows of identities that are yet to be met, from a whole 8 bytes on: with the
 * first of them nobody asks for movements any more. */
static void *before(void *state, size_t coordinates)
{
    struct clip *clip = clip_of(state, coordinates);
    KITH_ASSERT(KNOWN + 1 < IDENTITIES);
    if (clip->known >= KNOWN)
        return NULL;
    char *const place = (char *)row(clip, THEIRS, KNOWN - 1, coordinates);
    return place + (sizeof(double) - (uintptr_t)place % sizeof(double)) %
                       sizeof(double);
}

static size_t index_of(const struct clip *clip, const struct identity *identity)
{
    return (size_t)(identity - clip->identities);
}

/* Its entry; a new one takes the place of who was not met for longest. */
static struct identity *meet(struct clip *clip, kith_id peer)
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
    if (found->was_seen)
        clip->sharers[found->ours]--;
    *found = (struct identity){.peer = peer};
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

static double squared(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    return sum;
}

/* C of one model, from what is kept of it, before that is another's. */
static void make_sums(struct clip *clip, struct identity *identity, size_t n)
{
    const size_t index = index_of(clip, identity);
    const float *const theirs = row(clip, THEIRS, index, n);
    const float *const ours = row(clip, OURS, identity->ours, n);
    float *const sums = row(clip, SUMS, index, n);
    double v[KITH_GUARD_COORDINATES];
    KITH_ASSERT(identity->was_seen && n <= KITH_GUARD_COORDINATES);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)theirs[i] - (double)ours[i];
    const double scale = 1 / sqrt(squared(v, n));
    for (size_t i = 0; i < n; i++)
        sums[i] = (float)(scale * v[i]);
    identity->sums = SUMS_KEPT;
}

/* Will s_j' - x_i' be v, as both are kept? */
static bool is_kept(const struct kith_guard_model *model)
{
    for (size_t i = 0; i < model->coordinates; i++) {
        const float s = (float)(model->v[i] + model->sent[i]);
        const float x = (float)model->sent[i];
        if ((double)s - (double)x != model->v[i])
            return false;
    }
    return true;
}

/* C <- 0.7 C + scale v; returns |C|^2. */
static double add_direction(struct clip *clip, struct identity *identity,
                            const struct kith_guard_model *model, double scale)
{
    const size_t n = model->coordinates;
    float *const sums = row(clip, SUMS, index_of(clip, identity), n);
    const bool is_first = identity->sums == SUMS_NONE;
    double together = 0;
    KITH_ASSERT(identity->sums != SUMS_OF_ONE);
    identity->sums = is_first && is_kept(model) ? SUMS_OF_ONE : SUMS_KEPT;
    for (size_t i = 0; i < n; i++) {
        const double before = is_first ? 0 : FADING * (double)sums[i];
        const double sum = before + scale * model->v[i];
        if (identity->sums == SUMS_KEPT)
            sums[i] = (float)sum;
        together += sum * sum;
    }
    return together;
}

/* C and rho with this model's direction. */
static void follow(struct clip *clip, struct identity *identity,
                   const struct kith_guard_model *model)
{
    const double length = squared(model->v, model->coordinates);
    if (identity->sums == SUMS_OF_ONE)
        make_sums(clip, identity, model->coordinates);
    if (!(length > 0 && length < (double)INFINITY))
        return;
    const double together =
        add_direction(clip, identity, model, 1 / sqrt(length));
    const double before = FADING * identity->total;
    identity->total = before + 1;
    identity->same = sqrt(together) / identity->total;
    identity->rounded =
        (before * identity->rounded + fmin(1, model->rounding / length)) /
        identity->total;
    identity->met++;
}

/* Above what the wire rounds? */
static bool is_heard(const struct identity *identity)
{
    return identity->rounded <= ROUNDED;
}

/* Does it push one way more than others do? */
static bool is_coherent(const struct clip *clip,
                        const struct identity *identity)
{
    double all[IDENTITIES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < clip->known; i++) {
        const struct identity *other = &clip->identities[i];
        if (other->met >= MET)
            all[count++] =
                is_heard(other) ? other->same : fmax(UNHEARD, other->same);
    }
    return identity->met >= MET && count >= KNOWN && is_heard(identity) &&
           identity->same > COHERENT * lower_median(all, count);
}

static bool is_sent(const float *x, const struct kith_guard_model *model)
{
    for (size_t i = 0; i < model->coordinates; i++)
        if (x[i] != (float)model->sent[i])
            return false;
    return true;
}

/* The row of x_i' that is this snapshot, or the first that nobody shares: there
 * is one, for each identity has one. */
static uint32_t find_ours(struct clip *clip,
                          const struct kith_guard_model *model)
{
    const size_t n = model->coordinates;
    uint32_t unused = IDENTITIES;
    for (uint32_t i = 0; i < IDENTITIES; i++)
        if (clip->sharers[i] == 0)
            unused = i < unused ? i : unused;
        else if (is_sent(row(clip, OURS, i, n), model))
            return i;
    KITH_ASSERT(unused < IDENTITIES);
    return unused;
}

static void keep_ours(struct clip *clip, struct identity *identity,
                      const struct kith_guard_model *model)
{
    const size_t n = model->coordinates;
    if (identity->was_seen)
        clip->sharers[identity->ours]--;
    const uint32_t index = find_ours(clip, model);
    float *const ours = row(clip, OURS, index, n);
    for (size_t i = 0; i < n && clip->sharers[index] == 0; i++)
        ours[i] = (float)model->sent[i];
    identity->ours = (uint8_t)index;
    clip->sharers[index]++;
}

/* R with this model, and our own way, unless it was away. */
static void go_on(struct clip *clip, struct identity *identity,
                  const struct kith_guard_model *model, bool was_away)
{
    const size_t n = model->coordinates;
    float *const theirs = row(clip, THEIRS, index_of(clip, identity), n);
    const float *const ours = row(clip, OURS, identity->ours, n);
    double their_way = 0, our_way = 0;
    for (size_t i = 0; i < n; i++) {
        const float s = (float)(model->v[i] + model->sent[i]);
        if (identity->was_seen) {
            const double they = (double)s - (double)theirs[i];
            const double we = (double)(float)model->sent[i] - (double)ours[i];
            their_way += they * they;
            our_way += we * we;
        }
        theirs[i] = s;
    }
    const double r = sqrt(their_way / our_way);
    if (identity->was_seen && r < (double)INFINITY)
        identity->way = identity->ways++ > 0 ? (identity->way + r) / 2 : r;
    /* Of all values, as if these were any of them: distance / |v| would say
     * more, and is whatever its sender likes. */
    if (identity->was_seen && !was_away)
        clip->way = sqrt(our_way * (double)model->dim / (double)n);
    keep_ours(clip, identity, model);
    identity->was_seen = true;
}

/* Does it stay where it is while others learn? Of two, or where half do, nobody
 * can tell. */
static bool is_still(const struct clip *clip, const struct identity *identity)
{
    double all[IDENTITIES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < clip->known; i++)
        if (clip->identities[i].ways > 0)
            all[count++] = clip->identities[i].way;
    return identity->ways > 0 && count > FEW &&
           identity->way < STILL * lower_median(all, count);
}

/* A turn is over when half of all that are known were met in it: fewer cannot
 * make the others seem away. */
static void take_turn(struct clip *clip, struct identity *identity)
{
    const bool known = identity->turn > 0 && identity->turn <= clip->turn;
    const uint64_t missed = known ? clip->turn - identity->turn : 0;
    if (missed > AWAY)
        identity->spared = (uint32_t)(missed < UINT32_MAX ? missed / 4 : 1);
    if (identity->turn != clip->turn + 1)
        clip->met++;
    identity->turn = clip->turn + 1;
    if (2 * clip->met >= clip->known) {
        clip->turn++;
        clip->met = 0;
    }
}

static bool is_beyond_own(const struct kith_guard_model *model)
{
    double theirs = 0, own = 0;
    for (size_t i = 0; i < model->coordinates; i++) {
        theirs += model->v[i] * model->v[i];
        own += model->sent[i] * model->sent[i];
    }
    return !(theirs <= own);
}

/* Is it not too far, for it was away? */
static bool is_spared(struct identity *identity,
                      const struct kith_guard_model *model)
{
    if (identity->spared == 0)
        return false;
    if (!(model->distance < identity->distance))
        identity->spared--;
    return !is_beyond_own(model);
}

/* Of one at that distance: all, clipped, and then less and less. */
static double let_in(double d, double m)
{
    if (d <= NEAR * m)
        return 1;
    if (d > FURTHEST * m)
        return 0;
    return NEAR * m / d *
           (d > FAR * m ? (FURTHEST * m - d) / ((FURTHEST - FAR) * m) : 1);
}

static double weigh(void *state, const struct kith_guard_model *model)
{
    struct clip *clip = clip_of(state, model->coordinates);
    const double d = model->distance;
    const double m = threshold(clip, model->movement);
    struct identity *identity = meet(clip, model->peer);
    KITH_ASSERT(d >= 0 && model->movement >= 0);
    take_turn(clip, identity);
    const bool was_away = identity->spared > 0;
    const bool spared = is_spared(identity, model);
    identity->last = ++clip->clock;
    identity->distance = d;
    if (!(d < (double)INFINITY && m < (double)INFINITY))
        return 0;
    follow(clip, identity, model);
    go_on(clip, identity, model, was_away);
    if (model->elapsed >= 1 && identity->after++ >= AFTER)
        return 0;
    if (is_coherent(clip, identity) || is_still(clip, identity))
        return 0;
    return spared ? fmin(1, fmax(NEAR * m, STRIDES * clip->way) / d)
                  : let_in(d, m);
}

/* Indices and lengths that are gone by. */
static bool is_entry(const struct identity *identity, bool is_known)
{
    uint8_t was_seen;
    memcpy(&was_seen, &identity->was_seen, sizeof was_seen);
    return was_seen <= is_known && identity->ours < IDENTITIES &&
           identity->sums <= SUMS_KEPT && identity->distance >= 0 &&
           (was_seen || identity->sums != SUMS_OF_ONE);
}

static bool is_whole(const void *state, size_t coordinates)
{
    const struct clip *const clip =
        (const void *)((const char *)state + rows_bytes(coordinates));
    uint8_t sharers[IDENTITIES] = {0};
    if (clip->known > IDENTITIES || clip->way < 0)
        return false;
    for (uint32_t i = 0; i < IDENTITIES; i++) {
        const struct identity *identity = &clip->identities[i];
        if (!is_entry(identity, i < clip->known))
            return false;
        sharers[identity->ours] += identity->was_seen;
    }
    return memcmp(sharers, clip->sharers, sizeof sharers) == 0;
}

extern const struct kith_guard kith_guard_clip;
const struct kith_guard kith_guard_clip = {
    .name = "clip",
    .paper = "after He et al., 2022",
    .summary = "clip to twice the median of the last distances by identity, "
               "reject who is far off, stands still or pushes one way",
    .bytes = bytes,
    .begin = begin,
    .before = before,
    .is_whole = is_whole,
    .looks = true,
    .weigh = weigh,
};
