/* The kernels of cpu_text.h for one instruction set. The file that includes
 * this has f16 and says VARIANT, NAME and the size of a tile: TILE_ROWS *
 * TILE_WIDE sums must fit its registers. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu_text.h"
#include "kith/exp_log.h"

#if defined(__clang__)
#define ALWAYS __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define ALWAYS __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#else
#define ALWAYS
#define UNROLL
#endif

#include "cpu_finish.inc.h"
#include "cpu_products.inc.h"
#include "cpu_rows.inc.h"

#include "cpu_heads.inc.h"

const struct kith_cpu_text VARIANT = {
    .name = NAME,
    .product = product,
    .finish = finish,
    .finish_backward = finish_backward,
    .norm = norm,
    .norm_backward = norm_backward,
    .norm_weights = norm_weights,
    .head = head,
    .head_backward = head_backward,
    .loss = loss,
    .dropout = dropout,
    .adamw = adamw,
};
