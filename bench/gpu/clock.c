/* Seconds of what a backend does behind its caller's back. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench_gpu.h"

enum { ROUNDS = 9, ROUNDS_QUICK = 1 };
static const double round_seconds = 0.03;
static bool quick;

void clock_quick(void)
{
    quick = true;
}

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
    row_failed("the device", backend->failed());
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one of so many calls. */
static double round_of(const struct kith_backend *backend, void (*run)(void *),
                       void *argument, unsigned calls)
{
    const double start = now();
    for (unsigned i = 0; i < calls; i++)
        run(argument);
    finish(backend);
    return (now() - start) / calls;
}

double seconds_of(const struct kith_backend *backend, void (*run)(void *),
                  void *argument)
{
    double took[ROUNDS];
    const int rounds = quick ? ROUNDS_QUICK : ROUNDS;
    if (!quick)
        (void)round_of(backend, run, argument, 1);
    const double once = round_of(backend, run, argument, 1);
    const unsigned calls = quick || once > round_seconds
                               ? 1
                               : (unsigned)(round_seconds / once) + 1;
    for (int i = 0; i < rounds; i++)
        took[i] = round_of(backend, run, argument, calls);
    qsort(took, (size_t)rounds, sizeof took[0], by_size);
    return took[rounds / 2];
}
