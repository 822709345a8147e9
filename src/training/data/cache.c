/* The middle layer of the data cache: origin -> local disk -> memory. A file is
 * copied to `data.cache` when it is first opened and read from there ever
 * after, by every peer of the machine.
 *
 *   CACHE/NAME-KEY           the copy; KEY: hash of the origin's path
 *   CACHE/NAME-KEY.blake2b   BLAKE2b-256 of it, size and time of the origin
 *   CACHE/NAME-KEY.lock      held while one of them is checked or written
 *   CACHE/NAME-KEY.partial   being written: flushed, then renamed
 *
 * The folder may be one that others write to: nothing in it is followed as a
 * link, opened unless it is a plain file, or written to unless it is new, so
 * that what is planted there costs a copy and no other file. A user who may
 * only read it reads the copies that are there.
 *
 * A copy whose hash is wrong, or whose origin has changed, is fetched again; an
 * origin that has gone away is served from its copy. Where no copy can be kept
 * (a full disk) the caller reads the origin.
 *
 * Reference: Shi et al., 2021, "Towards scalable distributed training of deep
 * learning on public cloud clusters" (DataCache). */
#include "data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "kith/plain_file.h"
#include "kith/text.h"

enum {
    HASH_BYTES = 32,
    KEY_BYTES = 8,
    BUFFER_BYTES = 1 << 20,
    RECORD_BYTES_MAX = 256,
};

struct record {
    uint8_t hash[HASH_BYTES];
    uint64_t size;
    int64_t time_s, time_ns;
};

struct entry {
    const char *cache, *origin;
    char copy[KITH_PATH_BYTES_MAX];
    char record[KITH_PATH_BYTES_MAX], partial[KITH_PATH_BYTES_MAX];
    char *why;
    uint8_t *buffer; /* (BUFFER_BYTES) */
    int lock;
};

static enum kith_err give_up(struct entry *entry, const char *doing, int code)
{
    const char *name = strrchr(entry->origin, '/');
    (void)snprintf(entry->why, KITH_DATA_ERROR_BYTES,
                   "data.cache %.200s: cannot %s a copy of %.120s: %s; reading "
                   "it from data.path",
                   entry->cache, doing, name == NULL ? entry->origin : name + 1,
                   strerror(code));
    return kith_file_error(code) == KITH_ENOENT ? KITH_EIO
                                                : kith_file_error(code);
}

static bool join(char *path, const struct entry *entry, const char *suffix)
{
    uint8_t key[16];
    char hex[2 * KEY_BYTES + 1];
    const char *name = strrchr(entry->origin, '/');
    crypto_generichash(key, sizeof key, (const uint8_t *)entry->origin,
                       strlen(entry->origin), NULL, 0);
    kith_text_hex(hex, key, KEY_BYTES);
    const int length =
        snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s-%s%s", entry->cache,
                 name == NULL ? entry->origin : name + 1, hex, suffix);
    return length > 0 && (unsigned)length < KITH_PATH_BYTES_MAX;
}

/* A plain file of the folder itself; -1: errno. */
static int open_plain(const char *path)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || (fstat(file, &about) == 0 && S_ISREG(about.st_mode)))
        return file;
    (void)close(file);
    errno = EINVAL;
    return -1;
}

/* One peer at a time, the others wait: 0, or what went wrong. */
static int take_lock(struct entry *entry)
{
    char path[KITH_PATH_BYTES_MAX];
    if (mkdir(entry->cache, 0777) != 0 && errno != EEXIST)
        return errno;
    if (!join(path, entry, ".lock"))
        return ENAMETOOLONG;
    entry->lock = open(
        path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    /* Another user's, in a folder that is not ours: it locks as well. */
    if (entry->lock < 0 && errno != ENOENT)
        entry->lock = open_plain(path);
    if (entry->lock < 0)
        return errno;
    while (flock(entry->lock, LOCK_EX) != 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* Reads until the buffer is full or the file ends; -1: errno. */
static ssize_t read_some(int file, uint8_t *buffer)
{
    size_t got = 0;
    while (got < BUFFER_BYTES) {
        const ssize_t count = read(file, buffer + got, BUFFER_BYTES - got);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        got += (size_t)count;
    }
    return (ssize_t)got;
}

static bool write_whole(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t count = write(file, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* Hash and length of `from`, copied to `to` where that is not -1. False: errno;
 * *reading says which of the two refused. */
static bool pass_through(struct entry *entry, int from, int to,
                         struct record *record, bool *reading)
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    record->size = 0;
    for (;;) {
        const ssize_t count = read_some(from, entry->buffer);
        *reading = true;
        if (count < 0)
            return false;
        if (count == 0)
            break;
        crypto_generichash_update(&state, entry->buffer, (size_t)count);
        record->size += (uint64_t)count;
        *reading = false;
        if (to >= 0 && !write_whole(to, entry->buffer, (size_t)count))
            return false;
    }
    crypto_generichash_final(&state, record->hash, HASH_BYTES);
    return true;
}

static bool read_record(const struct entry *entry, struct record *record)
{
    char text[RECORD_BYTES_MAX], hex[2 * HASH_BYTES + 1];
    const int file = open_plain(entry->record);
    if (file < 0)
        return false;
    const ssize_t count = read(file, text, sizeof text - 1);
    (void)close(file);
    text[count > 0 ? count : 0] = '\0';
    return count > 0 &&
           sscanf(text, "%64s %" SCNu64 " %" SCNd64 " %" SCNd64, hex,
                  &record->size, &record->time_s, &record->time_ns) == 4 &&
           kith_text_unhex(hex, record->hash, HASH_BYTES) == KITH_OK;
}

/* The record replaces its predecessor whole. */
static bool write_record(const struct entry *entry, const struct record *record)
{
    char text[RECORD_BYTES_MAX], hex[2 * HASH_BYTES + 1];
    char partial[KITH_PATH_BYTES_MAX];
    if (!join(partial, entry, ".blake2b.partial")) {
        errno = ENAMETOOLONG;
        return false;
    }
    kith_text_hex(hex, record->hash, HASH_BYTES);
    const int length =
        snprintf(text, sizeof text, "%s %" PRIu64 " %" PRId64 " %" PRId64 "\n",
                 hex, record->size, record->time_s, record->time_ns);
    const int file = kith_file_create(partial);
    if (file < 0)
        return false;
    bool ok = write_whole(file, text, (size_t)length) && fsync(file) == 0;
    ok = close(file) == 0 && ok;
    if (ok && rename(partial, entry->record) == 0)
        return true;
    const int code = errno;
    (void)unlink(partial);
    errno = code;
    return false;
}

/* The copy is whole and of the origin as it is now. */
static bool copy_good(struct entry *entry, const struct stat *origin)
{
    struct record wanted = {.size = 0}, found = {.size = 0};
    bool reading;
    if (!read_record(entry, &wanted))
        return false;
    if (origin != NULL && ((uint64_t)origin->st_size != wanted.size ||
                           origin->st_mtim.tv_sec != wanted.time_s ||
                           origin->st_mtim.tv_nsec != wanted.time_ns))
        return false;
    const int file = open_plain(entry->copy);
    if (file < 0)
        return false;
    const bool ok = pass_through(entry, file, -1, &found, &reading);
    (void)close(file);
    return ok && found.size == wanted.size &&
           memcmp(found.hash, wanted.hash, HASH_BYTES) == 0;
}

static void flush_folder(const struct entry *entry)
{
    const int folder = open(entry->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)fsync(folder);
        (void)close(folder);
    }
}

/* Copies what `from` holds into place. 0, or errno. */
static int fill(struct entry *entry, int from, int to, bool *reading)
{
    struct record record;
    struct stat before, after;
    if (fstat(from, &before) != 0)
        return errno;
    if (!pass_through(entry, from, to, &record, reading))
        return errno;
    /* A file that was being written while we read it is nobody's copy. */
    *reading = true;
    if (fstat(from, &after) != 0)
        return errno;
    if (record.size != (uint64_t)after.st_size ||
        before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
        before.st_mtim.tv_nsec != after.st_mtim.tv_nsec)
        return EBUSY;
    *reading = false;
    record.time_s = after.st_mtim.tv_sec;
    record.time_ns = after.st_mtim.tv_nsec;
    if (fsync(to) != 0 || !write_record(entry, &record) ||
        rename(entry->partial, entry->copy) != 0)
        return errno;
    flush_folder(entry);
    return 0;
}

static enum kith_err copy_origin(struct entry *entry)
{
    bool reading = true;
    const int from = open(entry->origin, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return give_up(entry, "read", errno);
    const int to = kith_file_create(entry->partial);
    int code = 0;
    if (to < 0) {
        code = errno;
        reading = false;
    } else {
        code = fill(entry, from, to, &reading);
        if (close(to) != 0 && code == 0)
            code = errno;
        if (code != 0)
            (void)unlink(entry->partial);
    }
    (void)close(from);
    return code == 0 ? KITH_OK
                     : give_up(entry, reading ? "read" : "keep", code);
}

static enum kith_err fetch(struct entry *entry, struct cache_result *result)
{
    struct stat origin, copy;
    const bool there =
        stat(entry->origin, &origin) == 0 && S_ISREG(origin.st_mode);
    const bool known = stat(entry->copy, &copy) == 0;
    if (known && copy_good(entry, there ? &origin : NULL)) {
        result->cached = true;
        return KITH_OK;
    }
    if (!there)
        return KITH_ENOENT;
    const enum kith_err err = copy_origin(entry);
    result->refetched = known && err == KITH_OK;
    return err;
}

enum kith_err kith_data_cache_fetch(const char *cache, const char *origin,
                                    struct cache_result *result)
{
    struct entry entry = {
        .cache = cache, .origin = origin, .why = result->why, .lock = -1};
    memset(result, 0, sizeof *result);
    if (sodium_init() < 0)
        return give_up(&entry, "check", ENOSYS);
    if (!join(entry.copy, &entry, "") ||
        !join(entry.record, &entry, ".blake2b") ||
        !join(entry.partial, &entry, ".partial"))
        return give_up(&entry, "keep", ENAMETOOLONG);
    /* Nothing to cache: a name that is tried before another. */
    struct stat about;
    if (stat(origin, &about) != 0 && stat(entry.copy, &about) != 0)
        return KITH_ENOENT;
    enum kith_err err;
    const int code = take_lock(&entry);
    entry.buffer = malloc(BUFFER_BYTES);
    if (code != 0)
        err = give_up(&entry, "keep", code);
    else if (entry.buffer == NULL)
        err = give_up(&entry, "keep", ENOMEM);
    else
        err = fetch(&entry, result);
    free(entry.buffer);
    if (entry.lock >= 0)
        (void)close(entry.lock);
    memcpy(result->local, entry.copy, sizeof result->local);
    return err;
}
