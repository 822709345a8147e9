/* A caller's vectors, which stand for x while its loop computes.
 *
 *   take in     x <- z / factor       give out     z <- factor x
 *
 * Its gradients are taken at z, what it changes is z; x is where exchanges
 * happen. Each way is one pass over the model, and none where no exchange is:
 * see src/peer/caller.c. Halves are widened exactly and rounded to the nearest,
 * ties to even. On a device both are the backend's kernels, on its stream and
 * in order with the caller's.
 *
 * Test: unit/test_outside.c, unit/test_outside_device.c */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/half.h"
#include "worker_state.h"

#define CHUNK 1024u

size_t kith_outside_bytes(enum kith_outside_dtype dtype)
{
    return dtype == KITH_OUTSIDE_FLOAT32 ? 4 : 2;
}

/* Values [at, at + count) as float32. */
static void widen(const struct kith_backend *backend,
                  const struct kith_outside *from, size_t at, size_t count,
                  float *to)
{
    if (from->dtype == KITH_OUTSIDE_FLOAT32)
        memcpy(to, (const float *)from->data + at, count * sizeof *to);
    else if (from->dtype == KITH_OUTSIDE_BFLOAT16)
        backend->from_bf16(count, (const uint16_t *)from->data + at, to);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = kith_from_half(((const uint16_t *)from->data)[at + i]);
}

static void narrow(const struct kith_backend *backend, const float *from,
                   size_t at, size_t count, const struct kith_outside *to)
{
    if (to->dtype == KITH_OUTSIDE_FLOAT32)
        memcpy((float *)to->data + at, from, count * sizeof *from);
    else if (to->dtype == KITH_OUTSIDE_BFLOAT16)
        backend->to_bf16(count, from, (uint16_t *)to->data + at);
    else
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)to->data)[at + i] = kith_to_half(from[i]);
}

size_t kith_outside_count(const struct kith_outside *vectors, uint32_t count)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += vectors[i].count;
    return sum;
}

void kith_outside_fill(const struct kith_backend *backend, const float *x,
                       const struct kith_outside *vectors, uint32_t count)
{
    for (uint32_t i = 0; i < count; x += vectors[i].count, i++)
        narrow(backend, x, 0, vectors[i].count, &vectors[i]);
}

bool kith_outside_holds(const struct kith_backend *backend, const float *x,
                        const struct kith_outside *vectors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (size_t at = 0, part; at < vectors[i].count;
             at += part, x += part) {
            const size_t bytes = kith_outside_bytes(vectors[i].dtype);
            float rounded[CHUNK];
            struct kith_outside to = {rounded, CHUNK, vectors[i].dtype};
            part =
                vectors[i].count - at < CHUNK ? vectors[i].count - at : CHUNK;
            narrow(backend, x, 0, part, &to);
            if (memcmp(rounded, (const char *)vectors[i].data + at * bytes,
                       part * bytes) != 0)
                return false;
        }
    return true;
}

static void check(const struct kith_worker *worker,
                  const struct kith_outside *vectors, uint32_t count)
{
    KITH_ASSERT(worker->backend->element_bytes == sizeof(float));
    KITH_ASSERT(worker->trainer == NULL);
    KITH_ASSERT(kith_worker_shares(worker) || worker->backend->outside != NULL);
    KITH_ASSERT(kith_outside_count(vectors, count) == worker->dim);
}

void kith_worker_set_stream(struct kith_worker *worker, void *stream)
{
    worker->stream = stream;
}

/* The host waits, for whether all is finite: the caller's stream need not. */
static bool take_of_device(struct kith_worker *worker,
                           const struct kith_outside *vectors, uint32_t count)
{
    const struct kith_backend *backend = worker->backend;
    const double factor = 1 / kith_worker_factor(worker);
    char *const live = kith_worker_own_live(worker, false);
    char *x = live;
    backend->outside->enter(worker->stream);
    for (uint32_t i = 0; i < count;
         x += vectors[i].count * backend->element_bytes, i++)
        backend->outside->take(vectors[i].count, vectors[i].dtype,
                               vectors[i].data, factor, x);
    return backend->finite(worker->dim, live);
}

/* Nobody waits: the caller's next step does, on its stream. */
static void give_to_device(struct kith_worker *worker,
                           const struct kith_outside *vectors, uint32_t count)
{
    const struct kith_backend *backend = worker->backend;
    const double factor = kith_worker_factor(worker);
    const char *x = worker->slots[KITH_SLOT_LIVE];
    backend->outside->enter(worker->stream);
    for (uint32_t i = 0; i < count;
         x += vectors[i].count * backend->element_bytes, i++)
        backend->outside->give(vectors[i].count, vectors[i].dtype, x, factor,
                               vectors[i].data);
    backend->outside->leave(worker->stream);
}

static bool take_of_host(struct kith_worker *worker,
                         const struct kith_outside *vectors, uint32_t count)
{
    const double factor = kith_worker_factor(worker);
    float *x = kith_worker_own_live(worker, false);
    bool finite = true;
    for (uint32_t i = 0; i < count; i++)
        for (size_t at = 0, part; at < vectors[i].count;
             at += part, x += part) {
            part =
                vectors[i].count - at < CHUNK ? vectors[i].count - at : CHUNK;
            widen(worker->backend, &vectors[i], at, part, x);
            if (factor != 1)
                worker->backend->scale(part, 1 / factor, x);
            finite = worker->backend->finite(part, x) && finite;
        }
    return finite;
}

bool kith_worker_take_in(struct kith_worker *worker,
                         const struct kith_outside *vectors, uint32_t count)
{
    check(worker, vectors, count);
    worker->passes++;
    const bool finite = kith_worker_shares(worker)
                            ? take_of_host(worker, vectors, count)
                            : take_of_device(worker, vectors, count);
    worker->not_finite = !finite;
    return finite;
}

/* What values [at, at + count) of a vector of halves, which were `from`, are
 * less that. */
static void book_rounding(struct kith_worker *worker, const float *from,
                          size_t at, size_t count,
                          const struct kith_outside *halves)
{
    float back[CHUNK];
    KITH_ASSERT(count <= CHUNK);
    widen(worker->backend, halves, at, count, back);
    const double factor = kith_worker_factor(worker);
    for (size_t i = 0; i < count; i++) {
        const double lost = ((double)back[i] - from[i]) / factor;
        if (!isfinite(lost))
            continue;
        worker->rounded.sum += lost;
        worker->rounded.squares += lost * lost;
    }
}

static void give_to_host(struct kith_worker *worker,
                         const struct kith_outside *vector, const float *x)
{
    const double factor = kith_worker_factor(worker);
    float z[CHUNK];
    for (size_t at = 0, part; at < vector->count; at += part, x += part) {
        part = vector->count - at < CHUNK ? vector->count - at : CHUNK;
        const float *from = x;
        if (factor != 1) {
            memcpy(z, x, part * sizeof *z);
            worker->backend->scale(part, factor, z);
            from = z;
        }
        narrow(worker->backend, from, at, part, vector);
        if (vector->dtype != KITH_OUTSIDE_FLOAT32)
            book_rounding(worker, from, at, part, vector);
    }
}

void kith_worker_give_out(struct kith_worker *worker,
                          const struct kith_outside *vectors, uint32_t count)
{
    const float *x = worker->slots[KITH_SLOT_LIVE];
    check(worker, vectors, count);
    worker->passes++;
    if (!kith_worker_shares(worker)) {
        give_to_device(worker, vectors, count);
        return;
    }
    for (uint32_t i = 0; i < count; x += vectors[i].count, i++)
        give_to_host(worker, &vectors[i], x);
}

struct kith_rounded kith_worker_rounded(const struct kith_worker *worker)
{
    return worker->rounded;
}

void kith_worker_begin_outside(struct kith_worker *worker)
{
    kith_worker_residues_begin(worker);
    if (worker->guarding.guard != NULL)
        kith_worker_guard_end(worker); /* own movement begins here */
    if (worker->algorithm->start == NULL)
        return;
    struct kith_algebra algebra = kith_worker_algebra(worker);
    worker->algorithm->start(&algebra);
}

bool kith_worker_step_begins(const struct kith_worker *worker, uint64_t step)
{
    return worker->algorithm->before_step != NULL &&
           step % worker->task.every == 0;
}

void kith_worker_begin_step(struct kith_worker *worker, uint64_t step)
{
    if (!kith_worker_step_begins(worker, step))
        return;
    struct kith_algebra algebra = kith_worker_algebra(worker);
    algebra.step = step;
    worker->algorithm->before_step(&algebra);
}

void kith_worker_end_step(struct kith_worker *worker, uint64_t step)
{
    worker->guarding.has_trained = true;
    worker->guarding.steps = step + 1;
}

/* Exact while what the caller changes is all that a step is: no hook wants its
 * gradient, or x as it was before. */
const char *kith_outside_misses(const struct kith_algorithm *algorithm)
{
    if (algorithm->flags & KITH_SHARES_GRADIENTS)
        return "it shares gradients, and a training loop of yours gives its "
               "model alone";
    if (algorithm->direction != NULL)
        return "it changes the gradient before the optimiser sees it, and a "
               "training loop of yours gives its model alone";
    if (algorithm->after_step != NULL)
        return "it changes the model after each step, which costs a training "
               "loop of yours two passes over it";
    if (algorithm->factor != NULL && !(algorithm->flags & KITH_STEPS_AT_Z))
        return "it takes the gradient at z and steps at x, and a training loop "
               "of yours has one of them";
    if (algorithm->pattern == KITH_PATTERN_NONE)
        return "it exchanges nothing";
    return NULL;
}
