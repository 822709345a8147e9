/* The bounded scan: what msgpack-c is allowed to see.
 *
 * A header is one array of at most KITH_WIRE_VALUES_MAX scalars and nothing
 * after it. Strings, maps, extensions and nested arrays are refused by their
 * first byte, so no length a peer wrote is ever believed: msgpack-c 4.0.0
 * reserves 512 MiB for a five-byte array header. */
#include "kith/wire.h"

#include "kith/assert.h"
#include "layout.h"

/* Bytes of each scalar by its first byte, 0: not a scalar. Fixed integers are
 * 1; 0xc2.. false, true; 0xca.. float32, float64, u8..u64, i8..i64. */
static size_t scalar_bytes(uint8_t first)
{
    static const uint8_t sizes[32] = {
        [0x02] = 1, [0x03] = 1, [0x0a] = 5, [0x0b] = 9, [0x0c] = 2, [0x0d] = 3,
        [0x0e] = 5, [0x0f] = 9, [0x10] = 2, [0x11] = 3, [0x12] = 5, [0x13] = 9,
    };
    if (first < 0x80 || first >= 0xe0)
        return 1;
    return first < 0xc0 ? 0 : sizes[first - 0xc0];
}

enum kith_err kith_wire_scan(const uint8_t *bytes, size_t size)
{
    KITH_ASSERT(bytes != NULL || size == 0);
    if (size == 0 || size > KITH_WIRE_BYTES_MAX || bytes[0] >> 4 != 0x9)
        return KITH_EPARSE;

    /* A fixarray: its low nibble, at most 15, is the count. */
    const size_t count = bytes[0] & 0x0fu;
    size_t at = 1;
    for (size_t i = 0; i < count; i++) {
        if (at == size)
            return KITH_EPARSE;
        const size_t step = scalar_bytes(bytes[at]);
        if (step == 0 || step > size - at)
            return KITH_EPARSE;
        at += step;
        KITH_ASSERT(at <= size);
    }
    return at == size ? KITH_OK : KITH_EPARSE;
}
