/* Compressor none: vectors travel raw, little-endian, as the backend has them.
 */

#include "kith/compressor.h"

extern const struct kith_compressor kith_compressor_none;
const struct kith_compressor kith_compressor_none = {
    .name = "none",
    .paper = "-",
    .summary = "dense, 4 bytes per parameter in float32",
};
