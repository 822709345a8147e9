/* Goal: no bytes make a format read or write outside, and what passes the gate
 * part by part unpacks to finite values, nothing else does. Method: the first
 * bytes choose format, backend, length and the size of parts, the rest is the
 * wire, in memory of exactly its size; then the rest again as values, which
 * pack to what unpacks to the same bits on every backend. Modular wires are
 * read beside what those values are rounded to. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER_BYTES 5u
#define VALUES_MAX 1100u

static const char *const backends[] = {"naive32", "cpu"};

/* Memory of exactly `bytes`: the input, again and again. */
static void *filled(const uint8_t *data, size_t size, size_t bytes)
{
    uint8_t *memory = malloc(bytes);
    KITH_ASSERT(memory != NULL || bytes == 0);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = size == 0 ? 0 : data[i % size];
    return memory;
}

static bool passes(const struct kith_format *format, size_t bytes, size_t part,
                   const uint8_t *wire)
{
    const struct kith_backend *host = kith_backend_find("naive32");
    bool sane = true;
    for (size_t at = 0; at < bytes; at += part) {
        const size_t left = bytes - at;
        sane = kith_format_passes(format, host, bytes, at,
                                  left < part ? left : part, wire + at) &&
               sane;
    }
    return sane;
}

/* Whatever came, what is read are numbers; what is left out is what we kept. */
static void read_beside(const struct kith_format *format,
                        const struct kith_backend *backend, size_t n,
                        const uint8_t *wire, const float *values, uint8_t *own)
{
    const size_t blocks = kith_modular_blocks(n);
    float *const reach = filled(NULL, 0, blocks * sizeof(float));
    float *const apart = filled(NULL, 0, blocks * sizeof(float));
    float *const kept = filled(NULL, 0, n * sizeof(float));
    float *const out = filled(NULL, 0, n * sizeof(float));
    kith_modular_start(backend, n, values, NULL, reach);
    const struct kith_modular_cover cover = {.n = n, .count = blocks};
    const float most =
        kith_modular_pack(format, backend, &cover, values, reach, own, kept);
    KITH_ASSERT(backend->finite(n, kept));
    const struct kith_modular_pair pair = {
        .received = wire, .sent = own, .kept = kept, .out = out};
    const struct kith_modular_seen seen =
        kith_modular_unpack(format, backend, &cover, &pair, apart);
    KITH_ASSERT(seen.read <= blocks && backend->finite(n, out));
    for (size_t i = 0; i < n; i++)
        KITH_ASSERT(apart[i / KITH_RESIDUE_BLOCK] >= 0 || out[i] == kept[i]);
    kith_modular_follow(n, apart, most, reach);
    for (size_t b = 0; b < blocks; b++)
        KITH_ASSERT(reach[b] > 0 &&
                    (reach[b] <= 3 * most || reach[b] < 0x1p36f));
    free(reach);
    free(apart);
    free(kept);
    free(out);
}

/* What came says that no more was rounded than who packs its numbers does, of
 * any run of them; what is below 2^-119 becomes 0. */
static void rounds_no_more(const struct kith_format *format, size_t n,
                           const uint8_t *wire, const float *back,
                           uint8_t *again)
{
    const size_t bytes = format->bytes(n), from = n / 3, count = n / 2;
    format->pack(kith_backend_find("naive32"), n, back, again);
    if (!passes(format, bytes, bytes + 1, again))
        return;
    KITH_ASSERT(format->rounding(n, wire, from, count) <=
                format->rounding(n, again, from, count) * (1 + 1e-5) + 1e-60);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned count = 0;
    if (size < HEADER_BYTES)
        return 0;
    while (kith_formats[count] != NULL)
        count++;
    const struct kith_format *format = kith_formats[data[0] % count];
    const struct kith_backend *backend =
        kith_backend_find(backends[data[1] % 2]);
    const size_t n = (data[2] | (size_t)data[3] << 8) % VALUES_MAX;
    const size_t part = 64 * (1 + (size_t)data[4]);
    if (format->raw)
        return 0;
    data += HEADER_BYTES;
    size -= HEADER_BYTES;
    const size_t bytes = format->bytes(n);
    uint8_t *wire = filled(data, size, bytes), *again = filled(NULL, 0, bytes);
    float *values = filled(data, size, n * sizeof *values);
    float *back = filled(NULL, 0, n * sizeof *back);
    const bool sane = passes(format, bytes, part, wire);
    if (format->residue_bits > 0) {
        read_beside(format, backend, n, wire, values, again);
        KITH_ASSERT(!passes(format, bytes, part, again) ||
                    backend->finite(n, values));
        goto done;
    }
    format->unpack(backend, n, wire, 0, n, back);
    KITH_ASSERT(!sane || backend->finite(n, back));
    if (sane)
        rounds_no_more(format, n, wire, back, again);
    format->pack(kith_backend_find("naive32"), n, values, wire);
    format->pack(kith_backend_find("cpu"), n, values, again);
    KITH_ASSERT(memcmp(wire, again, bytes) == 0);
    /* What leaves is finite where the values were. */
    KITH_ASSERT(!passes(format, bytes, part, wire) ||
                backend->finite(n, values));
done:
    free(wire);
    free(again);
    free(values);
    free(back);
    return 0;
}
