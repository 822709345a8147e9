/* Goal: no bytes make a manifest misbehave. Of what is accepted every piece has
 * a size within bounds, and together they are the data; so have its files, and
 * names of files of a folder; a root of other bytes
 * is never accepted. */
#include <string.h>

#include "kith/assert.h"
#include "kith/pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[KITH_PIECES_ERROR_BYTES];
    uint8_t root[KITH_PIECE_HASH_BYTES];
    struct kith_manifest manifest;
    uint64_t sum = 0;
    kith_manifest_hash(data, size, root); /* what the authority would name */
    if (kith_manifest_parse(data, size, root, &manifest, error) != KITH_OK)
        return 0;
    for (uint32_t i = 0; i < manifest.count; i++) {
        const size_t piece = kith_manifest_size(&manifest, i);
        KITH_ASSERT(piece > 0 && piece <= KITH_PIECE_BYTES_MAX);
        sum += piece;
    }
    KITH_ASSERT(sum == manifest.bytes);
    struct kith_manifest_file file = {.next = 0};
    uint32_t files = 0;
    for (; kith_manifest_next(&manifest, &file); files++) {
        KITH_ASSERT(file.at + file.size <= manifest.bytes);
        KITH_ASSERT(file.name[0] != '.' && strchr(file.name, '/') == NULL);
    }
    KITH_ASSERT(files == manifest.file_count);
    root[size % sizeof root] ^= 1;
    KITH_ASSERT(kith_manifest_parse(data, size, root, &manifest, error) ==
                KITH_EMISMATCH);
    return 0;
}
