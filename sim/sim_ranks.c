/* One run by several processes: kith/ranks.h. Alone here messages between them
 * are sent.
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
 * Before it waits or computes it sends what its page has: others may wait for
 * it. While it waits it runs items of its own peers. No event waits for a rank
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
#include "kith/hash.h"
#include "sim/world.h"

/* What MPI takes at once, without asking its receiver first. */
#define PAGE_BYTES 3968u
/* A rank that has found nothing to do so often sleeps between two looks. */
#define PATIENCE 200u
#define NAP_NS 20000

struct page {
    struct page *next; /* of those that are leaving, or are not in use */
    size_t used;
    uint8_t bytes[PAGE_BYTES];
    void *requests[]; /* (ranks) NULL: has left */
};

/* Another rank's log. */
struct hearing {
    void *request; /* the next page's; NULL: this one is not read yet */
    size_t at, size;
    void **copies; /* that wait for their byte: (capacity), a ring */
    size_t first, count, capacity;
    uint8_t bytes[PAGE_BYTES];
};

struct journey {
    void *request, *copy;
};
struct journeys {
    struct journey *each; /* (capacity) */
    size_t count, capacity;
    size_t looked; /* at so many all are asked for whether they have ended */
};

struct failure {
    int err;
    char text[SIM_ERROR_BYTES];
};

struct sim_ranks {
    const struct kith_ranks *all;
    struct page *page, *leaving, *unused;
    struct hearing *heard; /* (ranks) */
    struct journeys sent, coming;
    struct failure failure; /* what the others are told */
    bool is_told;           /* another rank has failed first */
};

/* ---- who has whom */

uint32_t sim_ranks_self(const struct sim_world *world)
{
    return world->ranks ? world->ranks->all->rank : 0;
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
    const uint64_t count = world->ranks->all->count;
    KITH_ASSERT(peer < world->peer_count);
    const uint32_t rank =
        (uint32_t)(((peer + UINT64_C(1)) * count - 1) / world->peer_count);
    KITH_DEBUG_ASSERT(first_of(world, rank) <= peer &&
                      peer < first_of(world, rank + 1));
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
    if (world->options.stop && *world->options.stop)
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

/* Asked again and again: MPI is told once. */
static bool has_left(const struct kith_ranks *all, void **request)
{
    size_t size;
    KITH_ASSERT(all->module != NULL);
    if (*request && all->module->done(*request, &size))
        *request = NULL;
    return *request == NULL;
}

/* There are as many as are under way at a time: few, unless one rank computes
 * for long while another goes on. */
static struct page *fresh_page(struct sim_world *world)
{
    struct sim_ranks *ranks = world->ranks;
    struct page *page = ranks->unused;
    if (page)
        ranks->unused = page->next;
    else if (!(page = calloc(1, sizeof *page + ranks->all->count *
                                                   sizeof page->requests[0])))
        sim_fail(world, KITH_ENOMEM, "no memory for what ranks are told");
    KITH_ASSERT(!page || page->used == 0);
    return page;
}

/* Pages that have left everywhere, in the order in which they did. */
static void reuse_pages(struct sim_ranks *ranks)
{
    while (ranks->leaving) {
        struct page *page = ranks->leaving;
        KITH_ASSERT(page->requests[ranks->all->rank] == NULL);
        for (uint32_t to = 0; to < ranks->all->count; to++)
            if (!has_left(ranks->all, &page->requests[to]))
                return;
        ranks->leaving = page->next;
        page->used = 0;
        page->next = ranks->unused;
        ranks->unused = page;
    }
}

/* To each other rank by a message of its own: a broadcast would make those that
 * are ahead wait for those that are not. */
static void send_page(struct sim_world *world, struct page *page)
{
    struct sim_ranks *ranks = world->ranks;
    struct page **last = &ranks->leaving;
    KITH_ASSERT(page != ranks->page && page->used <= PAGE_BYTES);
    for (uint32_t to = 0; to < ranks->all->count; to++)
        if (to != ranks->all->rank)
            page->requests[to] = ranks->all->module->send(
                to, KITH_RANKS_LOG, page->bytes, page->used);
    reuse_pages(ranks);
    while (*last)
        last = &(*last)->next;
    page->next = NULL;
    *last = page;
}

void sim_ranks_flush(struct sim_world *world)
{
    struct sim_ranks *ranks = world->ranks;
    struct page *page = ranks->page;
    if (!page || page->used == 0)
        return;
    ranks->page = NULL;
    send_page(world, page);
}

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
static bool wait_for(struct sim_world *world, void *request, size_t *size)
{
    const struct kith_ranks_module *module = world->ranks->all->module;
    unsigned looks = 0;
    KITH_ASSERT(request != NULL);
    if (sim_failure(world) != KITH_OK)
        return false;
    sim_ranks_flush(world);
    while (!module->done(request, size)) {
        if (!sim_ranks_look(world))
            return false;
        if (!sim_work_help(world))
            rest(&looks);
    }
    return true;
}

/* ---- the log */

void sim_ranks_put(struct sim_world *world, const void *bytes, size_t size)
{
    struct sim_ranks *ranks = world->ranks;
    const uint8_t *from = bytes;
    KITH_ASSERT(ranks != NULL && bytes != NULL);
    while (size > 0) {
        if (!ranks->page && !(ranks->page = fresh_page(world)))
            return;
        struct page *page = ranks->page;
        const size_t room = PAGE_BYTES - page->used;
        const size_t part = size < room ? size : room;
        KITH_ASSERT(part > 0);
        memcpy(page->bytes + page->used, from, part);
        page->used += part;
        from += part;
        size -= part;
        if (page->used == PAGE_BYTES)
            sim_ranks_flush(world);
    }
}

/* One page ahead: MPI keeps those that come before they are asked for. */
static void listen_to(struct sim_ranks *ranks, uint32_t rank)
{
    struct hearing *heard = &ranks->heard[rank];
    KITH_ASSERT(rank != ranks->all->rank);
    KITH_ASSERT(heard->request == NULL && heard->at == heard->size);
    heard->request = ranks->all->module->receive(rank, KITH_RANKS_LOG,
                                                 heard->bytes, PAGE_BYTES);
}

/* What was put in parts may be read in others: it is bytes. */
static bool read_log(struct sim_world *world, uint32_t rank, void *bytes,
                     size_t size)
{
    struct hearing *heard = &world->ranks->heard[rank];
    uint8_t *into = bytes;
    KITH_ASSERT(rank != world->ranks->all->rank);
    while (size > 0) {
        if (heard->request) {
            if (!wait_for(world, heard->request, &heard->size))
                return false;
            KITH_ASSERT(heard->size > 0); /* no log ends before its reader */
            heard->request = NULL;
            heard->at = 0;
        }
        const size_t left = heard->size - heard->at;
        const size_t part = size < left ? size : left;
        KITH_ASSERT(part > 0 && heard->at + part <= PAGE_BYTES);
        memcpy(into, heard->bytes + heard->at, part);
        heard->at += part;
        into += part;
        size -= part;
        if (heard->at == heard->size)
            listen_to(world->ranks, rank);
    }
    return true;
}

void sim_ranks_expect(struct sim_world *world, uint32_t rank, void *copy)
{
    struct hearing *heard = &world->ranks->heard[rank];
    KITH_ASSERT(rank < world->ranks->all->count && copy != NULL);
    KITH_ASSERT(heard->count <= heard->capacity);
    if (heard->count == heard->capacity) {
        const size_t capacity = 2 * heard->capacity + 64;
        void **copies = malloc(capacity * sizeof *copies);
        if (!copies) {
            sim_fail(world, KITH_ENOMEM, "no memory for %zu models under way",
                     capacity);
            return;
        }
        for (size_t i = 0; i < heard->count; i++)
            copies[i] = heard->copies[(heard->first + i) % heard->capacity];
        free(heard->copies);
        heard->copies = copies;
        heard->first = 0;
        heard->capacity = capacity;
    }
    heard->copies[(heard->first + heard->count++) % heard->capacity] =
        sim_copy_hold(copy);
}

/* In the order in which the other rank has put them. */
bool sim_ranks_hear(struct sim_world *world, uint32_t rank)
{
    struct hearing *heard = &world->ranks->heard[rank];
    uint8_t byte;
    KITH_ASSERT(heard->count > 0 || sim_failure(world) != KITH_OK);
    if (heard->count == 0 || !read_log(world, rank, &byte, 1))
        return false;
    KITH_ASSERT(byte <= 1);
    void *copy = heard->copies[heard->first];
    heard->first = (heard->first + 1) % heard->capacity;
    heard->count--;
    sim_copy_told(world, copy, byte != 0);
    sim_copy_release(world, copy);
    return true;
}

void sim_ranks_get(struct sim_world *world, uint32_t rank, void *bytes,
                   size_t size)
{
    const struct hearing *heard = &world->ranks->heard[rank];
    bool goes_on = true;
    KITH_ASSERT(size > 0);
    while (goes_on && heard->count > 0)
        goes_on = sim_ranks_hear(world, rank);
    if (goes_on)
        (void)read_log(world, rank, bytes, size);
}

/* ---- models */

/* The last one takes its place. */
static void arrive(struct sim_world *world, struct journeys *journeys, size_t i)
{
    struct journey *journey = &journeys->each[i];
    const bool comes = journeys == &world->ranks->coming;
    KITH_ASSERT(i < journeys->count);
    KITH_ASSERT(!comes || *sim_copy_coming(journey->copy) == i + 1);
    if (comes)
        *sim_copy_coming(journey->copy) = 0;
    sim_copy_release(world, journey->copy);
    *journey = journeys->each[--journeys->count];
    if (comes && i < journeys->count)
        *sim_copy_coming(journey->copy) = (uint32_t)i + 1;
}

/* Those of messages that nobody waits for are found here. */
static void look_at_all(struct sim_world *world, struct journeys *journeys)
{
    size_t size;
    KITH_ASSERT(journeys->count <= journeys->capacity);
    for (size_t i = journeys->count; i-- > 0;)
        if (world->ranks->all->module->done(journeys->each[i].request, &size))
            arrive(world, journeys, i);
    journeys->looked = 2 * journeys->count + 64;
}

/* Its holder until then: the pool must not lend it to anybody else. */
static void depart(struct sim_world *world, struct journeys *journeys,
                   void *request, void *copy)
{
    KITH_ASSERT(request != NULL && copy != NULL);
    if (journeys->count >= journeys->looked)
        look_at_all(world, journeys);
    if (journeys->count == journeys->capacity) {
        const size_t capacity = 2 * journeys->capacity + 64;
        struct journey *each = realloc(journeys->each, capacity * sizeof *each);
        if (!each) { /* the copy stays held: the run has failed */
            sim_fail(world, KITH_ENOMEM, "no memory for %zu models under way",
                     capacity);
            return;
        }
        journeys->each = each;
        journeys->capacity = capacity;
    }
    journeys->each[journeys->count++] = (struct journey){request, copy};
}

void sim_ranks_send(struct sim_world *world, uint32_t rank, void *copy,
                    size_t bytes)
{
    struct sim_ranks *ranks = world->ranks;
    KITH_ASSERT(rank != ranks->all->rank && bytes <= world->vector_bytes);
    void *const request =
        ranks->all->module->send(rank, KITH_RANKS_MODEL, copy, bytes);
    depart(world, &ranks->sent, request, sim_copy_hold(copy));
}

void sim_ranks_receive(struct sim_world *world, uint32_t rank, void *copy,
                       size_t bytes)
{
    struct sim_ranks *ranks = world->ranks;
    KITH_ASSERT(rank != ranks->all->rank && bytes <= world->vector_bytes);
    KITH_ASSERT(*sim_copy_coming(copy) == 0);
    void *const request =
        ranks->all->module->receive(rank, KITH_RANKS_MODEL, copy, bytes);
    depart(world, &ranks->coming, request, sim_copy_hold(copy));
    *sim_copy_coming(copy) = (uint32_t)ranks->coming.count;
}

/* The receiver's engine may be ahead of the sender's: then this is where it
 * waits. */
void sim_ranks_await(struct sim_world *world, void *copy)
{
    struct journeys *coming = &world->ranks->coming;
    const uint32_t place = *sim_copy_coming(copy);
    size_t size;
    KITH_ASSERT(place <= coming->count);
    if (place > 0 && wait_for(world, coming->each[place - 1].request, &size))
        arrive(world, coming, place - 1);
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
    if (wait_for(world, request, &left))
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
    if (!wait_for(world, request, &came))
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

/* What all must have alike. That they see the same files is not known before.
 */
static uint64_t hash_of(const struct sim_world *world)
{
    const struct kith_dataset *dataset = world->options.dataset;
    KITH_ASSERT(world->experiment->peers == world->peer_count);
    uint64_t hash =
        kith_hash_word(kith_experiment_hash(world->experiment), world->dim);
    hash = kith_hash_word(hash, dataset ? dataset->train.count : 0);
    hash = kith_hash_word(hash, dataset ? dataset->test.count : 0);
    return kith_hash_bytes(hash, kith_build(), strlen(kith_build()));
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
    ranks->heard = calloc(all->count, sizeof *ranks->heard);
    KITH_ASSERT(world->here.count > 0);
    if (!ranks->heard)
        return KITH_ENOMEM;
    for (uint32_t rank = 0; rank < all->count; rank++)
        if (rank != all->rank)
            listen_to(ranks, rank);
    sim_ranks_compare(world, hash_of(world),
                      "another experiment, data set or build of kith");
    return sim_failure(world);
}

/* Models of messages that nobody has delivered, too: all ranks have had the
 * same events, so that each was sent and is received. */
static void await_all(struct sim_world *world, struct journeys *journeys)
{
    size_t size;
    KITH_ASSERT(journeys->count <= journeys->capacity);
    while (journeys->count > 0 &&
           wait_for(world, journeys->each[journeys->count - 1].request, &size))
        arrive(world, journeys, journeys->count - 1);
}

/* An empty page is the last one of a log. */
static void end_logs(struct sim_world *world)
{
    struct sim_ranks *ranks = world->ranks;
    sim_ranks_flush(world);
    KITH_ASSERT(!ranks->page || ranks->page->used == 0);
    struct page *page = fresh_page(world);
    if (page)
        send_page(world, page);
    for (uint32_t rank = 0; rank < ranks->all->count; rank++) {
        struct hearing *heard = &ranks->heard[rank];
        while (heard->count > 0 && sim_ranks_hear(world, rank))
            ;
        if (heard->request && wait_for(world, heard->request, &heard->size)) {
            KITH_ASSERT(heard->size == 0);
            heard->request = NULL;
        }
    }
    for (page = ranks->leaving; page; page = page->next)
        for (uint32_t to = 0; to < ranks->all->count; to++) {
            size_t size;
            if (page->requests[to] &&
                wait_for(world, page->requests[to], &size))
                page->requests[to] = NULL;
        }
}

enum kith_err sim_ranks_end(struct sim_world *world, enum kith_err err,
                            const char *error)
{
    struct sim_ranks *ranks = world->ranks;
    if (err == KITH_OK) {
        await_all(world, &ranks->sent);
        await_all(world, &ranks->coming);
        end_logs(world);
        err = sim_failure(world);
        KITH_ASSERT(err != KITH_OK || ranks->sent.count == 0);
        KITH_ASSERT(err != KITH_OK || ranks->coming.count == 0);
    }
    if (err != KITH_OK)
        tell_failure(world, err, error);
    return err;
}

/* They have left, or were never filled. */
static void free_pages(struct page *page)
{
    while (page) {
        struct page *next = page->next;
        KITH_ASSERT(next != page);
        free(page);
        page = next;
    }
}

/* What MPI may still write stays where it is: the process is at its end. */
void sim_ranks_close(struct sim_world *world)
{
    struct sim_ranks *ranks = world->ranks;
    if (!ranks || sim_ranks_linger(world))
        return;
    for (uint32_t rank = 0; ranks->heard && rank < ranks->all->count; rank++)
        free(ranks->heard[rank].copies);
    free(ranks->heard);
    free(ranks->sent.each);
    free(ranks->coming.each);
    free_pages(ranks->page);
    free_pages(ranks->leaving);
    free_pages(ranks->unused);
}

/* ---- what cannot be divided */

/* Parts that look at vectors of many peers at an event of any of them. */
static const char *undivided(const struct sim_options *options)
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
    for (uint32_t i = 0; i < experiment->check_count; i++)
        if (strcmp(experiment->checks[i].quantity, "conserved") == 0)
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
    const char *const what = count > 1 ? undivided(options) : NULL;
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
