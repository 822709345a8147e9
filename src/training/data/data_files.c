/* Files of a data set: found at their origin or in the cache, mapped; and
 * memory beside them. All of it hangs in one list that the set owns. */
#include "data_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/plain_file.h"
#include "kith/text.h"

enum { ALIGNMENT = 64 };

/* Stands before memory of our own; alone where something is mapped. */
struct block {
    struct block *next;
    void *map;
    size_t map_bytes;
    char path[]; /* of what is mapped, as it was opened */
};

enum kith_err kith_data_complain(char *error, enum kith_err err,
                                 const char *path, const char *format, ...)
{
    char what[320];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    /* The end of a long path says more than its beginning. */
    const size_t length = strlen(path), shown = length < 170 ? length : 170;
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "reading %s%s: %s",
                   shown < length ? "..." : "", path + (length - shown), what);
    return err;
}

static void release_all(void *owner)
{
    struct block *block = owner;
    while (block != NULL) {
        struct block *next = block->next;
        if (block->map != NULL)
            (void)munmap(block->map, block->map_bytes);
        free(block);
        block = next;
    }
}

static void keep(struct data_opening *opening, struct block *block)
{
    block->next = opening->set->owner;
    opening->set->owner = block;
    opening->set->close = release_all;
}

void *kith_data_alloc(struct data_opening *opening, size_t bytes)
{
    _Static_assert(sizeof(struct block) <= ALIGNMENT, "a block fits before");
    if (bytes > SIZE_MAX - 2 * ALIGNMENT)
        return NULL;
    const size_t whole = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block *block = aligned_alloc(ALIGNMENT, whole);
    if (block == NULL)
        return NULL;
    *block = (struct block){.next = NULL};
    keep(opening, block);
    return (char *)block + ALIGNMENT;
}

/* At the origin: a file, nothing, or trouble. */
static enum kith_err look(struct data_opening *opening, const char *path)
{
    char why[KITH_FILE_WHY_BYTES];
    const enum kith_err err = kith_file_check(path, why);
    return err == KITH_OK || err == KITH_ENOENT
               ? err
               : kith_data_complain(
                     opening->error, err, path,
                     "%s; see kith list datasets for what data.path "
                     "must be",
                     why);
}

static enum kith_err through_cache(struct data_opening *opening,
                                   struct data_file *file)
{
    struct cache_result result;
    const enum kith_err err =
        kith_data_cache_fetch(opening->config->cache, file->path, &result);
    if (err == KITH_ENOENT)
        return err;
    if (err != KITH_OK) {
        if (opening->set->note[0] == '\0')
            (void)kith_text_copy(opening->set->note, sizeof opening->set->note,
                                 result.why);
        return look(opening, file->path);
    }
    opening->set->counts.refetched += result.refetched;
    file->cached = result.cached;
    memcpy(file->local, result.local, sizeof file->local);
    return KITH_OK;
}

enum kith_err kith_data_find(struct data_opening *opening, const char *name,
                             struct data_file *file)
{
    const char *folder = opening->config->path;
    file->cached = false;
    const int length =
        name == NULL
            ? snprintf(file->path, sizeof file->path, "%s", folder)
            : snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof file->path)
        return kith_data_complain(opening->error, KITH_ELIMIT, folder,
                                  "the path is longer than %zu bytes",
                                  sizeof file->path - 1);
    memcpy(file->local, file->path, sizeof file->local);
    return opening->config->cache[0] != '\0' ? through_cache(opening, file)
                                             : look(opening, file->path);
}

void kith_data_count(struct data_opening *opening, const struct data_file *file,
                     size_t examples)
{
    if (file->cached)
        opening->set->counts.disk += examples;
    else
        opening->set->counts.origin += examples;
}

/* What can be mapped. */
static enum kith_err check_size(struct data_opening *opening,
                                const struct data_file *file, size_t size)
{
    if (size == 0)
        return kith_data_complain(opening->error, KITH_EPARSE, file->path,
                                  "it is empty");
    if (size > KITH_DATA_BYTES_MAX)
        return kith_data_complain(opening->error, KITH_ELIMIT, file->path,
                                  "it is larger than 1 TiB");
    return KITH_OK;
}

enum kith_err kith_data_map(struct data_opening *opening,
                            const struct data_file *file,
                            struct data_bytes *bytes)
{
    char why[KITH_FILE_WHY_BYTES];
    int descriptor;
    size_t size;
    enum kith_err err = kith_file_open(file->local, &descriptor, &size, why);
    if (err != KITH_OK)
        return kith_data_complain(opening->error, err, file->path, "%s", why);
    struct block *block = NULL;
    void *map = MAP_FAILED;
    err = check_size(opening, file, size);
    if (err != KITH_OK)
        goto out;
    block = calloc(1, sizeof *block + sizeof file->local);
    if (block == NULL) {
        err = kith_data_complain(opening->error, KITH_ENOMEM, file->path,
                                 "no memory");
        goto out;
    }
    map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (map == MAP_FAILED) {
        err = kith_data_complain(opening->error, kith_file_error(errno),
                                 file->path, "cannot map its %zu bytes: %s",
                                 size, strerror(errno));
        free(block);
        goto out;
    }
    block->map = map;
    block->map_bytes = size;
    memcpy(block->path, file->local, sizeof file->local);
    keep(opening, block);
    *bytes = (struct data_bytes){map, size};
out:
    (void)close(descriptor);
    return err;
}

void kith_data_spoiled(const void *owner, const void *where, bool changed,
                       char *error)
{
    const struct block *block = owner;
    struct stat about = {.st_size = 0};
    while (block != NULL &&
           (block->map == NULL || (const char *)where < (char *)block->map ||
            (size_t)((const char *)where - (char *)block->map) >=
                block->map_bytes))
        block = block->next;
    if (block == NULL)
        (void)kith_data_complain(error, KITH_EIO, "a mapped file",
                                 "a page of it cannot be read");
    else if (changed)
        (void)kith_data_complain(
            error, KITH_EIO, block->path,
            "it has been written to since it was opened, and "
            "what was checked is there no more; put it back "
            "as it was");
    else if (stat(block->path, &about) == 0 &&
             (uint64_t)about.st_size >= block->map_bytes)
        (void)kith_data_complain(error, KITH_EIO, block->path,
                                 "a page of it cannot be read: its disk has "
                                 "failed, or it was shorter for a while");
    else
        (void)kith_data_complain(error, KITH_EIO, block->path,
                                 "it had %zu bytes when it was opened and has "
                                 "%lld now; put it back as it was",
                                 block->map_bytes, (long long)about.st_size);
}
