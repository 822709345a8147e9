/* See save_log.h. */
#define _DEFAULT_SOURCE /* pread, pwrite, ftruncate, fsync, flock */
#include "sim/save_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"

/* Kept until they are written. */
#define BUFFER_BYTES ((size_t)1 << 20)
/* So many, where the disk takes none: then it is given up. */
#define BUFFER_BYTES_MAX ((size_t)1 << 28)
/* Whoever was killed a moment ago may not be gone yet. */
#define LOCK_NAPS 20u
#define LOCK_NAP_NS 100000000

/* Some file systems have no locks. */
static bool take_lock(int fd)
{
    const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
    KITH_ASSERT(fd >= 0);
    for (unsigned i = 0; i < LOCK_NAPS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        (void)nanosleep(&nap, NULL);
    }
    return false;
}

/* A link in its place is not followed, and a FIFO's reader not waited for:
 * folders of saves may be where others write, too. */
int sim_save_log_open(struct sim_save_log *log, const char *path)
{
    KITH_ASSERT(log->buffer == NULL);
    sim_chain_start(&log->chain);
    log->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                   0666);
    if (log->fd < 0)
        return errno;
    return take_lock(log->fd) ? 0 : EWOULDBLOCK;
}

void sim_save_log_close(struct sim_save_log *log)
{
    KITH_ASSERT(log->used <= log->capacity);
    if (log->fd >= 0)
        (void)close(log->fd);
    free(log->buffer);
    log->buffer = NULL;
    log->fd = -1;
}

/* ---- written */

/* From the front of the buffer, and what was not taken moves there: a disk
 * that is full takes a part now and then. */
static int write_all(struct sim_save_log *log)
{
    KITH_ASSERT(log->written + log->used == log->chain.bytes);
    while (log->used > 0) {
        const ssize_t count =
            pwrite(log->fd, log->buffer, log->used, (off_t)log->written);
        if (count <= 0)
            return count < 0 ? errno : EIO;
        log->written += (uint64_t)count;
        log->used -= (size_t)count;
        memmove(log->buffer, log->buffer + count, log->used);
    }
    return 0;
}

/* By doubling, up to a bound: the run has better use for memory than bytes
 * that no disk takes. */
static bool make_room(struct sim_save_log *log, size_t size)
{
    size_t capacity = log->capacity > 0 ? log->capacity : BUFFER_BYTES;
    KITH_ASSERT(size <= BUFFER_BYTES_MAX);
    if (log->used + size <= log->capacity)
        return true;
    while (capacity < log->used + size)
        capacity *= 2;
    uint8_t *buffer =
        capacity <= BUFFER_BYTES_MAX ? realloc(log->buffer, capacity) : NULL;
    if (!buffer)
        return false;
    log->buffer = buffer;
    log->capacity = capacity;
    return true;
}

/* What was put so far is no log any more without what is lost now. The file
 * stays, and so does the save that knows how much of it is its own. */
static void give_up(struct sim_save_log *log)
{
    KITH_ASSERT(!log->is_given_up);
    log->is_given_up = true;
    free(log->buffer);
    log->buffer = NULL;
    log->used = log->capacity = 0;
}

/* A part that was tried to no avail is tried again when twice as much waits. */
bool sim_save_log_put(struct sim_save_log *log, const void *bytes, size_t size)
{
    KITH_ASSERT(bytes != NULL && size > 0);
    if (log->is_given_up)
        return true;
    if (log->used >= BUFFER_BYTES && log->used + size > log->capacity)
        (void)write_all(log);
    if (!make_room(log, size)) {
        give_up(log);
        return false;
    }
    memcpy(log->buffer + log->used, bytes, size);
    log->used += size;
    sim_chain_add(&log->chain, bytes, size);
    return true;
}

/* Before the state that says how long it is: a state that is there must find
 * its log. */
int sim_save_log_sync(struct sim_save_log *log)
{
    const int code = log->is_given_up ? ENOSPC : write_all(log);
    KITH_ASSERT(log->fd >= 0 || log->is_given_up);
    return code != 0 || fsync(log->fd) == 0 ? code : errno;
}

int sim_save_log_cut(struct sim_save_log *log, uint64_t end)
{
    KITH_ASSERT(log->used == 0 && log->chain.bytes == end);
    log->written = end;
    return ftruncate(log->fd, (off_t)end) == 0 ? 0 : errno;
}

/* ---- read */

/* As many as a page has room for; 0: there is nothing more. */
static size_t read_page(struct sim_save_log *log, uint64_t at, uint64_t end)
{
    const uint64_t left = at < end ? end - at : 0;
    const size_t wanted =
        left < SIM_LOG_PAGE_BYTES ? (size_t)left : SIM_LOG_PAGE_BYTES;
    const ssize_t count =
        wanted == 0 ? 0 : pread(log->fd, log->page, wanted, (off_t)at);
    KITH_ASSERT(log->fd >= 0);
    return count > 0 ? (size_t)count : 0;
}

enum kith_err sim_save_log_check(struct sim_save_log *log,
                                 const struct sim_save_head *head, char *why)
{
    struct sim_chain *chain = &log->chain;
    size_t count = 1;
    KITH_ASSERT(log->used == 0);
    sim_chain_start(chain);
    while (chain->bytes < head->log_bytes && count > 0) {
        count = read_page(log, chain->bytes, head->log_bytes);
        sim_chain_add(chain, log->page, count);
    }
    if (sim_chain_hash(chain) == head->log_hash)
        return KITH_OK;
    if (chain->bytes < head->log_bytes)
        (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                       "its log is cut off: found %" PRIu64
                       " bytes, the save has %" PRIu64,
                       chain->bytes, head->log_bytes);
    else
        (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                       "its log is damaged: it has another hash");
    return KITH_EPARSE;
}

/* Page by page, for a result is some nine bytes, and a read of the system
 * costs more than all of an event. */
bool sim_save_log_get(struct sim_save_log *log, uint64_t end, void *bytes,
                      size_t size)
{
    uint8_t *into = bytes;
    KITH_ASSERT(log->page_used <= log->page_size);
    while (size > 0) {
        if (log->page_used == log->page_size) {
            log->at += log->page_size;
            log->page_used = 0;
            log->page_size = read_page(log, log->at, end);
        }
        const size_t left = log->page_size - log->page_used;
        const size_t part = size < left ? size : left;
        if (part == 0) {
            memset(into, 0, size);
            return false;
        }
        memcpy(into, log->page + log->page_used, part);
        log->page_used += part;
        into += part;
        size -= part;
    }
    return true;
}

uint64_t sim_save_log_read(const struct sim_save_log *log)
{
    KITH_ASSERT(log->page_used <= log->page_size);
    return log->at + log->page_used;
}
