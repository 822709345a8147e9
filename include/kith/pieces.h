/* Data in pieces, for a swarm: each is read from the origin once and comes from
 * peers, the local disk and memory from then on.
 *
 *   get(piece)   memory -> disk -> peers -> origin, the first whose bytes have
 *                the manifest's hash; then kept on disk, and decoded in memory
 *   serve(piece) memory, disk, or, at the piece's home, the origin
 *   home of piece i of n peers: i mod n
 *
 * Only a home reads the origin for others, so that a swarm that is complete
 * reads each piece once, however many peers start at the same time; the origin
 * is the last resort of everybody.
 *
 * The manifest is the authority: sizes, and a BLAKE2b-256 of each piece. Its
 * own hash, the root, belongs to what peers must agree on. Nothing is allocated
 * by what a file or a peer says: a manifest is bounded before it is looked at,
 * a piece has the size that the manifest gives it, and bytes of another hash
 * are counted, refused and had elsewhere; a peer that gave them is not asked
 * again.
 *
 * For one thread: memory, disk and origin are here, what asks a peer is the
 * caller's.
 *
 * Source  Shi et al., "Towards Scalable Distributed Training of Deep Learning
 *         on Public Cloud Clusters", MLSys 2021 (DataCache); peers are ours.
 * Test    unit/test_pieces.c (T4.5), unit/test_manifest.c; fuzz_manifest. */
#ifndef KITH_PIECES_H
#define KITH_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"

#define KITH_PIECE_HASH_BYTES 32u
#define KITH_PIECE_BYTES_MIN 64u
/* One burst of a session holds the largest. */
#define KITH_PIECE_BYTES_MAX (1u << 19)
#define KITH_PIECES_MAX (1u << 20)
#define KITH_PIECES_ERROR_BYTES 256

/* ---- manifest.c: what the data is
 *
 *   "kithman2", bytes (u64), piece_bytes, count, files (u32), count hashes, and
 *   for each file its size (u64), the length of its name (u8) and the name,
 *   in the order of names; little-endian. All pieces have piece_bytes but the
 * last, which has what is left.
 *
 * The data are the files one after another, each from a multiple of
 * KITH_MANIFEST_ALIGN bytes on, zeros between them; without names one file,
 * from 0 on. */
#define KITH_MANIFEST_HEAD_BYTES 28u
#define KITH_MANIFEST_ALIGN 64u
#define KITH_MANIFEST_FILES_MAX 4096u
/* Size and longest name of each. */
#define KITH_MANIFEST_BYTES_MAX                                                \
    (KITH_MANIFEST_HEAD_BYTES +                                                \
     (size_t)KITH_PIECES_MAX * KITH_PIECE_HASH_BYTES +                         \
     (size_t)KITH_MANIFEST_FILES_MAX * (8 + 1 + UINT8_MAX))
struct kith_manifest {
    uint64_t bytes; /* of the data, > 0 */
    uint32_t piece_bytes, count, file_count;
    const uint8_t *hashes; /* (count, KITH_PIECE_HASH_BYTES), the caller's */
    const uint8_t *files;  /* (files_bytes) as they are written, the caller's */
    size_t files_bytes;
};
struct kith_manifest_file {
    char name[UINT8_MAX + 1];
    uint64_t at, size; /* within the data */
    size_t next;       /* of manifest->files: begin with all zeros */
};

/* The file after this one, or the first; false: there is none, or it has no
 * name that a file of a folder can have. Cost: one step. */
bool kith_manifest_next(const struct kith_manifest *manifest,
                        struct kith_manifest_file *file);
/* The file of that name; NULL: the one without. False: there is none. */
bool kith_manifest_find(const struct kith_manifest *manifest, const char *name,
                        struct kith_manifest_file *file);

/* Pieces of so many bytes; 0: a bound is not kept. */
uint32_t kith_manifest_count(uint64_t bytes, uint32_t piece_bytes);
/* Of a piece; piece < count. */
size_t kith_manifest_size(const struct kith_manifest *manifest, uint32_t piece);
/* hash <- BLAKE2b-256 of a piece. */
void kith_manifest_hash(const uint8_t *bytes, size_t size,
                        uint8_t hash[KITH_PIECE_HASH_BYTES]);
/* Are these the bytes of that piece? Cost: a pass. */
bool kith_manifest_holds(const struct kith_manifest *manifest, uint32_t piece,
                         const uint8_t *bytes, size_t size);
/* root <- BLAKE2b-256 of the manifest as it is written. */
void kith_manifest_root(const struct kith_manifest *manifest,
                        uint8_t root[KITH_PIECE_HASH_BYTES]);
void kith_manifest_write_head(const struct kith_manifest *manifest,
                              uint8_t head[KITH_MANIFEST_HEAD_BYTES]);
/* Reads a manifest that lies in `bytes`, which must outlive it: nothing is
 * copied. root: NULL, any.
 *
 * Returns KITH_OK, or with a line in `error` (KITH_PIECES_ERROR_BYTES)
 *   KITH_EPARSE     it is none, has more or fewer bytes than it says, or files
 *                   that are not the data, or whose names are none
 *   KITH_ELIMIT     pieces of fewer than KITH_PIECE_BYTES_MIN or more than
 *                   KITH_PIECE_BYTES_MAX bytes, more than KITH_PIECES_MAX, or
 *                   more than KITH_MANIFEST_FILES_MAX files
 *   KITH_EMISMATCH  its root is not this one */
KITH_MUST_CHECK enum kith_err
kith_manifest_parse(const uint8_t *bytes, size_t size,
                    const uint8_t root[KITH_PIECE_HASH_BYTES],
                    struct kith_manifest *manifest, char *error);

/* manifest_make.c: of the file at `path`, or of all plain files of the folder
 * there that have bytes and whose names do not begin with a dot, in the order
 * of their names. *bytes (size): malloc'd, the caller frees it.
 *
 * Returns KITH_OK, or with a line in `error` (KITH_PIECES_ERROR_BYTES)
 *   KITH_ELIMIT  nothing is there, or more than a manifest can say
 *   KITH_ENOENT, KITH_EPERM, KITH_EIO, KITH_EPARSE  a file cannot be read, or
 *                became shorter
 *   KITH_ENOMEM
 *
 * Cost    a pass over the data. */
#define KITH_MANIFEST_PIECE_BYTES (1u << 18)
KITH_MUST_CHECK enum kith_err kith_manifest_make(const char *path,
                                                 uint32_t piece_bytes,
                                                 uint8_t **bytes, size_t *size,
                                                 char *error);

/* ---- where pieces come from */

struct kith_piece_source {
    const char *name; /* for messages: "disk", "peers", "origin" */
    bool is_peers;    /* not asked for what a peer asks for */
    bool is_origin;   /* asked for what a peer asks for by homes alone */
    unsigned attempts;
    void *owner;
    /* bytes (size) <- the piece as this source has it, at the n-th attempt,
     * from 0. KITH_ENOENT: it has none. What came is checked by the caller. */
    enum kith_err (*read)(void *owner, uint32_t piece, unsigned attempt,
                          size_t size, uint8_t *bytes);
    /* NULL: keeps nothing. The piece, checked, from another source. */
    enum kith_err (*keep)(void *owner, uint32_t piece, size_t size,
                          const uint8_t *bytes);
    /* NULL: does not matter. What that attempt gave was something else. */
    void (*damaged)(void *owner, uint32_t piece, unsigned attempt);
};

/* piece_disk.c: FOLDER/ROOT-INDEX, a file for each, replaced whole or not at
 * all; ROOT is 16 digits of the manifest's. The folder may be shared: what is
 * planted there is no piece. */
struct kith_piece_disk {
    char folder[KITH_PATH_BYTES_MAX - 64]; /* with room for names */
    char root[17];
    uint32_t self; /* tells writers of one folder apart */
};
/* The folder is made where it is not there. */
KITH_MUST_CHECK enum kith_err
kith_piece_disk_init(struct kith_piece_disk *disk, const char *folder,
                     const struct kith_manifest *manifest, uint32_t self);
struct kith_piece_source kith_piece_disk_source(struct kith_piece_disk *disk);

/* piece_origin.c: the files themselves, in a folder, wherever it is mounted;
 * without names in the manifest the file. */
struct kith_piece_origin {
    char path[KITH_PATH_BYTES_MAX];
    const struct kith_manifest *manifest; /* the caller's */
};
KITH_MUST_CHECK enum kith_err
kith_piece_origin_init(struct kith_piece_origin *origin, const char *path,
                       const struct kith_manifest *manifest);
struct kith_piece_source
kith_piece_origin_source(struct kith_piece_origin *origin);

/* piece_peers.c: the home first, then those behind it. */
#define KITH_PIECE_PEERS_ASKED 4u
struct kith_piece_peers {
    uint32_t self, count;
    bool *distrusted; /* (count), the caller's, all false */
    void *owner;
    /* bytes (size) <- what the peer says the piece is. KITH_ENOENT: it has
     * none; else: it was not to be reached. NULL: nobody is asked. */
    enum kith_err (*ask)(void *owner, uint32_t peer, uint32_t piece,
                         size_t size, uint8_t *bytes);
    /* NULL: does not matter. What it gave was something else. */
    void (*lied)(void *owner, uint32_t peer, uint32_t piece);
};
struct kith_piece_source
kith_piece_peers_source(struct kith_piece_peers *peers);
static inline uint32_t kith_piece_home(uint32_t piece, uint32_t peers)
{
    return piece % peers;
}

/* ---- pieces.c */

#define KITH_PIECE_SOURCES_MAX 4u

struct kith_pieces_config {
    const struct kith_manifest *manifest;
    struct kith_piece_source sources[KITH_PIECE_SOURCES_MAX]; /* in order */
    uint32_t source_count;
    uint32_t self, peers; /* this one's rank; > 0 */
    /* What is kept in memory: a piece of `size` bytes becomes
     * decoded_bytes(size), 64-byte aligned. NULL: as it is. */
    size_t (*decoded_bytes)(size_t size);
    void (*decode)(const uint8_t *bytes, size_t size, void *out);
    /* Decoded pieces in memory, > 0; more than count: count. Piece i lies in
     * slot i mod slots: with all of them there, as they are and of a size that
     * is a multiple of 64, the data lie in memory in one. */
    uint32_t slots;
};

struct kith_piece_counts {
    uint64_t memory; /* gets that memory answered */
    struct {
        uint64_t given;   /* pieces, checked */
        uint64_t damaged; /* of another hash */
        uint64_t failed;  /* could not be read, nor were they not there */
        uint64_t unkept;  /* given to it, and not kept */
    } of[KITH_PIECE_SOURCES_MAX];
};

struct kith_pieces;
/* Bytes of memory, aligned to 64, that init needs; 0: a bound is not kept. */
size_t kith_pieces_size(const struct kith_pieces_config *config);
/* config is copied, what it points to must outlive it. Nothing to close. */
struct kith_pieces *kith_pieces_init(void *memory,
                                     const struct kith_pieces_config *config);

/* *decoded: the piece, valid until the next call.
 *
 * Returns KITH_OK, or with a line in `error` (KITH_PIECES_ERROR_BYTES)
 *   KITH_EINVAL  there is no such piece
 *   KITH_EAUTH   a source had bytes, and none that are this piece's
 *   KITH_ENOENT  no source has it
 *   else         of the last source that failed
 *
 * Cost    of memory a look-up; else a read, a hash, a write and decoding. */
KITH_MUST_CHECK enum kith_err kith_pieces_get(struct kith_pieces *pieces,
                                              uint32_t piece,
                                              const void **decoded,
                                              char *error);
/* What a peer asks for: *bytes (size of the piece), valid until the next call.
 * KITH_ENOENT: not here, and not ours to fetch. Any number of a piece may be
 * given; but where the origin has not given one for so many questions it is not
 * asked for a peer again, until it is here. Errors else as above. */
#define KITH_PIECE_MISSES_MAX 4u
KITH_MUST_CHECK enum kith_err kith_pieces_serve(struct kith_pieces *pieces,
                                                uint32_t piece,
                                                const uint8_t **bytes,
                                                char *error);
/* Slot 0 of the memory. */
const void *kith_pieces_memory(const struct kith_pieces *pieces);
const struct kith_piece_counts *
kith_pieces_counts(const struct kith_pieces *pieces);

#endif
