/* What the parts of bench_gpu share. */
#ifndef KITH_BENCH_GPU_H
#define KITH_BENCH_GPU_H

#include <stddef.h>

#include "kith/backend.h"

/* The two backends of the module, and what the machine can do. */
struct machine {
    const struct kith_backend *single, *half;
    double copy, out, in; /* GB/s; a copy on the device counts both ways */
    double single_flops, half_flops; /* of the largest product, FLOP/s */
};

double now(void);
/* Waits for all that was asked of the backend; ends the program where it has
 * failed. */
void finish(const struct kith_backend *backend);
/* Vectors of random values: elements, and activations. */
void *elements(const struct kith_backend *backend, size_t n, double spread);
void *activations(const struct kith_backend *backend, size_t n, double spread);

/* Seconds of one call of `run`, the middle of several rounds of as many calls
 * as make a round last. */
double seconds_of(const struct kith_backend *backend, void (*run)(void *),
                  void *argument);
/* One line: name, milliseconds, rate and its share of a ceiling. */
void line(const char *name, double seconds, double rate, const char *unit,
          double ceiling);
/* A claim: met or MISSED, which the program's status reports. */
void claim(const char *name, double value, const char *relation, double bound);

void bench_kernels(struct machine *m);
void bench_models(const struct machine *m);

#endif
