/* Message <-> msgpack bytes. Headers only: vectors travel raw, in bulk records.
 *
 * A header is one msgpack array [kind, pattern, mine, incarnation, counter,
 * step, payload_bytes, scalar...]. Before msgpack-c sees a byte, a scan bounds
 * depth, counts and lengths (msgpack-c 4.0.0 reserves 512 MiB for a five-byte
 * array header). Unpacking never allocates past limits.h.
 * Test: unit/test_wire.c, fuzz/fuzz_unpack.c. */
#ifndef KITH_WIRE_H
#define KITH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/message.h"

/* The longest header kith_wire_pack can make. */
#define KITH_WIRE_BYTES_MAX 96u

/* Bytes written to `bytes` (at least KITH_WIRE_BYTES_MAX). Cannot fail. */
size_t kith_wire_pack(const struct kith_message *message, uint8_t *bytes);
/* What kith_wire_pack would write, without writing: `sized` links charge it. */
size_t kith_wire_size(const struct kith_message *message);
/* KITH_EPARSE: not a header; `*message` is then zeroed. Every enum is in range,
 * scalars are finite, payload_bytes <= 8 * KITH_PARAMETERS_MAX. */
KITH_MUST_CHECK enum kith_err kith_wire_unpack(const uint8_t *bytes,
                                               size_t size,
                                               struct kith_message *message);
/* The scan alone: depth <= 1 array of <= 16 scalars, whole input consumed. */
KITH_MUST_CHECK enum kith_err kith_wire_scan(const uint8_t *bytes, size_t size);

#endif
