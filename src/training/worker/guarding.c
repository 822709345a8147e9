/* What a guard is told of a received model, and what becomes of it.
 *
 * How far it is from one's own, comparing.c, is known without a pass; a guard
 * adds two where nothing is let in, for the books. Whatever it says of a share
 * of a model that came with its weight, the weight stays (algorithm.h); host
 * backends alone take such guards, since x is compared itself.
 *
 * Own movement is measured on the guard's coordinates, scaled to all, from the
 * end of one merge to the beginning of the next with a step in between, and
 * only while the guard asks for it. Runs of coordinates are drawn from the
 * stream GUARD of the peer: whoever knows the experiment's seed can draw them,
 * too. On a device x is read in few long runs, for each is a copy.
 *
 * Test: unit/test_guard_runs.c, unit/test_guard_worker.c. */
#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/rng.h"
#include "worker_state.h"

enum { RUN = 8, RUN_OF_DEVICE = 64, PAGE = 4096 };
#define SLOWLY 0.9

static void draw_runs(struct kith_worker *worker)
{
    struct kith_guarding *guarding = &worker->guarding;
    const size_t dim = worker->layout->gossiped;
    struct kith_rng rng;
    kith_rng_init(&rng, worker->task.seed, KITH_STREAM_GUARD, worker->self);
    for (size_t i = 0; i < guarding->coordinates / guarding->run; i++)
        guarding->starts[i] =
            guarding->coordinates == dim
                ? 0
                : kith_rng_below(&rng, (uint32_t)(dim / guarding->run));
}

static bool gives_weight(const struct kith_worker *worker)
{
    return kith_algorithm_gives_weight(worker->algorithm);
}

/* Rather than one model at a time. */
static bool judges_rounds(const struct kith_worker *worker)
{
    const struct kith_guard *guard = worker->task.guard;
    return guard->judge != NULL &&
           (guard->weigh == NULL ||
            worker->algorithm->pattern == KITH_PATTERN_ROUND);
}

static bool is_guarded(const struct kith_worker *worker)
{
    const struct kith_guard *guard = worker->task.guard;
    return guard != NULL && (guard->weigh != NULL || guard->judge != NULL) &&
           worker->layout->gossiped > 0;
}

/* A model that was divided by its weight is looked at as a whole one. */
static bool divides(const struct kith_worker *worker)
{
    return gives_weight(worker) && worker->algorithm->factor;
}

static size_t state_bytes(const struct kith_guard *guard, size_t coordinates)
{
    return guard->bytes == NULL ? 1 : guard->bytes(coordinates);
}

static size_t pages_of(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Whole cache lines of a message, and of x. */
static size_t message_bytes(const struct kith_worker *worker)
{
    return (worker->message + 63) & ~(size_t)63;
}

static size_t whole_bytes(const struct kith_worker *worker)
{
    return (worker->dim * worker->backend->element_bytes + 63) & ~(size_t)63;
}

size_t kith_worker_known_bytes(const struct kith_worker *worker)
{
    return pages_of(worker->guarding.state_bytes);
}

size_t kith_worker_guard_bytes(const struct kith_worker *worker)
{
    const struct kith_guard *guard = worker->task.guard;
    if (!is_guarded(worker))
        return 0;
    const size_t dim = worker->layout->gossiped;
    const size_t count =
        dim <= KITH_GUARD_COORDINATES ? dim : KITH_GUARD_COORDINATES;
    return pages_of(state_bytes(guard, count)) + 2 * count * sizeof(double) +
           (divides(worker) ? message_bytes(worker) : 0) +
           (guard->replaces ? message_bytes(worker) : 0) +
           (guard->looks_at_loss ? whole_bytes(worker) : 0);
}

/* All coordinates where there are no more than a guard looks at. */
bool kith_worker_guard_open(struct kith_worker *worker, void *known)
{
    struct kith_guarding *guarding = &worker->guarding;
    const struct kith_guard *guard = worker->task.guard;
    const size_t dim = worker->layout->gossiped;
    if (!is_guarded(worker))
        return true;
    const bool all = dim <= KITH_GUARD_COORDINATES;
    guarding->guard = guard;
    guarding->coordinates = all ? dim : KITH_GUARD_COORDINATES;
    guarding->run = all                          ? dim
                    : kith_worker_shares(worker) ? RUN
                                                 : RUN_OF_DEVICE;
    const size_t count = guarding->coordinates;
    guarding->starts = calloc(count / guarding->run, sizeof *guarding->starts);
    if (worker->lender == NULL) {
        guarding->v = calloc(count, sizeof(double));
        guarding->sent = calloc(count, sizeof(double));
    }
    guarding->answers = calloc(worker->slot_count, sizeof *guarding->answers);
    guarding->state_bytes = state_bytes(guard, count);
    guarding->is_lent = known != NULL;
    guarding->state = guarding->is_lent
                          ? known
                          : kith_worker_pages(kith_worker_known_bytes(worker));
    if (guarding->state != NULL && guard->begin != NULL)
        guard->begin(guarding->state, count);
    const bool judges = judges_rounds(worker);
    if (judges)
        guarding->round = calloc(1, sizeof *guarding->round);
    if ((judges && guarding->round == NULL) || guarding->starts == NULL ||
        guarding->v == NULL || guarding->sent == NULL ||
        guarding->answers == NULL || guarding->state == NULL)
        return false;
    if (divides(worker))
        guarding->ours = aligned_alloc(64, message_bytes(worker));
    if (guard->replaces)
        guarding->round->merged = aligned_alloc(64, message_bytes(worker));
    if (guard->looks_at_loss)
        guarding->whole = aligned_alloc(64, whole_bytes(worker));
    if ((guard->looks_at_loss && guarding->whole == NULL) ||
        (guard->replaces && guarding->round->merged == NULL) ||
        (divides(worker) && guarding->ours == NULL))
        return false;
    draw_runs(worker);
    kith_worker_guard_end(worker);
    return true;
}

/* Coordinates of a model that is looked at: no later item asks for them. */
void kith_worker_guard_borrow(struct kith_worker *worker,
                              const struct kith_worker *lender)
{
    KITH_ASSERT(lender->lender == NULL);
    worker->guarding.v = lender->guarding.v;
    worker->guarding.sent = lender->guarding.sent;
}

void kith_worker_guard_close(struct kith_worker *worker)
{
    free(worker->guarding.starts);
    if (worker->lender == NULL) {
        free(worker->guarding.v);
        free(worker->guarding.sent);
    }
    free(worker->guarding.answers);
    if (worker->guarding.round != NULL)
        free(worker->guarding.round->merged);
    free(worker->guarding.round);
    if (!worker->guarding.is_lent)
        kith_worker_pages_give(worker->guarding.state,
                               kith_worker_known_bytes(worker));
    free(worker->guarding.ours);
    free(worker->guarding.whole);
}

/* x after a merge, (coordinates) of the backend; NULL: no movement is needed.
 */
static void *before_of(const struct kith_guarding *guarding)
{
    return guarding->guard == NULL || guarding->guard->before == NULL
               ? NULL
               : guarding->guard->before(guarding->state,
                                         guarding->coordinates);
}

/* Of what was sent and received: slots are the host's, what was unpacked stands
 * where x does. */
static const struct kith_backend *reader_of(const struct kith_worker *worker)
{
    return worker->packing.format == NULL ? worker->backend->host
                                          : worker->backend;
}

/* The coordinates of a vector of `backend`. */
static void look(const struct kith_worker *worker,
                 const struct kith_backend *backend, const void *vector,
                 double *out)
{
    const struct kith_guarding *guarding = &worker->guarding;
    const size_t run = guarding->run;
    KITH_ASSERT(guarding->coordinates % run == 0);
    for (size_t i = 0; i < guarding->coordinates / run; i++)
        backend->read(run,
                      (const char *)vector + kith_guarding_start(guarding, i) *
                                                 backend->element_bytes,
                      out + i * run);
}

/* Those of z, at which gradients are taken. */
static void look_at_own(const struct kith_worker *worker, double *out)
{
    const double factor = kith_worker_factor(worker);
    look(worker, worker->backend, worker->slots[KITH_SLOT_LIVE], out);
    for (size_t i = 0; i < worker->guarding.coordinates; i++)
        out[i] *= factor;
}

/* As its backend has them, which is exact and half of what doubles take. */
static void keep_before(struct kith_worker *worker, void *before)
{
    struct kith_guarding *guarding = &worker->guarding;
    const bool is_wide = worker->backend->element_bytes == sizeof(double);
    look(worker, worker->backend, worker->slots[KITH_SLOT_LIVE], guarding->v);
    guarding->before_factor = kith_worker_factor(worker);
    guarding->has_before = true;
    for (size_t i = 0; i < guarding->coordinates; i++)
        if (is_wide)
            ((double *)before)[i] = guarding->v[i];
        else
            ((float *)before)[i] = (float)guarding->v[i];
}

static double before_at(const struct kith_worker *worker, const void *before,
                        size_t i)
{
    const struct kith_guarding *guarding = &worker->guarding;
    KITH_ASSERT(i < guarding->coordinates);
    return guarding->before_factor *
           (worker->backend->element_bytes == sizeof(double)
                ? ((const double *)before)[i]
                : (double)((const float *)before)[i]);
}

static void note_movement(struct kith_worker *worker)
{
    struct kith_guarding *guarding = &worker->guarding;
    const void *const before = before_of(guarding);
    double squared = 0;
    if (before == NULL || !guarding->has_trained || !guarding->has_before)
        return;
    look_at_own(worker, guarding->v);
    for (size_t i = 0; i < guarding->coordinates; i++) {
        const double moved = guarding->v[i] - before_at(worker, before, i);
        squared += moved * moved;
    }
    const double movement = sqrt(squared * (double)worker->layout->gossiped /
                                 (double)guarding->coordinates);
    guarding->movement = guarding->movement > 0 ? SLOWLY * guarding->movement +
                                                      (1 - SLOWLY) * movement
                                                : movement;
}

/* Inboxes are whose they were. */
static void give_back(struct kith_worker *worker)
{
    struct kith_guarded_round *round = worker->guarding.round;
    if (round == NULL)
        return;
    for (uint32_t k = 0; k < round->seen.count; k++)
        *kith_worker_values_at(worker, round->inboxes[k]) = round->received[k];
    round->seen.count = 0;
}

void kith_worker_guard_end(struct kith_worker *worker)
{
    struct kith_guarding *guarding = &worker->guarding;
    guarding->has_trained = false;
    give_back(worker);
    void *const before = before_of(guarding);
    guarding->has_before = false;
    if (before != NULL)
        keep_before(worker, before);
}

/* The coordinates of a message that stays packed. */
static void look_at_packed(const struct kith_worker *worker, uint32_t slot,
                           double *out)
{
    const struct kith_guarding *guarding = &worker->guarding;
    const size_t run = guarding->run;
    for (size_t i = 0; i < guarding->coordinates / run; i++)
        kith_worker_packed_read(worker, slot, kith_guarding_start(guarding, i),
                                run, out + i * run);
}

static void look_at_difference(struct kith_worker *worker,
                               const struct kith_compared *compared)
{
    struct kith_guarding *guarding = &worker->guarding;
    const struct kith_backend *reader = reader_of(worker);
    if (worker->packing.streams) {
        look_at_packed(worker, compared->inbox, guarding->v);
        look_at_packed(worker, compared->sent, guarding->sent);
    } else {
        look(worker, reader, compared->received, guarding->v);
        look(worker, reader, compared->ours, guarding->sent);
    }
    for (size_t i = 0; i < guarding->coordinates; i++) {
        guarding->sent[i] *= compared->unit;
        guarding->v[i] = guarding->v[i] * compared->unit - guarding->sent[i];
    }
}

/* The models that have come, and their edges. */
static void gather(struct kith_worker *worker, const struct kith_work *work,
                   const struct kith_work_edge *edges[KITH_DEGREE_MAX])
{
    struct kith_guarded_round *round = worker->guarding.round;
    struct kith_guard_round *seen = &round->seen;
    *seen = (struct kith_guard_round){.config = &worker->task.guard_config,
                                      .host = reader_of(worker),
                                      .dim = kith_worker_guard_elements(worker),
                                      .merged = round->merged};
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        const uint32_t k = seen->count;
        if (edge->inbox == KITH_SLOT_NONE ||
            kith_worker_is_stale(worker, edge->sent) ||
            !kith_worker_is_read(worker, edge->inbox))
            continue;
        KITH_ASSERT(k < KITH_DEGREE_MAX && !gives_weight(worker));
        const struct kith_compared compared =
            kith_worker_guard_compare(worker, edge);
        edges[k] = edge;
        round->inboxes[k] = edge->inbox;
        round->received[k] = kith_worker_unpacked(worker, edge->inbox);
        seen->models[k] = round->received[k];
        seen->models[k + 1] = compared.ours;
        seen->distances[k] = kith_worker_guard_distance(worker, &compared);
        seen->let_in[k] = 1;
        seen->count++;
    }
    for (uint32_t k = 0; worker->guarding.whole != NULL && k <= seen->count;
         k++)
        seen->losses[k] = seen->count > 0
                              ? kith_worker_guard_loss(worker, seen->models[k])
                              : 0;
}

/* Slots that were received may be others' as well: nothing is written there. */
static void judge(struct kith_worker *worker, const struct kith_work *work)
{
    struct kith_guarding *guarding = &worker->guarding;
    const struct kith_backend *backend = worker->backend;
    const size_t n = worker->layout->gossiped;
    const struct kith_work_edge *edges[KITH_DEGREE_MAX];
    struct kith_guarded_round *round = guarding->round;
    struct kith_guard_round *seen = &round->seen;
    gather(worker, work, edges);
    if (seen->count == 0)
        return;
    guarding->guard->judge(guarding->state, seen);
    const double sum =
        round->merged == NULL ? 0 : backend->sum(n, seen->merged);
    for (uint32_t k = 0; k < seen->count; k++) {
        struct kith_guarded *answer = &guarding->answers[round->inboxes[k]];
        *answer = (struct kith_guarded){.let_in = seen->let_in[k],
                                        .distance = seen->distances[k]};
        if (round->merged == NULL)
            continue;
        answer->withheld =
            edges[k]->weight * (backend->sum(n, round->received[k]) - sum);
        *kith_worker_values_at(worker, round->inboxes[k]) = round->merged;
    }
}

void kith_worker_guard_begin(struct kith_worker *worker,
                             const struct kith_work *work)
{
    struct kith_guarding *guarding = &worker->guarding;
    if (guarding->guard == NULL)
        return;
    note_movement(worker);
    kith_worker_guard_keep_ours(worker);
    for (uint32_t i = 0; i < work->edge_count; i++)
        if (work->edges[i].inbox != KITH_SLOT_NONE)
            guarding->answers[work->edges[i].inbox] =
                (struct kith_guarded){.let_in = 1};
    if (guarding->round != NULL)
        judge(worker, work);
}

static double elapsed(const struct kith_worker *worker)
{
    return worker->steps == UINT64_MAX || worker->steps == 0
               ? 0
               : fmin(1,
                      (double)worker->guarding.steps / (double)worker->steps);
}

static struct kith_guarded weigh(struct kith_worker *worker,
                                 const struct kith_work_edge *edge)
{
    struct kith_guarding *guarding = &worker->guarding;
    const struct kith_guard *guard = guarding->guard;
    const struct kith_compared compared =
        kith_worker_guard_compare(worker, edge);
    /* First: coordinates are anywhere, and a pass in order brings them near. */
    const double distance = kith_worker_guard_distance(worker, &compared);
    if (guard->looks)
        look_at_difference(worker, &compared);
    const struct kith_guard_model model = {
        .config = &worker->task.guard_config,
        .peer = edge->peer,
        .distance = distance,
        .movement = guarding->movement,
        .norm = guard->looks_at_norm ? kith_worker_guard_norm(worker, &compared)
                                     : 0,
        .elapsed = elapsed(worker),
        .loss = guard->looks_at_loss
                    ? kith_worker_guard_loss(worker, compared.received)
                    : 0,
        .own_loss = guard->looks_at_loss
                        ? kith_worker_guard_loss(worker, compared.ours)
                        : 0,
        .v = guard->looks ? guarding->v : NULL,
        .sent = guard->looks ? guarding->sent : NULL,
        .rounding =
            guard->looks ? kith_worker_guard_rounding(worker, &compared) : 0,
        .coordinates = guarding->coordinates,
        .dim = worker->layout->gossiped};
    struct kith_guarded answer = {.distance = model.distance};
    answer.let_in = guard->weigh(guarding->state, &model);
    return answer;
}

/* To the sum of x, were all of it let in, beside what is merged where nothing
 * is: x = w z takes a share as it is, or its weight times z; others are means
 * by weight, or add c (received - sent). */
static double adds(const struct kith_worker *worker,
                   const struct kith_work_edge *edge)
{
    const struct kith_backend *backend = worker->backend;
    const size_t n = worker->layout->gossiped;
    const double weight = edge->scalars_received[0];
    if (worker->packing.streams)
        return edge->weight * (kith_worker_packed_sum(worker, edge->inbox) -
                               kith_worker_packed_sum(worker, edge->sent));
    const double received =
        backend->sum(n, kith_worker_unpacked(worker, edge->inbox));
    if (!gives_weight(worker))
        return edge->weight *
               (received -
                backend->sum(n, kith_worker_sent(worker, edge->sent)));
    const double own = backend->sum(n, worker->slots[KITH_SLOT_LIVE]);
    if (worker->algorithm->factor != NULL)
        return received - weight * kith_worker_factor(worker) * own;
    return weight / (worker->scalars[0] + weight) * (received - own);
}

double kith_worker_guard_weigh(struct kith_worker *worker,
                               struct kith_work_edge *edge)
{
    struct kith_guarding *guarding = &worker->guarding;
    if (guarding->guard == NULL)
        return 1;
    struct kith_guarded *answer = &guarding->answers[edge->inbox];
    if (guarding->round == NULL)
        *answer = weigh(worker, edge);
    KITH_ASSERT(answer->let_in >= 0 && answer->let_in <= 1);
    if (answer->let_in <= 0 || (answer->let_in < 1 && gives_weight(worker)))
        edge->delta_sum = answer->withheld =
            (1 - answer->let_in) * adds(worker, edge);
    return answer->let_in;
}

void kith_worker_guard_merged(struct kith_worker *worker,
                              struct kith_work_edge *edge)
{
    if (worker->guarding.guard == NULL)
        return;
    struct kith_guarded *answer = &worker->guarding.answers[edge->inbox];
    KITH_ASSERT(answer->let_in > 0 || gives_weight(worker));
    if (edge->refused)
        answer->withheld = edge->delta_sum = 0;
    if (answer->let_in < 1 && !gives_weight(worker))
        answer->withheld += edge->delta_sum * (1 / answer->let_in - 1);
    edge->delta_sum += answer->withheld;
}

bool kith_worker_guard_undo(struct kith_worker *worker,
                            const struct kith_work_edge *edge)
{
    /* A share that comes home was never looked at. */
    if (worker->guarding.guard == NULL || edge->inbox == KITH_SLOT_NONE ||
        gives_weight(worker))
        return true;
    struct kith_guarded *answer = &worker->guarding.answers[edge->inbox];
    answer->withheld = -answer->withheld;
    return answer->let_in > 0;
}

double kith_worker_withheld(const struct kith_worker *worker,
                            const struct kith_work_edge *edge)
{
    return worker->guarding.guard == NULL || edge->inbox == KITH_SLOT_NONE
               ? 0
               : worker->guarding.answers[edge->inbox].withheld;
}

bool kith_worker_guarded(const struct kith_worker *worker,
                         const struct kith_work_edge *edge,
                         struct kith_mark *mark)
{
    if (worker->guarding.guard == NULL || edge->inbox == KITH_SLOT_NONE)
        return false;
    const struct kith_guarded *answer = &worker->guarding.answers[edge->inbox];
    *mark = (struct kith_mark){.kind = answer->let_in > 0 ? KITH_MARK_CLIPPED
                                                          : KITH_MARK_REJECTED,
                               .peer = edge->peer,
                               .value = (uint64_t)(1000 * answer->let_in),
                               .sum = answer->distance};
    return answer->let_in < 1;
}
