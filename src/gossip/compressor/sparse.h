/* What compressors that send some values and where they stand share: the wire,
 * and how a selection says which.
 *
 * On the wire: k values in order of their index, then the indices as Elias and
 * Fano write an ascending list: the low l = log2(n / k) bits of each, and what
 * lies above in unary, as a bitmap in which index i sets bit (i >> l) + rank.
 * k (l + 2) bits at most: 8.56 an index at 1 %, where the least is 8.08.
 *
 * Elias, "Efficient Storage and Retrieval by Content and Address of Static
 * Files", J. ACM 1974. */
#ifndef KITH_GOSSIP_COMPRESSOR_SPARSE_H
#define KITH_GOSSIP_COMPRESSOR_SPARSE_H

#include "chunks.h"

/* Which are kept: sizes of at least `sure`; and of those in [from, sure), `of`
 * in number, `count` from the first-th on, the first of them after the last. */
struct kith_choice {
    double from, sure;
    size_t first, count, of;
    size_t seen; /* of those in [from, sure) */
};

/* Values of a vector: (n). */
struct kith_view {
    const void *values;
    size_t n;
};

/* Memory for a selection that a message is written over afterwards: `room`
 * elements. */
struct kith_sparse_scratch {
    void *memory;
    size_t room;
};

/* Values that are looked at together: 4 KiB of stack. */
#define KITH_SPARSE_SLICE 1024u

struct kith_sparse kith_sparse_layout(const struct kith_compression *how,
                                      size_t n);
size_t kith_sparse_bytes(const struct kith_compression *how, size_t n);
/* Of the k largest: w = energy of the kept / |v|^2 >= k / n. */
double kith_sparse_contraction(const struct kith_compression *how, size_t n);
/* What there is of `bytes` at any address. */
struct kith_sparse_scratch
kith_sparse_scratch(const struct kith_compression *how, uint8_t *bytes,
                    size_t count);

/* places <- which of n <= KITH_SPARSE_SLICE values are kept, ascending; returns
 * how many. Slice after slice. */
size_t kith_choice_places(struct kith_choice *choice,
                          const struct kith_compression *how, size_t n,
                          const void *v, uint32_t places[KITH_SPARSE_SLICE]);
/* wire <- what the choice keeps of v (n), as many as the layout says. */
void kith_sparse_write(const struct kith_compression *how, size_t n,
                       const void *v, struct kith_choice choice, uint8_t *wire);
/* false: kith_sparse_write could not have written it. */
bool kith_sparse_read(const struct kith_compression *how, size_t n,
                      const uint8_t *wire, void *out);

#endif
