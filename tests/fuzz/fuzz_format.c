/* Goal: no bytes make a format read or write outside, and what passes the gate
 * part by part unpacks to finite values, nothing else does. Method: the first
 * bytes choose format, backend, length and the size of parts, the rest is the
 * wire, in memory of exactly its size; then the rest again as values, which
 * pack to what unpacks to the same bits on every backend. */
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
    format->unpack(backend, n, wire, 0, n, back);
    KITH_ASSERT(!sane || backend->finite(n, back));
    format->pack(kith_backend_find("naive32"), n, values, wire);
    format->pack(kith_backend_find("cpu"), n, values, again);
    KITH_ASSERT(memcmp(wire, again, bytes) == 0);
    /* What leaves is finite where the values were. */
    KITH_ASSERT(!passes(format, bytes, part, wire) ||
                backend->finite(n, values));
    free(wire);
    free(again);
    free(values);
    free(back);
    return 0;
}
