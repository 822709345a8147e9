/* Local SGD without communication: what every method has to beat.
 *
 *   x_i <- x_i - eta g_i(x_i)                                              */
#include "kith/algorithm.h"

const struct kith_algorithm kith_algorithm_local = {
    .name = "local",
    .paper = "-",
    .summary = "never communicates: n independent runs of SGD",
    .pattern = KITH_PATTERN_NONE,
    .wait = KITH_WAIT_NO,
    .flags = KITH_CONSERVES_SUM,
};
