/* The k largest values by size, exactly; the first where sizes are equal.
 *
 *   w = energy of the kept / |v|^2 >= k / n
 *
 * The k-th largest is found digit by digit: the bits of |v| as an integer grow
 * with |v|, and a histogram of the highest eleven says in which bucket it lies;
 * then the next eleven within that bucket. Two or three passes, no memory.
 *
 * On the wire: k values in order of their index, then the indices as Elias and
 * Fano write an ascending list: the low l = log2(n / k) bits of each, and what
 * lies above in unary, as a bitmap in which index i sets bit (i >> l) + rank.
 * k (l + 2) bits at most: 8.56 an index at 1 %, where the least is 8.08.
 *
 * Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018;
 * Elias, "Efficient Storage and Retrieval by Content and Address of Static
 * Files", J. ACM 1974. */
#include <string.h>

#include "kith/assert.h"
#include "chunks.h"

#define DIGIT_BITS 11u
#define BUCKETS (1u << DIGIT_BITS)

static struct kith_sparse layout_of(const struct kith_compression *how,
                                    size_t n)
{
    struct kith_sparse layout = {.kept = kith_kept(how, n)};
    while (n / layout.kept >> (layout.low + 1) > 0)
        layout.low++;
    const size_t high_bits = layout.kept + ((n - 1) >> layout.low);
    layout.low_at = layout.kept * how->backend->element_bytes;
    layout.high_at = layout.low_at + kith_bits_bytes(layout.kept * layout.low);
    layout.bytes = layout.high_at + kith_bits_bytes(high_bits);
    return layout;
}

static size_t top_k_bytes(const struct kith_compression *how, size_t n)
{
    return layout_of(how, n).bytes;
}

static double top_k_contraction(const struct kith_compression *how, size_t n)
{
    return (double)kith_kept(how, n) / (double)n;
}

/* 63 bits that grow with the size of a value. */
static uint64_t size_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT64_MAX;
}

/* What is kept: sizes whose bits above `shift` exceed `prefix`, and the first
 * `ties` of those that are equal there. */
struct threshold {
    uint64_t prefix;
    unsigned shift;
    size_t ties;
};

/* How many sizes that begin with the prefix have each next digit. */
static void count_digits(const struct kith_compression *how, size_t n,
                         const void *v, const struct threshold *at,
                         unsigned width, uint32_t buckets[BUCKETS])
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    double values[KITH_CHUNK];
    size_t count;
    memset(buckets, 0, BUCKETS * sizeof buckets[0]);
    for (size_t from = 0; from < n; from += count) {
        count = kith_chunk_read(how, n, v, from, values);
        for (size_t i = 0; i < count; i++) {
            const uint64_t size = size_of(values[i]);
            if (size >> at->shift == at->prefix)
                buckets[size >> (at->shift - width) & mask]++;
        }
    }
}

static struct threshold find_threshold(const struct kith_compression *how,
                                       size_t n, const void *v, size_t kept)
{
    struct threshold at = {.shift = 63, .ties = kept};
    uint32_t buckets[BUCKETS];
    /* Six digits are 63 bits; with none at all, all are equal. */
    while (at.shift > 0 && kept < n) {
        const unsigned width = at.shift < DIGIT_BITS ? at.shift : DIGIT_BITS;
        unsigned digit = (1u << width) - 1;
        count_digits(how, n, v, &at, width, buckets);
        for (; buckets[digit] < at.ties; digit--) {
            KITH_ASSERT(digit > 0);
            at.ties -= buckets[digit];
        }
        at.prefix = at.prefix << width | digit;
        at.shift -= width;
        if (buckets[digit] == at.ties)
            break;
    }
    return at;
}

/* Is this value one of the k? Asked once of each, in order. */
static bool keeps(struct threshold *at, double value)
{
    const uint64_t size = size_of(value) >> at->shift;
    if (size != at->prefix)
        return size > at->prefix;
    if (at->ties == 0)
        return false;
    at->ties--;
    return true;
}

static bool top_k_encode(const struct kith_compression *how, size_t n,
                         const void *v, struct kith_rng *rng, uint8_t *wire)
{
    (void)rng;
    const struct kith_sparse layout = layout_of(how, n);
    const uint32_t mask = (uint32_t)((UINT64_C(1) << layout.low) - 1);
    struct threshold at = find_threshold(how, n, v, layout.kept);
    uint8_t *low = wire + layout.low_at, *high = wire + layout.high_at;
    struct kith_bits bits = {0};
    double values[KITH_CHUNK];
    size_t rank = 0, count;
    memset(high, 0, layout.bytes - layout.high_at);
    for (size_t from = 0; from < n; from += count) {
        count = kith_chunk_read(how, n, v, from, values);
        for (size_t i = 0; i < count; i++) {
            if (!keeps(&at, values[i]))
                continue;
            const size_t index = from + i;
            const size_t bit = (index >> layout.low) + rank;
            (void)kith_number_put(how, values[i],
                                  wire + rank * how->backend->element_bytes);
            low = kith_bits_put(&bits, low, (uint32_t)index & mask, layout.low);
            high[bit / 8] = (uint8_t)(high[bit / 8] | 1u << bit % 8);
            rank++;
        }
    }
    KITH_ASSERT(rank == layout.kept);
    kith_bits_end(&bits, low);
    return true;
}

static bool top_k_decode(const struct kith_compression *how, size_t n,
                         const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_sparse layout = layout_of(how, n);
    const uint8_t *low = wire + layout.low_at, *high = wire + layout.high_at;
    struct kith_bits bits = {0};
    size_t rank = 0, next = 0; /* the least index that may follow */
    memset(out, 0, n * how->backend->element_bytes);
    for (size_t bit = 0; bit < (layout.bytes - layout.high_at) * 8; bit++) {
        if (!(high[bit / 8] >> bit % 8 & 1))
            continue;
        if (rank == layout.kept)
            return false;
        uint32_t below;
        low = kith_bits_get(&bits, low, &below, layout.low);
        const size_t index = (bit - rank) << layout.low | below;
        if (index < next || index >= n)
            return false;
        const double value =
            kith_number_get(how, wire + rank * how->backend->element_bytes);
        kith_value_put(how, out, index, value);
        next = index + 1;
        rank++;
    }
    return rank == layout.kept && bits.held == 0;
}

/* Of a whole block, and of the last. */
static void layouts_of(const struct kith_compression *how,
                       const struct kith_cut *cut, struct kith_sparse of[2])
{
    const size_t rest = cut->n % cut->block;
    of[0] = layout_of(how, cut->block);
    of[1] = rest > 0 ? layout_of(how, rest) : of[0];
}

static bool top_k_pack(const struct kith_compression *how, const void *v,
                       struct kith_rng *rng, void *wire)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    struct kith_sparse sparse[2];
    layouts_of(how, &cut, sparse);
    return how->backend->compressed->pack_top_k(&cut, sparse, v, wire);
}

static bool top_k_unpack(const struct kith_compression *how, const void *wire,
                         struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    struct kith_sparse sparse[2];
    layouts_of(how, &cut, sparse);
    return how->backend->compressed->unpack_top_k(&cut, sparse, wire, out);
}

const struct kith_compressor kith_compressor_top_k = {
    .name = "top-k",
    .paper = "Stich et al., NeurIPS 2018",
    .summary = "the largest values by size, and where they stand",
    .keys = KITH_COMPRESSOR_READS(DENSITY) | KITH_COMPRESSOR_READS(BLOCK),
    .feedback = true,
    CODEC(top_k),
    DEVICE_CODEC(top_k),
};
