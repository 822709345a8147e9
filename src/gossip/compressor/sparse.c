/* Values and where they stand, on the wire. See sparse.h. */
#include <string.h>

#include "kith/assert.h"
#include "sparse.h"

struct kith_sparse kith_sparse_layout(const struct kith_compression *how,
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

size_t kith_sparse_bytes(const struct kith_compression *how, size_t n)
{
    return kith_sparse_layout(how, n).bytes;
}

double kith_sparse_contraction(const struct kith_compression *how, size_t n)
{
    return (double)kith_kept(how, n) / (double)n;
}

struct kith_sparse_scratch
kith_sparse_scratch(const struct kith_compression *how, uint8_t *bytes,
                    size_t count)
{
    const size_t element = how->backend->element_bytes;
    const size_t before = (element - (uintptr_t)bytes % element) % element;
    struct kith_sparse_scratch scratch = {NULL, 0};
    if (before < count) {
        scratch.memory = bytes + before;
        scratch.room = (count - before) / element;
    }
    return scratch;
}

/* Is the next one of [from, sure) among those that are kept? */
static bool in_window(struct kith_choice *choice)
{
    const size_t at = choice->seen++;
    const size_t behind = at >= choice->first ? at - choice->first
                                              : at + choice->of - choice->first;
    return behind < choice->count;
}

size_t kith_choice_places(struct kith_choice *choice,
                          const struct kith_compression *how, size_t n,
                          const void *v, uint32_t places[KITH_SPARSE_SLICE])
{
    KITH_ASSERT(n <= KITH_SPARSE_SLICE);
    const size_t found =
        how->backend->magnitudes()->find(n, v, choice->from, places);
    if (choice->count == choice->of) /* all that were found */
        return found;
    size_t kept = 0;
    for (size_t i = 0; i < found; i++) {
        const double value = kith_value_get(how, v, places[i]);
        const double size = value < 0 ? -value : value;
        if (size >= choice->sure || in_window(choice))
            places[kept++] = places[i];
    }
    return kept;
}

/* Where the next value and index go. */
struct writer {
    struct kith_sparse layout;
    uint8_t *wire, *low, *high;
    struct kith_bits bits;
    size_t rank;
};

static void write_value(const struct kith_compression *how,
                        struct writer *writer, size_t index, double value)
{
    const unsigned low = writer->layout.low;
    const uint32_t mask = (uint32_t)((UINT64_C(1) << low) - 1);
    const size_t bit = (index >> low) + writer->rank;
    (void)kith_number_put(
        how, value, writer->wire + writer->rank * how->backend->element_bytes);
    writer->low =
        kith_bits_put(&writer->bits, writer->low, (uint32_t)index & mask, low);
    writer->high[bit / 8] = (uint8_t)(writer->high[bit / 8] | 1u << bit % 8);
    writer->rank++;
}

void kith_sparse_write(const struct kith_compression *how, size_t n,
                       const void *v, struct kith_choice choice, uint8_t *wire)
{
    uint32_t places[KITH_SPARSE_SLICE];
    struct writer writer = {.layout = kith_sparse_layout(how, n), .wire = wire};
    writer.low = wire + writer.layout.low_at;
    writer.high = wire + writer.layout.high_at;
    memset(writer.high, 0, writer.layout.bytes - writer.layout.high_at);
    for (size_t from = 0; from < n && writer.rank < writer.layout.kept;
         from += KITH_SPARSE_SLICE) {
        const size_t left = n - from;
        const size_t count =
            left < KITH_SPARSE_SLICE ? left : KITH_SPARSE_SLICE;
        const void *const slice = kith_element(how, v, from);
        const size_t kept =
            kith_choice_places(&choice, how, count, slice, places);
        KITH_ASSERT(kept <= writer.layout.kept - writer.rank);
        for (size_t i = 0; i < kept; i++)
            write_value(how, &writer, from + places[i],
                        kith_value_get(how, slice, places[i]));
    }
    KITH_ASSERT(writer.rank == writer.layout.kept);
    kith_bits_end(&writer.bits, writer.low);
}

bool kith_sparse_read(const struct kith_compression *how, size_t n,
                      const uint8_t *wire, void *out)
{
    const struct kith_sparse layout = kith_sparse_layout(how, n);
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
