/* Goal: no bytes make the scan or the unpacking misbehave, and what is taken
 * for a header survives another trip unchanged. */
#include <string.h>

#include "kith/assert.h"
#include "kith/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_legal(const struct kith_message *message)
{
    KITH_ASSERT(message->kind < KITH_MESSAGE_COUNT);
    KITH_ASSERT(message->pattern < KITH_PATTERN_COUNT);
    KITH_ASSERT(message->scalar_count <= KITH_SCALARS_MAX);
    KITH_ASSERT(message->payload_bytes <= 8 * KITH_PARAMETERS_MAX);
    for (uint32_t i = 0; i < message->scalar_count; i++)
        KITH_ASSERT(message->scalars[i] - message->scalars[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kith_message message, again;
    const enum kith_err scanned = kith_wire_scan(data, size);
    const enum kith_err err = kith_wire_unpack(data, size, &message);
    KITH_ASSERT(err == KITH_OK || err == KITH_EPARSE);
    KITH_ASSERT(scanned == KITH_OK || err != KITH_OK);
    if (err != KITH_OK)
        return 0;

    assert_legal(&message);
    uint8_t bytes[KITH_WIRE_BYTES_MAX];
    const size_t packed = kith_wire_pack(&message, bytes);
    KITH_ASSERT(packed == kith_wire_size(&message));
    KITH_ASSERT(packed <= size);
    KITH_ASSERT(kith_wire_unpack(bytes, packed, &again) == KITH_OK);
    KITH_ASSERT(memcmp(&message, &again, sizeof message) == 0);
    return 0;
}
