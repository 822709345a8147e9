/* The table of ops.h over the plain loops. REAL is float or double. */
#include "naive_dense.inc.h"
#include "naive_image.inc.h"
#include "naive_rms_norm.inc.h"
#include "naive_rotary.inc.h"
#include "naive_text.inc.h"

static const struct kith_ops naive_ops = {
#define KITH_X(NAME, name) .kernels[KITH_OP_##NAME] = &naive_##name##_kernel,
    KITH_OPERATIONS(KITH_X)
#undef KITH_X
        .cross_entropy = naive_cross_entropy,
    .adamw = naive_adamw,
};
