/* The CUDA module beside what its machine can do: copies and products measured
 * in the same run, then every kernel that a step spends time in, then steps of
 * whole models. Started by run.sh, which checks the results first.
 *
 *   bench_gpu [kernels] [models]     both without an argument
 *
 * Rates count the bytes that must move (each input read once, each output
 * written once) and the operations that must be done. Values are random:
 * zeros multiply faster. */
#include "bench_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/rng.h"
#include "kith/cuda_module.h"

void ceiling_copies(size_t bytes, double *device, double *out, double *in);

enum { ROUNDS = 9 };
static int missed;

double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void finish(const struct kith_backend *backend)
{
    static void *one;
    double value;
    if (one == NULL)
        one = backend->alloc(64, false);
    backend->read(1, one, &value);
    if (backend->failed() == NULL)
        return;
    fprintf(stderr, "bench_gpu: %s\n", backend->failed());
    exit(1);
}

void *elements(const struct kith_backend *backend, size_t n, double spread)
{
    enum { CHUNK = 65536 };
    static double values[CHUNK];
    struct kith_rng rng;
    float *const x = backend->alloc(n * sizeof(float), false);
    if (x == NULL) {
        fprintf(stderr, "bench_gpu: no memory for %zu values\n", n);
        exit(1);
    }
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < CHUNK; i++)
        values[i] = spread * (2 * kith_rng_double(&rng) - 1);
    for (size_t at = 0; at < n; at += CHUNK)
        backend->write(n - at < CHUNK ? n - at : CHUNK, values, x + at);
    return x;
}

void *activations(const struct kith_backend *backend, size_t n, double spread)
{
    void *const wide = elements(backend, n, spread);
    if (backend->activation_bytes != 2)
        return wide;
    void *const x = backend->alloc(n * 2, false);
    backend->narrow(n, wide, x);
    backend->release(wide);
    return x;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double seconds_of(const struct kith_backend *backend, void (*run)(void *),
                  void *argument)
{
    double took[ROUNDS];
    unsigned calls = 1;
    run(argument);
    finish(backend);
    double start = now();
    run(argument);
    finish(backend);
    const double once = now() - start;
    calls = once > 0.03 ? 1 : (unsigned)(0.03 / once) + 1;
    for (int round = 0; round < ROUNDS; round++) {
        start = now();
        for (unsigned i = 0; i < calls; i++)
            run(argument);
        finish(backend);
        took[round] = (now() - start) / calls;
    }
    qsort(took, ROUNDS, sizeof took[0], by_size);
    return took[ROUNDS / 2];
}

void line(const char *name, double seconds, double rate, const char *unit,
          double ceiling)
{
    printf("%-44s %10.4f ms %9.1f %-8s", name, seconds * 1e3, rate, unit);
    if (ceiling > 0)
        printf(" %5.1f %%", 100 * rate / ceiling);
    putchar('\n');
    (void)fflush(stdout);
}

void claim(const char *name, double value, const char *relation, double bound)
{
    const bool met = *relation == '<' ? value <= bound : value >= bound;
    printf("%-44s %10.4f, target %s %g: %s\n", name, value, relation, bound,
           met ? "met" : "MISSED");
    missed += !met;
    (void)fflush(stdout);
}

static bool asked(int argc, char **argv, const char *part)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], part) == 0)
            return true;
    }
    return argc == 1;
}

int main(int argc, char **argv)
{
    const char *why;
    const struct kith_cuda_module *const module = kith_cuda_load(&why);
    if (module != NULL)
        why = module->single->missing();
    if (why != NULL) {
        printf("bench_gpu: skipped: %s\n", why);
        return 77;
    }
    struct machine m = {.single = module->single, .half = module->half};
    ceiling_copies((size_t)1 << 29, &m.copy, &m.out, &m.in);
    printf("copy on the device %.0f GB/s, out %.1f GB/s, in %.1f GB/s\n",
           m.copy, m.out, m.in);
    bench_kernels(&m);
    if (asked(argc, argv, "models"))
        bench_models(&m);
    printf("%d target(s) missed\n", missed);
    return missed > 0;
}
