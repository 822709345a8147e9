/* One run by several processes: kith/ranks.h. Here, in rank_log.c and in
 * rank_models.c messages between them are sent, and nowhere else.
 *
 * Every rank carries out every event, for all nodes: what happens next is a
 * function of the experiment, so that all know at the same event who has to say
 * what to whom, and no message needs a header. What differs is who has vectors:
 * rank r of k those of the peers r n / k up to (r + 1) n / k. So a rank tells
 *
 *   all others   of its peers' items the results, of their messages whether
 *                they are finite: bytes of its log, a page at a time, since a
 *                step of all costs many small ones
 *   one other    a model that a peer there is sent
 *
 * While it waits it runs items of its own peers. No event waits for a rank
 * that has not come to it but where a value is needed: a rank may be ahead.
 *
 * Sums of models are handed from rank to rank in the order of the peers, so
 * that they are one process's, to the bit. */
#include "sim/sim_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "kith/assert.h"
#include "kith/build.h"
#include "kith/check.h"
#include "kith/hash.h"
#include "sim/world.h"

/* A rank that has found nothing to do so often sleeps between two looks. */
#define PATIENCE 200u
#define NAP_NS 20000

struct failure {
    int err;
    char text[SIM_ERROR_BYTES];
};

struct sim_ranks {
    const struct kith_ranks *all;
    struct failure failure; /* what the others are told */
    bool is_told;           /* another rank has failed first */
};

/* ---- who has whom */

uint32_t sim_ranks_self(const struct sim_world *world)
{
    return world->ranks ? world->ranks->all->rank : 0;
}

const struct kith_ranks *sim_ranks_all(const struct sim_world *world)
{
    return world->ranks ? world->ranks->all : NULL;
}

/* Blocks, not every k-th: neighbours on a ring or in a region are of one rank
 * mostly, and their models need not travel. */
static kith_id first_of(const struct sim_world *world, uint32_t rank)
{
    KITH_ASSERT(rank <= world->ranks->all->count);
    KITH_ASSERT(world->ranks->all->count <= world->peer_count);
    return (kith_id)((uint64_t)rank * world->peer_count /
                     world->ranks->all->count);
}

uint32_t sim_rank_of(const struct sim_world *world, kith_id peer)
{
    const uint64_t count = world->ranks ? world->ranks->all->count : 1;
    KITH_ASSERT(peer < world->peer_count);
    const uint32_t rank =
        (uint32_t)(((peer + UINT64_C(1)) * count - 1) / world->peer_count);
    KITH_DEBUG_ASSERT(!world->ranks || (first_of(world, rank) <= peer &&
                                        peer < first_of(world, rank + 1)));
    return rank;
}
/* ---- the end */

bool sim_ranks_linger(const struct sim_world *world)
{
    return world->ranks && sim_failure(world) != KITH_OK;
}

/* As another one's: this rank itself is well, and its own words would be said
 * beside those. */
static void hear_failure(struct sim_world *world, uint32_t from)
{
    struct sim_ranks *ranks = world->ranks;
    struct failure failure = {.err = KITH_ECLOSED};
    size_t size;
    KITH_ASSERT(from < ranks->all->count && from != ranks->all->rank);
    KITH_ASSERT(!ranks->is_told);
    void *const request = ranks->all->module->receive(from, KITH_RANKS_FAILURE,
                                                      &failure, sizeof failure);
    while (!ranks->all->module->done(request, &size))
        thrd_yield();
    KITH_ASSERT(size == sizeof failure && failure.err != KITH_OK);
    ranks->is_told = true;
    sim_fail(world, (enum kith_err)failure.err, "rank %u: %.900s", from,
             failure.text);
}

/* A signal ends this rank at an event where others are not: there is no moment
 * at which all could be evaluated. */
bool sim_ranks_look(struct sim_world *world)
{
    struct sim_ranks *ranks = world->ranks;
    uint32_t from;
    KITH_ASSERT(ranks != NULL);
    if (sim_failure(world) != KITH_OK)
        return false;
    if (world->options.stop && *world->options.stop &&
        !sim_saves_takes_signals(world))
        sim_fail(world, KITH_ECLOSED,
                 "ended by a signal at %.6f s of virtual time; a run of "
                 "several ranks is not evaluated then: what there is of it is "
                 "rows up to there",
                 1e-9 * (double)sim_time(world));
    else if (ranks->all->module->look(KITH_RANKS_FAILURE, &from))
        hear_failure(world, from);
    return sim_failure(world) == KITH_OK;
}

/* They look for it wherever they wait. One that is gone does not. */
static void tell_failure(struct sim_world *world, enum kith_err err,
                         const char *error)
{
    struct sim_ranks *ranks = world->ranks;
    KITH_ASSERT(err != KITH_OK);
    if (ranks->is_told)
        return;
    ranks->failure.err = err;
    (void)snprintf(ranks->failure.text, sizeof ranks->failure.text, "%s",
                   error[0] ? error : kith_err_text(err));
    for (uint32_t to = 0; to < ranks->all->count; to++) {
        if (to == ranks->all->rank)
            continue;
        void *const request = ranks->all->module->send(
            to, KITH_RANKS_FAILURE, &ranks->failure, sizeof ranks->failure);
        size_t size;
        for (unsigned i = 0;
             i < PATIENCE && !ranks->all->module->done(request, &size); i++)
            thrd_yield();
    }
}
/* ---- waiting */

/* What is awaited may need this very core. */
static void rest(unsigned *looks)
{
    KITH_ASSERT(*looks < UINT32_MAX);
    if (++*looks < PATIENCE)
        thrd_yield();
    else
        (void)thrd_sleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* false: the run has failed, and the request is still out. */
bool sim_ranks_wait(struct sim_world *world, void *request, size_t *size)
{
    const struct kith_ranks_module *module = world->ranks->all->module;
    unsigned looks = 0;
    KITH_ASSERT(request != NULL);
    if (sim_failure(world) != KITH_OK)
        return false;
    sim_log_flush(world);
    while (!module->done(request, size)) {
        if (!sim_ranks_look(world))
            return false;
        if (!sim_work_help(world))
            rest(&looks);
    }
    return true;
}

/* ---- evaluations */

/* Values that leave or come, in memory of their own: where the run fails while
 * they are under way MPI is still at it, and the caller's is gone by then. */
static void *travel_begin(struct sim_world *world, size_t size)
{
    void *travelling = NULL;
    KITH_ASSERT(size > 0 && size <= KITH_RANKS_BYTES_MAX);
    if (sim_failure(world) == KITH_OK && !(travelling = malloc(size)))
        sim_fail(world, KITH_ENOMEM, "no memory for %zu bytes of an evaluation",
                 size);
    return travelling;
}

/* Once the run has failed nobody is there to take it, or gives any: every rank
 * comes to its end alone. */
static void give(struct sim_world *world, uint32_t to, const void *values,
                 size_t size)
{
    const struct kith_ranks_module *module = world->ranks->all->module;
    size_t left;
    void *const leaving = travel_begin(world, size);
    KITH_ASSERT(to != world->ranks->all->rank);
    if (!leaving)
        return;
    memcpy(leaving, values, size);
    void *const request = module->send(to, KITH_RANKS_VALUES, leaving, size);
    if (sim_ranks_wait(world, request, &left))
        free(leaving);
}

static void take(struct sim_world *world, uint32_t from, void *values,
                 size_t size)
{
    const struct kith_ranks_module *module = world->ranks->all->module;
    size_t came;
    void *const coming = travel_begin(world, size);
    KITH_ASSERT(from != world->ranks->all->rank);
    if (!coming)
        return;
    void *const request =
        module->receive(from, KITH_RANKS_VALUES, coming, size);
    if (!sim_ranks_wait(world, request, &came))
        return;
    KITH_ASSERT(came == size);
    memcpy(values, coming, size);
    free(coming);
}

void sim_ranks_share(struct sim_world *world, uint32_t owner, void *values,
                     size_t size)
{
    const struct kith_ranks *all = world->ranks->all;
    KITH_ASSERT(owner < all->count);
    for (uint32_t to = 0; to < all->count && all->rank == owner; to++)
        if (to != owner)
            give(world, to, values, size);
    if (all->rank != owner)
        take(world, owner, values, size);
}

bool sim_ranks_take_over(struct sim_world *world, void *values, size_t size)
{
    const uint32_t self = world->ranks->all->rank;
    KITH_ASSERT(self < world->ranks->all->count);
    if (self > 0)
        take(world, self - 1, values, size);
    return self > 0;
}

void sim_ranks_hand_on(struct sim_world *world, void *values, size_t size)
{
    const struct kith_ranks *all = world->ranks->all;
    KITH_ASSERT(all->count > 1);
    if (all->rank + 1 < all->count)
        give(world, all->rank + 1, values, size);
    sim_ranks_share(world, all->count - 1, values, size);
}

void sim_ranks_compare(struct sim_world *world, uint64_t hash, const char *what)
{
    const struct kith_ranks *all = world->ranks->all;
    KITH_ASSERT(what[0] != '\0');
    if (all->rank > 0)
        give(world, 0, &hash, sizeof hash);
    for (uint32_t from = 1; from < all->count && all->rank == 0; from++) {
        uint64_t theirs = hash;
        take(world, from, &theirs, sizeof theirs);
        if (theirs != hash)
            sim_fail(world, KITH_EMISMATCH, "rank %u has %s than rank 0", from,
                     what);
    }
}
/* ---- beginning and end */

/* What all must have alike, keys too that peers of a run may differ in. That
 * they see the same files is not known before. */
static uint64_t hash_of(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_ASSERT(experiment->peers == world->peer_count);
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, experiment->source,
                                    experiment->source_bytes);
    hash = kith_hash_word(hash, kith_experiment_hash(experiment));
    hash = kith_hash_word(hash, world->dim);
    hash = kith_hash_word(hash, kith_experiment_files_hash(experiment));
    hash = kith_dataset_hash(hash, world->options.dataset);
    return kith_build_hash(hash);
}

enum kith_err sim_ranks_open(struct sim_world *world)
{
    const struct kith_ranks *all = world->options.ranks;
    KITH_ASSERT(world->ranks == NULL);
    if (!all || all->count <= 1)
        return KITH_OK;
    struct sim_ranks *ranks = sim_alloc(world, 1, sizeof *ranks);
    if (!ranks)
        return KITH_ENOMEM;
    KITH_ASSERT(all->rank < all->count && all->module != NULL);
    world->ranks = ranks;
    ranks->all = all;
    world->here.first = first_of(world, all->rank);
    world->here.count = first_of(world, all->rank + 1) - world->here.first;
    KITH_ASSERT(world->here.count > 0);
    sim_ranks_compare(world, hash_of(world),
                      "another experiment, data set or build of kith");
    return sim_failure(world);
}

enum kith_err sim_ranks_end(struct sim_world *world, enum kith_err err,
                            const char *error)
{
    if (err == KITH_OK) {
        sim_models_await_all(world);
        sim_log_end(world);
        err = sim_failure(world);
    }
    if (err != KITH_OK)
        tell_failure(world, err, error);
    return err;
}

/* ---- what cannot be divided */

/* Parts that look at vectors of many peers at an event of any of them. */
const char *sim_undivided(const struct sim_options *options)
{
    const struct kith_experiment *experiment = options->experiment;
    KITH_ASSERT(experiment->check_count <= KITH_CHECKS_MAX);
    if (experiment->central.present)
        return "a central method";
    if (options->wire == KITH_WIRE_FULL)
        return "wire: full";
    if (options->dump_path)
        return "--dump";
    if (options->observe || options->trainer || options->evaluated)
        return "a caller that looks at models";
    if (options->ledger != SIM_LEDGER_NONE)
        return "the ledger";
    if (kith_checks_ask(experiment, "conserved"))
        return "a check of what is conserved";
    if (experiment->gossip.coefficients[KITH_GOSSIP_BUCKETS] >= 2)
        return "gossip.buckets";
    return NULL;
}

enum kith_err sim_check_ranks(const struct sim_options *options, char *error)
{
    const struct kith_experiment *experiment = options->experiment;
    const uint32_t count = options->ranks ? options->ranks->count : 1;
    KITH_ASSERT(count >= 1 && experiment->peers >= 1);
    const char *const what = count > 1 ? sim_undivided(options) : NULL;
    const size_t dim =
        kith_model_size_of(experiment->model, &experiment->model_config).dim;
    if (what) {
        (void)snprintf(error, SIM_ERROR_BYTES,
                       "%s is not divided among %u ranks: run it in one "
                       "process, with --threads",
                       what, count);
        return KITH_EUNSUPPORTED;
    }
    if (count > experiment->peers) {
        (void)snprintf(error, SIM_ERROR_BYTES,
                       "found %u ranks and %u peers; allowed: a peer a rank, "
                       "or more",
                       count, experiment->peers);
        return KITH_EUNSUPPORTED;
    }
    if (count > 1 && dim > KITH_RANKS_BYTES_MAX / sizeof(double)) {
        (void)snprintf(error, SIM_ERROR_BYTES,
                       "a model of %zu values is not divided among ranks; "
                       "allowed: up to %zu",
                       dim, KITH_RANKS_BYTES_MAX / sizeof(double));
        return KITH_EUNSUPPORTED;
    }
    return KITH_OK;
}
