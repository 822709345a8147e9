/* What batch and group norms of backend cpu share: sums over pixels. */
#ifndef KITH_TRAINING_BACKEND_CPU_NORM_H
#define KITH_TRAINING_BACKEND_CPU_NORM_H

#include "cpu_image.h"

enum {
    CHANNELS = KITH_NORM_CHANNELS,
    PIECE = 64 /* pixels summed in float32 before they join a float64 sum */
};

struct kith_moments {
    double count, mean, square; /* square: of differences from the mean */
};

/* Joins `count` > 0 more values of that mean and those squares. */
void kith_moments_join(struct kith_moments *m, double count, double mean,
                       double square);
/* Joins the pixels of n channels to m (n). */
void kith_moments_add(size_t pixels, size_t n, size_t step, const float *x,
                      struct kith_moments *m);

static inline const float *kith_or_null(const float *from, size_t at)
{
    return from == NULL ? NULL : from + at;
}

/* Sums of g and of g (x - mean), g as in cpu_image.h. */
struct kith_slopes {
    double first, second;
};
void kith_slopes_add(size_t pixels, const struct kith_cpu_channels *c,
                     const float *x, const float *y, const float *dy,
                     struct kith_slopes *s);
/* y of all pixels, and their dx, a piece at a time. */
void kith_normalise(size_t pixels, const struct kith_cpu_channels *c,
                    const float *x, bool relu, float *y);
void kith_normalise_back(size_t pixels, const struct kith_cpu_channels *c,
                         const float *x, const float *y, const float *dy,
                         bool add, float *dx);
/* The sum of `count` of them, `step` apart. */
struct kith_slopes kith_slopes_total(const struct kith_slopes *slopes,
                                     size_t count, size_t step);
/* Channel c's dweight and dbias (where wanted) from the sums of g hat (second)
 * and of g. */
void kith_norm_weights(const struct kith_arguments *a, size_t c,
                       struct kith_slopes total);

void kith_cpu_group(const struct kith_arguments *a);
void kith_cpu_group_backward(const struct kith_arguments *a);

#endif
