/* The order of the values in a header; shared by pack, unpack and size. */
#ifndef KITH_PROTOCOL_WIRE_LAYOUT_H
#define KITH_PROTOCOL_WIRE_LAYOUT_H

#include "kith/wire.h"

enum kith_wire_field {
    KITH_WIRE_KIND,
    KITH_WIRE_PATTERN,
    KITH_WIRE_MINE,
    KITH_WIRE_INCARNATION,
    KITH_WIRE_COUNTER,
    KITH_WIRE_STEP,
    KITH_WIRE_PAYLOAD,
    KITH_WIRE_SCALARS, /* from here on; or `overlap`, alone */
    KITH_WIRE_VALUES_MAX = KITH_WIRE_SCALARS + KITH_SCALARS_MAX
};

_Static_assert(KITH_WIRE_VALUES_MAX <= 15, "a header is a fixarray");
_Static_assert(KITH_MESSAGE_COUNT <= 128 && KITH_PATTERN_COUNT <= 128,
               "kinds and patterns are one byte each");
/* Array, kind, pattern and mine take a byte each, the incarnation 5, the other
 * integers and the scalars 9. */
_Static_assert(4 + 5 + 3 * 9 + KITH_SCALARS_MAX * 9 <= KITH_WIRE_BYTES_MAX,
               "the longest header fits");

#endif
