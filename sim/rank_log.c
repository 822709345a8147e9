/* The logs of ranks: rank_log.h. A page leaves when it is full, or when its
 * rank waits or computes: others may wait for it. */
#include "sim/rank_log.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/world.h"

/* What MPI takes at once, without asking its receiver first. */
#define PAGE_BYTES 3968u

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

struct sim_log {
    const struct kith_ranks *all;
    struct page *page, *leaving, *unused;
    struct hearing *heard; /* (ranks) */
};

/* ---- written */

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
    struct sim_log *log = world->log;
    struct page *page = log->unused;
    if (page)
        log->unused = page->next;
    else if (!(page = calloc(1, sizeof *page + log->all->count *
                                                   sizeof page->requests[0])))
        sim_fail(world, KITH_ENOMEM, "no memory for what ranks are told");
    KITH_ASSERT(!page || page->used == 0);
    return page;
}

/* Pages that have left everywhere, in the order in which they did. */
static void reuse_pages(struct sim_log *log)
{
    while (log->leaving) {
        struct page *page = log->leaving;
        KITH_ASSERT(page->requests[log->all->rank] == NULL);
        for (uint32_t to = 0; to < log->all->count; to++)
            if (!has_left(log->all, &page->requests[to]))
                return;
        log->leaving = page->next;
        page->used = 0;
        page->next = log->unused;
        log->unused = page;
    }
}

/* To each other rank by a message of its own: a broadcast would make those that
 * are ahead wait for those that are not. */
static void send_page(struct sim_world *world, struct page *page)
{
    struct sim_log *log = world->log;
    struct page **last = &log->leaving;
    KITH_ASSERT(page != log->page && page->used <= PAGE_BYTES);
    for (uint32_t to = 0; to < log->all->count; to++)
        if (to != log->all->rank)
            page->requests[to] = log->all->module->send(
                to, KITH_RANKS_LOG, page->bytes, page->used);
    reuse_pages(log);
    while (*last)
        last = &(*last)->next;
    page->next = NULL;
    *last = page;
}

void sim_log_flush(struct sim_world *world)
{
    struct sim_log *log = world->log;
    struct page *page = log ? log->page : NULL;
    if (!page || page->used == 0)
        return;
    log->page = NULL;
    send_page(world, page);
}

static void put_page(struct sim_world *world, const void *bytes, size_t size)
{
    struct sim_log *log = world->log;
    const uint8_t *from = bytes;
    KITH_ASSERT(log != NULL && bytes != NULL);
    while (size > 0) {
        if (!log->page && !(log->page = fresh_page(world)))
            return;
        struct page *page = log->page;
        const size_t room = PAGE_BYTES - page->used;
        const size_t part = size < room ? size : room;
        KITH_ASSERT(part > 0);
        memcpy(page->bytes + page->used, from, part);
        page->used += part;
        from += part;
        size -= part;
        if (page->used == PAGE_BYTES)
            sim_log_flush(world);
    }
}

void sim_log_put(struct sim_world *world, const void *bytes, size_t size)
{
    KITH_ASSERT(sim_is_logged(world) && !sim_saves_recalls(world));
    if (world->log)
        put_page(world, bytes, size);
    if (world->saves)
        sim_saves_put(world, bytes, size);
}

/* ---- read */

/* One page ahead: MPI keeps those that come before they are asked for. */
static void listen_to(struct sim_log *log, uint32_t rank)
{
    struct hearing *heard = &log->heard[rank];
    KITH_ASSERT(rank != log->all->rank);
    KITH_ASSERT(heard->request == NULL && heard->at == heard->size);
    heard->request = log->all->module->receive(rank, KITH_RANKS_LOG,
                                               heard->bytes, PAGE_BYTES);
}

/* What was put in parts may be read in others: it is bytes. */
static bool read_log(struct sim_world *world, uint32_t rank, void *bytes,
                     size_t size)
{
    struct hearing *heard = &world->log->heard[rank];
    uint8_t *into = bytes;
    KITH_ASSERT(rank != world->log->all->rank);
    while (size > 0) {
        if (heard->request) {
            if (!sim_ranks_wait(world, heard->request, &heard->size))
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
            listen_to(world->log, rank);
    }
    return true;
}

void sim_log_expect(struct sim_world *world, uint32_t rank, void *copy)
{
    struct hearing *heard = &world->log->heard[rank];
    KITH_ASSERT(rank < world->log->all->count && copy != NULL);
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
bool sim_log_hear(struct sim_world *world, uint32_t rank)
{
    struct hearing *heard = &world->log->heard[rank];
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

/* A run that is caught up with has heard it already. */
void sim_log_get(struct sim_world *world, uint32_t rank, void *bytes,
                 size_t size)
{
    KITH_ASSERT(size > 0);
    if (sim_saves_recalls(world)) {
        sim_saves_get(world, bytes, size);
        return;
    }
    const struct hearing *heard = &world->log->heard[rank];
    bool goes_on = true;
    while (goes_on && heard->count > 0)
        goes_on = sim_log_hear(world, rank);
    if (goes_on)
        goes_on = read_log(world, rank, bytes, size);
    if (goes_on && world->saves)
        sim_saves_put(world, bytes, size);
}

/* ---- beginning and end */

/* Each rank listens to all others from the start: whoever is ahead has put
 * pages before anybody asks for them. */
enum kith_err sim_log_open(struct sim_world *world)
{
    const struct kith_ranks *all = sim_ranks_all(world);
    KITH_ASSERT(world->log == NULL);
    if (!all)
        return KITH_OK;
    struct sim_log *log = sim_alloc(world, 1, sizeof *log);
    if (!log)
        return KITH_ENOMEM;
    world->log = log;
    log->all = all;
    log->heard = calloc(all->count, sizeof *log->heard);
    if (!log->heard)
        return KITH_ENOMEM;
    for (uint32_t rank = 0; rank < all->count; rank++)
        if (rank != all->rank)
            listen_to(log, rank);
    return KITH_OK;
}

/* An empty page is the last one of a log. */
void sim_log_end(struct sim_world *world)
{
    struct sim_log *log = world->log;
    sim_log_flush(world);
    KITH_ASSERT(!log->page || log->page->used == 0);
    struct page *page = fresh_page(world);
    if (page)
        send_page(world, page);
    for (uint32_t rank = 0; rank < log->all->count; rank++) {
        struct hearing *heard = &log->heard[rank];
        while (heard->count > 0 && sim_log_hear(world, rank))
            ;
        if (heard->request &&
            sim_ranks_wait(world, heard->request, &heard->size)) {
            KITH_ASSERT(heard->size == 0);
            heard->request = NULL;
        }
    }
    for (page = log->leaving; page; page = page->next)
        for (uint32_t to = 0; to < log->all->count; to++) {
            size_t size;
            if (page->requests[to] &&
                sim_ranks_wait(world, page->requests[to], &size))
                page->requests[to] = NULL;
        }
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
void sim_log_close(struct sim_world *world)
{
    struct sim_log *log = world->log;
    if (!log || sim_ranks_linger(world))
        return;
    for (uint32_t rank = 0; log->heard && rank < log->all->count; rank++)
        free(log->heard[rank].copies);
    free(log->heard);
    free_pages(log->page);
    free_pages(log->leaving);
    free_pages(log->unused);
}
