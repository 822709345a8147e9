/* Blocks of vectors and numbers on the wire. See chunks.h. */
#include <math.h>
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

double kith_block_max(const struct kith_compression *how, size_t n,
                      const void *v)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(kith_value_get(how, v, i));
        most = size > most ? size : most;
    }
    return most;
}

double kith_block_sum(const struct kith_compression *how, size_t n,
                      const void *v)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(kith_value_get(how, v, i));
    return sum;
}

double kith_number_put(const struct kith_compression *how, double value,
                       uint8_t *wire)
{
    const float narrow = (float)value;
    uint64_t bits = 0;
    uint32_t half;
    memcpy(&half, &narrow, sizeof half);
    memcpy(&bits, &value, sizeof bits);
    if (how->backend->element_bytes == sizeof narrow)
        bits = half;
    for (size_t i = 0; i < how->backend->element_bytes; i++)
        wire[i] = (uint8_t)(bits >> 8 * i);
    return how->backend->element_bytes == sizeof narrow ? (double)narrow
                                                        : value;
}

double kith_number_get(const struct kith_compression *how, const uint8_t *wire)
{
    uint64_t bits = 0;
    double value;
    float narrow;
    for (size_t i = 0; i < how->backend->element_bytes; i++)
        bits |= (uint64_t)wire[i] << 8 * i;
    const uint32_t half = (uint32_t)bits;
    memcpy(&value, &bits, sizeof value);
    memcpy(&narrow, &half, sizeof narrow);
    return how->backend->element_bytes == sizeof narrow ? (double)narrow
                                                        : value;
}
