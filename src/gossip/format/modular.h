/* Modular formats: the lower bits of a grid's numbers travel, the upper ones
 * are the reader's own.
 *
 *   n = round(v / step)        on the wire: n mod 2^bits
 *
 * Who reads knows its own number at that place, Q(own) = m, and takes the
 * nearest n to round(m / step) that leaves the same rest: right where the two
 * models are less than 2^(bits - 1) steps apart. So steps follow how far models
 * are apart, not how large their values are, and get finer as they agree.
 *
 * Each end has a grid of its own, a step for a block of 256 values, so that a
 * snapshot serves whoever is met, and all neighbours of a round. Per block:
 *
 *   theirs = read(residues, step of theirs, Q(ours))
 *   merged where both can read each other: there both have the same two
 *   numbers, Q(theirs) and Q(ours), and deltas are exact opposites; left out on
 *   both sides elsewhere, and where a step is above all values.
 *
 * Whether the other end could read ours follows from theirs, once that is read.
 * That theirs was misread is told by a hash of the upper bits, linear in them
 * with odd weights modulo 2^24: one value that wraps is always found, several
 * in a block but for one in 2^24.
 *
 * `reach` is what a grid is made for: the largest distance at any value of a
 * block lately,
 *
 *   step >= c reach / (2^(bits - 1) - 1)                   c = 2; 16 at 8 bits
 *   reach <- max(.97 reach, max |Q(theirs) - Q(ours)|)     merged
 *   reach <- max(reach, max |Q(theirs) - Q(ours)|)         theirs is read, ours
 *                                                          is not
 *   reach <- 1.5 reach                                     neither is, and our
 *                                                          grid is the finer
 *   reach <- reach / 2                                     our step is above
 *                                                          all values of both
 *
 * It begins as the model's own movement, which is as far as others have moved
 * from the same place; without one, at 1/64 of the largest value. Where neither
 * end reads the other in more than one exchange of fourteen grids get coarser,
 * at most as coarse as those of the others: that is how halves that were parted
 * meet again, and what members that lie can do.
 *
 * On the wire, little-endian: of each block the step's number << 24 | the hash,
 * then the residues; of 4 bits, values k and k + 128 of a block share a byte.
 *
 * Source: Lu and De Sa, "Moniqua: Modulo Quantized Communication in
 * Decentralized SGD", ICML 2020; grids, reach and hash as measured for pairs.
 * Test: unit/test_modular.c, unit/test_packing_modular.c,
 * fuzz/fuzz_format.c */
#ifndef KITH_GOSSIP_FORMAT_MODULAR_H
#define KITH_GOSSIP_FORMAT_MODULAR_H

#include "kith/format.h"

size_t kith_modular_bytes(unsigned bits, size_t n);
bool kith_modular_is_sane(unsigned bits, size_t bytes, size_t offset,
                          size_t length, const void *part);

#endif
