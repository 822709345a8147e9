/* What the parts of bench_gpu share. A part prints rows (rows.c) and returns;
 * only a device that fails ends the program. */
#ifndef KITH_BENCH_GPU_H
#define KITH_BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"

/* The two backends of the module and the ceilings of the device. */
struct machine {
    const struct kith_backend *single, *half; /* half: NULL where no network
                                                 can run on it */
    char device[256];
    bool emulated, tiny;
    const char *out; /* folder of larger outputs; NULL: none */
    double nominal;  /* FLOP/s, dense bfloat16, from a table; 0: unknown */
    double copy, down, up; /* GB/s: on the device (read and written bytes both
                              count), out of it, into it; pinned memory */
    double single_flops, half_flops; /* FLOP/s of the largest product */
};

/* ---- rows.c: "ROW, part, name, value, unit, limit or reference, verdict",
 * separated by tabs */

enum verdict { VERDICT_OK, VERDICT_MISSED, VERDICT_FAILED, VERDICT_INFO };
void rows_part(const char *part);
void row(const char *name, double value, const char *unit,
         const char *reference, enum verdict verdict);
/* ok or MISSED: a target of speed, which is no failure. relation: '<', '>'. */
void row_target(const char *name, double value, const char *unit, char relation,
                double bound);
void row_failed(const char *name, const char *why);
bool rows_failed(void);

/* ---- clock.c */

double now(void);
/* Waits for all that was asked of the backend; ends the program where it has
 * failed. */
void finish(const struct kith_backend *backend);
/* Seconds of one call of `run`, the median of several rounds of as many calls
 * as make a round last. */
double seconds_of(const struct kith_backend *backend, void (*run)(void *),
                  void *argument);
void clock_quick(void); /* a few calls only */

/* ---- values.c: vectors on the backend; the program ends where there is no
 * memory. Activations have activation_bytes. */

/* Uniform in [middle - spread, middle + spread). */
void *elements(const struct kith_backend *backend, size_t n, double middle,
               double spread);
void *activations(const struct kith_backend *backend, size_t n, double middle,
                  double spread);
/* NaN throughout, so that an output that was not written shows. */
void *poisoned_elements(const struct kith_backend *backend, size_t n);
void *poisoned_activations(const struct kith_backend *backend, size_t n);
bool written_elements(const struct kith_backend *backend, size_t n,
                      const void *x);
bool written_activations(const struct kith_backend *backend, size_t n,
                         const void *x);

/* ---- text.c */

struct text {
    unsigned char *bytes;
    size_t count;
    char path[512];
};
/* The file that GPU_TEXT names, else a text of the source tree, seen from its
 * top. False: none; tokens are bytes. */
bool text_open(struct text *text);

/* ---- the parts */

/* Measures what the other parts compare with; prints nothing. */
void ceilings_measure(struct machine *m);
void bench_ceilings(const struct machine *m);
void bench_kernels(const struct machine *m);
void bench_flat(const struct machine *m); /* of kernels: flat vectors */
void bench_steps(const struct machine *m);
void bench_parity(const struct machine *m);
void bench_exchange(const struct machine *m);

/* A kernel's rate beside its ceiling: GB/s or FLOP/s. */
void row_rate(const char *name, double seconds, double rate, const char *unit,
              double ceiling, const char *of, bool written);

#endif
