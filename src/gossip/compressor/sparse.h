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
/* Of a whole block, and of the last. */
void kith_sparse_layouts(const struct kith_compression *how,
                         const struct kith_cut *cut, struct kith_sparse of[2]);
/* Of `kept` indices below n, written from byte `low_at` of the wire on. */
struct kith_sparse kith_index_layout(size_t kept, size_t n, size_t low_at);
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
/* What is kept is visited in order of its index. */
typedef void kith_sparse_visit(void *context, size_t index, double value);
void kith_sparse_walk(const struct kith_compression *how, struct kith_view v,
                      struct kith_choice choice, kith_sparse_visit *visit,
                      void *context);

/* A list of indices under way to the wire, or from there: of a peer's it may
 * say anything. */
struct kith_index_writer {
    struct kith_sparse layout;
    uint8_t *low, *high;
    struct kith_bits bits;
    size_t rank; /* of the next one */
};
struct kith_index_reader {
    struct kith_sparse layout;
    size_t n;
    const uint8_t *low, *high;
    struct kith_bits bits;
    size_t rank, bit, next; /* next: the least index that may follow */
};
void kith_index_write_begin(struct kith_index_writer *writer, uint8_t *wire);
void kith_index_write(struct kith_index_writer *writer, size_t index);
void kith_index_write_end(const struct kith_index_writer *writer);
void kith_index_read_begin(struct kith_index_reader *reader,
                           const uint8_t *wire);
/* index <- the one of rank `rank`; false: there is no further one, or it could
 * not have been written. */
bool kith_index_read(struct kith_index_reader *reader, size_t *index);
/* Was what is over now written so, all `kept` of it? */
bool kith_index_read_whole(const struct kith_index_reader *reader);

/* wire <- what the choice keeps of v (n), as many as the layout says. */
void kith_sparse_write(const struct kith_compression *how, size_t n,
                       const void *v, struct kith_choice choice, uint8_t *wire);
/* false: kith_sparse_write could not have written it. */
bool kith_sparse_read(const struct kith_compression *how, size_t n,
                      const uint8_t *wire, void *out);

#endif
