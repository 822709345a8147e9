/* Going back to the last good state.
 *
 *   good   <- z and x's frozen part, after every 16th step that ended well,
 *             before anything is merged
 *   x      <- good, where a step does not end well: its loss or x is not
 *             finite, or the loss exceeds 1e6 (1 + the first one's), which no
 *             honest model's does; or where a merge leaves it further from good
 *             than 1e6 an element
 *
 * A model that comes from so far away is not merged at all: else neighbours
 * would hand it to and fro before their next step, halved each time, until it
 * looked like a model. Only the weight that x has now stays; momentum and the
 * algorithm's own vectors start over, as of an adopted model (run_adopt).
 * Snapshots that were taken of the spoilt x are stale: what comes in answer to
 * them is not merged, or x would move by the difference. Where the very step
 * after going back fails, too, that state was none: another peer's is adopted,
 * as where there has been no good step yet. One vector more, copied once in 16
 * steps.
 *
 * Test: unit/test_recovery.c. */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "worker_state.h"

#define EVERY 16u
#define WORSE 1e6
#define FAR 1e6

static void keep_good(struct kith_worker *worker,
                      struct kith_work_result *result)
{
    result->kept = true;
    worker->backend->copy(worker->dim, worker->recovery.good,
                          worker->slots[KITH_SLOT_LIVE]);
    worker->recovery.factor = kith_worker_factor(worker);
    worker->recovery.age = 0;
    worker->recovery.is_there = true;
    worker->recovery.is_fresh = false;
}

static void go_back(struct kith_worker *worker)
{
    const struct kith_backend *backend = worker->backend;
    void *x = kith_worker_own_live(worker, false);
    const double factor = worker->recovery.factor / kith_worker_factor(worker);
    KITH_ASSERT(worker->recovery.is_there);
    backend->copy(worker->dim, x, worker->recovery.good);
    if (worker->algorithm->factor != NULL)
        backend->scale(worker->layout->gossiped, factor, x);
    kith_worker_forget(worker);
    worker->recovery.is_fresh = true;
}

/* Called at the end of a step, whose result it may change. */
void kith_worker_judge_step(struct kith_worker *worker,
                            struct kith_work_result *result)
{
    const double most = WORSE * (1 + worker->recovery.first_loss);
    if (worker->recovery.good == NULL)
        return;
    if (result->finite &&
        (!worker->recovery.is_there || result->loss <= most)) {
        if (!worker->recovery.is_there)
            worker->recovery.first_loss = fabs(result->loss);
        worker->recovery.is_fresh = false;
        if (!worker->recovery.is_there || ++worker->recovery.age >= EVERY)
            keep_good(worker, result);
        return;
    }
    result->finite = false;
    worker->recovery.is_there &=
        !worker->recovery.is_fresh; /* it was not good after all */
    if (!worker->recovery.is_there)
        return;
    go_back(worker);
    memset(worker->recovery.stale, true, sizeof worker->recovery.stale);
    result->recovered = true;
}

/* From the good state, an element. */
static double distance(const struct kith_worker *worker, const void *vector)
{
    const size_t n = worker->layout->gossiped;
    return sqrt(
        worker->backend->distance_squared(n, vector, worker->recovery.good) /
        (double)n);
}

/* A message that begins with a model is looked at before it is merged. Where
 * most rounds carry slices, what stands behind one is an older message's. */
static bool is_model(const struct kith_worker *worker)
{
    return worker->recovery.is_there && worker->algorithm->slice == NULL &&
           worker->payload >= worker->bytes;
}

bool kith_worker_is_far(struct kith_worker *worker, struct kith_work_edge *edge)
{
    KITH_ASSERT(edge->inbox != KITH_SLOT_NONE);
    edge->far = KITH_FAR_UNKNOWN;
    if (!is_model(worker))
        return false;
    const double far = distance(worker, kith_worker_slot(worker, edge->inbox));
    edge->far = (int16_t)(far > 0 ? fmin(logb(far), INT16_MAX) : INT16_MIN + 1);
    return !(far <= FAR);
}

/* Called at the end of a merge of what was not, or whose sum is. */
void kith_worker_judge_merge(struct kith_worker *worker,
                             struct kith_work_result *result)
{
    const bool known = is_model(worker) && worker->algorithm->finish == NULL;
    if (known || !worker->recovery.is_there ||
        distance(worker, worker->slots[KITH_SLOT_LIVE]) <= FAR)
        return;
    go_back(worker);
    result->recovered = true;
}

bool kith_worker_is_stale(const struct kith_worker *worker, uint32_t sent)
{
    KITH_ASSERT(sent != KITH_SLOT_LIVE);
    return sent != KITH_SLOT_NONE &&
           worker->recovery.stale[kith_slot_snapshot(sent)];
}

/* The fault `huge`: what leaves is of that magnitude, sign by sign. */
void kith_worker_spoil(struct kith_worker *worker, double magnitude,
                       uint32_t models)
{
    KITH_ASSERT(magnitude >= 0);
    worker->recovery.magnitude = magnitude;
    worker->recovery.models = models;
}

void kith_worker_spoil_sent(struct kith_worker *worker, void *sent)
{
    double chunk[256];
    const size_t size = worker->backend->element_bytes;
    const size_t elements = worker->payload / size;
    for (size_t at = 0, count; at < elements; at += count) {
        void *const place = (char *)sent + at * size;
        count = elements - at < 256 ? elements - at : 256;
        worker->backend->read(count, place, chunk);
        for (size_t i = 0; i < count; i++)
            chunk[i] = copysign(worker->recovery.magnitude, chunk[i]);
        worker->backend->write(count, chunk, place);
    }
    if (worker->recovery.models > 0 && --worker->recovery.models == 0)
        worker->recovery.magnitude = 0;
}
