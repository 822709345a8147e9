/* What a hostile member sends: kith/lie.h.
 *
 * Only who lies keeps anything: mean and variance of what it receives, one
 * model, and of each snapshot that leaves as a lie the x that it was, which it
 * merges against. Memory is taken when the lie begins, untouched pages cost
 * nothing; vectors are the host's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/rng.h"
#include "worker_state.h"

enum { CHUNK = 256, MEAN = 0, VARIANCE, KEPT, TRUTHS };
#define NEWEST 0.2

/* Vector `index` of its memory. */
static void *vector(const struct kith_worker *worker, size_t index)
{
    const size_t bytes = (worker->message + 63) & ~(size_t)63;
    KITH_ASSERT(worker->lying.memory != NULL);
    return (char *)worker->lying.memory + index * bytes;
}

static size_t elements(const struct kith_worker *worker)
{
    return worker->message / worker->backend->element_bytes;
}

static size_t labels_of(const struct kith_worker *worker, size_t rows)
{
    const struct kith_examples *train = worker->train;
    return train->input == KITH_INPUT_TOKENS ? rows * train->features : rows;
}

/* `unit` times n elements, as a model. */
static void keep(struct kith_worker *worker, size_t n, const void *from,
                 double unit)
{
    void *const kept = vector(worker, KEPT);
    worker->backend->copy(n, kept, from);
    if (worker->algorithm->factor != NULL)
        worker->backend->scale(n, unit, kept);
}

size_t kith_worker_lie_bytes(const struct kith_worker *worker)
{
    return (TRUTHS + KITH_SLOT_ROUND_EDGES) *
           ((worker->message + 63) & ~(size_t)63);
}

static bool take_memory(struct kith_worker *worker)
{
    struct kith_lying *lying = &worker->lying;
    const bool turns =
        lying->lie.kind == KITH_LIE_LABEL_FLIP && worker->train != NULL;
    if (lying->memory == NULL)
        lying->memory = aligned_alloc(64, kith_worker_lie_bytes(worker));
    if (lying->labels == NULL && turns)
        lying->labels = calloc(labels_of(worker, kith_worker_rows(worker)),
                               sizeof *lying->labels);
    return lying->memory != NULL && (lying->labels != NULL || !turns);
}

void kith_worker_lie(struct kith_worker *worker, const struct kith_lie *lie)
{
    struct kith_lying *lying = &worker->lying;
    KITH_ASSERT(lie->kind < KITH_LIE_COUNT);
    lying->lie = *lie;
    lying->heard = false;
    if (lie->kind != KITH_LIE_NONE && !kith_worker_packing_open(worker, true)) {
        lying->lie.kind = KITH_LIE_NONE;
        lying->failed = "no memory for what a hostile member packs; take a "
                        "smaller model, or gossip.wire float32";
        return;
    }
    if (lie->kind <= KITH_LIE_HUGE)
        return;
    KITH_ASSERT(worker->backend->host == worker->backend);
    if (!take_memory(worker)) {
        lying->lie.kind = KITH_LIE_NONE;
        lying->failed = "no memory for what a hostile member keeps; take a "
                        "smaller model, or the fault huge, which keeps nothing";
        return;
    }
    kith_rng_init(&lying->rng, worker->task.seed, KITH_STREAM_LIE,
                  worker->self);
    keep(worker, worker->layout->gossiped, worker->slots[KITH_SLOT_LIVE],
         kith_worker_factor(worker));
}

bool kith_worker_lie_again(struct kith_worker *worker,
                           const struct kith_lie *lie, bool keeps)
{
    worker->lying.lie = *lie;
    return kith_worker_packing_open(worker, true) &&
           (!keeps || take_memory(worker));
}

void kith_worker_lie_close(struct kith_worker *worker)
{
    free(worker->lying.memory);
    free(worker->lying.labels);
}

void kith_worker_spoil_batch(struct kith_worker *worker,
                             struct kith_batch *batch)
{
    int32_t *const labels = worker->lying.labels;
    if (worker->lying.lie.kind != KITH_LIE_LABEL_FLIP || batch->labels == NULL)
        return;
    const size_t count = labels_of(worker, batch->rows);
    for (size_t i = 0; i < count; i++)
        labels[i] = (int32_t)worker->train->classes - 1 - batch->labels[i];
    batch->labels = labels;
}

/* Of what is complete since the part before. */
void kith_worker_spoil_gradient(struct kith_worker *worker, uint32_t part)
{
    const size_t trained = worker->layout->trained;
    if (worker->lying.lie.kind != KITH_LIE_ASCENT)
        return;
    const uint32_t to = kith_worker_complete(worker, part + 1);
    for (uint32_t b = kith_worker_complete(worker, part); b < to; b++) {
        const struct kith_bucket bucket = kith_worker_bucket(worker, b);
        for (unsigned i = 0; i < 2; i++) {
            const size_t at = bucket.ranges[i].at;
            const size_t left = at < trained ? trained - at : 0;
            const size_t count = bucket.ranges[i].count;
            worker->backend->scale(
                count < left ? count : left, -1,
                kith_worker_element(worker, worker->gradient, at));
        }
    }
}

/* `unit` times what is received is a model. */
static void hear(struct kith_worker *worker, const void *received, double unit)
{
    struct kith_lying *lying = &worker->lying;
    const struct kith_backend *backend = worker->backend;
    const size_t size = backend->element_bytes, n = elements(worker);
    const double newest = lying->heard ? NEWEST : 1;
    double r[CHUNK], mean[CHUNK], variance[CHUNK];
    if (!isfinite(backend->distance_squared(n, received, NULL)))
        return;
    if (lying->lie.kind == KITH_LIE_DISSENSUS ||
        (lying->lie.kind == KITH_LIE_STALE && !lying->heard))
        keep(worker, n, received, unit);
    for (size_t at = 0, count; at < n; at += count) {
        char *const m = (char *)vector(worker, MEAN) + at * size;
        char *const v = (char *)vector(worker, VARIANCE) + at * size;
        count = n - at < CHUNK ? n - at : CHUNK;
        backend->read(count, (const char *)received + at * size, r);
        backend->read(count, m, mean);
        backend->read(count, v, variance);
        for (size_t i = 0; i < count; i++) {
            const double z = unit * r[i];
            const double off = lying->heard ? z - mean[i] : 0;
            mean[i] = lying->heard ? mean[i] + newest * off : z;
            variance[i] =
                lying->heard ? (1 - newest) * (variance[i] + newest * off * off)
                             : 0;
        }
        backend->write(count, mean, m);
        backend->write(count, variance, v);
    }
    lying->heard = true;
}

void kith_worker_hear(struct kith_worker *worker, const struct kith_work *work)
{
    if (worker->lying.lie.kind <= KITH_LIE_HUGE)
        return;
    for (uint32_t i = 0; i < work->edge_count; i++)
        if (work->edges[i].inbox != KITH_SLOT_NONE)
            hear(
                worker, kith_worker_unpacked(worker, work->edges[i].inbox),
                kith_worker_factor_of(worker, work->edges[i].scalars_received));
}

/* N(0, 1) by Box and Muller. */
static double normal(struct kith_rng *rng)
{
    const double radius = sqrt(-2 * log(1 - kith_rng_double(rng)));
    return radius * cos(6.283185307179586 * kith_rng_double(rng));
}

/* Of one chunk; x becomes what is sent. */
struct said {
    double x[CHUNK], mean[CHUNK], variance[CHUNK], kept[CHUNK];
    double reach; /* of all of them: by |s| over how far its aim is */
};

/* Where it goes as far as is let in, from the others' middle. */
static double aim(const struct kith_lying *lying, const struct said *said,
                  size_t i)
{
    return lying->lie.kind == KITH_LIE_RIDE     ? said->kept[i] - said->mean[i]
           : lying->lie.kind == KITH_LIE_ASCENT ? said->x[i] - said->mean[i]
                                                : 0;
}

static double say(struct kith_lying *lying, const struct said *said, size_t i)
{
    const double by = lying->lie.by, x = said->x[i], mean = said->mean[i];
    switch (lying->lie.kind) {
    case KITH_LIE_HUGE:
        return copysign(by, x);
    case KITH_LIE_FLIP:
        return -x;
    case KITH_LIE_SCALE:
        return by * x;
    case KITH_LIE_GAUSS:
        return x + by * normal(&lying->rng);
    case KITH_LIE_ALIE:
        return mean - by * sqrt(said->variance[i]);
    case KITH_LIE_IPM:
        return -by * mean;
    case KITH_LIE_DISSENSUS:
        return said->kept[i] + by * (said->kept[i] - mean);
    case KITH_LIE_STALE:
    case KITH_LIE_FREE_RIDE:
        return said->kept[i];
    case KITH_LIE_NAN:
        return (double)NAN;
    case KITH_LIE_RIDE:
    case KITH_LIE_ASCENT:
        return mean + said->reach * aim(lying, said, i);
    case KITH_LIE_LABEL_FLIP:
    case KITH_LIE_NONE:
    case KITH_LIE_COUNT:
        break;
    }
    return x;
}

static void by_units(size_t count, double *x, double unit)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= unit;
}

/* What it keeps, of `count` elements from `at` on. */
static void recall(const struct kith_worker *worker, size_t at, size_t count,
                   struct said *said)
{
    const struct kith_lying *lying = &worker->lying;
    const struct kith_backend *backend = worker->backend;
    const size_t skip = at * backend->element_bytes;
    if (lying->lie.kind <= KITH_LIE_HUGE)
        return;
    backend->read(count, (const char *)vector(worker, KEPT) + skip, said->kept);
    if (lying->heard) {
        backend->read(count, (const char *)vector(worker, MEAN) + skip,
                      said->mean);
        backend->read(count, (const char *)vector(worker, VARIANCE) + skip,
                      said->variance);
        return;
    }
    memcpy(said->mean, said->x, sizeof said->mean);
    memset(said->variance, 0, sizeof said->variance);
    if (lying->lie.kind != KITH_LIE_FREE_RIDE)
        memcpy(said->kept, said->x, sizeof said->kept);
}

static double reach(const struct kith_worker *worker, const void *sent,
                    double unit)
{
    const struct kith_lying *lying = &worker->lying;
    const struct kith_backend *backend = worker->backend;
    const size_t n = elements(worker);
    double spread = 0, squared = 0;
    struct said said = {.x = {0}};
    if (lying->lie.kind != KITH_LIE_RIDE && lying->lie.kind != KITH_LIE_ASCENT)
        return 0;
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < CHUNK ? n - at : CHUNK;
        backend->read(count, (const char *)sent + at * backend->element_bytes,
                      said.x);
        by_units(count, said.x, unit);
        recall(worker, at, count, &said);
        for (size_t i = 0; i < count; i++) {
            const double off = aim(lying, &said, i);
            squared += off * off;
            spread += said.variance[i];
        }
    }
    return squared > 0 ? lying->lie.by * sqrt(spread / squared) : 0;
}

/* A lie is about a model: a share goes by the weight that leaves with it; but
 * for `huge`, whose values are what is sent. What leaves in a slot of an edge's
 * own is merged against by nobody. */
void kith_worker_spoil_sent(struct kith_worker *worker, uint32_t slot,
                            const double *scalars)
{
    struct kith_lying *lying = &worker->lying;
    const struct kith_backend *backend = worker->backend;
    const size_t size = backend->element_bytes, n = elements(worker);
    void *const sent = kith_worker_unpacked(worker, slot);
    const double unit = lying->lie.kind == KITH_LIE_HUGE
                            ? 1
                            : kith_worker_factor_of(worker, scalars);
    struct said said = {.reach = reach(worker, sent, unit)};
    KITH_ASSERT(unit > 0);
    if (lying->lie.kind > KITH_LIE_HUGE && slot < KITH_SLOT_ROUND_EDGES) {
        backend->copy(n, vector(worker, TRUTHS + slot), sent);
        lying->lies[slot] = true;
    }
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < CHUNK ? n - at : CHUNK;
        backend->read(count, (char *)sent + at * size, said.x);
        by_units(count, said.x, unit);
        recall(worker, at, count, &said);
        for (size_t i = 0; i < count; i++)
            said.x[i] = say(lying, &said, i) / unit;
        backend->write(count, said.x, (char *)sent + at * size);
    }
    if (lying->lie.models > 0 && --lying->lie.models == 0)
        lying->lie.kind = KITH_LIE_NONE;
}

void *kith_worker_sent(const struct kith_worker *worker, uint32_t slot)
{
    return slot < KITH_SLOT_ROUND_EDGES && worker->lying.lies[slot]
               ? vector(worker, TRUTHS + slot)
               : kith_worker_unpacked(worker, slot);
}
