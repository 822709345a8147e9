/* Going back to the last good state.
 *
 *   good   <- z and x's frozen part, after every 16th step that ended well,
 *             before anything is merged, and not too far from the one before
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
 * steps (bench/bench_recovery.c: what that costs); where a driver lends vectors
 * it is one that x stood in (snapshot.c).
 *
 * With `train.recover_from_save` there is no such vector: the peer's last save
 * takes its place, and distances are from x. In float64 theory is tested, which
 * lets methods diverge on purpose: there a value that is not finite counts
 * alone, and the save.
 *
 * Test: unit/test_recovery.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "worker_state.h"

/* Rather than a save alone. */
static bool keeps_good(const struct kith_worker *worker)
{
    return worker->recovery.is_on && worker->keeps;
}

static const void *good_of(const struct kith_worker *worker)
{
    return worker->recovery.good != NULL ? worker->recovery.good
                                         : worker->slots[KITH_SLOT_LIVE];
}

/* From the good state, an element. */
static double distance(const struct kith_worker *worker, const void *vector)
{
    const size_t n = worker->layout->gossiped;
    return sqrt(worker->backend->distance_squared(n, vector, good_of(worker)) /
                (double)n);
}

static double distance_received(const struct kith_worker *worker,
                                uint32_t inbox)
{
    if (!worker->packing.streams)
        return distance(worker, kith_worker_unpacked(worker, inbox));
    return sqrt(kith_worker_packed_distance(worker, inbox, KITH_SLOT_NONE,
                                            good_of(worker)) /
                (double)worker->layout->gossiped);
}

static void keep_good(struct kith_worker *worker,
                      struct kith_work_result *result)
{
    result->kept = true;
    kith_worker_stand_good(worker);
    worker->recovery.factor = kith_worker_factor(worker);
    worker->recovery.age = 0;
    worker->recovery.is_there = true;
    worker->recovery.is_fresh = false;
}

/* x is a good state, of when z was `factor` x. */
static void start_over(struct kith_worker *worker, double factor)
{
    if (worker->algorithm->factor != NULL)
        worker->backend->scale(worker->layout->gossiped,
                               factor / kith_worker_factor(worker),
                               worker->slots[KITH_SLOT_LIVE]);
    kith_worker_forget(worker);
    kith_worker_guard_end(worker);
    worker->recovery.is_fresh = true;
}

static void go_back(struct kith_worker *worker)
{
    void *x = kith_worker_own_live(worker, false);
    KITH_ASSERT(worker->recovery.is_there && worker->recovery.good != NULL);
    worker->backend->copy(worker->dim, x, worker->recovery.good);
    start_over(worker, worker->recovery.factor);
}

static void recovered(struct kith_worker *worker,
                      struct kith_work_result *result)
{
    memset(worker->recovery.stale, true, sizeof worker->recovery.stale);
    result->recovered = true;
}

/* Did the step end well? x is looked at when it is to be kept: a finite loss is
 * of the x that the step began with, and what went wrong may be in a momentum,
 * a tracker or a copy of a neighbour's that moved it since. */
static bool is_well(struct kith_worker *worker,
                    const struct kith_work_result *result, bool *keeps)
{
    struct kith_recovery *recovery = &worker->recovery;
    const double most = KITH_LOSS_WORSE * (1 + recovery->first_loss);
    *keeps = false;
    if (!result->finite || (recovery->is_there && !(result->loss <= most)))
        return false;
    *keeps = keeps_good(worker) &&
             (!recovery->is_there || ++recovery->age >= KITH_KEEP_STEPS);
    return !*keeps || !recovery->is_there ||
           distance(worker, worker->slots[KITH_SLOT_LIVE]) <= KITH_MODEL_FAR;
}

/* Called at the end of a step, whose result it may change. */
void kith_worker_judge_step(struct kith_worker *worker,
                            struct kith_work_result *result)
{
    struct kith_recovery *recovery = &worker->recovery;
    bool keeps;
    if (is_well(worker, result, &keeps)) {
        if (!recovery->is_there)
            recovery->first_loss = fabs(result->loss);
        recovery->is_fresh = false;
        recovery->wary -= recovery->wary > 0;
        if (keeps)
            keep_good(worker, result);
        recovery->is_there = recovery->is_on;
        return;
    }
    result->finite = false;
    recovery->is_there &= !recovery->is_fresh; /* it was not good after all */
    if (!recovery->is_there || recovery->good == NULL)
        return;
    go_back(worker);
    recovered(worker, result);
}

/* A save may be of a model that was spoilt since its last step: where one comes
 * to nothing soon, the save before it is taken. Place in the data and weight
 * are those of now. */
void kith_worker_go_back(struct kith_worker *worker, const char *path,
                         struct kith_work_result *result)
{
    struct kith_recovery *recovery = &worker->recovery;
    char why[KITH_DATA_ERROR_BYTES], name[KITH_PATH_BYTES_MAX + 16];
    struct kith_standing standing;
    double scalars[KITH_SCALARS_MAX];
    const struct kith_place place = kith_worker_place(worker);
    const bool again = recovery->wary > 0;
    if (result->finite || result->recovered ||
        (recovery->is_fresh && recovery->wary > KITH_KEEP_STEPS))
        return;
    (void)kith_worker_own_live(worker, true);
    memcpy(scalars, worker->scalars, sizeof scalars);
    (void)snprintf(name, sizeof name, "%s%s", path, again ? ".previous" : "");
    if (kith_save_read(worker, name, &standing, why) != KITH_OK)
        return; /* there is none yet, or it is damaged: a neighbour's */
    const double factor = kith_worker_factor(worker);
    memcpy(worker->scalars, scalars, sizeof scalars);
    if (kith_worker_go_to(worker, place) != KITH_OK)
        return;
    recovery->wary = again ? 2 * KITH_KEEP_STEPS : KITH_KEEP_STEPS;
    start_over(worker, factor);
    recovered(worker, result);
}

/* A message that begins with a model is looked at before it is merged. Where
 * most rounds carry slices, what stands behind one is an older message's. */
static bool is_model(const struct kith_worker *worker)
{
    return worker->recovery.is_there && worker->algorithm->slice == NULL &&
           !kith_algorithm_sends_bytes(worker->algorithm) &&
           worker->message >= worker->bytes;
}

bool kith_worker_is_far(struct kith_worker *worker, struct kith_work_edge *edge)
{
    KITH_ASSERT(edge->inbox != KITH_SLOT_NONE);
    edge->far = KITH_FAR_UNKNOWN;
    if (!is_model(worker))
        return false;
    const double far = worker->guarding.guard != NULL
                           ? worker->guarding.answers[edge->inbox].distance /
                                 sqrt((double)worker->layout->gossiped)
                           : distance_received(worker, edge->inbox);
    edge->far = (int16_t)(far > 0 ? fmin(logb(far), INT16_MAX) : INT16_MIN + 1);
    return !(far <= KITH_MODEL_FAR);
}

/* Called at the end of a merge of what was not, or whose sum is. */
void kith_worker_judge_merge(struct kith_worker *worker,
                             struct kith_work_result *result)
{
    const bool known = is_model(worker) && worker->algorithm->finish == NULL;
    if (known || !worker->recovery.is_there ||
        distance(worker, worker->slots[KITH_SLOT_LIVE]) <= KITH_MODEL_FAR)
        return;
    go_back(worker);
    result->recovered = true;
}

/* An element's. */
static double size_of(const struct kith_worker *worker, const void *vector)
{
    const size_t n = worker->layout->gossiped;
    KITH_ASSERT(n > 0);
    return sqrt(worker->backend->distance_squared(n, vector, NULL) / (double)n);
}

bool kith_worker_is_spoilt(struct kith_worker *worker, const void *received)
{
    const struct kith_recovery *recovery = &worker->recovery;
    KITH_ASSERT(received != NULL);
    return keeps_good(worker) && !recovery->is_there &&
           size_of(worker, received) > KITH_MODEL_FAR &&
           size_of(worker, worker->slots[KITH_SLOT_LIVE]) <= KITH_MODEL_FAR;
}

bool kith_worker_is_stale(const struct kith_worker *worker, uint32_t sent)
{
    KITH_ASSERT(sent != KITH_SLOT_LIVE);
    return sent != KITH_SLOT_NONE &&
           worker->recovery.stale[kith_slot_snapshot(sent)];
}
