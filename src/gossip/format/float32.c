/* Format float32: values as the backend has them, little-endian, which is
 * float64 on naive64.
 *
 *   Q(v) = v */
#include "kith/format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "vectors are little-endian in memory as on the wire");

const struct kith_format kith_format_float32 = {
    .name = "float32",
    .paper = "-",
    .summary = "as they are, 4 bytes a value",
    .raw = true,
};
