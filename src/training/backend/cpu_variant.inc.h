/* All kernels of backend cpu for one instruction set. The file that includes
 * this says
 *
 *   LANES, F16_SET        see f16.h
 *   VARIANT, NAME         the table, and its name
 *   SUPPORTED             does this CPU have the instruction set?
 *   FUSE                  chains of multiply-adds that keep its units busy
 *   LINE_1, LINE_2        a convolution's tile: pixels beside one vector of
 *                         outputs, and beside two (0: never two)
 *   TILE_ROWS, TILE_WIDE  a product's tile: rows, and vectors of columns
 *
 * so that the sums of a tile fit its registers. */
#include "f16.h"

#include "cpu_loops.inc.h"

#include "cpu_conv.inc.h"
#include "cpu_norm.inc.h"

#include "cpu_finish.inc.h"
#include "cpu_products.inc.h"
#include "cpu_rows.inc.h"

#include "cpu_heads.inc.h"

#include "residues.inc.h"

#include "magnitudes.inc.h"

static const struct kith_cpu_image image = {
    .panel = LINE_2 > 0 ? 32 : 16,
    .correlate = image_correlate,
    .outer = image_outer,
    .gate = image_gate,
    .moments = image_moments,
    .normalise = image_normalise,
    .slopes = image_slopes,
    .normalise_back = image_normalise_back,
    .largest = image_largest,
    .scatter = image_scatter,
    .sum = image_sum,
    .mean = image_mean,
    .mean_back = image_mean_back,
};

static const struct kith_cpu_text text = {
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

const struct kith_cpu_loops VARIANT = {
    .name = NAME,
    .image = &image,
    .text = &text,
    .supported = SUPPORTED,
    .scale = loop_scale,
    .add = loop_add,
    .mix = loop_mix,
    .swap_mix = loop_swap_mix,
    .mix_bf16 = loop_mix_bf16,
    .combine = loop_combine,
    .sum = loop_sum,
    .distance_squared = loop_distance_squared,
    .finite = loop_finite,
    .sgd = loop_sgd,
    .from_bytes = loop_from_bytes,
    .to_bf16 = loop_to_bf16,
    .from_bf16 = loop_from_bf16,
    .distance_bf16 = loop_distance_bf16,
    .to_int8 = loop_to_int8,
    .from_int8 = loop_from_int8,
    .residues = &residues,
    .magnitudes = &magnitudes,
    .fuse = loop_fuse,
};
