/* See cuda_cases.h. */
#include "cuda_cases.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/rng.h"
#include "kith/cuda_module.h"

#define EMULATION "tests/cuda/kith-cuda-host.so"

/* 0: the fixed values of `make check`. */
static uint64_t seed(void)
{
    const char *const text = getenv("KITH_TEST_SEED");
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

bool cuda_module_found(const struct kith_backend **single,
                       const struct kith_backend **half)
{
    const char *why;
    if (getenv("KITH_CUDA_MODULE") == NULL && access(EMULATION, R_OK) == 0)
        (void)setenv("KITH_CUDA_MODULE", EMULATION, 1);
    const struct kith_cuda_module *const module = kith_cuda_load(&why);
    if (module != NULL)
        why = module->single->missing();
    if (why != NULL) {
        printf("skipped: %s\n", why);
        return false;
    }
    if (seed() != 0)
        printf("KITH_TEST_SEED=%" PRIu64 "\n", seed());
    *single = module->single;
    *half = module->half;
    return true;
}

void *cuda_emulation(const char *symbol)
{
    void *const library =
        dlopen(getenv("KITH_CUDA_MODULE"), RTLD_NOW | RTLD_NOLOAD);
    void *const found = library == NULL ? NULL : dlsym(library, symbol);
    if (found == NULL)
        puts("needs the emulation");
    return found;
}

void cuda_find(void *function, const char *symbol)
{
    void *const found = cuda_emulation(symbol);
    memcpy(function, &found, sizeof found);
}

uint64_t cuda_seed(uint64_t which)
{
    return which + 1000003 * seed();
}

void cuda_fill(double *values, size_t n, uint64_t which)
{
    struct kith_rng rng;
    kith_rng_init(&rng, cuda_seed(which), KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++) {
        const double v = 2 * kith_rng_double(&rng) - 1;
        values[i] = floor(v * 128) / 128;
    }
}

double cuda_tolerance(const struct kith_backend *backend)
{
    const double single_tolerance = cuda_seed(0) == 0 ? 8e-6 : 3.2e-5;
    return backend->activation_bytes == 2 ? 2e-2 : single_tolerance;
}

void cuda_poison(const struct kith_backend *backend, size_t n, void *x)
{
    enum { CHUNK = 4096 };
    double values[CHUNK];
    memset(values, 0xff, sizeof values);
    for (size_t at = 0; at < n; at += CHUNK)
        backend->write(n - at < CHUNK ? n - at : CHUNK, values,
                       (char *)x + at * backend->element_bytes);
}

void *cuda_room(const struct kith_backend *backend, size_t n)
{
    const size_t bytes = (n + 1) * sizeof(double);
    void *const memory = backend->alloc(bytes, false);
    assert_non_null(memory);
    cuda_poison(backend, bytes / backend->element_bytes, memory);
    return memory;
}

static bool narrowed(const struct kith_backend *backend, bool activation)
{
    return activation && backend->activation_bytes == 2;
}

void cuda_put(const struct kith_backend *backend, bool activation, size_t n,
              const double *values, void *x)
{
    if (!narrowed(backend, activation)) {
        backend->write(n, values, x);
        return;
    }
    void *const wide = cuda_room(backend, n);
    backend->write(n, values, wide);
    backend->narrow(n, wide, x);
    backend->release(wide);
}

void cuda_get(const struct kith_backend *backend, bool activation, size_t n,
              const void *x, double *values)
{
    if (!narrowed(backend, activation)) {
        backend->read(n, x, values);
        return;
    }
    void *const wide = cuda_room(backend, n);
    backend->widen(n, x, wide);
    backend->read(n, wide, values);
    backend->release(wide);
}

void cuda_close(const char *where, const char *what, size_t n,
                const double *got, const double *want, double tolerance)
{
    double peak = 0, error = 0, norm = 0;
    for (size_t i = 0; i < n; i++)
        peak = fabs(want[i]) > peak ? fabs(want[i]) : peak;
    for (size_t i = 0; i < n; i++) {
        const double d = got[i] - want[i];
        error += d * d;
        norm += want[i] * want[i];
        if (!(fabs(d) <= tolerance * (1 + peak)))
            fail_msg("%s: %s[%zu] of %zu is %.9g, not %.9g (within %.1e)",
                     where, what, i, n, got[i], want[i],
                     tolerance * (1 + peak));
    }
    /* One rounding of a term below 2, where terms of a few values cancel. */
    const double rounding = 1.2e-7 * sqrt((double)n);
    if (!(sqrt(error) <= tolerance / 2 * sqrt(norm) + rounding))
        fail_msg("%s: %s is off by %.2e of its norm", where, what,
                 sqrt(error / norm));
}
