/* Operations of backend cpu: their kernels, by the names of ops.h. */
#ifndef KITH_TRAINING_BACKEND_CPU_OPS_H
#define KITH_TRAINING_BACKEND_CPU_OPS_H

#include "kith/ops.h"

#define KITH_X(NAME, name)                                                     \
    extern const struct kith_kernel kith_cpu_##name##_kernel;
KITH_OPERATIONS(KITH_X)
#undef KITH_X
/* An entry of a table of kernels. */
#define KITH_CPU_KERNEL(NAME, name)                                            \
    .kernels[KITH_OP_##NAME] = &kith_cpu_##name##_kernel,

extern const struct kith_ops kith_cpu_ops;

/* Calls part(a, i) once for each i < count, on the pool's threads. */
void kith_cpu_parts(size_t count,
                    void (*part)(const struct kith_arguments *a, size_t i),
                    const struct kith_arguments *a);

#endif
