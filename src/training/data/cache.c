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

#include "kith/text.h"

enum { HASH_BYTES = 32, KEY_BYTES = 8, BUFFER_BYTES = 1 << 20 };

struct record {
    uint8_t hash[HASH_BYTES];
    uint64_t size;
    int64_t time_s, time_ns;
};

struct entry {
    const char *cache, *origin;
    char copy[KITH_PATH_BYTES_MAX], partial[KITH_PATH_BYTES_MAX];
    char record[KITH_PATH_BYTES_MAX], record_partial[KITH_PATH_BYTES_MAX];
    char lock[KITH_PATH_BYTES_MAX];
    const char *doing; /* what an error now means: "read", "keep" */
    uint8_t *buffer;   /* (BUFFER_BYTES) */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The names of all that belongs to the copy; false: one is too long. */
static bool name_files(struct entry *entry)
{
    uint8_t key[16];
    char hex[2 * KEY_BYTES + 1];
    const struct {
        char *path;
        const char *suffix;
    } files[] = {{entry->copy, ""},
                 {entry->partial, ".partial"},
                 {entry->record, ".blake2b"},
                 {entry->record_partial, ".blake2b.partial"},
                 {entry->lock, ".lock"}};
    crypto_generichash(key, sizeof key, (const uint8_t *)entry->origin,
                       strlen(entry->origin), NULL, 0);
    kith_text_hex(hex, key, KEY_BYTES);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const int length = snprintf(
            files[i].path, KITH_PATH_BYTES_MAX, "%s/%s-%s%s", entry->cache,
            base_name(entry->origin), hex, files[i].suffix);
        if (length < 0 || length >= (int)KITH_PATH_BYTES_MAX)
            return false;
    }
    return true;
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

/* One peer at a time, the others wait. -1: errno. */
static int take_lock(const struct entry *entry)
{
    if (mkdir(entry->cache, 0777) != 0 && errno != EEXIST)
        return -1;
    int lock =
        open(entry->lock,
             O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    /* Another user's, in a folder that is not ours: it locks as well. */
    if (lock < 0 && errno != ENOENT)
        lock = open_plain(entry->lock);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0) {
        if (errno == EINTR)
            continue;
        (void)close(lock);
        return -1;
    }
    return lock;
}

/* Hash and length of `from`, copied to `to` where that is not NULL. False:
 * errno, of what entry->doing says. */
static bool pass_through(struct entry *entry, FILE *from, FILE *to,
                         struct record *record)
{
    crypto_generichash_state state;
    size_t count;
    crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    record->size = 0;
    entry->doing = "read";
    while ((count = fread(entry->buffer, 1, BUFFER_BYTES, from)) > 0) {
        crypto_generichash_update(&state, entry->buffer, count);
        record->size += count;
        if (to != NULL && fwrite(entry->buffer, 1, count, to) != count) {
            entry->doing = "keep";
            return false;
        }
    }
    crypto_generichash_final(&state, record->hash, HASH_BYTES);
    return ferror(from) == 0;
}

static bool read_record(const struct entry *entry, struct record *record)
{
    char hex[2 * HASH_BYTES + 1];
    FILE *file = kith_file_stream(open_plain(entry->record), "rb");
    if (file == NULL)
        return false;
    const int fields =
        fscanf(file, "%64s %20" SCNu64 " %20" SCNd64 " %20" SCNd64, hex,
               &record->size, &record->time_s, &record->time_ns);
    (void)fclose(file);
    return fields == 4 &&
           kith_text_unhex(hex, record->hash, HASH_BYTES) == KITH_OK;
}

/* The record replaces its predecessor whole. 0, or errno. */
static int write_record(const struct entry *entry, const struct record *record)
{
    char hex[2 * HASH_BYTES + 1];
    FILE *file = kith_file_create_stream(entry->record_partial);
    if (file == NULL)
        return errno;
    kith_text_hex(hex, record->hash, HASH_BYTES);
    /* A failure shows when the stream is flushed. */
    (void)fprintf(file, "%s %" PRIu64 " %" PRId64 " %" PRId64 "\n", hex,
                  record->size, record->time_s, record->time_ns);
    return kith_file_commit(file, entry->record_partial, entry->record);
}

/* The file has the size and time that the record says. */
static bool describes(const struct record *record, const struct stat *file)
{
    return (uint64_t)file->st_size == record->size &&
           file->st_mtim.tv_sec == record->time_s &&
           file->st_mtim.tv_nsec == record->time_ns;
}

/* The copy is whole and of the origin as it is now. */
static bool copy_good(struct entry *entry, const struct stat *origin)
{
    struct record wanted = {.size = 0}, found = {.size = 0};
    if (!read_record(entry, &wanted) ||
        (origin != NULL && !describes(&wanted, origin)))
        return false;
    FILE *file = kith_file_stream(open_plain(entry->copy), "rb");
    if (file == NULL)
        return false;
    const bool ok = pass_through(entry, file, NULL, &found);
    (void)fclose(file);
    return ok && found.size == wanted.size &&
           memcmp(found.hash, wanted.hash, HASH_BYTES) == 0;
}

/* Copies what `from` holds to `to`. 0, or errno. */
static int fill(struct entry *entry, FILE *from, FILE *to,
                struct record *record)
{
    struct stat before, after;
    entry->doing = "read";
    if (fstat(fileno(from), &before) != 0 ||
        !pass_through(entry, from, to, record) ||
        fstat(fileno(from), &after) != 0)
        return errno;
    record->time_s = before.st_mtim.tv_sec;
    record->time_ns = before.st_mtim.tv_nsec;
    /* A file that was being written while we read it is nobody's copy. */
    return describes(record, &after) ? 0 : EBUSY;
}

static int copy_origin(struct entry *entry)
{
    struct record record;
    entry->doing = "read";
    FILE *from = kith_file_stream(
        open(entry->origin, O_RDONLY | O_NONBLOCK | O_CLOEXEC), "rb");
    if (from == NULL)
        return errno;
    entry->doing = "keep";
    FILE *to = kith_file_create_stream(entry->partial);
    int code = to == NULL ? errno : fill(entry, from, to, &record);
    (void)fclose(from);
    if (code == 0) {
        entry->doing = "keep";
        code = write_record(entry, &record);
    }
    if (code == 0)
        code = kith_file_commit(to, entry->partial, entry->copy);
    else if (to != NULL) {
        (void)fclose(to);
        (void)unlink(entry->partial);
    }
    kith_file_sync_name(entry->copy);
    return code;
}

enum { NOTHING_THERE = -1 };

/* 0, errno of what entry->doing says, or NOTHING_THERE. */
static int fetch(struct entry *entry, struct kith_data_opening *opening)
{
    struct stat origin, copy;
    const bool there =
        stat(entry->origin, &origin) == 0 && S_ISREG(origin.st_mode);
    const bool known = stat(entry->copy, &copy) == 0;
    opening->cached = known && copy_good(entry, there ? &origin : NULL);
    if (opening->cached)
        return 0;
    if (!there)
        return NOTHING_THERE;
    const int code = copy_origin(entry);
    opening->set->counts.refetched += known && code == 0;
    return code;
}

static int fetch_locked(struct entry *entry, struct kith_data_opening *opening)
{
    struct stat about;
    if (!name_files(entry))
        return ENAMETOOLONG;
    /* Nothing to cache: a name that is tried before another. */
    if (stat(entry->origin, &about) != 0 && stat(entry->copy, &about) != 0)
        return NOTHING_THERE;
    const int lock = take_lock(entry);
    if (lock < 0)
        return errno;
    entry->buffer = malloc(BUFFER_BYTES);
    const int code = entry->buffer == NULL ? ENOMEM : fetch(entry, opening);
    free(entry->buffer);
    (void)close(lock);
    return code;
}

enum kith_err kith_data_cache_fetch(struct kith_data_opening *opening)
{
    struct entry entry = {.cache = opening->config->cache,
                          .origin = opening->path,
                          .doing = "keep"};
    char *note = opening->set->note;
    const int code = sodium_init() < 0 ? ENOSYS : fetch_locked(&entry, opening);
    memcpy(opening->local, entry.copy, sizeof opening->local);
    if (code == NOTHING_THERE)
        return KITH_ENOENT;
    if (code == 0)
        return KITH_OK;
    if (note[0] == '\0')
        (void)snprintf(note, KITH_DATA_ERROR_BYTES,
                       "data.cache %.200s: cannot %s a copy of %.120s: %s; "
                       "reading it from data.path",
                       entry.cache, entry.doing, base_name(entry.origin),
                       strerror(code));
    return KITH_EIO;
}
