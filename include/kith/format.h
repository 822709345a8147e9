/* A format: as what the numbers of a message travel (`gossip.wire`).
 *
 *   Q(v) = unpack(pack(v))
 *
 * Both ends of an exchange merge with the same rounded numbers, one's own
 * among them,
 *
 *   x_i <- x_i + w (Q(s_j) - Q(s_i))      x_j <- x_j + w (Q(s_i) - Q(s_j))
 *
 * so that deltas stay exact opposites and the sum of all models is kept. What
 * rounding takes away is not mixed: two models come no nearer to each other
 * than about a step of the format.
 *
 * The bytes of n values depend on n alone. A format owns no heap, clock, file
 * or writable global. One file, one line in src/gossip/format/formats.def.
 * Test: unit/test_formats.c, fuzz/fuzz_format.c */
#ifndef KITH_FORMAT_H
#define KITH_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"

KITH_BEGIN_DECLS

struct kith_format {
    const char *name, *paper, *summary;
    /* What a peer keeps for it from one exchange to the next; NULL: nothing. */
    const char *keeps;
    /* Values travel as the backend has them: nothing is packed, and no entry
     * below is needed. */
    bool raw;
    /* Bits that travel of a modular format's numbers, which are read beside
     * one's own, with kith_modular_... in place of the entries from `pack` to
     * `distance_squared`; 0: values travel whole. */
    unsigned residue_bits;

    /* On the wire, exactly. */
    size_t (*bytes)(size_t n);
    /* wire <- v. Values that are not finite, or beyond what the format holds,
     * are written so that is_sane refuses them.
     *
     *   backend  of v: a host, or a device
     *   v        (n) read
     *   wire     (bytes(n)) 64-byte aligned; of a device, shared
     *
     * Cost  one pass; no allocation. */
    void (*pack)(const struct kith_backend *backend, size_t n, const void *v,
                 void *wire);
    /* out <- Q(v) of the values [from, from + count), the same bits for whoever
     * reads the wire; finite where is_sane says so.
     *
     *   wire  (bytes(n)) from a peer: any bytes
     *   out   (count) on the backend; apart from the wire; on a device all n */
    void (*unpack)(const struct kith_backend *backend, size_t n,
                   const void *wire, size_t from, size_t count, void *out);
    /* Optional: a pass over what travelled, without unpacking it first.
     *
     * x <- x + weight (Q(received) - Q(sent)) as backend.h's mix, and
     * |Q(a) - Q(b)|^2, b may be NULL; of all n values. */
    double (*mix)(const struct kith_backend *host, size_t n, double weight,
                  const void *received, const void *sent, void *x);
    double (*distance_squared)(const struct kith_backend *host, size_t n,
                               const void *a, const void *b);
    /* Sum of (Q(v) - v)^2 over the values [from, from + count), as if values
     * lay anywhere between two levels; finite where is_sane says so, and no
     * more than where Q(v) were packed once more. */
    double (*rounding)(size_t n, const void *wire, size_t from, size_t count);
    /* The gate: may bytes [offset, offset + length) of a message of `bytes`
     * bytes be merged? `part` is where they stand; offset is a multiple of 64.
     * A message of which all parts pass unpacks to finite values. */
    KITH_MUST_CHECK bool (*is_sane)(size_t bytes, size_t offset, size_t length,
                                    const void *part);
};

/* NULL-terminated, in the order of formats.def; the first is the default. */
extern const struct kith_format *const kith_formats[];
const struct kith_format *kith_format_find(const char *name);

/* ---- Modular formats: src/gossip/format/modular.h */

size_t kith_modular_blocks(size_t n);
/* How many of them a message of this share carries, and which, ascending: the
 * same for all that draw them by the number of an exchange or a round. */
size_t kith_modular_carried(size_t n, double share);
void kith_modular_choose(uint64_t seed, uint64_t round, size_t blocks,
                         size_t carried, uint32_t *chosen);

/* reach (blocks), of a model that has not met another one: how far it has come
 * from where others began, too, or a guess where that is 0 or `from` NULL. */
void kith_modular_start(const struct kith_backend *host, size_t n,
                        const void *v, const void *from, float *reach);
/* wire <- v on the grids of `reach`; kept <- Q(v), (n) on `host`, to be read
 * beside whatever answers; v where a block does not travel. Returns the largest
 * |v| of what travels. */
float kith_modular_pack(const struct kith_format *format,
                        const struct kith_backend *host,
                        const struct kith_modular_cover *cover, const void *v,
                        const float *reach, void *wire, void *kept);
/* out <- Q(theirs) in blocks that both ends can read, what we kept in others;
 * apart (blocks) <- max |Q(theirs) - Q(ours)|; less than 0 where the block is
 * left out: how far our grid should reach, or why (kith/residues.h); NAN where
 * it does not travel. */
struct kith_modular_seen
kith_modular_unpack(const struct kith_format *format,
                    const struct kith_backend *host,
                    const struct kith_modular_cover *cover,
                    const struct kith_modular_pair *pair, float *apart);
/* reach after an exchange that found this; `most`: the largest |v| lately. */
void kith_modular_follow(size_t n, const float *apart, float most,
                         float *reach);

/* The gate for a part of a message: see is_sane; of a raw format the values are
 * those of `host`. NULL: raw. */
static inline bool kith_format_passes(const struct kith_format *format,
                                      const struct kith_backend *host,
                                      size_t bytes, size_t offset,
                                      size_t length, const void *part)
{
    return format == NULL || format->raw
               ? host->finite(length / host->element_bytes, part)
               : format->is_sane(bytes, offset, length, part);
}

/* Bytes of a message whose values take `bytes` on the backend; of a modular
 * format it carries a share of their blocks, 0: all. */
static inline size_t kith_format_bytes(const struct kith_format *format,
                                       double share,
                                       const struct kith_backend *backend,
                                       size_t bytes)
{
    const size_t n = bytes / backend->element_bytes;
    return format == NULL || format->raw ? bytes
           : format->residue_bits == 0
               ? format->bytes(n)
               : format->bytes(kith_modular_carried(n, share) *
                               KITH_RESIDUE_BLOCK);
}

KITH_END_DECLS

#endif
