/* Work items on a pool of threads.
 *
 * An item is handed to the pool when it starts in virtual time and joined when
 * its WORK_DONE is due; until then the event loop goes on. This thread belongs
 * to the pool: where it has to wait, it runs items itself, the awaited one
 * first. One item per peer at a time, so items of a peer stay in order and the
 * results do not depend on the number of threads. This is the only file of the
 * simulator that knows threads. */
#include "sim/world.h"

#include <pthread.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "sim/delay.h"

enum desk_state { DESK_FREE, DESK_QUEUED, DESK_RUNNING, DESK_DONE };

struct sim_crew {
    pthread_mutex_t lock;
    pthread_cond_t queued, done;
    struct sim_desk *desks;
    struct sim_desk *first, *last; /* the queue */
    pthread_t threads[SIM_THREADS_MAX];
    uint64_t items[SIM_THREADS_MAX]; /* by thread; 0 is the event loop */
    unsigned count, started;
    bool stop;
};

static void queue_put(struct sim_crew *crew, struct sim_desk *desk)
{
    desk->state = DESK_QUEUED;
    desk->next = NULL;
    desk->previous = crew->last;
    *(crew->last ? &crew->last->next : &crew->first) = desk;
    crew->last = desk;
}

static void queue_drop(struct sim_crew *crew, struct sim_desk *desk)
{
    *(desk->previous ? &desk->previous->next : &crew->first) = desk->next;
    *(desk->next ? &desk->next->previous : &crew->last) = desk->previous;
}

/* Under the lock, which is given up while the item runs. */
static void run_item(struct sim_crew *crew, struct sim_desk *desk,
                     unsigned thread)
{
    queue_drop(crew, desk);
    desk->state = DESK_RUNNING;
    crew->items[thread]++;
    pthread_mutex_unlock(&crew->lock);
    kith_worker_run(desk->worker, &desk->work, &desk->result);
    pthread_mutex_lock(&crew->lock);
    desk->state = DESK_DONE;
}

struct helper {
    struct sim_crew *crew;
    unsigned thread;
};

static void *helper_main(void *argument)
{
    struct helper *helper = argument;
    struct sim_crew *crew = helper->crew;
    const unsigned thread = helper->thread;
    free(helper);
    pthread_mutex_lock(&crew->lock);
    while (!crew->stop) {
        if (crew->first) {
            run_item(crew, crew->first, thread);
            pthread_cond_signal(&crew->done);
        } else {
            pthread_cond_wait(&crew->queued, &crew->lock);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static enum kith_err crew_open(struct sim_world *world)
{
    struct sim_crew *crew = calloc(1, sizeof *crew);
    if (!crew) {
        return KITH_ENOMEM;
    }
    world->crew = crew;
    crew->desks = world->desks;
    crew->count = world->options.threads > 1 ? world->options.threads : 1;
    if (world->ledger) {
        crew->count = 1; /* it looks at x around every item */
    }
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->queued, NULL);
    pthread_cond_init(&crew->done, NULL);
    for (unsigned i = 1; i < crew->count; i++) {
        struct helper *helper = malloc(sizeof *helper);
        if (!helper) {
            return KITH_ENOMEM;
        }
        *helper = (struct helper){.crew = crew, .thread = i};
        if (pthread_create(&crew->threads[i], NULL, helper_main, helper) != 0) {
            free(helper);
            sim_fail(world, KITH_EBUSY, "cannot start thread %u of %u", i + 1,
                     crew->count);
            return KITH_EBUSY;
        }
        crew->started = i;
    }
    return KITH_OK;
}

static void crew_close(struct sim_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->queued);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 1; i <= crew->started; i++) {
        pthread_join(crew->threads[i], NULL);
    }
    pthread_cond_destroy(&crew->done);
    pthread_cond_destroy(&crew->queued);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

/* A received vector takes the inbox's place and gives it up to the next one.
 * What stands there is the simulator's own from the start, and nothing until
 * something came: a crash, which frees the worker's vectors, takes none with it
 * that is under way elsewhere, and memory is touched as messages need it. */
static void empty_inboxes(struct sim_world *world, kith_id peer, bool first)
{
    struct kith_worker *worker = world->desks[peer].worker;
    const enum kith_pattern pattern = world->config.algorithm->pattern;
    const uint32_t edges = kith_node_edges(&world->config, peer);
    const uint32_t slots = KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * edges;
    for (uint32_t slot = 1; slot < slots; slot++) {
        if (!kith_slot_is_inbox(slot) || pattern == KITH_PATTERN_NONE) {
            continue;
        }
        void *block = kith_worker_swap(worker, slot, NULL);
        if (!first) {
            sim_block_free(world, block);
        }
    }
}

enum kith_err sim_desk_open(struct sim_world *world, kith_id peer)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(world->experiment, NULL),
        .backend = world->experiment->backend,
        .train = world->options.dataset ? &world->options.dataset->train : NULL,
        .self = peer,
        .steps = world->config.steps,
        .edges_max = kith_node_edges(&world->config, peer),
        .peers = world->peer_count,
        /* Those that start over find room where they stood. */
        .together = world->evaluator ? 1 : world->peer_count,
    };
    char text[KITH_DATA_ERROR_BYTES] = "";
    const enum kith_err err =
        kith_worker_open(&config, &world->desks[peer].worker, text);
    if (err != KITH_OK) {
        sim_fail(world, err, "peer %u: %s", peer,
                 text[0] ? text : kith_err_text(err));
        return err;
    }
    empty_inboxes(world, peer, true);
    return KITH_OK;
}

void sim_desk_close(struct sim_world *world, kith_id peer)
{
    struct sim_desk *desk = &world->desks[peer];
    sim_block_forget(world, peer);
    if (desk->worker) {
        empty_inboxes(world, peer, false);
        kith_worker_close(desk->worker);
    }
    *desk = (struct sim_desk){0};
}

/* One for all peers and all evaluations. */
static enum kith_err open_evaluator(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_dataset *dataset = world->options.dataset;
    char text[KITH_DATA_ERROR_BYTES] = "";
    const enum kith_err err = kith_evaluator_open(
        experiment, experiment->backend, dataset ? &dataset->test : NULL,
        &world->evaluator, text);
    if (err != KITH_OK) {
        sim_fail(world, err, "%s", text);
    }
    return err;
}

enum kith_err sim_work_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    world->dim = size.dim;
    world->vector_bytes =
        world->config.model_bytes > world->config.payload_bytes
            ? world->config.model_bytes
            : world->config.payload_bytes;
    if (world->dim == 0) {
        return KITH_OK;
    }
    world->desks = calloc(world->peer_count, sizeof *world->desks);
    world->mean = malloc(world->dim * sizeof *world->mean);
    world->z = malloc(world->dim * sizeof *world->z);
    if (!world->desks || !world->mean || !world->z) {
        return KITH_ENOMEM;
    }
    for (kith_id peer = 0; peer < world->peer_count; peer++) {
        const enum kith_err err = sim_desk_open(world, peer);
        if (err != KITH_OK) {
            return err;
        }
    }
    const enum kith_err err = open_evaluator(world);
    return err == KITH_OK ? crew_open(world) : err;
}

void sim_work_close(struct sim_world *world)
{
    if (world->crew) {
        crew_close(world->crew);
    }
    for (kith_id peer = 0; world->desks && peer < world->peer_count; peer++) {
        sim_desk_close(world, peer);
    }
    kith_evaluator_close(world->evaluator);
    free(world->desks);
    free(world->mean);
    free(world->z);
}

static kith_ns cost_of(const struct sim_world *world, kith_id peer,
                       const struct kith_work *work)
{
    const struct kith_experiment *experiment = world->experiment;
    if (work->kind != KITH_WORK_TRAIN) {
        return experiment->compute.merge_ns;
    }
    const struct sim_extra *extra = sim_extra_of(world, peer);
    return sim_step_time(experiment, peer, work->step, extra ? extra->slow : 1);
}

static void start_item(struct sim_world *world, kith_id peer,
                       const struct kith_work *work)
{
    struct sim_crew *crew = world->crew;
    struct sim_desk *desk = &world->desks[peer];
    desk->work = *work;
    if (work->kind != KITH_WORK_TRAIN) {
        sim_block_forget(world, peer); /* it may fill its snapshots anew */
    }
    if (work->kind == KITH_WORK_SAVE) {
        desk->result =
            (struct kith_work_result){.kind = work->kind, .finite = true};
        desk->state = DESK_DONE;
        return;
    }
    if (crew->count == 1) {
        sim_ledger_before(world, peer);
        kith_worker_run(desk->worker, &desk->work, &desk->result);
        sim_ledger_after(world, peer, work->kind);
        desk->state = DESK_DONE;
        crew->items[0]++;
        return;
    }
    pthread_mutex_lock(&crew->lock);
    queue_put(crew, desk);
    pthread_cond_signal(&crew->queued);
    pthread_mutex_unlock(&crew->lock);
}

void sim_work_start(struct sim_world *world, kith_id id,
                    const struct kith_work *work)
{
    struct sim_peer *peer = &world->peers[id];
    KITH_ASSERT(!(peer->flags & SIM_WORKING));
    peer->flags |= SIM_WORKING;
    peer->work = (uint8_t)work->kind;
    if (work->kind == KITH_WORK_SAVE) {
        sim_save(world, id);
    }
    if (world->desks) {
        start_item(world, id, work);
    }
    const kith_ns cost_ns = cost_of(world, id, work);
    if (work->kind == KITH_WORK_TRAIN) {
        sim_tally_train(world, id, cost_ns);
    }
    if (cost_ns == 0) {
        peer->flags |= SIM_INSTANT;
        return;
    }
    sim_schedule(world, id, id, world->now_ns + cost_ns, SIM_EVENT_WORK_DONE,
                 peer->incarnation);
}

/* A data set that has gone ends the run: what came of it is nothing. Only steps
 * of training read it; a device may fail in any item. */
static void check_worker(struct sim_world *world, kith_id peer)
{
    if (world->peers[peer].work != KITH_WORK_TRAIN &&
        !world->experiment->backend->failed) {
        return;
    }
    const struct kith_worker *worker = world->desks[peer].worker;
    const char *failed = worker ? kith_worker_failed(worker) : NULL;
    if (failed) {
        sim_fail(world, KITH_EPARSE, "peer %u: %s", peer, failed);
    }
}

void sim_work_join(struct sim_world *world, kith_id peer)
{
    struct sim_crew *crew = world->crew;
    struct sim_desk *desk = &world->desks[peer];
    if (crew->count == 1) {
        desk->state = DESK_FREE;
        check_worker(world, peer);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    while (desk->state == DESK_QUEUED || desk->state == DESK_RUNNING) {
        if (desk->state == DESK_QUEUED) {
            run_item(crew, desk, 0);
        } else if (crew->first) {
            run_item(crew, crew->first, 0);
        } else {
            pthread_cond_wait(&crew->done, &crew->lock);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    check_worker(world, peer);
}

void sim_work_join_all(struct sim_world *world)
{
    for (kith_id peer = 0; world->desks && peer < world->peer_count; peer++) {
        sim_work_join(world, peer);
    }
}

void sim_work_counts(const struct sim_world *world, uint64_t *items)
{
    for (unsigned i = 0; world->crew && i < world->crew->count; i++) {
        items[i] = world->crew->items[i];
    }
}
