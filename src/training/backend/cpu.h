/* The float32 loops of backend cpu, one table per instruction set. Signatures
 * are those of backend.h, typed. */
#ifndef KITH_TRAINING_BACKEND_CPU_H
#define KITH_TRAINING_BACKEND_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"

struct kith_cpu_image;
struct kith_cpu_text;

struct kith_cpu_loops {
    const char *name;
    const struct kith_cpu_image *image; /* cpu_image.h */
    const struct kith_cpu_text *text;   /* cpu_text.h */
    bool (*supported)(void);            /* by the CPU this runs on */
    void (*scale)(size_t n, float factor, float *x);
    void (*add)(size_t n, float factor, const float *x, float *y);
    double (*mix)(size_t n, float weight, const float *received,
                  const float *sent, float *x);
    double (*swap_mix)(size_t n, float weight, const float *received,
                       const float *sent, const float *base, float *x);
    double (*mix_bf16)(size_t n, float weight, const uint16_t *received,
                       const uint16_t *sent, float *x);
    void (*combine)(size_t n, unsigned count,
                    const struct kith_update *updates);
    double (*sum)(size_t n, const float *x);
    double (*distance_squared)(size_t n, const float *x, const float *y);
    bool (*finite)(size_t n, const float *x);
    bool (*sgd)(const struct kith_sgd *sgd); /* factors in float32 */
    void (*from_bytes)(size_t n, const uint8_t *bytes, float *y);
    void (*to_bf16)(size_t n, const float *x, uint16_t *y);
    void (*from_bf16)(size_t n, const uint16_t *x, float *y);
    double (*distance_bf16)(size_t n, const uint16_t *x, const uint16_t *y);
    float (*to_int8)(size_t n, const float *x, int8_t *y);
    void (*from_int8)(size_t n, float scale, const int8_t *x, float *y);
    const struct kith_residues *residues;
    const struct kith_magnitudes *magnitudes;
    /* `rounds` times fused multiply-adds on registers alone, as many at a time
     * as keep the units busy; returns the FLOP it did. sink: 16 floats. */
    double (*fuse)(size_t rounds, float *sink);
};

/* NULL-terminated, widest first, the portable one last: always supported. */
extern const struct kith_cpu_loops *const kith_cpu_loops[];
/* The chosen ones: the widest that this CPU has, or what a test said. */
const struct kith_cpu_loops *kith_cpu_best(void);
void kith_cpu_choose(const struct kith_cpu_loops *variant); /* NULL: widest */

extern const struct kith_cpu_loops kith_cpu_portable;
#if defined(__x86_64__) && defined(__GNUC__)
#define KITH_CPU_X86 1
extern const struct kith_cpu_loops kith_cpu_avx2;
extern const struct kith_cpu_loops kith_cpu_avx512;
#endif

#endif
