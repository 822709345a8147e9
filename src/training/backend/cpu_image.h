/* Images on backend cpu: the kernels, one table per instruction set, and the
 * operations built on them. */
#ifndef KITH_TRAINING_BACKEND_CPU_IMAGE_H
#define KITH_TRAINING_BACKEND_CPU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/ops.h"

/* Parts that every image operation is cut into, whatever the number of threads:
 * the order of every sum is fixed by it. */
#define KITH_IMAGE_PARTS 16
/* A row of output pixels, a panel of output channels:
 *   y[p][o] (+)= bias[o] + sum over t < taps, j < run of
 *                x[p x_step + t x_row + j] w[t run + j][o]
 * A run is kernel * in neighbouring values: one row of the kernel's window.
 * Steps are in floats. w is (taps run, width), width 32 where outs > 16, else
 * 16; outs <= the table's panel. */
struct kith_cpu_line {
    const float *x, *w, *bias; /* bias (outs) or NULL */
    float *y;
    size_t pixels, taps, run, outs;
    size_t x_step, x_row, y_step;
    bool add, relu;
};

/* The gradient of one panel's weights from one box of pixels:
 *   dw[t run + j][o] += sum over rows r, pixels p of
 *                       x[r x_line + p x_step + t x_row + j]
 *                       dy[r dy_line + p dy_step + o] */
struct kith_cpu_outer {
    const float *x, *dy;
    float *dw;
    size_t rows, pixels, taps, run, outs;
    size_t x_line, x_step, x_row, dy_line, dy_step, dw_step;
};

/* What a norm knows of each channel; at most so many at once, so that it stays
 * on the stack and in the nearest cache. */
#define KITH_NORM_CHANNELS 64
struct kith_cpu_channels {
    size_t n, step; /* channels; floats between pixels */
    float mean[KITH_NORM_CHANNELS], gain[KITH_NORM_CHANNELS];
    float first[KITH_NORM_CHANNELS]; /* forward: shift */
    float second[KITH_NORM_CHANNELS];
};

struct kith_cpu_image {
    size_t panel; /* output channels per call: 16 or 32 */
    void (*correlate)(const struct kith_cpu_line *line);
    void (*outer)(const struct kith_cpu_outer *outer);
    /* dy <- dy where y > 0 (y may be NULL: as it is); sums (n) += its columns,
     * or NULL. */
    void (*gate)(size_t rows, size_t n, const float *y, float *dy, float *sums);
    /* Norms: n <= KITH_NORM_CHANNELS channels of a few pixels that are `step`
     * floats apart, one channel per lane.
     * Each channel's mean, and sum of squared differences from it. */
    void (*moments)(size_t pixels, size_t n, size_t step, const float *x,
                    float *mean, float *square);
    /* y = (x - mean) gain + shift, then RELU where asked. */
    void (*normalise)(size_t pixels, const struct kith_cpu_channels *c,
                      const float *x, bool relu, float *y);
    /* g = dy, or where y is given 0 unless y > 0:
     * first = sum of g, second = sum of g (x - mean). */
    void (*slopes)(size_t pixels, const struct kith_cpu_channels *c,
                   const float *x, const float *y, const float *dy,
                   float *first, float *second);
    /* dx (+)= g gain - first - (x - mean) second. */
    void (*normalise_back)(size_t pixels, const struct kith_cpu_channels *c,
                           const float *x, const float *y, const float *dy,
                           bool add, float *dx);

    /* One output pixel of a pool: the largest of `count` input pixels x[i]
     * (channels) and tap[i] of the first that has it. */
    void (*largest)(size_t channels, size_t count, const float *const *x,
                    const uint8_t *tap, float *y, uint8_t *which);
    /* Its way back: dx[i] (+)= dy where which is tap[i], else (+)= 0. */
    void (*scatter)(size_t channels, size_t count, float *const *dx,
                    const uint8_t *tap, const float *dy, const uint8_t *which,
                    bool add);
    /* y <- a + b, then RELU where asked. */
    void (*sum)(size_t n, const float *a, const float *b, bool relu, float *y);
    /* y <- factor * sum over pixels of x (pixels, channels) */
    void (*mean)(size_t pixels, size_t channels, float factor, const float *x,
                 float *y);
    /* dx (pixels, channels) (+)= factor * dy (channels) */
    void (*mean_back)(size_t pixels, size_t channels, float factor,
                      const float *dy, bool add, float *dx);
};

extern const struct kith_cpu_image kith_cpu_image_portable;
extern const struct kith_cpu_image kith_cpu_image_avx2;
extern const struct kith_cpu_image kith_cpu_image_avx512;

/* Norms of kinds BATCH and GROUP. */
void kith_cpu_norm(const struct kith_arguments *a);
void kith_cpu_norm_backward(const struct kith_arguments *a);

#endif
