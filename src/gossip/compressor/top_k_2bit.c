/* The k largest values of a block by size, each by its sign and one of two
 * sizes, and where they stand.
 *
 *   m = mean |v| of the kept;  C(v) = sign(v) hi where |v| > m,  else
 *   sign(v) lo;   hi, lo: the mean |v| of either kind
 *
 *   w = (count_hi hi^2 + count_lo lo^2) / |v|^2 >= 1 / n
 *
 * Of sizes with one mean in place of each the energy that is kept is least
 * where one of them is all there is: s^2 / k of their sum s, which is at least
 * |v_kept|^2 / k, itself at least k / n of |v|^2. Of Gaussian values at 3 % it
 * keeps 0.99 of the energy that top-k does, of their cubes 0.91
 * (unit/test_top_k_2bit.c).
 *
 * On the wire: lo and hi, 2 bits for each that is kept, its sign and whether it
 * is a large one, then the indices as sparse.h has them. Blocks of 4096: 3 % of
 * float32 are 1/111 of its bytes, 64 of 4096 1/186.
 *
 * Vectors of a host: no device finds them in blocks with two sizes each.
 *
 * Sarfi et al., "Communication Efficient LLM Pre-training with SparseLoCo",
 * 2025; the two sizes are ours. */
#include "top_k.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"

enum { LO, HI, SIZES };
#define NEGATIVE 1u
#define LARGE 2u

/* Codes stand behind both sizes, indices behind the codes. */
static size_t codes_at(const struct kith_compression *how)
{
    return SIZES * how->backend->element_bytes;
}

static struct kith_sparse layout_of(const struct kith_compression *how,
                                    size_t n)
{
    const size_t kept = kith_kept(how, n);
    return kith_index_layout(kept, n,
                             codes_at(how) + kith_bits_bytes(2 * kept));
}

static size_t top_k_2bit_bytes(const struct kith_compression *how, size_t n)
{
    return layout_of(how, n).bytes;
}

static double top_k_2bit_contraction(const struct kith_compression *how,
                                     size_t n)
{
    (void)how;
    return 1 / (double)n;
}

/* Sums of sizes up to `mean`, and above. */
struct sizes {
    double mean, sum[SIZES];
    size_t count[SIZES];
};

static void add_size(void *context, size_t index, double value)
{
    struct sizes *const sizes = context;
    (void)index;
    const unsigned kind = fabs(value) > sizes->mean ? HI : LO;
    sizes->sum[kind] += fabs(value);
    sizes->count[kind]++;
}

/* What is left of |v| where it is one of two sizes. Who is alone is both. */
static struct sizes sizes_of(const struct kith_compression *how,
                             struct kith_view v, struct kith_choice choice)
{
    struct sizes all = {.mean = INFINITY}, sizes = {.mean = 0};
    kith_sparse_walk(how, v, choice, add_size, &all);
    KITH_ASSERT(all.count[LO] > 0 && all.count[HI] == 0);
    sizes.mean = all.sum[LO] / (double)all.count[LO];
    kith_sparse_walk(how, v, choice, add_size, &sizes);
    for (unsigned kind = 0; kind < SIZES; kind++)
        if (sizes.count[kind] == 0) {
            sizes.count[kind] = all.count[LO];
            sizes.sum[kind] = all.sum[LO];
        }
    return sizes;
}

struct writer {
    double mean;
    uint8_t *codes;
    struct kith_bits bits;
    struct kith_index_writer indices;
};

static void write_code(void *context, size_t index, double value)
{
    struct writer *const writer = context;
    const uint32_t code =
        (value < 0 ? NEGATIVE : 0) | (fabs(value) > writer->mean ? LARGE : 0);
    writer->codes = kith_bits_put(&writer->bits, writer->codes, code, 2);
    kith_index_write(&writer->indices, index);
}

static bool top_k_2bit_encode(const struct kith_compression *how, size_t n,
                              const void *v, struct kith_rng *rng,
                              uint8_t *wire)
{
    (void)rng;
    const struct kith_sparse layout = layout_of(how, n);
    const struct kith_view view = {v, n};
    const struct kith_choice choice = kith_top_k_choose(
        how, view, layout.kept, kith_sparse_scratch(how, wire, layout.bytes));
    const struct sizes sizes = sizes_of(how, view, choice);
    bool finite = true;
    for (unsigned kind = 0; kind < SIZES; kind++) {
        const double size = sizes.sum[kind] / (double)sizes.count[kind];
        finite &= kith_number_finite(kith_number_put(
            how, size, wire + kind * how->backend->element_bytes));
    }
    struct writer writer = {.mean = sizes.mean,
                            .codes = wire + codes_at(how),
                            .indices = {.layout = layout}};
    kith_index_write_begin(&writer.indices, wire);
    kith_sparse_walk(how, view, choice, write_code, &writer);
    kith_index_write_end(&writer.indices);
    kith_bits_end(&writer.bits, writer.codes);
    return finite;
}

static bool top_k_2bit_decode(const struct kith_compression *how, size_t n,
                              const uint8_t *wire, struct kith_rng *rng,
                              void *out)
{
    (void)rng;
    const size_t element = how->backend->element_bytes;
    const double lo = kith_number_get(how, wire + LO * element);
    const double hi = kith_number_get(how, wire + HI * element);
    const uint8_t *codes = wire + codes_at(how);
    struct kith_index_reader reader = {.layout = layout_of(how, n), .n = n};
    struct kith_bits bits = {0};
    size_t index;
    if (!(lo >= 0 && lo <= hi) || !kith_number_finite(hi))
        return false;
    kith_index_read_begin(&reader, wire);
    memset(out, 0, n * element);
    while (kith_index_read(&reader, &index)) {
        uint32_t code;
        codes = kith_bits_get(&bits, codes, &code, 2);
        const double size = code & LARGE ? hi : lo;
        kith_value_put(how, out, index, code & NEGATIVE ? -size : size);
    }
    return kith_index_read_whole(&reader) && bits.held == 0;
}

const struct kith_compressor kith_compressor_top_k_2bit = {
    .name = "top-k-2bit",
    .paper = "Sarfi et al., 2025",
    .summary = "the largest values, by sign and one of two sizes, and where "
               "they stand",
    .keys = KITH_COMPRESSOR_READS(DENSITY) | KITH_COMPRESSOR_READS(BLOCK),
    .block = 4096,
    .feedback = true,
    CODEC(top_k_2bit),
};
