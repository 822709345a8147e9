/* struct kith_message -> msgpack, by msgpack-c's packer into a fixed buffer.
 *
 *   [kind, pattern, mine, incarnation, counter, step, payload_bytes, scalar...]
 *   [kind, pattern, mine, incarnation, counter, step, payload_bytes, overlap]
 */
#include "kith/wire.h"

#include <string.h>

#include <msgpack/pack.h>

#include "kith/assert.h"
#include "layout.h"

struct cursor {
    uint8_t *bytes;
    size_t size;
};

/* msgpack-c's write callback; a header cannot outgrow its buffer (layout.h). */
static int write_bytes(void *data, const char *bytes, size_t size)
{
    struct cursor *const cursor = data;
    KITH_ASSERT(size <= KITH_WIRE_BYTES_MAX - cursor->size);
    memcpy(cursor->bytes + cursor->size, bytes, size);
    cursor->size += size;
    return 0;
}

size_t kith_wire_pack(const struct kith_message *message, uint8_t *bytes)
{
    KITH_ASSERT(message->kind < KITH_MESSAGE_COUNT);
    KITH_ASSERT(message->pattern < KITH_PATTERN_COUNT);
    KITH_ASSERT(message->scalar_count <= KITH_SCALARS_MAX);

    struct cursor cursor = {.bytes = bytes};
    msgpack_packer packer;
    msgpack_packer_init(&packer, &cursor, write_bytes);
    KITH_ASSERT(message->overlap == 0 || message->scalar_count == 0);
    KITH_ASSERT(message->overlap <= KITH_OVERLAP_MAX);
    msgpack_pack_array(&packer, KITH_WIRE_SCALARS + message->scalar_count +
                                    (message->overlap > 0));
    msgpack_pack_uint8(&packer, (uint8_t)message->kind);
    msgpack_pack_uint8(&packer, (uint8_t)message->pattern);
    (message->mine ? msgpack_pack_true : msgpack_pack_false)(&packer);
    msgpack_pack_uint32(&packer, message->id.incarnation);
    msgpack_pack_uint64(&packer, message->id.counter);
    msgpack_pack_uint64(&packer, message->step);
    msgpack_pack_uint64(&packer, message->payload_bytes);
    for (uint32_t i = 0; i < message->scalar_count; i++)
        msgpack_pack_double(&packer, message->scalars[i]);
    if (message->overlap > 0)
        msgpack_pack_uint32(&packer, message->overlap);
    KITH_ASSERT(cursor.size == kith_wire_size(message));
    return cursor.size;
}

/* msgpack's shortest form of an unsigned integer. */
static size_t integer_bytes(uint64_t value)
{
    return value < 1u << 7       ? 1
           : value < 1u << 8     ? 2
           : value < 1u << 16    ? 3
           : value <= UINT32_MAX ? 5
                                 : 9;
}

size_t kith_wire_size(const struct kith_message *message)
{
    return 4 + integer_bytes(message->id.incarnation) +
           integer_bytes(message->id.counter) + integer_bytes(message->step) +
           integer_bytes(message->payload_bytes) +
           9 * (size_t)message->scalar_count + (message->overlap > 0);
}
