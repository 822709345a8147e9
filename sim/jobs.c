/* Work items of the peers.
 *
 * An item starts in virtual time and is joined when its WORK_DONE is due; until
 * then the event loop goes on. It runs as late as it can, for x is what its
 * snapshots are, too, until the item changes it: by then most of them have
 * arrived, have been merged and take no memory any more. Other threads are
 * handed the items that are due next, a few ahead of the joins. This thread
 * belongs to the pool: it runs what it has to wait for itself (work_pool.c).
 * One item per peer at a time, so items of a peer stay in order and the results
 * do not depend on the number of threads, nor on when an item runs.
 *
 * Of several ranks the one that has the peer's vectors runs the item, and says
 * to the others what came of it when its WORK_DONE is due (item_log.c). */
#include "sim/jobs.h"

#include <math.h>
#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "kith/heap.h"
#include "sim/delay.h"
#include "sim/item_log.h"
#include "sim/work_pool.h"
#include "sim/world.h"

/* Items that are with other threads or have come back, but are not joined yet,
 * of each thread: what is lent for them is all that running ahead takes. */
enum { AHEAD = 8 };

struct sim_work {
    struct sim_work_pool pool;
    struct sim_job *jobs;     /* (peers) */
    struct kith_heap waiting; /* by when they are due; some are gone by now */
    unsigned early;           /* handed over before they are due, not joined */
};

enum kith_err sim_job_open(struct sim_world *world, kith_id peer)
{
    struct sim_job *job = &world->work->jobs[peer];
    KITH_ASSERT(job->state == JOB_FREE && job->worker == NULL);
    if (!sim_is_here(world, peer))
        return KITH_OK;
    const enum kith_err err = sim_worker_begin(world, peer);
    job->worker = sim_peer_worker(world, peer);
    return err;
}

void sim_job_close(struct sim_world *world, kith_id peer)
{
    struct sim_job *job = &world->work->jobs[peer];
    KITH_ASSERT(job->state != JOB_QUEUED && job->state != JOB_RUNNING);
    sim_worker_end(world, peer);
    sim_worker_forget(world, peer);
    *job = (struct sim_job){0};
}

double sim_job_take_loss(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return world->work ? sim_losses_take(&world->work->jobs[peer].losses)
                       : (double)NAN;
}

/* The ledger looks at x around every item. */
unsigned sim_work_threads(const struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->options.threads <= SIM_THREADS_MAX);
    return world->ledger || world->options.threads < 1 ? 1
                                                       : world->options.threads;
}

/* A rank that waits for another one has them to do. */
bool sim_work_queues(const struct sim_world *world)
{
    KITH_ASSERT(!world->ranks || !world->ledger);
    return world->ranks || sim_work_threads(world) > 1;
}

/* At the end of a run the threads are gone before the copies. */
struct sim_work_pool *sim_work_spare(const struct sim_world *world)
{
    KITH_ASSERT(world->options.threads <= SIM_THREADS_MAX);
    return world->work && sim_work_threads(world) > 1 && !world->work->pool.stop
               ? &world->work->pool
               : NULL;
}

/* All workers before the pool's threads: a failure has nothing to stop. */
enum kith_err sim_work_open(struct sim_world *world)
{
    KITH_ASSERT(world->work == NULL);
    if (world->dim == 0)
        return KITH_OK;
    struct sim_work *items = sim_alloc(world, 1, sizeof *items);
    if (!items)
        return KITH_ENOMEM;
    world->work = items;
    items->pool.counts = world->report.items;
    items->pool.count = sim_work_threads(world);
    items->pool.lenders = sim_workers_lenders(world);
    items->pool.look = sim_copy_look;
    items->pool.owner = world;
    sim_work_pool_open(&items->pool);
    items->jobs = sim_alloc(world, world->peer_count, sizeof *items->jobs);
    if (!items->jobs)
        return KITH_ENOMEM;
    if (sim_work_queues(world)) {
        const size_t room = 2 * (size_t)world->peer_count;
        struct kith_heap_entry *entries =
            sim_alloc(world, room, sizeof *entries);
        if (!entries)
            return KITH_ENOMEM;
        kith_heap_init(&items->waiting, entries, room);
    }
    const enum kith_err err = sim_workers_begin(world);
    if (err != KITH_OK)
        return err;
    for (kith_id peer = 0; peer < world->peer_count; peer++)
        items->jobs[peer].worker = sim_peer_worker(world, peer);
    return sim_work_pool_start(&items->pool)
               ? KITH_OK
               : sim_fail(world, KITH_EBUSY, "cannot start thread %u of %u",
                          items->pool.started + 2, items->pool.count);
}

/* Threads first: nothing may run while vectors are freed. */
void sim_work_close(struct sim_world *world)
{
    KITH_ASSERT(world->work == NULL || world->work->pool.count > 0);
    struct sim_work *items = world->work;
    if (!items)
        return;
    sim_work_pool_close(&items->pool);
    for (kith_id peer = 0; peer < world->peer_count; peer++)
        sim_worker_end(world, peer);
}

/* ---- an item */

/* An item's cost is the experiment's, never the clock's of this machine: that
 * is what makes virtual time repeat itself. */
static kith_ns cost_of(const struct sim_world *world, kith_id peer,
                       const struct kith_work *work)
{
    KITH_DEBUG_ASSERT(peer < world->peer_count);
    const struct kith_experiment *experiment = world->experiment;
    if (work->kind != KITH_WORK_TRAIN)
        return world->hosts ? sim_host_merge_time(world)
                            : experiment->compute.merge_ns;
    const kith_ns step_ns = sim_step_time(
        experiment, peer, work->step,
        world->peers[peer].fault != 0 ? sim_fault_slow(world, peer) : 1);
    return world->work && sim_is_here(world, peer)
               ? kith_worker_item_time(world->work->jobs[peer].worker, work,
                                       step_ns)
               : step_ns;
}

/* A step whose processor time is given lasts compute.step at least. */
static void start_on_host(struct sim_world *world, kith_id peer, bool trains,
                          kith_ns cost_ns)
{
    const bool is_given = world->experiment->hosts.step_ns > 0;
    KITH_ASSERT(cost_ns > 0);
    sim_host_work(world, peer,
                  trains ? sim_host_step_time(world, peer, cost_ns) : cost_ns,
                  trains && is_given ? cost_ns : 0);
}

/* What it needs is lent, if there is memory; else it is over, and so is the
 * run. */
static bool is_lent(struct sim_world *world, kith_id peer, bool prepared)
{
    struct sim_job *job = &world->work->jobs[peer];
    if (sim_worker_lend(world, peer, &job->work, prepared))
        return true;
    job->result =
        (struct kith_work_result){.kind = job->work.kind, .finite = true};
    job->state = JOB_DONE;
    return false;
}

/* On this thread, now. */
static void run_waiting(struct sim_world *world, kith_id peer)
{
    struct sim_job *job = &world->work->jobs[peer];
    KITH_ASSERT(job->state == JOB_WAITING);
    if (!is_lent(world, peer, true))
        return;
    sim_ledger_before(world, peer);
    sim_work_pool_run(&world->work->pool, job);
    sim_ledger_after(world, peer, &job->work);
}

static bool has_room(const struct sim_work *items)
{
    const unsigned threads = items->pool.count;
    return threads > 1 && items->early < AHEAD * threads;
}

/* To the other threads. One that is due is waited for. */
static void hand_over(struct sim_world *world, kith_id peer, bool is_early)
{
    struct sim_work *items = world->work;
    struct sim_job *job = &items->jobs[peer];
    KITH_ASSERT(job->state == JOB_WAITING && !job->is_ahead);
    if (!is_lent(world, peer, true))
        return;
    job->is_ahead = true;
    job->is_early = is_early;
    items->early += is_early;
    sim_work_pool_put(&items->pool, job);
}

/* Whose item is due next of those that wait, or KITH_NOBODY. */
static kith_id next_waiting(struct sim_work *items)
{
    struct kith_heap_entry next;
    while (kith_heap_pop(&items->waiting, &next)) {
        const struct sim_job *job = &items->jobs[next.peer];
        if (!job->is_ahead && job->state == JOB_WAITING &&
            job->number == next.value)
            return next.peer;
    }
    return KITH_NOBODY;
}

static void admit(struct sim_world *world)
{
    kith_id peer;
    while (has_room(world->work) &&
           (peer = next_waiting(world->work)) != KITH_NOBODY)
        hand_over(world, peer, true);
}

/* Others than this thread will ask for it, or this one while it waits. Those
 * that were due have been joined; without a place among the rest this thread
 * runs it when it joins it. */
static void put_waiting(struct sim_world *world, kith_id peer, kith_ns at_ns)
{
    struct sim_work *items = world->work;
    struct kith_heap *waiting = &items->waiting;
    struct kith_heap_entry gone;
    if (!sim_work_queues(world) || !sim_is_here(world, peer))
        return;
    while (waiting->count > 0 && waiting->entries[0].time_ns < sim_time(world))
        (void)kith_heap_pop(waiting, &gone);
    const struct kith_heap_entry waits = {
        .time_ns = at_ns, .peer = peer, .value = items->jobs[peer].number};
    (void)kith_heap_push(waiting, waits);
    admit(world);
}

/* Of items that take no time the others are over before another thread would
 * have heard of them. */
bool sim_work_hand_over(struct sim_world *world, kith_id peer)
{
    const struct sim_job *job = &world->work->jobs[peer];
    KITH_ASSERT(world->peers[peer].work == SIM_WORK_IMMEDIATE);
    if (job->state != JOB_WAITING || job->work.kind != KITH_WORK_MERGE)
        return false;
    hand_over(world, peer, false);
    return job->is_ahead;
}

/* The ledger looks at x around an item, so there it runs at once. */
static void start_item(struct sim_world *world, kith_id peer,
                       const struct kith_work *work)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_job *job = &world->work->jobs[peer];
    KITH_ASSERT(job->state == JOB_FREE);
    /* Snapshots of a step that begins may be sent at once, which other ranks
     * would have to hear of; swaps have them, and no scalars. */
    KITH_ASSERT(work->kind != KITH_WORK_TRAIN || work->edge_count == 0 ||
                sim_node_config(world)->algorithm->scalar_count == 0);
    job->work = *work;
    job->number++;
    if (!sim_is_here(world, peer))
        return;
    if (world->peers[peer].fault != 0)
        sim_fault_prepare(world, peer, job->worker);
    if (world->dump)
        sim_dump_begins(world, peer, work);
    if (work->kind != KITH_WORK_TRAIN || work->edge_count > 0)
        sim_copy_forget(world, peer); /* it may fill its snapshots anew */
    if (!is_lent(world, peer, false))
        return;
    kith_worker_prepare(job->worker, &job->work);
    sim_worker_take_back(world, peer);
    if (work->kind == KITH_WORK_SAVE) {
        job->result =
            (struct kith_work_result){.kind = work->kind, .finite = true};
        job->state = JOB_DONE;
        return;
    }
    job->state = JOB_WAITING;
    if (world->ledger)
        run_waiting(world, peer);
}

/* Where nothing is computed, those that a peer begins with: a share of no
 * weight would be refused. */
static void give_scalars(const struct sim_world *world,
                         const struct kith_work *work)
{
    const struct kith_algorithm *algorithm = sim_node_config(world)->algorithm;
    KITH_ASSERT(work->edge_count == 0 || work->edges);
    for (uint32_t i = 0; i < work->edge_count; i++)
        memcpy(work->edges[i].scalars_sent, algorithm->scalars_start,
               sizeof work->edges[i].scalars_sent);
}

bool sim_work_rests(const struct sim_world *world, kith_id peer)
{
    const struct sim_job *job = &world->work->jobs[peer];
    return !job->is_ahead &&
           (job->state != JOB_WAITING || job->work.kind == KITH_WORK_TRAIN);
}

void sim_work_ends(struct sim_world *world, kith_id id, kith_ns at_ns,
                   kith_ns took_ns)
{
    const struct sim_peer *peer = &world->peers[id];
    KITH_ASSERT(peer->work == SIM_WORK_OUT && at_ns >= sim_time(world));
    if (peer->item == KITH_WORK_TRAIN)
        sim_totals_train(world, id, at_ns, took_ns);
    sim_schedule(world, id, id, at_ns, SIM_EVENT_WORK_DONE, peer->incarnation);
    if (world->work)
        put_waiting(world, id, at_ns);
}

void sim_work_ended(struct sim_world *world, kith_id id, kith_ns took_ns)
{
    const struct sim_peer *peer = &world->peers[id];
    KITH_ASSERT(peer->work == SIM_WORK_OUT);
    if (peer->item == KITH_WORK_TRAIN)
        sim_totals_train(world, id, sim_time(world), took_ns);
    const struct sim_event event = {.time_ns = sim_time(world),
                                    .peer = id,
                                    .kind = SIM_EVENT_WORK_DONE,
                                    .value = peer->incarnation & SIM_VALUE_MAX};
    world->protocol->step(world, &event);
}

/* Vectors change now, on some thread, and the world hears of it when the item's
 * virtual time is over. */
void sim_work_start(struct sim_world *world, kith_id id,
                    const struct kith_work *work)
{
    KITH_DEBUG_ASSERT(id < world->peer_count);
    struct sim_peer *peer = &world->peers[id];
    KITH_DEBUG_ASSERT(peer->work == SIM_WORK_NONE); /* one item at a time */
    peer->item = (uint8_t)work->kind;
    if (world->timeline)
        sim_timeline_work(world, id, work);
    if (work->kind == KITH_WORK_SAVE)
        sim_save(world, id);
    /* Before a thread has the worker. */
    const kith_ns cost_ns = cost_of(world, id, work);
    if (world->work)
        start_item(world, id, work);
    else if (sim_node_config(world)->algorithm->scalar_count > 0)
        give_scalars(world, work);
    peer->work = cost_ns > 0 ? SIM_WORK_OUT : SIM_WORK_IMMEDIATE;
    if (cost_ns == 0)
        return;
    if (world->hosts && world->work) /* about then */
        put_waiting(world, id, sim_time(world) + cost_ns);
    if (world->hosts)
        start_on_host(world, id, work->kind == KITH_WORK_TRAIN, cost_ns);
    else
        sim_work_ends(world, id, sim_time(world) + cost_ns, cost_ns);
}

/* A data set that has gone ends the run: what came of it is nothing. Only steps
 * of training read it; a device may fail in any item. */
static void check_worker(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    if (world->peers[peer].item != KITH_WORK_TRAIN &&
        !world->experiment->backend->failed)
        return;
    const struct kith_worker *worker = sim_peer_worker(world, peer);
    const char *failed = worker ? kith_worker_failed(worker) : NULL;
    if (failed)
        sim_fail(world, KITH_EPARSE, "peer %u: %s", peer, failed);
}

/* Wait until the peer's item has run. */
static void join(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_job *job = &world->work->jobs[peer];
    if (world->ranks && job->state == JOB_WAITING)
        sim_log_flush(world);
    if (job->is_ahead) {
        KITH_ASSERT(world->work->early >= job->is_early);
        sim_work_pool_await(&world->work->pool, job);
        world->work->early -= job->is_early;
        job->is_ahead = job->is_early = false;
        admit(world);
    } else if (job->state == JOB_WAITING) {
        run_waiting(world, peer);
    }
    KITH_ASSERT(job->state == JOB_DONE || job->state == JOB_FREE);
    check_worker(world, peer);
}

/* Whichever has waited longest: its result is due first, mostly. */
bool sim_work_help(struct sim_world *world)
{
    struct sim_work *items = world->work;
    KITH_ASSERT(sim_work_queues(world));
    if (!items)
        return false;
    if (sim_work_pool_help(&items->pool))
        return true;
    const kith_id peer = next_waiting(items);
    if (peer != KITH_NOBODY)
        run_waiting(world, peer);
    return peer != KITH_NOBODY;
}

/* Before anybody looks at vectors: an evaluation, an observer. */
void sim_work_join_all(struct sim_world *world)
{
    struct sim_work *items = world->work;
    KITH_ASSERT(items == NULL || items->jobs != NULL);
    kith_id next = 0;
    for (kith_id peer = 0; items && peer < world->peer_count; peer++) {
        for (; next < world->peer_count && has_room(items); next++)
            if (!items->jobs[next].is_ahead &&
                items->jobs[next].state == JOB_WAITING)
                hand_over(world, next, true);
        join(world, peer);
    }
}

void sim_work_settle_all(struct sim_world *world)
{
    const kith_id first = world->here.first, end = first + world->here.count;
    KITH_ASSERT(end <= world->peer_count);
    for (kith_id peer = first; world->work && peer < end; peer++) {
        KITH_ASSERT(!world->work->jobs[peer].is_ahead);
        if (world->work->jobs[peer].worker)
            sim_worker_take_back(world, peer);
    }
}

/* Items that have run and are not over: what came of them. */
void sim_job_move(struct sim_world *world, kith_id peer,
                  struct kith_archive *archive)
{
    struct sim_job *job = &world->work->jobs[peer];
    bool is_done = job->state == JOB_DONE;
    KITH_ASSERT(is_done || job->state == JOB_FREE);
    kith_archive_bool(archive, &is_done);
    if (!is_done || archive->failed)
        return;
    sim_item_move(archive, job);
    if (archive->reads && !archive->failed)
        job->state = JOB_DONE;
}

/* The result stays in the job until the next item. Out of line: who computes
 * nothing needs no stack for it. */
__attribute__((noinline)) static const struct kith_work_result *
end_item(struct sim_world *world, kith_id peer)
{
    struct sim_job *job = &world->work->jobs[peer];
    if (sim_is_here(world, peer)) {
        join(world, peer);
        job->state = JOB_FREE;
        sim_worker_take_back(world, peer);
        if (sim_is_logged(world))
            sim_item_tell(world, job);
    } else {
        sim_item_hear(world, peer, job);
    }
    if (job->work.kind == KITH_WORK_TRAIN && job->result.finite &&
        !job->result.is_part)
        sim_losses_add(&job->losses, job->result.loss);
    if (job->work.kind == KITH_WORK_MERGE)
        sim_item_guarded(world, peer, job);
    if (world->dump)
        sim_dump_ended(world, peer, &job->work);
    return &job->result;
}

/* Where nothing is computed every item ends well. */
const struct kith_work_result *sim_work_end(struct sim_world *world, kith_id id)
{
#define KITH_X(name, text) {.kind = KITH_WORK_##name, .finite = true},
    static const struct kith_work_result done[] = {KITH_WORKS(KITH_X)};
#undef KITH_X
    struct sim_peer *peer = &world->peers[id];
    if (world->timeline)
        sim_timeline_worked(world, id);
    KITH_DEBUG_ASSERT(peer->work != SIM_WORK_NONE);
    peer->work = SIM_WORK_NONE;
    return world->work ? end_item(world, id) : &done[peer->item];
}
