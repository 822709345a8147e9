/* A received model beside one's own: how far apart, how rounded, of which loss.
 *
 * |received - sent| takes the place of the look at what came (recovery.c), so
 * it costs no pass of its own. Both vectors are slots, on the host, or were
 * unpacked.
 *
 * Who is sent a share of a model with its weight has no snapshot to hold it
 * against: received / its weight is held against x / w. */
#include <math.h>

#include "kith/assert.h"
#include "worker_state.h"

/* Edges of a round are held against one z, whatever was merged before them. */
void kith_worker_guard_keep_ours(struct kith_worker *worker)
{
    struct kith_guarding *guarding = &worker->guarding;
    if (guarding->ours == NULL)
        return;
    worker->backend->copy(worker->layout->gossiped, guarding->ours,
                          worker->slots[KITH_SLOT_LIVE]);
    guarding->ours_unit = kith_worker_factor(worker);
}

struct kith_compared
kith_worker_guard_compare(struct kith_worker *worker,
                          const struct kith_work_edge *edge)
{
    struct kith_guarding *guarding = &worker->guarding;
    struct kith_compared compared = {
        .received = kith_worker_unpacked(worker, edge->inbox),
        .inbox = edge->inbox,
        .sent = edge->sent,
        .unit = 1};
    if (!kith_algorithm_gives_weight(worker->algorithm)) {
        compared.ours = kith_worker_sent(worker, edge->sent);
        return compared;
    }
    KITH_ASSERT(worker->backend->host == worker->backend);
    compared.ours = worker->slots[KITH_SLOT_LIVE];
    if (guarding->ours == NULL)
        return compared;
    compared.unit = kith_worker_factor_of(worker, edge->scalars_received);
    worker->backend->scale(worker->layout->gossiped,
                           guarding->ours_unit / compared.unit, guarding->ours);
    guarding->ours_unit = compared.unit;
    compared.ours = guarding->ours;
    return compared;
}

/* Of all that is received: a second vector of a message is let in by the same
 * measure. */
size_t kith_worker_guard_elements(const struct kith_worker *worker)
{
    return worker->message / worker->backend->element_bytes;
}

double kith_worker_guard_distance(const struct kith_worker *worker,
                                  const struct kith_compared *compared)
{
    const double squared =
        worker->packing.streams
            ? kith_worker_packed_distance(worker, compared->inbox,
                                          compared->sent, NULL)
            : worker->backend->distance_squared(
                  kith_worker_guard_elements(worker), compared->received,
                  compared->ours);
    const double distance =
        compared->unit *
        sqrt(kith_worker_whole_distance(worker, compared->inbox, squared));
    return isfinite(distance) ? distance : (double)INFINITY;
}

/* Of our own. */
double kith_worker_guard_norm(struct kith_worker *worker,
                              const struct kith_compared *compared)
{
    const double squared =
        worker->packing.streams
            ? kith_worker_packed_distance(worker, compared->sent,
                                          KITH_SLOT_NONE, NULL)
            : worker->backend->distance_squared(
                  kith_worker_guard_elements(worker), compared->ours, NULL);
    return compared->unit * sqrt(squared);
}

/* Of a message on the guard's coordinates, as far as it has them. */
static double rounding_of(const struct kith_worker *worker, uint32_t slot)
{
    const struct kith_guarding *guarding = &worker->guarding;
    const struct kith_format *format = worker->packing.format;
    const size_t run = guarding->run, count = worker->packing.count;
    double squared = 0;
    for (size_t i = 0; i < guarding->coordinates / run; i++)
        if (kith_guarding_start(guarding, i) + run <= count)
            squared += format->rounding(count, worker->slots[slot],
                                        kith_guarding_start(guarding, i), run);
    return squared;
}

/* Steps of modular formats follow how far models are apart: there all are
 * rounded alike. A share is held against what never travelled. */
double kith_worker_guard_rounding(const struct kith_worker *worker,
                                  const struct kith_compared *compared)
{
    if (worker->packing.format == NULL || kith_worker_is_modular(worker))
        return 0;
    double squared = rounding_of(worker, compared->inbox);
    if (!kith_algorithm_gives_weight(worker->algorithm))
        squared += rounding_of(worker, compared->sent);
    return compared->unit * compared->unit * squared;
}

/* Evaluated on the batch of our last step. */
double kith_worker_guard_loss(struct kith_worker *worker, const void *model)
{
    struct kith_guarding *guarding = &worker->guarding;
    const struct kith_backend *backend = worker->backend;
    KITH_ASSERT(guarding->whole != NULL && backend->host == backend);
    if (guarding->batch.rows == 0)
        return (double)NAN;
    backend->copy(worker->dim, guarding->whole, worker->slots[KITH_SLOT_LIVE]);
    backend->copy(worker->layout->gossiped, guarding->whole, model);
    const struct kith_pass pass = {
        .x = guarding->whole, .batch = &guarding->batch, .scale = 1};
    return kith_graph_loss(worker->network, &pass, NULL);
}
