/* Vectors to compute with: random, because zeros multiply faster, or poisoned.
 * A pattern of 64 Ki values is written once and doubled on the device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_gpu.h"
#include "kith/rng.h"

enum { PATTERN = 65536 };

static void *take(const struct kith_backend *backend, size_t n, size_t bytes)
{
    char text[96];
    void *const x = backend->alloc(n * bytes, false);
    if (x != NULL)
        return x;
    (void)snprintf(text, sizeof text, "no memory for %zu values", n);
    row_failed("the device", text);
    exit(1);
}

static void repeat(const struct kith_backend *backend, size_t n,
                   const double *pattern, float *x)
{
    size_t have = n < PATTERN ? n : PATTERN;
    backend->write(have, pattern, x);
    while (have < n) {
        const size_t more = n - have < have ? n - have : have;
        backend->copy(more, x + have, x);
        have += more;
    }
}

void *elements(const struct kith_backend *backend, size_t n, double middle,
               double spread)
{
    static double pattern[PATTERN];
    struct kith_rng rng;
    void *const x = take(backend, n, sizeof(float));
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < PATTERN; i++)
        pattern[i] = middle + spread * (2 * kith_rng_double(&rng) - 1);
    repeat(backend, n, pattern, x);
    return x;
}

void *poisoned_elements(const struct kith_backend *backend, size_t n)
{
    static double pattern[PATTERN];
    void *const x = take(backend, n, sizeof(float));
    for (size_t i = 0; i < PATTERN; i++)
        pattern[i] = (double)NAN;
    repeat(backend, n, pattern, x);
    return x;
}

static bool narrow(const struct kith_backend *backend)
{
    return backend->activation_bytes == 2;
}

/* Takes the elements. */
static void *narrowed(const struct kith_backend *backend, size_t n, void *wide)
{
    if (!narrow(backend))
        return wide;
    void *const x = take(backend, n, 2);
    backend->narrow(n, wide, x);
    backend->release(wide);
    return x;
}

void *activations(const struct kith_backend *backend, size_t n, double middle,
                  double spread)
{
    return narrowed(backend, n, elements(backend, n, middle, spread));
}

void *poisoned_activations(const struct kith_backend *backend, size_t n)
{
    return narrowed(backend, n, poisoned_elements(backend, n));
}

bool written_elements(const struct kith_backend *backend, size_t n,
                      const void *x)
{
    return backend->finite(n, x);
}

bool written_activations(const struct kith_backend *backend, size_t n,
                         const void *x)
{
    if (!narrow(backend))
        return written_elements(backend, n, x);
    void *const wide = take(backend, n, sizeof(float));
    backend->widen(n, x, wide);
    const bool good = written_elements(backend, n, wide);
    backend->release(wide);
    return good;
}
