/* Values and where they stand, on the wire. See sparse.h. */
#include <string.h>

#include "kith/assert.h"
#include "sparse.h"

struct kith_sparse kith_index_layout(size_t kept, size_t n, size_t low_at)
{
    struct kith_sparse layout = {.kept = kept, .low_at = low_at};
    KITH_ASSERT(kept > 0 && kept <= n);
    while (n / kept >> (layout.low + 1) > 0)
        layout.low++;
    const size_t high_bits = kept + ((n - 1) >> layout.low);
    layout.high_at = layout.low_at + kith_bits_bytes(kept * layout.low);
    layout.bytes = layout.high_at + kith_bits_bytes(high_bits);
    return layout;
}

struct kith_sparse kith_sparse_layout(const struct kith_compression *how,
                                      size_t n)
{
    const size_t kept = kith_kept(how, n);
    return kith_index_layout(kept, n, kept * how->backend->element_bytes);
}

void kith_sparse_layouts(const struct kith_compression *how,
                         const struct kith_cut *cut, struct kith_sparse of[2])
{
    const size_t rest = cut->n % cut->block;
    of[0] = kith_sparse_layout(how, cut->block);
    of[1] = rest > 0 ? kith_sparse_layout(how, rest) : of[0];
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

void kith_sparse_walk(const struct kith_compression *how, struct kith_view v,
                      struct kith_choice choice, kith_sparse_visit *visit,
                      void *context)
{
    uint32_t places[KITH_SPARSE_SLICE];
    for (size_t from = 0; from < v.n; from += KITH_SPARSE_SLICE) {
        const size_t left = v.n - from;
        const size_t count =
            left < KITH_SPARSE_SLICE ? left : KITH_SPARSE_SLICE;
        const void *const slice = kith_element(how, v.values, from);
        const size_t kept =
            kith_choice_places(&choice, how, count, slice, places);
        for (size_t i = 0; i < kept; i++)
            visit(context, from + places[i],
                  kith_value_get(how, slice, places[i]));
    }
}

/* ---- lists of indices */

void kith_index_write_begin(struct kith_index_writer *writer, uint8_t *wire)
{
    const struct kith_sparse *const layout = &writer->layout;
    writer->low = wire + layout->low_at;
    writer->high = wire + layout->high_at;
    memset(writer->high, 0, layout->bytes - layout->high_at);
}

void kith_index_write(struct kith_index_writer *writer, size_t index)
{
    const unsigned low = writer->layout.low;
    const uint32_t mask = (uint32_t)((UINT64_C(1) << low) - 1);
    const size_t bit = (index >> low) + writer->rank;
    KITH_ASSERT(writer->rank < writer->layout.kept);
    writer->low =
        kith_bits_put(&writer->bits, writer->low, (uint32_t)index & mask, low);
    writer->high[bit / 8] = (uint8_t)(writer->high[bit / 8] | 1u << bit % 8);
    writer->rank++;
}

void kith_index_write_end(const struct kith_index_writer *writer)
{
    KITH_ASSERT(writer->rank == writer->layout.kept);
    kith_bits_end(&writer->bits, writer->low);
}

void kith_index_read_begin(struct kith_index_reader *reader,
                           const uint8_t *wire)
{
    reader->low = wire + reader->layout.low_at;
    reader->high = wire + reader->layout.high_at;
}

bool kith_index_read(struct kith_index_reader *reader, size_t *index)
{
    const struct kith_sparse *const layout = &reader->layout;
    const size_t bits = (layout->bytes - layout->high_at) * 8;
    const uint8_t *const high = reader->high;
    while (reader->bit < bits &&
           !(high[reader->bit / 8] >> reader->bit % 8 & 1))
        reader->bit++;
    if (reader->bit == bits || reader->rank == layout->kept)
        return false;
    uint32_t below;
    reader->low =
        kith_bits_get(&reader->bits, reader->low, &below, layout->low);
    *index = (reader->bit - reader->rank) << layout->low | below;
    if (*index < reader->next || *index >= reader->n)
        return false;
    reader->next = *index + 1;
    reader->rank++;
    reader->bit++;
    return true;
}

bool kith_index_read_whole(const struct kith_index_reader *reader)
{
    const size_t bits = (reader->layout.bytes - reader->layout.high_at) * 8;
    return reader->rank == reader->layout.kept && reader->bit == bits &&
           reader->bits.held == 0;
}

/* ---- values and their indices */

struct value_writer {
    const struct kith_compression *how;
    uint8_t *wire;
    struct kith_index_writer indices;
};

static void write_value(void *context, size_t index, double value)
{
    struct value_writer *const writer = context;
    const size_t element = writer->how->backend->element_bytes;
    (void)kith_number_put(writer->how, value,
                          writer->wire + writer->indices.rank * element);
    kith_index_write(&writer->indices, index);
}

void kith_sparse_write(const struct kith_compression *how, size_t n,
                       const void *v, struct kith_choice choice, uint8_t *wire)
{
    struct value_writer writer = {
        .how = how,
        .wire = wire,
        .indices = {.layout = kith_sparse_layout(how, n)}};
    kith_index_write_begin(&writer.indices, wire);
    kith_sparse_walk(how, (struct kith_view){v, n}, choice, write_value,
                     &writer);
    kith_index_write_end(&writer.indices);
}

bool kith_sparse_read(const struct kith_compression *how, size_t n,
                      const uint8_t *wire, void *out)
{
    struct kith_index_reader reader = {.layout = kith_sparse_layout(how, n),
                                       .n = n};
    const size_t element = how->backend->element_bytes;
    size_t index;
    kith_index_read_begin(&reader, wire);
    memset(out, 0, n * element);
    while (kith_index_read(&reader, &index)) {
        const size_t at = (reader.rank - 1) * element;
        kith_value_put(how, out, index, kith_number_get(how, wire + at));
    }
    return kith_index_read_whole(&reader);
}
