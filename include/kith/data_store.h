/* The data of one peer, in pieces: manifest, memory, the local disk, the other
 * peers and the origin, put together from what `data:` says.
 *
 *   memory   all pieces, as they are; kith_dataset_open decodes from there
 *   disk     data.cache/RANK, where data.cache is set
 *   peers    whom store->peers.ask asks; NULL, as it is at first: nobody
 *   origin   data.path
 *
 * Training reads memory alone, so an epoch after the first reads nothing.
 * Cost    the data's bytes of memory.
 * Test    integration/test_lab_pieces.sh, integration/test_peer_pieces.c. */
#ifndef KITH_DATA_STORE_H
#define KITH_DATA_STORE_H

#include "kith/data.h"
#include "kith/pieces.h"
#include "kith/plain_file.h"

/* Where the pieces of a run, or of one peer, came from. */
struct kith_piece_totals {
    uint64_t count;               /* of the manifest; 0: none was used */
    uint64_t origin, peers, disk; /* pieces that it gave, checked */
    uint64_t refused;             /* of another hash than the manifest's */
    uint64_t unkept;              /* that data.cache did not take */
};

struct kith_data_store {
    struct kith_file_map map; /* of data.manifest */
    struct kith_manifest manifest;
    uint8_t root[KITH_PIECE_HASH_BYTES];
    struct kith_piece_disk disk;
    struct kith_piece_peers peers;
    struct kith_piece_origin origin;
    struct kith_pieces *pieces; /* the memory behind it is its own */
    bool *distrusted;           /* (peers.count) */
    bool has_disk;
};

/* Reads nothing but the manifest. `config`: whose manifest is set.
 *
 * Returns KITH_OK, or, with a line in `error` (KITH_DATA_ERROR_BYTES) and
 * nothing to close,
 *   KITH_ENOENT, KITH_EPERM, KITH_EIO, KITH_EINVAL  data.manifest is not to be
 *                                                   read
 *   KITH_EPARSE, KITH_ELIMIT                        it is no manifest
 *   KITH_ENOMEM                                     for so much data */
KITH_MUST_CHECK enum kith_err
kith_data_store_open(const struct kith_data_config *config, uint32_t self,
                     uint32_t peers, struct kith_data_store *store,
                     char *error);
/* Harmless on zeros. */
void kith_data_store_close(struct kith_data_store *store);
struct kith_piece_totals
kith_data_store_totals(const struct kith_data_store *store);
void kith_piece_totals_add(struct kith_piece_totals *sum,
                           const struct kith_piece_totals *one);

#endif
