/* A backend: arithmetic on flat vectors and row-major matrices.
 *
 * `naive32` and `naive64` are plain loops, the reference for everything else
 * (naive64 is what the theory tests use); `cpu` is OpenBLAS plus vectorised
 * loops, float32. Elements are opaque here: element_bytes says their size.
 * One file, one line in src/backend/backends.def.
 * Test: unit/test_backend.c holds every backend against naive64. */
#ifndef KITH_BACKEND_H
#define KITH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_backend {
    const char *name, *summary;
    size_t element_bytes; /* 4 or 8 */

    /* target <- source */
    void (*copy)(size_t n, void *target, const void *source);
    /* x <- factor * x */
    void (*scale)(size_t n, double factor, void *x);
    /* y <- y + factor * x */
    void (*add)(size_t n, double factor, const void *x, void *y);
    /* x <- x + weight * (received - sent); returns sum of what was added,
     * float64, always in the same order: exact negatives on the two sides of
     * a pair. One pass, 16 n bytes of traffic (12 n where sent == x). */
    double (*mix)(size_t n, double weight, const void *received,
                  const void *sent, void *x);
    /* x <- sent + weight * (received - sent), out of place: the old x becomes
     * the snapshot without being copied. x is only written, past the caches
     * where it is large: 12 n bytes of traffic. */
    double (*swap_mix)(size_t n, double weight, const void *received,
                       const void *sent, void *x);
    /* mix with a received vector of bfloat16, the upper half of a float32:
     * what a bf16 compressor's merge will call. One pass, 10 n bytes of
     * traffic in float32 where sent == x. */
    double (*mix_bf16)(size_t n, double weight, const uint16_t *received,
                       const void *sent, void *x);
    double (*sum)(size_t n, const void *x);
    /* |x - y|^2 in float64; y may be NULL (0). */
    double (*distance_squared)(size_t n, const void *x, const void *y);
    /* The gate: true when every value of x is finite. */
    bool (*finite)(size_t n, const void *x);
    /* To and from float64, for tests, saves and the store. */
    void (*read)(size_t n, const void *x, double *out);
    void (*write)(size_t n, const double *in, void *x);

    /* C (m, n) <- alpha op(A) (m, k) op(B) (k, n) + beta C, row-major. */
    void (*gemm)(bool transpose_a, bool transpose_b, size_t m, size_t n,
                 size_t k, double alpha, const void *a, const void *b,
                 double beta, void *c);
    /* Rows of y (rows, n) <- y + bias (n); relu where asked. */
    void (*add_bias)(size_t rows, size_t n, const void *bias, bool relu,
                     void *y);
    /* bias_gradient (n) <- column sums of d (rows, n). */
    void (*column_sum)(size_t rows, size_t n, const void *d, void *out);
    /* d <- d where y > 0, else 0 (y: what relu gave). */
    void (*relu_backward)(size_t n, const void *y, void *d);
    /* logits (rows, classes), labels < classes -> gradient of the mean
     * cross-entropy, in place; returns the mean loss, float64; *correct (may be
     * NULL): rows whose arg-max is the label. */
    double (*cross_entropy)(size_t rows, size_t classes, const uint8_t *labels,
                            void *logits, uint32_t *correct);
    /* SGD: g <- g + decay x;  v <- momentum v + g;  x <- x - rate v.
     * Returns whether every new value of x is finite, found in the same pass.
     * Where momentum is 0, velocity is neither read nor written. */
    bool (*sgd)(size_t n, double rate, double momentum, double decay,
                const void *gradient, void *velocity, void *x);
    /* bytes (rows, n) of uint8 -> y = byte / 255. */
    void (*from_bytes)(size_t n, const uint8_t *bytes, void *y);
};

extern const struct kith_backend *const kith_backends[];
const struct kith_backend *kith_backend_find(const char *name);
/* Threads a backend's products may use; the simulator and the lab say 1. */
void kith_backend_threads(unsigned count);

#ifdef __cplusplus
}
#endif
#endif
