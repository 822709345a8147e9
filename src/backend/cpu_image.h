/* Images on backend cpu: the kernels, one table per instruction set, and the
 * operations built on them. */
#ifndef KITH_BACKEND_CPU_IMAGE_H
#define KITH_BACKEND_CPU_IMAGE_H

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

struct kith_cpu_image {
    size_t panel; /* output channels per call: 16 or 32 */
    void (*correlate)(const struct kith_cpu_line *line);
    void (*outer)(const struct kith_cpu_outer *outer);
    /* dy <- dy where y > 0 (y may be NULL: as it is); sums (n) += its columns,
     * or NULL. */
    void (*gate)(size_t rows, size_t n, const float *y, float *dy, float *sums);
    /* Mean and sum of squared differences of `pixels` values per channel, at
     * most KITH_MOMENT_PIXELS of them. `step` floats between pixels. */
    void (*moments)(size_t pixels, size_t n, size_t step, const float *x,
                    float *mean, float *square);
    /* y = (x - mean) gain + shift, all (n), then RELU where asked. */
    void (*normalise)(size_t pixels, size_t n, const float *x,
                      const float *mean, const float *gain, const float *shift,
                      bool relu, float *y);
    /* g = dy, or dy where y > 0; first (n) += g, second (n) += g (x - mean). */
    void (*slopes)(size_t pixels, size_t n, const float *x, const float *y,
                   const float *dy, const float *mean, float *first,
                   float *second);
    /* dx (+)= (g - first - (x - mean) second) gain, all (n). */
    void (*normalise_back)(size_t pixels, size_t n, const float *x,
                           const float *y, const float *dy, const float *mean,
                           const float *gain, const float *first,
                           const float *second, bool add, float *dx);
    /* One output pixel: the largest of `count` input pixels x[i] (channels),
     * and tap[i] of the first of them. */
    void (*largest)(size_t channels, size_t count, const float *const *x,
                    const uint8_t *tap, float *y, uint8_t *which);
    /* dx[c] += dy[c] where which[c] is tap. */
    void (*scatter)(size_t channels, const float *dy, const uint8_t *which,
                    uint8_t tap, float *dx);
    void (*sum)(size_t n, const float *a, const float *b, bool relu, float *y);
    /* d = dy where y > 0 (y may be NULL); *targets[i] (+)= d. */
    void (*spread)(size_t n, const float *y, float *dy, float *a, float *b,
                   bool add);
};
#define KITH_MOMENT_PIXELS 64

extern const struct kith_cpu_image kith_cpu_image_portable;
extern const struct kith_cpu_image kith_cpu_image_avx2;
extern const struct kith_cpu_image kith_cpu_image_avx512;

/* ops.h's, on float32. */
size_t kith_cpu_conv_scratch(const struct kith_conv *op, size_t rows);
void kith_cpu_conv(const struct kith_conv *op, size_t rows, const void *x,
                   const void *w, const void *bias, void *y, void *scratch);
void kith_cpu_conv_backward(const struct kith_conv *op, size_t rows,
                            const void *x, const void *w, const void *y,
                            void *dy, void *dx, void *dw, void *dbias,
                            void *scratch, unsigned add);

#endif
