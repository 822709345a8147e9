/* Pieces out of memory and of the sources behind it: see kith/pieces.h. */
#include "kith/pieces.h"

#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"

enum { ALIGNMENT = 64 };
#define NOWHERE UINT32_MAX

struct kith_pieces {
    struct kith_pieces_config config;
    struct kith_piece_counts counts;
    uint32_t *holds;  /* (config.slots) piece of a slot, or NOWHERE */
    uint8_t *missed;  /* (count) reads of the origin for peers, in vain */
    uint8_t *raw;     /* (piece_bytes) */
    uint8_t *decoded; /* (config.slots, slot_bytes) */
    size_t slot_bytes;
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Where everything stands behind the struct. */
struct places {
    size_t holds, missed, raw, decoded, slot_bytes, end;
};

static uint32_t slots_of(const struct kith_pieces_config *config)
{
    const uint32_t count = config->manifest->count;
    return config->slots < count ? config->slots : count;
}

static struct places places_of(const struct kith_pieces_config *config)
{
    const struct kith_manifest *const manifest = config->manifest;
    struct places at = {.holds = aligned(sizeof(struct kith_pieces))};
    at.slot_bytes = aligned(config->decoded_bytes == NULL
                                ? manifest->piece_bytes
                                : config->decoded_bytes(manifest->piece_bytes));
    at.missed = at.holds + aligned(slots_of(config) * sizeof(uint32_t));
    at.raw = at.missed + aligned(manifest->count);
    at.decoded = at.raw + aligned(manifest->piece_bytes);
    at.end = at.decoded + slots_of(config) * at.slot_bytes;
    return at;
}

size_t kith_pieces_size(const struct kith_pieces_config *config)
{
    const struct kith_manifest *const manifest = config->manifest;
    if (config->slots == 0 || config->peers == 0 ||
        config->self >= config->peers ||
        config->source_count > KITH_PIECE_SOURCES_MAX || manifest->count == 0 ||
        manifest->count !=
            kith_manifest_count(manifest->bytes, manifest->piece_bytes))
        return 0;
    const struct places at = places_of(config);
    return (at.end - at.decoded) / slots_of(config) == at.slot_bytes ? at.end
                                                                     : 0;
}

struct kith_pieces *kith_pieces_init(void *memory,
                                     const struct kith_pieces_config *config)
{
    const struct places at = places_of(config);
    struct kith_pieces *const pieces = memory;
    uint8_t *const base = memory;
    KITH_ASSERT((uintptr_t)memory % ALIGNMENT == 0);
    KITH_ASSERT(kith_pieces_size(config) > 0);
    *pieces = (struct kith_pieces){.config = *config,
                                   .holds = (void *)(base + at.holds),
                                   .missed = base + at.missed,
                                   .raw = base + at.raw,
                                   .decoded = base + at.decoded,
                                   .slot_bytes = at.slot_bytes};
    pieces->config.slots = slots_of(config);
    memset(pieces->holds, 0xff, pieces->config.slots * sizeof(uint32_t));
    memset(pieces->missed, 0, config->manifest->count);
    return pieces;
}

/* ---- the bytes of a piece, from the first source that has them */

/* From one source; what it gives is the piece's, or counted and refused. */
static enum kith_err read_from(struct kith_pieces *pieces, uint32_t index,
                               uint32_t piece, size_t size)
{
    const struct kith_piece_source *const source =
        &pieces->config.sources[index];
    enum kith_err worst = KITH_ENOENT;
    for (unsigned n = 0; n < source->attempts; n++) {
        const enum kith_err err =
            source->read(source->owner, piece, n, size, pieces->raw);
        if (err == KITH_ENOENT)
            continue;
        if (err == KITH_OK && kith_manifest_holds(pieces->config.manifest,
                                                  piece, pieces->raw, size)) {
            pieces->counts.of[index].given++;
            return KITH_OK;
        }
        /* KITH_EPARSE: as many bytes as the piece has not. */
        if (err == KITH_OK || err == KITH_EPARSE) {
            pieces->counts.of[index].damaged++;
            if (source->damaged != NULL)
                source->damaged(source->owner, piece, n);
            worst = KITH_EAUTH;
            continue;
        }
        pieces->counts.of[index].failed++;
        worst = worst == KITH_EAUTH ? worst : err;
    }
    return worst;
}

/* A source that keeps pieces, and could not give this one. */
static void keep(struct kith_pieces *pieces, uint32_t from, uint32_t piece,
                 size_t size)
{
    for (uint32_t i = 0; i < from; i++) {
        const struct kith_piece_source *const source =
            &pieces->config.sources[i];
        if (source->keep != NULL &&
            source->keep(source->owner, piece, size, pieces->raw) != KITH_OK)
            pieces->counts.of[i].unkept++;
    }
}

static bool may_read(const struct kith_pieces *pieces, uint32_t index,
                     uint32_t piece, bool for_a_peer)
{
    const struct kith_piece_source *const source =
        &pieces->config.sources[index];
    const bool is_home =
        kith_piece_home(piece, pieces->config.peers) == pieces->config.self;
    return !for_a_peer ||
           (!source->is_peers &&
            (!source->is_origin ||
             (is_home && pieces->missed[piece] < KITH_PIECE_MISSES_MAX)));
}

static enum kith_err fetch(struct kith_pieces *pieces, uint32_t piece,
                           bool for_a_peer, char *error)
{
    const struct kith_manifest *const manifest = pieces->config.manifest;
    enum kith_err worst = KITH_ENOENT;
    if (piece >= manifest->count)
        return kith_text_fail(error, KITH_PIECES_ERROR_BYTES, KITH_EINVAL,
                              "reading piece %u: there are %u", piece,
                              manifest->count);
    const size_t size = kith_manifest_size(manifest, piece);
    for (uint32_t i = 0; i < pieces->config.source_count; i++) {
        if (!may_read(pieces, i, piece, for_a_peer))
            continue;
        const enum kith_err err = read_from(pieces, i, piece, size);
        if (err == KITH_OK) {
            keep(pieces, i, piece, size);
            pieces->missed[piece] = 0;
            return KITH_OK;
        }
        if (for_a_peer && pieces->config.sources[i].is_origin)
            pieces->missed[piece]++;
        worst = err == KITH_ENOENT || worst == KITH_EAUTH ? worst : err;
    }
    return kith_text_fail(
        error, KITH_PIECES_ERROR_BYTES, worst,
        worst == KITH_EAUTH
            ? "reading piece %u: what came is not what the manifest says; look "
              "at the origin"
            : "reading piece %u: no source has it",
        piece);
}

/* ---- memory */

static void *slot_of(const struct kith_pieces *pieces, uint32_t piece)
{
    return pieces->decoded + piece % pieces->config.slots * pieces->slot_bytes;
}

static bool is_in_memory(const struct kith_pieces *pieces, uint32_t piece)
{
    return piece < pieces->config.manifest->count &&
           pieces->holds[piece % pieces->config.slots] == piece;
}

static void fill_slot(struct kith_pieces *pieces, uint32_t piece)
{
    const size_t size = kith_manifest_size(pieces->config.manifest, piece);
    pieces->holds[piece % pieces->config.slots] = piece;
    if (pieces->config.decode == NULL)
        memcpy(slot_of(pieces, piece), pieces->raw, size);
    else
        pieces->config.decode(pieces->raw, size, slot_of(pieces, piece));
}

enum kith_err kith_pieces_get(struct kith_pieces *pieces, uint32_t piece,
                              const void **decoded, char *error)
{
    const bool known = is_in_memory(pieces, piece);
    if (!known) {
        const enum kith_err err = fetch(pieces, piece, false, error);
        if (err != KITH_OK)
            return err;
        fill_slot(pieces, piece);
    }
    pieces->counts.memory += known;
    *decoded = slot_of(pieces, piece);
    return KITH_OK;
}

enum kith_err kith_pieces_serve(struct kith_pieces *pieces, uint32_t piece,
                                const uint8_t **bytes, char *error)
{
    const bool known =
        pieces->config.decode == NULL && is_in_memory(pieces, piece);
    *bytes = known ? slot_of(pieces, piece) : pieces->raw;
    const enum kith_err err =
        known ? KITH_OK : fetch(pieces, piece, true, error);
    /* A home that is asked before it wants it reads it once. */
    if (err == KITH_OK && !known && pieces->config.decode == NULL)
        fill_slot(pieces, piece);
    return err;
}

const void *kith_pieces_memory(const struct kith_pieces *pieces)
{
    return pieces->decoded;
}

const struct kith_piece_counts *
kith_pieces_counts(const struct kith_pieces *pieces)
{
    return &pieces->counts;
}
