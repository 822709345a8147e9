/* Format int8: steps of a block's largest value.
 *
 *   Q(v) = scale l,   scale = max |v| / 127,   l = v / scale, to the nearest
 *
 * in blocks of 256 values, so that |Q(v) - v| <= scale / 2. On the wire: the
 * scales of all blocks, float32, little-endian, then a byte a value. A block of
 * values below 2^-119 becomes 0. A scale that is not finite, or so large that
 * 127 of it would not be, does not pass the gate: that is what a block with a
 * value that is no number is given. A level of -128, which no block needs, is
 * read as it is.
 *
 * Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR
 * 2022, with levels evenly apart. */
#include <string.h>

#include "kith/assert.h"
#include "kith/format.h"

#define BLOCK KITH_INT8_BLOCK
#define BLOCK_BYTES (BLOCK + sizeof(float))
/* 128 of it are below 2^128. */
#define SCALE_BELOW 0x1p121f

static size_t blocks_of(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t bytes(size_t n)
{
    return n + blocks_of(n) * sizeof(float);
}

/* Of scales, in a message of so many bytes. */
static size_t scales_bytes(size_t size)
{
    return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * sizeof(float);
}

static void pack(const struct kith_backend *backend, size_t n, const void *v,
                 void *wire)
{
    const size_t blocks = blocks_of(n);
    float *const scales = wire;
    int8_t *const levels = (int8_t *)(scales + blocks);
    if (backend->pack_int8 != NULL) {
        backend->pack_int8(n, v, wire);
        return;
    }
    KITH_ASSERT(backend->to_int8 != NULL);
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = b * BLOCK, left = n - at;
        scales[b] = backend->to_int8(
            left < BLOCK ? left : BLOCK,
            (const char *)v + at * backend->element_bytes, levels + at);
    }
}

static void unpack(const struct kith_backend *backend, size_t n,
                   const void *wire, size_t from, size_t count, void *out)
{
    const float *const scales = wire;
    const int8_t *const levels = (const int8_t *)(scales + blocks_of(n));
    KITH_ASSERT(from + count <= n);
    if (backend->unpack_int8 != NULL) {
        KITH_ASSERT(from == 0 && count == n);
        backend->unpack_int8(n, wire, out);
        return;
    }
    KITH_ASSERT(backend->from_int8 != NULL);
    for (size_t at = from, end = from + count, next; at < end; at = next) {
        next = (at / BLOCK + 1) * BLOCK;
        next = next < end ? next : end;
        backend->from_int8(next - at, scales[at / BLOCK], levels + at,
                           (char *)out + (at - from) * backend->element_bytes);
    }
}

/* Between two levels, had the block's numbers been packed as they stand here: a
 * scale that its levels do not use is but what a peer says. */
static double step_of(size_t n, const void *wire, size_t block)
{
    const float *const scales = wire;
    const int8_t *const levels = (const int8_t *)(scales + blocks_of(n));
    const size_t from = block * BLOCK, left = n - from;
    int most = 0;
    for (size_t i = from; i < from + (left < BLOCK ? left : BLOCK); i++) {
        const int level = levels[i] < 0 ? -levels[i] : levels[i];
        most = level > most ? level : most;
    }
    return (double)scales[block] * most / 127;
}

/* A twelfth of a step squared each. */
static double rounding(size_t n, const void *wire, size_t from, size_t count)
{
    double squared = 0;
    KITH_ASSERT(from + count <= n);
    for (size_t at = from, end = from + count, next; at < end; at = next) {
        const double step = step_of(n, wire, at / BLOCK);
        next = (at / BLOCK + 1) * BLOCK;
        next = next < end ? next : end;
        squared += (double)(next - at) * step * step / 12;
    }
    return squared;
}

static bool are_sane(size_t count, const float *scales)
{
    bool sane = true;
    for (size_t b = 0; b < count; b++)
        sane = sane && scales[b] >= 0 && scales[b] < SCALE_BELOW;
    return sane;
}

static bool is_sane(size_t size, size_t offset, size_t length, const void *part)
{
    const size_t scales = scales_bytes(size);
    KITH_ASSERT(offset + length <= size && offset % sizeof(float) == 0);
    if (offset >= scales)
        return true;
    const size_t left = scales - offset;
    return are_sane((left < length ? left : length) / sizeof(float), part);
}

const struct kith_format kith_format_int8 = {
    .name = "int8",
    .paper = "Dettmers et al., ICLR 2022",
    .summary = "steps of the largest of 256 values, 1.016 bytes a value",
    .bytes = bytes,
    .pack = pack,
    .unpack = unpack,
    .rounding = rounding,
    .is_sane = is_sane,
};
