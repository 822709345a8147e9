/* What the tests of the CUDA module share: its two backends, and vectors there
 * that are filled and read as float64. */
#ifndef KITH_TESTS_CUDA_CASES_H
#define KITH_TESTS_CUDA_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"

/* The module under test: what KITH_CUDA_MODULE names, else the emulation that
 * lies beside the tests, else none. False: it is not here, or finds no GPU; a
 * line says why. */
bool cuda_module_found(const struct kith_backend **single,
                       const struct kith_backend **half);
/* Is it the emulation? Then kith_emulate_fail and its like. NULL: it is not,
 * and a line says that this needs it. */
void *cuda_emulation(const char *symbol);
/* *function <- that, whatever its type. */
void cuda_find(void *function, const char *symbol);

/* The seed of one set of random inputs: `which` itself in `make check`, and
 * another for each KITH_TEST_SEED, which bench/gpu/run.sh draws anew. */
uint64_t cuda_seed(uint64_t which);
/* Values in [-1, 1) that bfloat16 holds exactly, by cuda_seed(which). */
void cuda_fill(double *values, size_t n, uint64_t which);

/* float32: sums of some hundred products below 1, each rounding at most 6e-8
 * of a partial sum below some tens; a fresh seed also draws groups of three
 * values that are nearly equal, whose norm's gradient cancels. bfloat16: what
 * is stored between two operations is off by 2^-9 of itself, and some results
 * come from several. */
double cuda_tolerance(const struct kith_backend *backend);

/* Fills n elements with bytes 0xff, which are NaN in every format: a kernel
 * that leaves an output unwritten, or reads what it should not, shows. */
void cuda_poison(const struct kith_backend *backend, size_t n, void *x);
/* Room for (n) values on the backend, elements or activations
 * (activation_bytes), poisoned. */
void *cuda_room(const struct kith_backend *backend, size_t n);
void cuda_put(const struct kith_backend *backend, bool activation, size_t n,
              const double *values, void *x);
void cuda_get(const struct kith_backend *backend, bool activation, size_t n,
              const void *x, double *values);

/* Fails the test where a value is further off than tolerance (1 + the largest
 * of `want`), or where all of them are by more than half of tolerance of their
 * norm and one rounding each. */
void cuda_close(const char *where, const char *what, size_t n,
                const double *got, const double *want, double tolerance);

#endif
