/* The k largest values by size, exactly; the first where sizes are equal. On
 * the wire as sparse.h says.
 *
 *   w = energy of the kept / |v|^2 >= k / n
 *
 * The k-th largest is found digit by digit: the bits of |v| as an integer grow
 * with |v|, and a histogram of the highest eleven says in which bucket it lies;
 * then the next eleven within that bucket. Two or three passes, no memory.
 *
 * Of a long vector a sample says first between which sizes the k-th is all but
 * certain to lie: one pass, vectorised, copies those and counts what is above,
 * and the digits are counted of these alone. They lie where the message will
 * be, for a plug-in has no memory of its own. Where the sample was wrong, or
 * they do not fit, the digits of all values are counted: never another result,
 * a slower one.
 *
 * Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018. The
 * sample: Floyd and Rivest, "Expected Time Bounds for Selection", CACM 1975. */
#include "top_k.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"

#define DIGIT_BITS 11u
#define BUCKETS (1u << DIGIT_BITS)

/* A sample's share and most, and how many of its standard deviations the k-th
 * may be off. Shorter vectors are sorted out as they are. */
#define SAMPLED_LEAST 65536u
#define SAMPLED_EACH 64u
#define SAMPLE_MOST 65536u
#define DEVIATIONS 4

/* Every step-th of some values: n of them. */
struct view {
    const void *v;
    size_t n, step;
};

/* 63 bits that grow with the size of a value, and the size. */
static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT64_MAX;
}

static double size_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What is kept: sizes whose bits above `shift` exceed `prefix`, and the first
 * `ties` of the `equal` ones that are equal there. */
struct threshold {
    uint64_t prefix;
    unsigned shift;
    size_t ties, equal;
};

static size_t view_read(const struct kith_compression *how,
                        const struct view *view, size_t from,
                        double values[KITH_CHUNK])
{
    if (view->step == 1)
        return kith_chunk_read(how, view->n, view->v, from, values);
    const size_t left = view->n - from;
    const size_t count = left < KITH_CHUNK ? left : KITH_CHUNK;
    for (size_t i = 0; i < count; i++)
        values[i] = kith_value_get(how, view->v, (from + i) * view->step);
    return count;
}

/* How many sizes that begin with the prefix have each next digit. */
static void count_digits(const struct kith_compression *how,
                         const struct view *view, const struct threshold *at,
                         unsigned width, uint32_t buckets[BUCKETS])
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    double values[KITH_CHUNK];
    size_t count;
    memset(buckets, 0, BUCKETS * sizeof buckets[0]);
    for (size_t from = 0; from < view->n; from += count) {
        count = view_read(how, view, from, values);
        for (size_t i = 0; i < count; i++) {
            const uint64_t size = bits_of(values[i]);
            if (size >> at->shift == at->prefix)
                buckets[size >> (at->shift - width) & mask]++;
        }
    }
}

static struct threshold find_threshold(const struct kith_compression *how,
                                       const struct view *view, size_t kept)
{
    struct threshold at = {.shift = 63, .ties = kept, .equal = view->n};
    uint32_t buckets[BUCKETS];
    KITH_ASSERT(kept > 0 && kept <= view->n);
    /* Six digits are 63 bits; with none at all, all are equal. */
    while (at.shift > 0 && at.ties < at.equal) {
        const unsigned width = at.shift < DIGIT_BITS ? at.shift : DIGIT_BITS;
        unsigned digit = (1u << width) - 1;
        count_digits(how, view, &at, width, buckets);
        for (; buckets[digit] < at.ties; digit--) {
            KITH_ASSERT(digit > 0);
            at.ties -= buckets[digit];
        }
        at.prefix = at.prefix << width | digit;
        at.shift -= width;
        at.equal = buckets[digit];
    }
    return at;
}

/* The least size that the prefix allows: of some value, or below it and an
 * element all the same. */
static double least_of(const struct threshold *at)
{
    return at->shift > 62 ? 0 : size_of(at->prefix << at->shift);
}

/* Sizes between which the k-th largest of v is expected. */
struct bracket {
    double from, below;
};

static struct bracket bracket_of(const struct kith_compression *how,
                                 const struct view *all, size_t kept)
{
    /* Odd, for the rows of matrices are even. */
    const size_t least = all->n / SAMPLE_MOST;
    const size_t step = (least > SAMPLED_EACH ? least : SAMPLED_EACH) | 1;
    const struct view sample = {all->v, (all->n - 1) / step + 1, step};
    const double share = (double)kept / (double)all->n;
    const double rank = share * (double)sample.n;
    const double reach = DEVIATIONS * sqrt(rank * (1 - share)) + 1;
    struct bracket bracket = {0, INFINITY};
    if (rank - reach >= 1) {
        const struct threshold at =
            find_threshold(how, &sample, (size_t)(rank - reach));
        bracket.below = least_of(&at);
    }
    if (rank + reach < (double)sample.n) {
        const struct threshold at =
            find_threshold(how, &sample, (size_t)(rank + reach) + 1);
        bracket.from = least_of(&at);
    }
    return bracket;
}

/* Of all of them: which are kept, the first of equal ones. */
static struct kith_choice choice_of(const struct threshold *at, double least)
{
    const double from = least_of(at);
    struct kith_choice choice = {.from = from > least ? from : least,
                                 .count = at->ties,
                                 .of = at->equal};
    choice.sure = at->shift == 0 ? size_of(at->prefix + 1) : INFINITY;
    KITH_ASSERT(at->shift == 0 || at->ties == at->equal);
    return choice;
}

struct kith_choice kith_top_k_choose(const struct kith_compression *how,
                                     struct kith_view v, size_t kept,
                                     struct kith_sparse_scratch scratch)
{
    const struct view all = {v.values, v.n, 1};
    const size_t n = v.n;
    if (n >= SAMPLED_LEAST && kept < n) {
        const struct bracket bracket = bracket_of(how, &all, kept);
        const struct kith_magnitude_found found =
            how->backend->magnitudes()->keep(n, v.values, bracket.from,
                                             bracket.below, scratch.room,
                                             scratch.memory);
        if (found.beyond < kept && found.within >= kept - found.beyond &&
            found.within <= scratch.room) {
            const struct view some = {scratch.memory, found.within, 1};
            const struct threshold at =
                find_threshold(how, &some, kept - found.beyond);
            return choice_of(&at, bracket.from);
        }
    }
    const struct threshold at = find_threshold(how, &all, kept);
    return choice_of(&at, 0);
}

static bool top_k_encode(const struct kith_compression *how, size_t n,
                         const void *v, struct kith_rng *rng, uint8_t *wire)
{
    (void)rng;
    const struct kith_sparse layout = kith_sparse_layout(how, n);
    const struct kith_sparse_scratch scratch =
        kith_sparse_scratch(how, wire, layout.bytes);
    const struct kith_choice choice =
        kith_top_k_choose(how, (struct kith_view){v, n}, layout.kept, scratch);
    kith_sparse_write(how, n, v, choice, wire);
    return true;
}

static bool top_k_decode(const struct kith_compression *how, size_t n,
                         const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    return kith_sparse_read(how, n, wire, out);
}

static bool top_k_pack(const struct kith_compression *how, const void *v,
                       struct kith_rng *rng, void *wire)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    struct kith_sparse sparse[2];
    kith_sparse_layouts(how, &cut, sparse);
    return how->backend->compressed->pack_top_k(&cut, sparse, v, wire);
}

static bool top_k_unpack(const struct kith_compression *how, const void *wire,
                         struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    struct kith_sparse sparse[2];
    kith_sparse_layouts(how, &cut, sparse);
    return how->backend->compressed->unpack_top_k(&cut, sparse, wire, out);
}

const struct kith_compressor kith_compressor_top_k = {
    .name = "top-k",
    .paper = "Stich et al., NeurIPS 2018",
    .summary = "the largest values by size, and where they stand",
    .keys = KITH_COMPRESSOR_READS(DENSITY) | KITH_COMPRESSOR_READS(BLOCK),
    .feedback = true,
    .encode = top_k_encode,
    .decode = top_k_decode,
    .bytes = kith_sparse_bytes,
    .contraction = kith_sparse_contraction,
    DEVICE_CODEC(top_k),
};
