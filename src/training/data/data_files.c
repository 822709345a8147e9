/* Files of a data set: found at their origin or in the cache, mapped; and
 * memory beside them. All of it hangs in one list that the set owns. */
#define _POSIX_C_SOURCE 200809L /* scandir */
#include "data_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/data_store.h"
#include "kith/text.h"

enum { ALIGNMENT = 64 };

/* Stands before memory of our own; alone where something is mapped. */
struct block {
    struct block *next;
    struct kith_file_map map;
    char path[]; /* of what is mapped, as it was opened */
};

enum kith_err kith_data_refuse(struct kith_data_opening *opening,
                               enum kith_err err, const char *format, ...)
{
    char what[320];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    /* The end of a long path says more than its beginning. */
    const size_t length = strlen(opening->path);
    const size_t shown = length < 170 ? length : 170;
    (void)snprintf(opening->error, KITH_DATA_ERROR_BYTES, "reading %s%s: %s",
                   shown < length ? "..." : "",
                   opening->path + (length - shown), what);
    return err;
}

static void release_all(void *owner)
{
    struct block *block = owner;
    while (block != NULL) {
        struct block *next = block->next;
        kith_file_map_close(&block->map);
        free(block);
        block = next;
    }
}

static void keep(struct kith_data_opening *opening, struct block *block,
                 struct kith_file_map map)
{
    block->map = map;
    block->next = opening->set->owner;
    opening->set->owner = block;
    opening->set->close = release_all;
}

void *kith_data_alloc(struct kith_data_opening *opening, size_t count,
                      size_t size, const char *things)
{
    _Static_assert(sizeof(struct block) <= ALIGNMENT, "a block fits before");
    struct block *block = NULL;
    if (count <= (SIZE_MAX - 2 * ALIGNMENT) / size)
        block = aligned_alloc(ALIGNMENT, (count * size + 2 * ALIGNMENT - 1) &
                                             -(size_t)ALIGNMENT);
    if (block == NULL) {
        (void)kith_data_refuse(opening, KITH_ENOMEM, "no memory for %zu %s",
                               count, things);
        return NULL;
    }
    keep(opening, block, (struct kith_file_map){NULL, 0});
    return (char *)block + ALIGNMENT;
}

/* In the memory of pieces; whoever counts pieces counts no examples. */
static enum kith_err find_stored(struct kith_data_opening *opening,
                                 const char *name)
{
    const struct kith_data_store *const store = opening->config->store;
    struct kith_manifest_file file;
    if (!kith_manifest_find(&store->manifest, name, &file))
        return KITH_ENOENT;
    const uint8_t *const memory = kith_pieces_memory(store->pieces);
    opening->stored = (struct kith_file_map){memory + file.at, file.size};
    return KITH_OK;
}

enum kith_err kith_data_find(struct kith_data_opening *opening,
                             const char *name)
{
    const char *folder = opening->config->path;
    char why[KITH_FILE_WHY_BYTES];
    enum kith_err err = KITH_EIO;
    opening->cached = false;
    const int length =
        snprintf(opening->path, sizeof opening->path, "%s%s%s", folder,
                 name == NULL ? "" : "/", name == NULL ? "" : name);
    if (length < 0 || (size_t)length >= sizeof opening->path) {
        (void)kith_text_copy(opening->path, sizeof opening->path, folder);
        return kith_data_refuse(opening, KITH_ELIMIT,
                                "the path is longer than %zu bytes",
                                sizeof opening->path - 1);
    }
    if (opening->config->store != NULL)
        return find_stored(opening, name);
    if (opening->config->cache[0] != '\0' &&
        opening->config->manifest[0] == '\0')
        err = kith_data_cache_fetch(opening);
    if (err == KITH_OK || err == KITH_ENOENT)
        return err;
    memcpy(opening->local, opening->path, sizeof opening->local);
    err = kith_file_check(opening->path, why);
    return err == KITH_OK || err == KITH_ENOENT
               ? err
               : kith_data_refuse(opening, err,
                                  "%s; see kith list datasets for what "
                                  "data.path must be",
                                  why);
}

/* As scandir() of a folder that holds the files of the manifest, which stand in
 * the order of their names. */
static int scan_stored(const struct kith_manifest *manifest,
                       int (*is_wanted)(const struct dirent *entry),
                       struct dirent ***names)
{
    struct kith_manifest_file file = {.next = 0};
    int count = 0;
    struct dirent **const found =
        calloc(manifest->file_count + 1u, sizeof *found);
    while (found != NULL && kith_manifest_next(manifest, &file)) {
        struct dirent *const entry = calloc(1, sizeof *entry);
        found[count++] = entry;
        if (entry == NULL)
            goto out_of_memory;
        (void)kith_text_copy(entry->d_name, sizeof entry->d_name, file.name);
        if (!is_wanted(entry))
            free(found[--count]);
    }
    *names = found;
    return found == NULL ? -1 : count;
out_of_memory:
    while (count > 0)
        free(found[--count]);
    free(found);
    errno = ENOMEM;
    return -1;
}

int kith_data_scan(const struct kith_data_opening *opening,
                   int (*is_wanted)(const struct dirent *entry),
                   struct dirent ***names)
{
    return opening->config->store != NULL
               ? scan_stored(&opening->config->store->manifest, is_wanted,
                             names)
               : scandir(opening->path, names, is_wanted, kith_file_by_name);
}

void kith_data_count(struct kith_data_opening *opening, size_t examples)
{
    if (opening->config->store != NULL)
        return;
    if (opening->cached)
        opening->set->counts.disk += examples;
    else
        opening->set->counts.origin += examples;
}

enum kith_err kith_data_map(struct kith_data_opening *opening,
                            enum kith_err found, const char *missing,
                            struct kith_file_map *map)
{
    char why[KITH_FILE_WHY_BYTES];
    if (found == KITH_ENOENT)
        return kith_data_refuse(opening, found, "%s", missing);
    if (found != KITH_OK)
        return found;
    if (opening->config->store != NULL) {
        *map = opening->stored;
        return KITH_OK;
    }
    const enum kith_err err = kith_file_map(opening->local, map, why);
    if (err != KITH_OK)
        return kith_data_refuse(opening, err, "%s", why);
    if (map->size == 0)
        return kith_data_refuse(opening, KITH_EPARSE, "it is empty");
    struct block *block = malloc(sizeof *block + sizeof opening->local);
    if (block == NULL) {
        kith_file_map_close(map);
        return kith_data_refuse(opening, KITH_ENOMEM, "no memory");
    }
    memcpy(block->path, opening->local, sizeof opening->local);
    keep(opening, block, *map);
    return map->size <= KITH_DATA_BYTES_MAX
               ? KITH_OK
               : kith_data_refuse(opening, KITH_ELIMIT,
                                  "it is larger than 1 TiB");
}

enum kith_err kith_data_spoiled(const void *owner, const void *where,
                                bool changed, char *error)
{
    struct kith_data_opening opening = {.error = error,
                                        .path = "a mapped file"};
    struct stat about = {.st_size = 0};
    const struct block *block = owner;
    while (block != NULL &&
           (uintptr_t)where - (uintptr_t)block->map.bytes >= block->map.size)
        block = block->next;
    if (block != NULL)
        memcpy(opening.path, block->path, sizeof opening.path);
    if (block != NULL && changed)
        return kith_data_refuse(&opening, KITH_EIO,
                                "it has been written to since it was opened, "
                                "and what was checked is there no more; put it "
                                "back as it was");
    if (block != NULL && (stat(block->path, &about) != 0 ||
                          (uint64_t)about.st_size < block->map.size))
        return kith_data_refuse(&opening, KITH_EIO,
                                "it had %zu bytes when it was opened and has "
                                "%lld now; put it back as it was",
                                block->map.size, (long long)about.st_size);
    return kith_data_refuse(&opening, KITH_EIO, "a page of it cannot be read%s",
                            block == NULL ? ""
                                          : ": its disk has failed, or it was "
                                            "shorter for a while");
}
