/* The worker's vectors: one block of cache-line aligned memory, all of it taken
 * at open, and which of them an algorithm and a format need.
 * Test: unit/test_worker.c, unit/test_worker_device.c */
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "kith/text.h"
#include "worker_state.h"

#define HUGE_PAGE ((size_t)1 << 21)

/* `bytes` rounded up to whole cache lines. */
static size_t aligned_size(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

void *kith_worker_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void kith_worker_pages_give(void *pages, size_t bytes)
{
    if (pages != NULL)
        (void)munmap(pages, bytes);
}

/* Of fewer bytes the rounding to whole pages would cost more than it spares. */
static bool is_of_pages(size_t bytes)
{
    return bytes >= (size_t)1 << 16;
}

/* Where a block begins; as many bytes more are taken. */
static size_t unit_of(size_t bytes)
{
    return bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : 64;
}

/* Zeroed memory, 64-byte aligned, on huge pages where that is worth it. NULL
 * where there is none; give_zero(*owner) gives it back. A slot that no exchange
 * uses, a velocity without momentum cost address space only: what is large is
 * new pages, for calloc() touches memory that was somebody's before. */
static void *aligned_zero(size_t bytes, void **owner)
{
    const size_t unit = unit_of(bytes);
    *owner = bytes > SIZE_MAX - unit ? NULL
             : is_of_pages(bytes)    ? kith_worker_pages(bytes + unit)
                                     : calloc(1, bytes + unit);
    if (*owner == NULL)
        return NULL;
    char *memory = *owner;
    memory += (unit - (uintptr_t)memory % unit) % unit;
#ifdef MADV_HUGEPAGE
    if (unit == HUGE_PAGE)
        (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory;
}

void *kith_worker_block(const struct kith_block *block)
{
    const size_t unit = unit_of(block->bytes);
    char *const memory = block->owner;
    return memory == NULL ? NULL
                          : memory + (unit - (uintptr_t)memory % unit) % unit;
}

static void give_zero(size_t bytes, void *owner)
{
    if (is_of_pages(bytes))
        kith_worker_pages_give(owner, bytes + unit_of(bytes));
    else
        free(owner);
}

#define REFUSE(err, ...)                                                       \
    kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,                          \
                   "opening a worker: " __VA_ARGS__)

/* A peer of any pattern asks for a whole model where it starts over, and gives
 * its own to others that do. */
static bool is_pulled(uint32_t slot)
{
    return kith_slot_is(KITH_SLOT_INITIATED_INBOX, slot) ||
           kith_slot_is(KITH_SLOT_ANSWERED_SENT, slot);
}

static bool uses(const struct kith_task *task, uint32_t slot)
{
    const struct kith_algorithm *algorithm = task->algorithm;
    const enum kith_pattern pattern = algorithm->pattern;
    if (slot == KITH_SLOT_LIVE)
        return true;
    if (slot < KITH_SLOT_ROUND_SENT && kith_slot_exchange(slot) > 0 &&
        (pattern != KITH_PATTERN_SWAP ||
         kith_slot_exchange(slot) >= task->exchanges))
        return false;
    if (is_pulled(slot))
        return pattern != KITH_PATTERN_NONE;
    if (slot < KITH_SLOT_ROUND_SENT)
        return pattern == KITH_PATTERN_SWAP || pattern == KITH_PATTERN_PUSH;
    if (pattern != KITH_PATTERN_ROUND)
        return false;
    return kith_slot_is_inbox(slot) ||
           (slot == KITH_SLOT_ROUND_SENT) !=
               ((algorithm->flags & KITH_SENDS_EDGE_MESSAGES) != 0);
}

/* Asked around each item, and never another answer. */
static void note_uses(struct kith_worker *worker)
{
    KITH_ASSERT(worker->slot_count > KITH_SLOT_ROUND_SENT);
    for (uint32_t slot = 0; slot < KITH_SLOT_ROUND_SENT; slot++)
        worker->uses |= (uint32_t)uses(&worker->task, slot) << slot;
}

bool kith_worker_uses(const struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(slot < worker->slot_count);
    return slot < KITH_SLOT_ROUND_SENT ? (worker->uses >> slot & 1u) != 0
                                       : uses(&worker->task, slot);
}

uint32_t kith_worker_holds(const struct kith_worker *worker)
{
    uint32_t holds = 0;
    KITH_ASSERT(worker->slot_count > KITH_SLOT_ROUND_SENT);
    for (uint32_t slot = 1; slot < KITH_SLOT_ROUND_SENT; slot++)
        holds |= (uint32_t)(worker->slots[slot] != NULL) << slot;
    return holds;
}

static bool has_role(uint32_t slot)
{
    for (unsigned role = 0; role < KITH_ROLES; role++)
        if (kith_worker_role(role) == slot)
            return true;
    return false;
}

/* A trainer's model stays where it is: snapshots of it are copies. */
bool kith_worker_shares(const struct kith_worker *worker)
{
    return worker->backend->host == worker->backend && worker->trainer == NULL;
}

/* Hands out pieces of the block; with a NULL base it only counts. */
struct carver {
    char *base;
    size_t used;
};

static void *carve(struct carver *carver, size_t bytes)
{
    void *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += aligned_size(bytes);
    return piece;
}

/* A pull carries the model, an exchange its message. */
size_t kith_worker_slot_bytes(const struct kith_worker *worker, uint32_t slot)
{
    const bool shares = has_role(slot) && kith_worker_shares(worker);
    /* What shares may become the live model. */
    const size_t model = shares ? worker->dim * worker->backend->element_bytes
                         : is_pulled(slot) ? worker->bytes
                                           : 0;
    return model > worker->payload ? model : worker->payload;
}

/* What the algorithm keeps beside x. Its places the host writes. */
static void carve_own(struct kith_worker *worker, struct carver *shared,
                      struct carver *carver)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    const struct kith_algebra algebra = kith_worker_algebra(worker);
    const uint32_t count = worker->edge_count * algorithm->edge_vectors;
    KITH_ASSERT(algorithm->vectors <= KITH_ALGORITHM_VECTORS_MAX);
    for (unsigned i = 0; i < algorithm->vectors; i++)
        worker->own[i] = carve(carver, worker->bytes);
    for (uint32_t i = 0; i < count; i++)
        worker->edges[i] = carve(carver, worker->bytes);
    if (algorithm->scratch_bytes != NULL)
        worker->algorithm_scratch =
            carve(carver, algorithm->scratch_bytes(&algebra));
    if (algorithm->places != NULL)
        worker->places =
            carve(shared, algorithm->places(&algebra) * sizeof *worker->places);
}

static void carve_slots(struct kith_worker *worker, struct carver *shared,
                        struct carver *carver)
{
    const size_t whole = worker->dim * worker->backend->element_bytes;
    const bool shares = kith_worker_shares(worker);
    for (uint32_t slot = 0; slot < worker->slot_count; slot++) {
        if (!uses(&worker->task, slot) || kith_worker_is_lent(worker, slot) ||
            (slot == KITH_SLOT_LIVE && worker->trainer != NULL))
            continue;
        const size_t bytes = kith_worker_slot_bytes(worker, slot);
        /* A snapshot may be x itself. */
        const bool sent = slot != KITH_SLOT_LIVE ||
                          (shares && worker->vectors_from.take != NULL);
        worker->slots[slot] =
            sent ? carve(shared, bytes) : carve(carver, shares ? bytes : whole);
    }
}

/* What a TRAIN needs while it runs, and no item after it. */
static void carve_passing(struct kith_worker *worker, struct carver *carver)
{
    const struct kith_optimiser *optimiser = worker->task.training->optimiser;
    const size_t element = worker->backend->element_bytes;
    worker->gradient = carve(carver, worker->layout->trained * element);
    if (worker->algorithm->factor != NULL &&
        !(worker->algorithm->flags & KITH_STEPS_AT_Z))
        worker->at = carve(carver, worker->dim * element);
    if (optimiser->scratch != NULL)
        worker->scratch =
            carve(carver, optimiser->scratch(worker->layout, worker->backend));
}

/* What the host shares, and what the backend may keep to itself. */
static void carve_all(struct kith_worker *worker, struct carver *shared,
                      struct carver *carver)
{
    const struct kith_optimiser *optimiser = worker->task.training->optimiser;
    const size_t element = worker->backend->element_bytes;
    const size_t whole = worker->dim * element;
    const size_t trained = worker->layout->trained * element;
    carve_slots(worker, shared, carver);
    carve_own(worker, shared, carver);
    if (!kith_model_learns(worker->model))
        return;
    if (worker->lender == NULL)
        carve_passing(worker, carver);
    worker->recovery.is_on = worker->algorithm->pattern != KITH_PATTERN_NONE &&
                             element < sizeof(double);
    /* Of lent vectors it is one that x stood in. */
    if (worker->recovery.is_on && worker->keeps && !worker->lent.is_on)
        worker->recovery.good = carve(carver, whole);
    KITH_ASSERT(optimiser->state_vectors <= KITH_STATES_MAX);
    for (unsigned i = 0; i < optimiser->state_vectors; i++)
        worker->state[i] = carve(carver, trained);
}

/* On the host pages that nobody touches cost nothing. */
static bool take_block(const struct kith_worker *worker, bool shared,
                       struct carver *carver, struct kith_block *block)
{
    const struct kith_backend *backend = worker->backend;
    const struct kith_vector_memory *from = &worker->vectors_from;
    const bool host = backend->host == backend;
    if (carver->used > 0 && host && shared && from->take != NULL)
        carver->base = from->take(from->arg, carver->used);
    block->bytes = carver->used;
    if (carver->used > 0 && carver->base == NULL)
        carver->base =
            host ? aligned_zero(carver->used, &block->owner)
                 : (block->owner = backend->alloc(carver->used, shared));
    const bool taken = carver->used == 0 || carver->base != NULL;
    carver->used = 0;
    return taken;
}

static void give_block(const struct kith_worker *worker,
                       const struct kith_block *block)
{
    if (worker->backend->host == worker->backend)
        give_zero(block->bytes, block->owner);
    else
        worker->backend->release(block->owner);
}

void kith_worker_vectors_give(struct kith_worker *worker)
{
    give_block(worker, &worker->memory);
    give_block(worker, &worker->shared);
}

void kith_worker_vectors_measure(struct kith_worker *worker,
                                 struct kith_worker_memory *memory)
{
    struct carver slots = {NULL, 0}, live = {NULL, 0}, own = {NULL, 0},
                  shared = {NULL, 0}, rest = {NULL, 0};
    note_uses(worker);
    carve_slots(worker, &slots, &live);
    carve_own(worker, &own, &own);
    carve_all(worker, &shared, &rest);
    *memory = (struct kith_worker_memory){
        .slots = slots.used,
        .wire = kith_worker_packing_bytes(worker),
        .algorithm = own.used,
        .training = shared.used + rest.used - slots.used - own.used};
    if (worker->backend->host == worker->backend)
        memory->training += unit_of(shared.used) + unit_of(rest.used);
}

/* What every step touches, of all workers of the process, before any is taken:
 * the system gives what it does not have, and ends who uses it. */
static enum kith_err check_memory(const struct kith_worker *worker,
                                  uint32_t together, size_t own, char *error)
{
    const double needed = (double)own * (together > 0 ? together : 1);
    if (worker->backend->host != worker->backend || needed < 0x1p30 ||
        worker->self > 0)
        return KITH_OK;
    const size_t found = kith_host_available();
    if (needed <= (double)found)
        return KITH_OK;
    return REFUSE(KITH_ENOMEM,
                  "%u times the model's vectors, %.2f GiB each, need %.1f GiB "
                  "of memory, %.1f GiB are free; take a smaller model, fewer "
                  "peers, or train.recover_from_save (one vector less)",
                  together > 0 ? together : 1, (double)own / 0x1p30,
                  needed / 0x1p30, (double)found / 0x1p30);
}

static enum kith_err refuse_block(const struct kith_worker *worker, bool shared,
                                  size_t bytes, char *error)
{
    const bool host = worker->backend->host == worker->backend;
    uint32_t slots = 0;
    for (uint32_t slot = 1; slot < worker->slot_count; slot++)
        slots += uses(&worker->task, slot);
    if (shared && !host)
        return REFUSE(KITH_ENOMEM,
                      "the system refuses to pin %.1f MiB for the %u vectors "
                      "that are sent and received; free memory of the host, or "
                      "take fewer neighbours",
                      (double)bytes / 0x1p20, slots);
    return REFUSE(KITH_ENOMEM,
                  "no memory on %s for the model's vectors, %.1f MiB; take a "
                  "smaller model or fewer peers",
                  worker->backend->name, (double)bytes / 0x1p20);
}

enum kith_err kith_worker_vectors_take(struct kith_worker *worker,
                                       uint32_t together, char *error)
{
    struct carver shared = {NULL, 0}, own = {NULL, 0};
    note_uses(worker);
    carve_all(worker, &shared, &own);
    const enum kith_err err = check_memory(
        worker, together, own.used + kith_worker_packing_bytes(worker), error);
    if (err != KITH_OK)
        return err;
    if (!kith_worker_packing_open(worker, false))
        return REFUSE(KITH_ENOMEM, "no memory for what is unpacked");
    const size_t shared_bytes = shared.used, own_bytes = own.used;
    if (!take_block(worker, true, &shared, &worker->shared))
        return refuse_block(worker, true, shared_bytes, error);
    if (!take_block(worker, false, &own, &worker->memory))
        return refuse_block(worker, false, own_bytes, error);
    carve_all(worker, &shared, &own);
    for (unsigned role = 0; role < KITH_ROLES; role++)
        worker->vectors[role] = kith_worker_role(role) < worker->slot_count
                                    ? worker->slots[kith_worker_role(role)]
                                    : NULL;
    return KITH_OK;
}
