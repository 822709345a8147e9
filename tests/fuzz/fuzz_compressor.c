/* Goal: no bytes make a compressor read or write outside, and what is decoded
 * is finite. Method: the first bytes choose compressor, element type, dimension
 * and configuration, the rest is the wire, in memory of exactly its size; then
 * the rest again as a vector, of which what is encoded must be decoded, into
 * the same floats once more where the compressor is a top-k. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/compressor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER_BYTES 12u
#define DIM_MAX 300u

static uint32_t word_of(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static struct kith_compression choose(const uint8_t *header)
{
    static const char *const backends[] = {"naive32", "naive64", "cpu"};
    static const uint32_t blocks[] = {0, 0, 1, 7, 32, 100, 256, 1u << 30};
    unsigned count = 0;
    while (kith_compressors[count] != NULL)
        count++;
    struct kith_compression how = {
        .compressor = kith_compressors[header[0] % count],
        .backend = kith_backend_find(backends[header[1] % 3]),
        .dim = 1 + word_of(header + 2) % DIM_MAX};
    how.config.levels = 1 + word_of(header + 4) % KITH_COMPRESSOR_LEVELS_MAX;
    how.config.density = (1 + word_of(header + 6)) / 65536.0;
    how.config.block = blocks[header[8] % 8];
    how.config.unbiased = header[9] & 1;
    return how;
}

/* Memory of exactly `bytes`: the input, again and again. */
static void *filled(const uint8_t *data, size_t size, size_t bytes)
{
    uint8_t *memory = malloc(bytes);
    KITH_ASSERT(memory != NULL);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = size == 0 ? 0 : data[i % size];
    return memory;
}

static void decode(const struct kith_compression *how, const uint8_t *data,
                   size_t size, uint64_t key)
{
    const size_t bytes = how->dim * how->backend->element_bytes;
    void *wire = filled(data, size, kith_compression_bytes(how));
    void *out = filled(NULL, 0, bytes);
    if (kith_decompress(how, wire, key, out))
        KITH_ASSERT(how->backend->finite(how->dim, out));
    free(wire);
    free(out);
}

static void encode(const struct kith_compression *how, const uint8_t *data,
                   size_t size, uint64_t key)
{
    const size_t bytes = how->dim * how->backend->element_bytes;
    void *v = filled(data, size, bytes), *out = filled(NULL, 0, bytes);
    void *wire = filled(NULL, 0, kith_compression_bytes(how));
    if (kith_compress(how, v, key, wire)) {
        KITH_ASSERT(kith_decompress(how, wire, key, out));
        KITH_ASSERT(how->backend->finite(how->dim, v));
        memcpy(v, out, bytes);
        if (strcmp(how->compressor->name, "top-k") == 0) {
            KITH_ASSERT(kith_compress(how, v, key, wire));
            KITH_ASSERT(kith_decompress(how, wire, key, out));
            KITH_ASSERT(memcmp(v, out, bytes) == 0);
        }
    }
    free(v);
    free(out);
    free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEADER_BYTES)
        return 0;
    const struct kith_compression how = choose(data);
    const uint64_t key = word_of(data + 10);
    decode(&how, data + HEADER_BYTES, size - HEADER_BYTES, key);
    encode(&how, data + HEADER_BYTES, size - HEADER_BYTES, key);
    return 0;
}
