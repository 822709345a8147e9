/* Pieces of a data set, as `data:` says: see kith/data_store.h. */
#define _POSIX_C_SOURCE 200809L /* mkdir */
#include "kith/data_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "kith/text.h"

enum { DISK, PEERS, ORIGIN, SOURCES };

static enum kith_err refuse(char *error, enum kith_err err, const char *path,
                            const char *what)
{
    return kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,
                          "reading data.manifest %.200s: %s", path, what);
}

static enum kith_err read_manifest(const struct kith_data_config *config,
                                   struct kith_data_store *store, char *error)
{
    char why[KITH_FILE_WHY_BYTES], what[KITH_PIECES_ERROR_BYTES];
    enum kith_err err = kith_file_map(config->manifest, &store->map, why);
    if (err != KITH_OK)
        return refuse(error, err, config->manifest, why);
    err = store->map.size > KITH_MANIFEST_BYTES_MAX
              ? kith_text_fail(what, sizeof what, KITH_ELIMIT,
                               "it is larger than a manifest can be")
              : kith_manifest_parse(store->map.bytes, store->map.size, NULL,
                                    &store->manifest, what);
    if (err != KITH_OK)
        return refuse(error, err, config->manifest, what);
    if (store->manifest.piece_bytes % KITH_MANIFEST_ALIGN != 0)
        return refuse(error, KITH_EINVAL, config->manifest,
                      "its pieces are not a multiple of 64 bytes; write it "
                      "with kith list manifest");
    kith_manifest_root(&store->manifest, store->root);
    return KITH_OK;
}

/* data.cache/RANK: each peer has a disk of its own, also where several share a
 * machine. Where it cannot be made every piece that is not kept is counted. */
static enum kith_err open_disk(const struct kith_data_config *config,
                               struct kith_data_store *store, uint32_t self)
{
    char folder[KITH_PATH_BYTES_MAX];
    store->has_disk = config->cache[0] != '\0';
    if (!store->has_disk)
        return KITH_OK;
    (void)mkdir(config->cache, 0777); /* an error shows below it */
    if (snprintf(folder, sizeof folder, "%s/%u", config->cache, self) >=
        (int)sizeof store->disk.folder)
        return KITH_ELIMIT;
    const enum kith_err err =
        kith_piece_disk_init(&store->disk, folder, &store->manifest, self);
    return err == KITH_ELIMIT ? err : KITH_OK;
}

static enum kith_err open_pieces(const struct kith_data_config *config,
                                 struct kith_data_store *store)
{
    const struct kith_piece_source none = {.name = "disk"};
    const struct kith_pieces_config pieces = {
        .manifest = &store->manifest,
        .sources = {[DISK] = store->has_disk
                                 ? kith_piece_disk_source(&store->disk)
                                 : none,
                    [PEERS] = kith_piece_peers_source(&store->peers),
                    [ORIGIN] = kith_piece_origin_source(&store->origin)},
        .source_count = SOURCES,
        .self = store->peers.self,
        .peers = store->peers.count,
        .slots = store->manifest.count};
    const enum kith_err err =
        kith_piece_origin_init(&store->origin, config->path, &store->manifest);
    if (err != KITH_OK)
        return err;
    const size_t size = kith_pieces_size(&pieces);
    void *const memory =
        size == 0
            ? NULL
            : aligned_alloc(KITH_MANIFEST_ALIGN,
                            (size + KITH_MANIFEST_ALIGN - 1) /
                                KITH_MANIFEST_ALIGN * KITH_MANIFEST_ALIGN);
    if (memory == NULL)
        return KITH_ENOMEM;
    store->pieces = kith_pieces_init(memory, &pieces);
    return KITH_OK;
}

enum kith_err kith_data_store_open(const struct kith_data_config *config,
                                   uint32_t self, uint32_t peers,
                                   struct kith_data_store *store, char *error)
{
    memset(store, 0, sizeof *store);
    enum kith_err err =
        sodium_init() < 0
            ? refuse(error, KITH_EDEVICE, config->manifest, "no hashes")
            : read_manifest(config, store, error);
    if (err != KITH_OK)
        goto failed;
    store->distrusted = calloc(peers, sizeof *store->distrusted);
    store->peers = (struct kith_piece_peers){
        .self = self, .count = peers, .distrusted = store->distrusted};
    err = store->distrusted == NULL ? KITH_ENOMEM
                                    : open_disk(config, store, self);
    if (err == KITH_OK)
        err = open_pieces(config, store);
    if (err == KITH_OK)
        return KITH_OK;
    (void)kith_text_fail(
        error, KITH_DATA_ERROR_BYTES, err,
        err == KITH_ENOMEM ? "data.manifest %.200s: no memory for %llu bytes "
                             "of data"
                           : "data.manifest %.200s, %llu bytes: data.path or "
                             "data.cache is too long",
        config->manifest, (unsigned long long)store->manifest.bytes);
failed:
    kith_data_store_close(store);
    return err;
}

void kith_data_store_close(struct kith_data_store *store)
{
    kith_file_map_close(&store->map);
    free(store->distrusted);
    free(store->pieces);
    memset(store, 0, sizeof *store);
}

struct kith_piece_totals
kith_data_store_totals(const struct kith_data_store *store)
{
    struct kith_piece_totals totals = {.count = store->manifest.count};
    if (store->pieces == NULL)
        return totals;
    const struct kith_piece_counts *const counts =
        kith_pieces_counts(store->pieces);
    totals.origin = counts->of[ORIGIN].given;
    totals.peers = counts->of[PEERS].given;
    totals.disk = counts->of[DISK].given;
    for (unsigned i = 0; i < SOURCES; i++)
        totals.refused += counts->of[i].damaged;
    totals.unkept = counts->of[DISK].unkept;
    return totals;
}

void kith_piece_totals_add(struct kith_piece_totals *sum,
                           const struct kith_piece_totals *one)
{
    sum->count = one->count > 0 ? one->count : sum->count;
    sum->origin += one->origin;
    sum->peers += one->peers;
    sum->disk += one->disk;
    sum->refused += one->refused;
    sum->unkept += one->unkept;
}
