/* A standard normal draw: Marsaglia's polar method (SIAM Review 1964).
 * Additions, products, one division and root, which IEEE rounds alike
 * everywhere, and kith_log(): the same bits in every build. Two draws of rng at
 * least. Test: unit/test_classes.c (quantiles), unit/test_split.c. */
#ifndef KITH_NORMAL_H
#define KITH_NORMAL_H

#include <math.h>

#include "kith/exp_log.h"
#include "kith/rng.h"

static inline double kith_draw_normal(struct kith_rng *rng)
{
    double u, square;
    do {
        u = 2 * kith_rng_double(rng) - 1;
        const double v = 2 * kith_rng_double(rng) - 1;
        square = u * u + v * v;
    } while (square >= 1 || square <= 0);
    return u * sqrt(-2 * kith_log(square) / square);
}

#endif
