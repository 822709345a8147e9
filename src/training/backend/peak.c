/* The most a backend can do, measured: never a figure from a data sheet, which
 * knows neither this machine's clock nor who else runs on it. */
#include <stdint.h>

#include "cpu.h"
#include "kith/backend.h"
#include "pool.h"

enum { TRIES = 12, WIDE = 16, SMALLEST = 64 };
#define TRY_S 0.005   /* one try takes at least so long */
#define GEMM_MAX 4096 /* rows and columns of a product that is timed */

extern const struct kith_backend kith_backend_cpu;

/* A line of its own for each part, so that threads share none. */
struct fuse {
    size_t rounds;
    _Alignas(64) float sinks[KITH_POOL_THREADS_MAX][WIDE];
};

static void fuse_part(void *context, size_t i)
{
    struct fuse *fuse = context;
    for (int k = 0; k < WIDE; k++)
        fuse->sinks[i][k] = 1;
    (void)kith_cpu_best()->fuse(fuse->rounds, fuse->sinks[i]);
}

/* FLOP/s of one try of all threads; *took: its seconds. */
static double fuse_try(struct fuse *fuse, unsigned threads, double *took)
{
    float sink[WIDE] = {1};
    const double flop =
        kith_cpu_best()->fuse(1, sink) * (double)fuse->rounds * (double)threads;
    const kith_ns start = kith_host_now();
    kith_pool_run(threads, fuse_part, fuse);
    *took = 1e-9 * (double)(kith_host_now() - start);
    return *took > 0 ? flop / *took : 0;
}

static double peak_of_cpu(void)
{
    struct fuse fuse = {.rounds = 1000};
    const unsigned threads = kith_pool_threads();
    double best = 0, took = 0;
    do {
        fuse.rounds *= 2;
        (void)fuse_try(&fuse, threads, &took);
    } while (took < TRY_S && fuse.rounds < SIZE_MAX / 4);
    for (int i = 0; i < TRIES; i++) {
        const double rate = fuse_try(&fuse, threads, &took);
        best = rate > best ? rate : best;
    }
    return best;
}

/* Seconds of one product of n by n matrices; summing waits until it is done. A
 * linear layer's where this needs scratch, and so has a way of its own. */
static double product_once(const struct kith_backend *backend, size_t n,
                           const struct kith_arguments *linear)
{
    const kith_ns start = kith_host_now();
    if (linear->scratch != NULL)
        backend->ops->kernels[KITH_OP_LINEAR]->forward(linear);
    else
        backend->gemm(&(struct kith_gemm){.m = n,
                                          .n = n,
                                          .k = n,
                                          .alpha = 1,
                                          .a = linear->x,
                                          .b = linear->weight,
                                          .c = linear->y});
    (void)backend->sum(1, linear->y);
    return 1e-9 * (double)(kith_host_now() - start);
}

/* The quickest of some products of n by n, in FLOP/s; *took: its seconds. */
static double peak_of_size(const struct kith_backend *backend, size_t n,
                           double *took)
{
    const size_t bytes = n * n * backend->element_bytes;
    void *a = backend->alloc(bytes, false);
    void *b = backend->alloc(bytes, false);
    void *c = backend->alloc(bytes, false);
    const struct kith_linear op = {.in = n, .out = n, .in_out = true};
    const size_t needed =
        kith_kernel_scratch(backend->ops->kernels[KITH_OP_LINEAR], &op, n);
    void *scratch = needed > 0 ? backend->alloc(needed, false) : NULL;
    const struct kith_arguments linear = {.shape = &op,
                                          .rows = n,
                                          .x = a,
                                          .weight = b,
                                          .y = c,
                                          .scratch = scratch};
    const bool ready = a != NULL && b != NULL && c != NULL &&
                       (needed > 0) == (scratch != NULL);
    *took = 0;
    for (int i = 0; i < TRIES && ready; i++) {
        const double once = product_once(backend, n, &linear);
        *took = i == 0 || once < *took ? once : *took;
        if (*took > TRY_S)
            break;
    }
    backend->release(a);
    backend->release(b);
    backend->release(c);
    if (needed > 0)
        backend->release(scratch);
    const double side = (double)n;
    return *took > 0 ? 2 * side * side * side / *took : 0;
}

static double peak_of_products(const struct kith_backend *backend)
{
    double best = 0, took = 0;
    /* The first product may cost what is done but once: code made for this CPU,
     * a library opened. */
    (void)peak_of_size(backend, SMALLEST, &took);
    took = 0;
    for (size_t n = SMALLEST; n <= GEMM_MAX && took < TRY_S; n *= 2) {
        const double rate = peak_of_size(backend, n, &took);
        if (took <= 0)
            break;
        best = rate > best ? rate : best;
    }
    return best;
}

double kith_backend_measure_peak(const struct kith_backend *backend)
{
    if (backend->missing() != NULL)
        return 0;
    return backend == &kith_backend_cpu ? peak_of_cpu()
                                        : peak_of_products(backend);
}
