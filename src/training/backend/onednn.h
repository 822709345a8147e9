/* oneDNN's products, where libdnnl is installed: opened at run time, so that no
 * build needs it. Row-major, C <- alpha op(A) op(B) + beta C; 0 is success. */
#ifndef KITH_TRAINING_BACKEND_ONEDNN_H
#define KITH_TRAINING_BACKEND_ONEDNN_H

#include <stdint.h>

typedef int (*kith_onednn_sgemm)(char transpose_a, char transpose_b, int64_t m,
                                 int64_t n, int64_t k, float alpha,
                                 const float *a, int64_t lda, const float *b,
                                 int64_t ldb, float beta, float *c,
                                 int64_t ldc);
/* A and B in bfloat16, sums and C in float32. */
typedef int (*kith_onednn_bf16)(char transpose_a, char transpose_b, int64_t m,
                                int64_t n, int64_t k, float alpha,
                                const uint16_t *a, int64_t lda,
                                const uint16_t *b, int64_t ldb, float beta,
                                float *c, int64_t ldc);

struct kith_onednn {
    kith_onednn_sgemm sgemm;
    kith_onednn_bf16 bf16; /* NULL: this library has none */
    int isa;               /* dnnl_cpu_isa_t, as far as the library uses it */
};

const struct kith_onednn *kith_onednn(void); /* NULL: not here */
/* The same, for a product on the calling thread and no other. */
const struct kith_onednn *kith_onednn_alone(void);

#endif
