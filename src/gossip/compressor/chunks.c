/* Chunks of vectors and numbers on the wire. See chunks.h. */
#include <string.h>

#include "chunks.h"

size_t kith_chunk_read(const struct kith_compression *how, size_t n,
                       const void *v, size_t from, double values[KITH_CHUNK])
{
    const size_t left = n - from;
    const size_t count = left < KITH_CHUNK ? left : KITH_CHUNK;
    how->backend->read(count, kith_element(how, v, from), values);
    return count;
}

static double magnitude(double value)
{
    return value < 0 ? -value : value;
}

double kith_block_max(const struct kith_compression *how, size_t n,
                      const void *v)
{
    double values[KITH_CHUNK], most = 0;
    size_t count;
    for (size_t from = 0; from < n; from += count) {
        count = kith_chunk_read(how, n, v, from, values);
        for (size_t i = 0; i < count; i++) {
            const double size = magnitude(values[i]);
            most = size > most ? size : most;
        }
    }
    return most;
}

double kith_block_sum(const struct kith_compression *how, size_t n,
                      const void *v)
{
    double values[KITH_CHUNK], sum = 0;
    size_t count;
    for (size_t from = 0; from < n; from += count) {
        count = kith_chunk_read(how, n, v, from, values);
        for (size_t i = 0; i < count; i++)
            sum += magnitude(values[i]);
    }
    return sum;
}

static uint64_t bits_of(const struct kith_compression *how, double value)
{
    if (how->backend->element_bytes == sizeof(double)) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static double value_of(const struct kith_compression *how, uint64_t bits)
{
    if (how->backend->element_bytes == sizeof(double)) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    const uint32_t half = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &half, sizeof narrow);
    return narrow;
}

double kith_number_round(const struct kith_compression *how, double value)
{
    return value_of(how, bits_of(how, value));
}

double kith_number_put(const struct kith_compression *how, double value,
                       uint8_t *wire)
{
    const uint64_t bits = bits_of(how, value);
    for (size_t i = 0; i < how->backend->element_bytes; i++)
        wire[i] = (uint8_t)(bits >> 8 * i);
    return value_of(how, bits);
}

double kith_number_get(const struct kith_compression *how, const uint8_t *wire)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < how->backend->element_bytes; i++)
        bits |= (uint64_t)wire[i] << 8 * i;
    return value_of(how, bits);
}
