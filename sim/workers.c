/* Workers of the peers, and the vectors that they are lent. See workers.h. */
#include "sim/workers.h"

#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "kith/node.h"
#include "sim/threads.h"
#include "sim/world.h"

struct sim_workers {
    struct kith_worker **each; /* (peers) NULL: it has no process now */
    /* What steps need while they run, of each thread; NULL: of each peer. */
    struct kith_worker *lenders[SIM_THREADS_MAX];
    bool lends;         /* x and snapshots are copies of the pool */
    void *first;        /* one that all begin with; NULL: each its own */
    char *known;        /* (peers) what guards keep; NULL: each its own */
    size_t known_bytes; /* of each */
    bool ready;         /* all were opened: what opens now starts over */
    struct kith_shares shares; /* whose examples are whose; or nothing */
};

/* A received vector takes the inbox's place and gives it up to the next one.
 * What stands there is the simulator's own from the start, and nothing until
 * something came: a crash, which frees the worker's vectors, takes none with it
 * that is under way elsewhere, and memory is touched as messages need it. */
static void empty_inboxes(struct sim_world *world, kith_id peer, bool first)
{
    KITH_ASSERT(world->workers->each[peer] != NULL);
    const struct kith_node_config *config = sim_node_config(world);
    if (!config->algorithm || config->algorithm->pattern == KITH_PATTERN_NONE)
        return;
    struct kith_worker *worker = world->workers->each[peer];
    const uint32_t edges = kith_node_edges(config, peer);
    const uint32_t slots = KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * edges;
    for (uint32_t slot = 1; slot < slots; slot++) {
        if (!kith_slot_is_inbox(slot) || !kith_worker_uses(worker, slot))
            continue;
        void *vector = kith_worker_swap(worker, slot, NULL);
        if (!first)
            sim_copy_release(world, vector);
    }
}

static size_t known_bytes(const struct sim_world *world)
{
    KITH_ASSERT(world->workers != NULL);
    return world->workers->known_bytes * world->peer_count;
}

/* One mapping: each of its own would be one to make and to give back. */
static void *known_of(const struct sim_world *world, kith_id peer)
{
    const struct sim_workers *workers = world->workers;
    return workers->known ? workers->known + peer * workers->known_bytes : NULL;
}

/* Those that start over are told that they are alone: memory for all at once
 * was taken at the beginning. */
static struct kith_worker_config config_of(const struct sim_world *world,
                                           kith_id self)
{
    KITH_ASSERT(self < world->peer_count);
    const struct kith_node_config *config = sim_node_config(world);
    return (struct kith_worker_config){
        .task = kith_experiment_task(world->experiment, NULL),
        .backend = world->experiment->backend,
        .train = world->options.dataset ? &world->options.dataset->train : NULL,
        .self = self,
        .steps = world->steps,
        .edges_max = config->algorithm ? kith_node_edges(config, self) : 0,
        .peers = world->peer_count,
        .keeps = true,
        /* Those that start over find room where they stood. */
        .together = world->workers->ready ? 1 : world->here.count,
        .trainer = world->options.trainer,
        .shares = world->workers->shares.rows ? &world->workers->shares : NULL,
    };
}

static enum kith_err refuse(struct sim_world *world, kith_id self,
                            enum kith_err err, const char *text)
{
    KITH_ASSERT(self < world->peer_count);
    return err == KITH_OK ? err
                          : sim_fail(world, err, "peer %u: %s", self,
                                     text[0] ? text : kith_err_text(err));
}

static enum kith_err open_worker(struct sim_world *world,
                                 const struct kith_worker_config *config,
                                 struct kith_worker **worker)
{
    KITH_ASSERT(*worker == NULL);
    char text[KITH_DATA_ERROR_BYTES] = "";
    const enum kith_err err = kith_worker_open(config, worker, text);
    return refuse(world, config->self, err, text);
}

enum kith_err sim_worker_open(struct sim_world *world, kith_id self,
                              struct kith_worker **worker)
{
    const struct kith_worker_config config = config_of(world, self);
    return open_worker(world, &config, worker);
}

/* Thousands that are the same are one, until each has made its first step. */
static enum kith_err take_first(struct sim_world *world)
{
    struct sim_workers *workers = world->workers;
    const void *const first = kith_worker_first(workers->lenders[0]);
    KITH_ASSERT(workers->lends && !workers->first);
    if (!first)
        return KITH_OK;
    workers->first = sim_copy_of(
        world, first, world->dim * world->experiment->backend->element_bytes);
    return workers->first ? KITH_OK : KITH_ENOMEM;
}

/* What all have in common: whose examples are whose, and memory for the steps
 * that run at a time. A central method's gradients stand for longer. A split
 * that cannot be is each worker's own to refuse. */
static enum kith_err open_common(struct sim_world *world)
{
    struct sim_workers *workers = world->workers;
    const struct kith_dataset *dataset = world->options.dataset;
    struct kith_worker_config config = config_of(world, 0);
    enum kith_err err = KITH_OK;
    KITH_ASSERT(workers->shares.rows == NULL && !workers->ready);
    if (dataset && config.task.model->input != KITH_INPUT_NONE &&
        kith_split_shares(config.task.split, &dataset->train, config.task.seed,
                          config.peers, &workers->shares) == KITH_ENOMEM)
        return sim_fail(world, KITH_ENOMEM,
                        "no memory for whose rows are whose");
    if (world->central || !kith_worker_may_borrow(&config))
        return KITH_OK;
    config = config_of(world, 0); /* with its shares */
    for (unsigned i = 0; i < sim_work_threads(world) && err == KITH_OK; i++)
        err = open_worker(world, &config, &workers->lenders[i]);
    /* Sessions write what they open: there each message has its own copy. */
    workers->lends =
        err == KITH_OK && !world->channels && kith_worker_may_be_lent(&config);
    if (err == KITH_OK)
        workers->known_bytes =
            sim_pages_small(kith_worker_known_bytes(workers->lenders[0]));
    if (workers->known_bytes > 0)
        workers->known = sim_pages_sparse(known_bytes(world));
    if (workers->lends) {
        const size_t bytes = kith_worker_vector_bytes(workers->lenders[0]);
        world->vector_bytes =
            bytes > world->vector_bytes ? bytes : world->vector_bytes;
        return take_first(world);
    }
    return err;
}

/* ---- vectors of the pool, where workers stand in them */

/* What is taken back is there: end_slots() has not been too early. */
static void check_undo(struct kith_worker *worker, const struct kith_work *work)
{
    KITH_ASSERT(work->kind == KITH_WORK_UNDO);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        KITH_ASSERT(edge->inbox == KITH_SLOT_NONE ||
                    kith_worker_slot(worker, edge->inbox) != NULL);
        KITH_ASSERT(edge->sent == KITH_SLOT_NONE ||
                    kith_worker_slot(worker, edge->sent) != NULL);
    }
}

/* What this item may need; false: there is no memory for it, and the run has
 * failed. */
bool sim_worker_lend(struct sim_world *world, kith_id peer,
                     const struct kith_work *work, bool prepared)
{
    struct kith_worker *worker = world->workers->each[peer];
    if (!world->workers->lends)
        return true;
    if (work->kind == KITH_WORK_UNDO)
        check_undo(worker, work);
    void *const x = kith_worker_lent_x(worker);
    const bool is_first = x == world->workers->first;
    const bool held = !is_first && sim_copy_is_held(x);
    if (!held && !is_first)
        sim_copy_write(world, x);
    const unsigned wanted = kith_worker_wants(worker, work, prepared, held);
    for (unsigned i = 0; i < wanted; i++) {
        void *vector = sim_copy_take(world);
        if (!vector)
            return false;
        kith_worker_lend(worker, vector);
    }
    return true;
}

void sim_worker_take_back(struct sim_world *world, kith_id peer)
{
    struct kith_worker *worker = world->workers->each[peer];
    KITH_ASSERT(worker != NULL);
    void *vector;
    while ((vector = kith_worker_left(worker)) != NULL)
        sim_copy_release(world, vector);
}

/* An item that may yet read its vectors is waited for: the next step asks
 * again. */
static bool may_settle(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(world->workers && peer < world->peer_count);
    return world->workers->lends && sim_is_here(world, peer) &&
           sim_work_rests(world, peer);
}

/* What stands in these of its slots nobody asks for. */
static void end_slots(struct sim_world *world, kith_id peer, uint32_t slots)
{
    struct kith_worker *worker = world->workers->each[peer];
    if (slots == 0 || !may_settle(world, peer))
        return;
    for (slots &= kith_worker_holds(worker); slots != 0; slots &= slots - 1) {
        const uint32_t slot = (uint32_t)__builtin_ctz(slots);
        if (kith_slot_is_inbox(slot))
            sim_copy_release(world, kith_worker_swap(worker, slot, NULL));
        else
            kith_worker_end_slot(worker, slot);
    }
    sim_worker_take_back(world, peer);
}

/* Whose exchange is over stands in no snapshot and reads no inbox any more. */
void sim_worker_settle(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(world->workers && peer < world->peer_count);
    end_slots(world, peer, ~kith_node_needed(sim_node_at(world, peer)));
}

/* Both have merged, or say so: who tells lies may yet take its half back. A
 * search among all links is not worth a vector of a few lines. */
#define WORTH_BYTES 256u

void sim_worker_settle_swap(struct sim_world *world, kith_id peer,
                            const struct kith_mark *mark)
{
    KITH_ASSERT(world->workers && mark->peer != peer);
    const kith_id responder = mark->initiator ? mark->peer : peer;
    const kith_id initiator = mark->initiator ? peer : mark->peer;
    if (!world->workers->lends || world->vector_bytes < WORTH_BYTES ||
        !sim_alive(world, mark->peer) || !sim_is_honest(world, peer) ||
        !sim_is_honest(world, mark->peer))
        return;
    const struct kith_settled settled = kith_node_settled(
        sim_node_at(world, responder), sim_node_at(world, initiator), mark->id);
    if ((settled.answered | settled.initiated) == 0 ||
        (settled.by_ns != KITH_NEVER &&
         !sim_link_delivers(world, responder, initiator, settled.by_ns)))
        return;
    end_slots(world, responder, settled.answered);
    end_slots(world, initiator, settled.initiated);
}

/* From x on, or vectors of its own; with the reason in `text`. By what the
 * thread of that number lends. */
static enum kith_err begin_at(struct sim_world *world, kith_id peer, void *x,
                              unsigned thread, char *text)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_workers *workers = world->workers;
    KITH_ASSERT(workers->each[peer] == NULL);
    struct kith_worker_config config = config_of(world, peer);
    config.lender = workers->lenders[thread];
    config.known = known_of(world, peer);
    config.x = x;
    config.x_is_first = x && x == workers->first;
    const enum kith_err err =
        kith_worker_open(&config, &workers->each[peer], text);
    if (err == KITH_OK)
        empty_inboxes(world, peer, true);
    return err;
}

/* A peer's vectors are made anew from the seed; what it goes on from is written
 * into them afterwards. */
enum kith_err sim_worker_begin(struct sim_world *world, kith_id peer)
{
    char text[KITH_DATA_ERROR_BYTES] = "";
    void *const x = world->workers->lends ? sim_copy_take(world) : NULL;
    KITH_ASSERT(world->workers->each[peer] == NULL);
    if (world->workers->lends && !x)
        return KITH_ENOMEM;
    return refuse(world, peer, begin_at(world, peer, x, 0, text), text);
}

/* Peers that begin on one thread. */
struct beginning {
    kith_id peer; /* the last one, whose error it is */
    enum kith_err err;
    char text[KITH_DATA_ERROR_BYTES];
};
struct beginnings {
    struct sim_world *world;
    unsigned shares;
    struct beginning each[SIM_THREADS_MAX];
};

static void begin_share(void *context, unsigned i)
{
    struct beginnings *all = context;
    struct beginning *own = &all->each[i];
    struct sim_world *world = all->world;
    const uint64_t count = world->here.count;
    const uint64_t end = count * (i + 1) / all->shares;
    KITH_ASSERT(i < all->shares && own->err == KITH_OK);
    for (uint64_t k = count * i / all->shares; k < end; k++) {
        own->peer = world->here.first + (kith_id)k;
        own->err =
            begin_at(world, own->peer, world->workers->first, i, own->text);
        if (own->err != KITH_OK)
            return;
    }
}

/* What is not one vector for all is taken from the pool in turn. */
enum kith_err sim_workers_begin(struct sim_world *world)
{
    const kith_id first = world->here.first, end = first + world->here.count;
    struct beginnings all = {.world = world, .shares = sim_work_threads(world)};
    enum kith_err err = KITH_OK;
    KITH_ASSERT(!world->workers->ready);
    if (world->workers->first) {
        for (kith_id peer = first; peer < end; peer++)
            (void)sim_copy_hold(world->workers->first);
        sim_share_out(all.shares, begin_share, &all);
        for (unsigned i = 0; i < all.shares && err == KITH_OK; i++)
            err = refuse(world, all.each[i].peer, all.each[i].err,
                         all.each[i].text);
    } else {
        for (kith_id peer = first; peer < end && err == KITH_OK; peer++)
            err = sim_worker_begin(world, peer);
    }
    world->workers->ready = err == KITH_OK;
    return err;
}

/* Its inboxes are copies of the pool: they go back before the worker frees what
 * is its own. */
void sim_worker_end(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    struct sim_workers *workers = world->workers;
    struct kith_worker *worker = workers->each[peer];
    sim_copy_forget(world, peer);
    if (!worker)
        return;
    empty_inboxes(world, peer, false);
    for (uint32_t slot = 0; workers->lends && slot <= KITH_SLOT_ROUND_SENT;
         slot++)
        if (!kith_slot_is_inbox(slot))
            kith_worker_end_slot(worker, slot);
    sim_worker_take_back(world, peer);
    kith_worker_close(worker);
    workers->each[peer] = NULL;
}

/* For who starts over. */
void sim_worker_forget(struct sim_world *world, kith_id peer)
{
    void *const known = known_of(world, peer);
    KITH_ASSERT(world->workers->each[peer] == NULL);
    const size_t bytes = world->workers->known_bytes;
    if (known && !sim_pages_forget(known, bytes))
        memset(known, 0, bytes);
}

/* What stood in x and the snapshots at the beginning is given back. */
void sim_worker_move(struct sim_world *world, kith_id peer,
                     struct kith_archive *archive)
{
    struct kith_worker *worker = world->workers->each[peer];
    KITH_ASSERT(worker != NULL);
    void *const x = archive->reads && world->workers->lends
                        ? kith_worker_lent_x(worker)
                        : NULL;
    kith_worker_archive(worker, archive);
    if (x && !archive->failed)
        sim_copy_release(world, x);
}

bool sim_workers_lend(const struct sim_world *world)
{
    KITH_ASSERT(world->workers != NULL);
    return world->workers->lends;
}

void *sim_workers_first(const struct sim_world *world)
{
    KITH_ASSERT(!world->workers || !world->workers->first ||
                world->workers->lends);
    return world->workers ? world->workers->first : NULL;
}

struct kith_worker *sim_peer_worker(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    return world->workers ? world->workers->each[peer] : NULL;
}

struct kith_worker *const *sim_workers_lenders(const struct sim_world *world)
{
    KITH_ASSERT(world->workers != NULL);
    return world->workers->lenders;
}

enum kith_err sim_workers_open(struct sim_world *world)
{
    KITH_ASSERT(world->workers == NULL);
    if (world->dim == 0)
        return KITH_OK;
    struct sim_workers *workers = sim_alloc(world, 1, sizeof *workers);
    if (!workers)
        return KITH_ENOMEM;
    world->workers = workers;
    workers->each = sim_alloc(world, world->peer_count, sizeof *workers->each);
    return workers->each ? open_common(world) : KITH_ENOMEM;
}

/* The pages of many peers: most of what it takes to give them back. What the
 * system keeps goes with the mapping. */
static void forget_share(void *context, unsigned i)
{
    struct sim_world *world = context;
    const unsigned shares = sim_work_threads(world);
    const uint64_t from = world->peer_count * (uint64_t)i / shares;
    const uint64_t to = world->peer_count * (uint64_t)(i + 1) / shares;
    const size_t each = world->workers->known_bytes;
    KITH_ASSERT(i < shares && each > 0);
    if (to > from)
        (void)sim_pages_forget(world->workers->known + from * each,
                               (to - from) * each);
}

/* After those that borrow. */
void sim_workers_close(struct sim_world *world)
{
    struct sim_workers *workers = world->workers;
    for (unsigned i = 0; workers && i < SIM_THREADS_MAX; i++)
        kith_worker_close(workers->lenders[i]);
    if (!workers)
        return;
    if (workers->known) {
        sim_share_out(sim_work_threads(world), forget_share, world);
        sim_pages_sparse_free(workers->known, known_bytes(world));
    }
    kith_shares_free(&workers->shares);
}
