/* One block of a modular format (src/gossip/format/modular.h): numbers of a
 * grid, of which the lower bits travel. Kernels of a host's backend, the same
 * bits on every CPU. Test: unit/test_modular.c */
#ifndef KITH_RESIDUES_H
#define KITH_RESIDUES_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define KITH_RESIDUE_BLOCK 256u
#define KITH_RESIDUE_HASH_MASK 0xffffffu
/* Grid numbers stay below it: a product with a step's inverse is off by less
 * than a quarter. */
#define KITH_RESIDUE_NUMBERS_BELOW 0x1p20f
/* In place of how far a block of theirs is from ours: it is not read, or one of
 * both steps is larger than any value. */
#define KITH_RESIDUE_UNREAD (-INFINITY)
#define KITH_RESIDUE_COARSE (-FLT_MAX)

struct kith_residue_block {
    float v[KITH_RESIDUE_BLOCK];
};

/* NAN: a step beside which nothing is read. */
struct kith_residue_head {
    float step;
    uint32_t hash;
};

struct kith_residues {
    /* INFINITY where a value is no number. */
    float (*largest)(const struct kith_residue_block *block);
    /* block <- Q(block); returns the hash. Values are below half of
     * NUMBERS_BELOW steps.
     *
     *   rests  (bits * 32 bytes) of 4 bits, values k and k + 128 share a byte
     */
    uint32_t (*pack)(unsigned bits, float step,
                     struct kith_residue_block *block, uint8_t *rests);
    /* theirs <- what `head` and `rests` say. Returns how far it is from ours at
     * most; less than 0 where it is left out: that distance where the other end
     * cannot read what `own` says, UNREAD where we cannot read theirs, COARSE.
     */
    float (*unpack)(unsigned bits, const struct kith_residue_head *head,
                    const uint8_t *rests, const struct kith_residue_head *own,
                    const struct kith_residue_block *ours,
                    struct kith_residue_block *theirs);
};

/* What a message is of. */
struct kith_modular_cover {
    size_t n;               /* values of the vectors */
    const uint32_t *blocks; /* (count) those that travel; NULL: all of them */
    size_t count;
};

struct kith_modular_pair {
    const void *received;    /* from a peer: any bytes */
    const void *sent, *kept; /* what pack wrote */
    void *out;               /* (n) on the backend */
};
struct kith_modular_seen {
    size_t read;   /* blocks of theirs that we could read */
    double beyond; /* |Q(theirs) - Q(ours)|^2 of those that they could not */
};
/* What a device has in their place: whole messages (kith/format.h). `reach`,
 * `apart` and the cover's blocks are in shared memory, and the host's when a
 * call returns. */
struct kith_residue_messages {
    /* largest (blocks) <- max |v - from| of each block, INFINITY where a value
     * is no number; from may be NULL (0). */
    void (*largest)(size_t n, const void *v, const void *from, float *largest);
    float (*pack)(unsigned bits, const struct kith_modular_cover *cover,
                  const void *v, const float *reach, void *wire, void *kept);
    struct kith_modular_seen (*unpack)(unsigned bits,
                                       const struct kith_modular_cover *cover,
                                       const struct kith_modular_pair *pair,
                                       float *apart);
};

#endif
