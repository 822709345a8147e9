/* A worker leaves its process, whole, and comes into another one that has
 * opened the same (kith/archive.h): between two items, which is when nothing
 * passing stands in it.
 *
 * Vectors go as the blocks that hold them, so that no algorithm, optimiser or
 * format needs a word here. What a slot points to is a vector of those blocks,
 * by its number, or one of the driver's, which the driver moves. What is lent
 * for a step (its gradient, its batch) and what an item leaves behind is not
 * state.
 *
 * Not of workers whose guard asks about the last batch, whose gradient goes out
 * in buckets, or that another program trains: kith_worker_may_archive().
 *
 * Test: unit/test_worker_archive.c */
#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "worker_state.h"

bool kith_worker_may_archive(const struct kith_worker_config *config)
{
    const struct kith_task *task = &config->task;
    return config->trainer == NULL && config->vectors.take == NULL &&
           config->backend->host == config->backend &&
           (task->guard == NULL || !task->guard->looks_at_loss) &&
           task->coefficients[KITH_GOSSIP_BUCKETS] < 2;
}

/* What both sides must have opened alike. */
static void same_worker(struct kith_archive *archive,
                        const struct kith_worker *worker)
{
    const uint64_t sizes[] = {worker->self,
                              worker->dim,
                              worker->bytes,
                              worker->message,
                              worker->payload,
                              worker->slot_count,
                              worker->memory.bytes,
                              worker->shared.bytes,
                              worker->edge_count,
                              worker->lent.is_on,
                              worker->layout->gossiped,
                              worker->guarding.state_bytes,
                              worker->guarding.coordinates};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        kith_archive_same(archive, sizes[i],
                          "its workers are of another shape");
}

/* A vector of the worker's own, by its role at the beginning; KITH_ROLES: none.
 */
static uint8_t role_of(const struct kith_worker *worker, const void *vector)
{
    uint8_t role = 0;
    while (role < KITH_ROLES &&
           (vector == NULL || worker->vectors[role] != vector))
        role++;
    return role;
}

static void move_own(struct kith_archive *archive,
                     const struct kith_worker *worker, void **vector)
{
    uint8_t role = role_of(worker, *vector);
    KITH_ARCHIVE(archive, role);
    if (!archive->reads || archive->failed != NULL)
        return;
    if (role > KITH_ROLES)
        kith_archive_fail(archive, "a snapshot stands nowhere");
    else
        *vector = role == KITH_ROLES ? NULL : worker->vectors[role];
}

/* Roles may share a vector, which the driver lends once: the later one says
 * which earlier one it stands with. */
static void move_lent(struct kith_archive *archive, struct kith_worker *worker,
                      unsigned role)
{
    void **const slot = &worker->slots[kith_worker_role(role)];
    uint8_t with = 0;
    while (with < role &&
           (*slot == NULL || worker->slots[kith_worker_role(with)] != *slot))
        with++;
    KITH_ARCHIVE(archive, with);
    if (archive->failed == NULL && with > role)
        kith_archive_fail(archive, "a snapshot stands nowhere");
    else if (archive->failed == NULL && with < role && archive->reads)
        *slot = worker->slots[kith_worker_role(with)];
    else if (with == role)
        archive->vector(archive, slot);
}

/* The last good model of a lent worker is a role's vector, or one that the
 * driver lends beside theirs. */
static void move_good(struct kith_archive *archive, struct kith_worker *worker)
{
    void **const good = &worker->recovery.good;
    uint8_t with = 0;
    while (with < KITH_ROLES &&
           (*good == NULL || worker->slots[kith_worker_role(with)] != *good))
        with++;
    KITH_ARCHIVE(archive, with);
    if (archive->failed == NULL && with > KITH_ROLES)
        kith_archive_fail(archive, "a good model stands nowhere");
    else if (archive->failed == NULL && with < KITH_ROLES && archive->reads)
        *good = worker->slots[kith_worker_role(with)];
    else if (with == KITH_ROLES)
        archive->vector(archive, good);
}

static void move_roles(struct kith_archive *archive, struct kith_worker *worker)
{
    uint8_t of_live = KITH_ROLES;
    for (unsigned role = 0; role < KITH_ROLES; role++) {
        const uint32_t slot = kith_worker_role(role);
        if (slot >= worker->slot_count || !kith_worker_uses(worker, slot))
            continue;
        if (worker->lent.is_on)
            move_lent(archive, worker, role);
        else
            move_own(archive, worker, &worker->slots[slot]);
    }
    if (archive->failed == NULL && worker->slots[KITH_SLOT_LIVE] == NULL)
        kith_archive_fail(archive, "a worker has no model");
    if (!worker->lent.is_on) {
        move_own(archive, worker, &worker->packing.of_live);
        return;
    }
    move_good(archive, worker);
    for (uint8_t role = 0; role < KITH_ROLES; role++)
        if (worker->packing.of_live != NULL && of_live == KITH_ROLES &&
            worker->slots[kith_worker_role(role)] == worker->packing.of_live)
            of_live = role;
    KITH_ARCHIVE(archive, of_live);
    if (archive->reads && archive->failed == NULL)
        worker->packing.of_live =
            of_live >= KITH_ROLES ? NULL
                                  : worker->slots[kith_worker_role(of_live)];
}

static void move_slots(struct kith_archive *archive, struct kith_worker *worker)
{
    move_roles(archive, worker);
    for (uint32_t slot = 1;
         slot < worker->slot_count && archive->failed == NULL; slot++)
        if (kith_slot_is_inbox(slot) && kith_worker_uses(worker, slot))
            archive->vector(archive, &worker->slots[slot]);
}

static void move_flags(struct kith_archive *archive, bool *flags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kith_archive_bool(archive, &flags[i]);
}

static void move_recovery(struct kith_archive *archive,
                          struct kith_recovery *recovery)
{
    KITH_ARCHIVE(archive, recovery->factor);
    KITH_ARCHIVE(archive, recovery->first_loss);
    KITH_ARCHIVE(archive, recovery->age);
    KITH_ARCHIVE(archive, recovery->wary);
    kith_archive_bool(archive, &recovery->is_there);
    kith_archive_bool(archive, &recovery->is_fresh);
    move_flags(archive, recovery->stale,
               sizeof recovery->stale / sizeof recovery->stale[0]);
}

static void move_guarding(struct kith_archive *archive,
                          struct kith_worker *worker)
{
    struct kith_guarding *guarding = &worker->guarding;
    if (guarding->guard == NULL)
        return;
    kith_archive_pages(archive, guarding->answers,
                       worker->slot_count * sizeof *guarding->answers);
    kith_archive_pages(archive, guarding->state, guarding->state_bytes);
    if (archive->reads && archive->failed == NULL &&
        guarding->guard->is_whole != NULL &&
        !guarding->guard->is_whole(guarding->state, guarding->coordinates))
        kith_archive_fail(archive, "a guard's memory is damaged");
    kith_archive_bool(archive, &guarding->has_before);
    KITH_ARCHIVE(archive, guarding->before_factor);
    KITH_ARCHIVE(archive, guarding->movement);
    if (archive->reads && archive->failed == NULL && !(guarding->movement >= 0))
        kith_archive_fail(archive, "a movement is no length");
    KITH_ARCHIVE(archive, guarding->steps);
    kith_archive_bool(archive, &guarding->has_trained);
}

/* The memory of a lie stays when it has ended: what left as one is merged
 * against what it was. */
static void move_lying(struct kith_archive *archive, struct kith_worker *worker)
{
    struct kith_lying *lying = &worker->lying;
    struct kith_lie lie = lying->lie;
    bool keeps = lying->memory != NULL;
    KITH_ARCHIVE(archive, lie.kind);
    KITH_ARCHIVE(archive, lie.by);
    KITH_ARCHIVE(archive, lie.models);
    kith_archive_bool(archive, &keeps);
    if (archive->failed == NULL && (unsigned)lie.kind >= KITH_LIE_COUNT)
        kith_archive_fail(archive, "a lie is of no kind");
    if (archive->failed == NULL && archive->reads &&
        (keeps || lie.kind != KITH_LIE_NONE) &&
        !kith_worker_lie_again(worker, &lie, keeps))
        kith_archive_fail(archive, "there is no memory for a lie");
    kith_archive_bool(archive, &lying->heard);
    move_flags(archive, lying->lies,
               sizeof lying->lies / sizeof lying->lies[0]);
    KITH_ARCHIVE(archive, lying->rng);
    if (archive->failed == NULL && lying->rng.used > 4)
        kith_archive_fail(archive, "a stream of a lie is of no state");
    if (keeps && archive->failed == NULL)
        kith_archive_pages(archive, lying->memory,
                           kith_worker_lie_bytes(worker));
}

static void move_residues(struct kith_archive *archive,
                          struct kith_worker *worker)
{
    struct kith_reading *residues = &worker->packing.residues;
    uint32_t origin = 0;
    if (!kith_worker_is_modular(worker))
        return;
    kith_archive_pages(archive, residues->reach,
                       residues->blocks * sizeof *residues->reach);
    kith_archive_pages(archive, residues->seen,
                       worker->slot_count * sizeof *residues->seen);
    for (uint32_t slot = 1; slot < KITH_SLOT_ROUND_EDGES; slot++) {
        if (residues->kept[slot] == NULL)
            continue;
        kith_archive_pages(archive, residues->kept[slot], worker->message);
        if (residues->kept[slot] == residues->origin)
            origin = slot;
    }
    kith_archive_bool(archive, &residues->started);
    KITH_ARCHIVE(archive, residues->most);
    KITH_ARCHIVE(archive, origin);
    if (archive->reads)
        residues->origin =
            origin < KITH_SLOT_ROUND_EDGES ? residues->kept[origin] : NULL;
}

/* What stands behind a short message leaves with it. */
static void move_packing(struct kith_archive *archive,
                         struct kith_worker *worker)
{
    bool unpacks = worker->packing.vectors != NULL;
    kith_archive_bool(archive, &unpacks);
    if (archive->failed == NULL && archive->reads && unpacks &&
        !kith_worker_packing_open(worker, true))
        kith_archive_fail(archive, "there is no memory to unpack messages");
    if (archive->failed == NULL && unpacks != (worker->packing.vectors != NULL))
        kith_archive_fail(archive, "its messages are of another format");
    if (unpacks && archive->failed == NULL)
        kith_archive_pages(archive, worker->packing.memory,
                           kith_worker_unpacked_bytes(worker));
    move_residues(archive, worker);
}

static void move_place(struct kith_archive *archive, struct kith_worker *worker)
{
    struct kith_place place = kith_worker_place(worker);
    KITH_ARCHIVE(archive, place.epoch);
    KITH_ARCHIVE(archive, place.cursor);
    if (archive->reads && archive->failed == NULL &&
        kith_worker_go_to(worker, place) != KITH_OK)
        kith_archive_fail(archive, "its data set is another one");
}

static void move_steps(struct kith_archive *archive, struct kith_worker *worker)
{
    struct kith_norms *norms = &worker->norms;
    KITH_ARCHIVE(archive, worker->waiting);
    kith_archive_bool(archive, &worker->parts.is_spoilt);
    KITH_ARCHIVE(archive, worker->parts.loss);
    if (norms->rates == NULL)
        return;
    kith_archive_pages(archive, norms->rates,
                       kith_lars_layers(worker->layout) * sizeof *norms->rates);
    KITH_ARCHIVE(archive, norms->have);
    KITH_ARCHIVE(archive, norms->layers);
}

void kith_worker_archive(struct kith_worker *worker,
                         struct kith_archive *archive)
{
    KITH_ASSERT(worker->lent.spare_count == 0 && worker->lent.left_count == 0);
    KITH_ASSERT(worker->trainer == NULL);
    KITH_ASSERT(!kith_worker_in_buckets(worker));
    same_worker(archive, worker);
    if (archive->failed != NULL)
        return;
    kith_archive_pages(archive, kith_worker_block(&worker->memory),
                       worker->memory.bytes);
    kith_archive_pages(archive, kith_worker_block(&worker->shared),
                       worker->shared.bytes);
    KITH_ARCHIVE(archive, worker->scalars);
    kith_archive_bytes(archive, worker->edge_scalars,
                       worker->edge_count * KITH_EDGE_SCALARS * sizeof(double));
    move_slots(archive, worker);
    move_steps(archive, worker);
    move_recovery(archive, &worker->recovery);
    /* Before what a lie has taken: it may take vectors of messages. */
    move_lying(archive, worker);
    move_packing(archive, worker);
    move_guarding(archive, worker);
    move_place(archive, worker);
    KITH_ARCHIVE(archive, worker->rounded);
    KITH_ARCHIVE(archive, worker->passes);
    kith_archive_bool(archive, &worker->not_finite);
    move_flags(archive, worker->not_finite_slots,
               sizeof worker->not_finite_slots /
                   sizeof worker->not_finite_slots[0]);
}
