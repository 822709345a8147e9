/* Manifests of data in pieces: see kith/pieces.h. */
#include <string.h>

#include <sodium.h>

#include "kith/assert.h"
#include "kith/pieces.h"
#include "kith/text.h"

static const char magic[8] = {'k', 'i', 't', 'h', 'm', 'a', 'n', '2'};

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t take(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

uint32_t kith_manifest_count(uint64_t bytes, uint32_t piece_bytes)
{
    if (bytes == 0 || piece_bytes < KITH_PIECE_BYTES_MIN ||
        piece_bytes > KITH_PIECE_BYTES_MAX)
        return 0;
    const uint64_t count = (bytes - 1) / piece_bytes + 1;
    return count > KITH_PIECES_MAX ? 0 : (uint32_t)count;
}

size_t kith_manifest_size(const struct kith_manifest *manifest, uint32_t piece)
{
    const uint64_t before = (uint64_t)piece * manifest->piece_bytes;
    KITH_ASSERT(piece < manifest->count && before < manifest->bytes);
    const uint64_t left = manifest->bytes - before;
    return left < manifest->piece_bytes ? (size_t)left : manifest->piece_bytes;
}

void kith_manifest_hash(const uint8_t *bytes, size_t size,
                        uint8_t hash[KITH_PIECE_HASH_BYTES])
{
    crypto_generichash(hash, KITH_PIECE_HASH_BYTES, bytes, size, NULL, 0);
}

bool kith_manifest_holds(const struct kith_manifest *manifest, uint32_t piece,
                         const uint8_t *bytes, size_t size)
{
    uint8_t hash[KITH_PIECE_HASH_BYTES];
    if (piece >= manifest->count || size != kith_manifest_size(manifest, piece))
        return false;
    kith_manifest_hash(bytes, size, hash);
    return memcmp(hash,
                  manifest->hashes + (size_t)piece * KITH_PIECE_HASH_BYTES,
                  sizeof hash) == 0;
}

void kith_manifest_write_head(const struct kith_manifest *manifest,
                              uint8_t head[KITH_MANIFEST_HEAD_BYTES])
{
    memcpy(head, magic, sizeof magic);
    put(head + 8, manifest->bytes, 8);
    put(head + 16, manifest->piece_bytes, 4);
    put(head + 20, manifest->count, 4);
    put(head + 24, manifest->file_count, 4);
}

void kith_manifest_root(const struct kith_manifest *manifest,
                        uint8_t root[KITH_PIECE_HASH_BYTES])
{
    uint8_t head[KITH_MANIFEST_HEAD_BYTES];
    crypto_generichash_state state;
    kith_manifest_write_head(manifest, head);
    crypto_generichash_init(&state, NULL, 0, KITH_PIECE_HASH_BYTES);
    crypto_generichash_update(&state, head, sizeof head);
    crypto_generichash_update(&state, manifest->hashes,
                              (size_t)manifest->count * KITH_PIECE_HASH_BYTES);
    crypto_generichash_update(&state, manifest->files, manifest->files_bytes);
    crypto_generichash_final(&state, root, KITH_PIECE_HASH_BYTES);
}

/* ---- files */

static bool is_name(const uint8_t *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] == '/')
            return false;
    return length > 0 && name[0] != '.';
}

bool kith_manifest_next(const struct kith_manifest *manifest,
                        struct kith_manifest_file *file)
{
    const size_t left = manifest->files_bytes - file->next;
    const uint8_t *const at = manifest->files + file->next;
    KITH_ASSERT(file->next <= manifest->files_bytes);
    if (left < 9 || left - 9 < at[8] || !is_name(at + 9, at[8]))
        return false;
    file->at += (file->size + KITH_MANIFEST_ALIGN - 1) / KITH_MANIFEST_ALIGN *
                KITH_MANIFEST_ALIGN;
    file->size = take(at, 8);
    memcpy(file->name, at + 9, at[8]);
    file->name[at[8]] = '\0';
    file->next += 9u + at[8];
    return true;
}

bool kith_manifest_find(const struct kith_manifest *manifest, const char *name,
                        struct kith_manifest_file *file)
{
    *file = (struct kith_manifest_file){.next = 0};
    if (name == NULL) {
        file->size = manifest->bytes;
        return manifest->file_count == 0;
    }
    while (kith_manifest_next(manifest, file))
        if (strcmp(file->name, name) == 0)
            return true;
    return false;
}

/* They are the data, each at its place, in the order of their names, and
 * nothing follows them. */
static bool files_fit(const struct kith_manifest *manifest)
{
    struct kith_manifest_file file = {.next = 0};
    char last[sizeof file.name] = "";
    uint32_t count = 0;
    while (kith_manifest_next(manifest, &file)) {
        if (strcmp(last, file.name) >= 0)
            return false;
        memcpy(last, file.name, sizeof last);
        if (file.at > manifest->bytes || file.size == 0 ||
            file.size > manifest->bytes - file.at)
            return false;
        count++;
    }
    return count == manifest->file_count &&
           file.next == manifest->files_bytes &&
           (count == 0 || file.at + file.size == manifest->bytes);
}

/* ---- reading one */

#define FAIL(err, ...)                                                         \
    kith_text_fail(error, KITH_PIECES_ERROR_BYTES, err,                        \
                   "reading a manifest: " __VA_ARGS__)

enum kith_err kith_manifest_parse(const uint8_t *bytes, size_t size,
                                  const uint8_t root[KITH_PIECE_HASH_BYTES],
                                  struct kith_manifest *manifest, char *error)
{
    uint8_t found[KITH_PIECE_HASH_BYTES];
    if (size < KITH_MANIFEST_HEAD_BYTES ||
        memcmp(bytes, magic, sizeof magic) != 0)
        return FAIL(KITH_EPARSE, "it does not begin as one");
    *manifest =
        (struct kith_manifest){.bytes = take(bytes + 8, 8),
                               .piece_bytes = (uint32_t)take(bytes + 16, 4),
                               .count = (uint32_t)take(bytes + 20, 4),
                               .file_count = (uint32_t)take(bytes + 24, 4),
                               .hashes = bytes + KITH_MANIFEST_HEAD_BYTES};
    const uint32_t count =
        kith_manifest_count(manifest->bytes, manifest->piece_bytes);
    const size_t hashes_end =
        KITH_MANIFEST_HEAD_BYTES + (size_t)count * KITH_PIECE_HASH_BYTES;
    if (count == 0)
        return FAIL(KITH_ELIMIT,
                    "%llu bytes in pieces of %u; allowed: pieces of %u to %u "
                    "bytes, up to %u of them",
                    (unsigned long long)manifest->bytes, manifest->piece_bytes,
                    KITH_PIECE_BYTES_MIN, KITH_PIECE_BYTES_MAX,
                    KITH_PIECES_MAX);
    if (manifest->file_count > KITH_MANIFEST_FILES_MAX)
        return FAIL(KITH_ELIMIT, "%u files; allowed: up to %u",
                    manifest->file_count, KITH_MANIFEST_FILES_MAX);
    if (manifest->count != count || size < hashes_end)
        return FAIL(KITH_EPARSE, "it says %u pieces in %zu bytes, and has %u",
                    manifest->count, size, count);
    manifest->files = bytes + hashes_end;
    manifest->files_bytes = size - hashes_end;
    if (!files_fit(manifest))
        return FAIL(KITH_EPARSE,
                    "its %u files are not the %llu bytes that it says",
                    manifest->file_count, (unsigned long long)manifest->bytes);
    kith_manifest_root(manifest, found);
    return root == NULL || memcmp(found, root, sizeof found) == 0
               ? KITH_OK
               : FAIL(KITH_EMISMATCH,
                      "it is of other data than the experiment names");
}
