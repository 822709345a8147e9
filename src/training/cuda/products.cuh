/* Matrix products by cuBLASLt, opened at run time, so that the module needs no
 * library where there is no GPU. */
#ifndef KITH_TRAINING_CUDA_PRODUCTS_CUH
#define KITH_TRAINING_CUDA_PRODUCTS_CUH

#include "common.cuh"

namespace gpu
{
enum element { SINGLE, HALF };
template <typename T> struct element_of;
template <> struct element_of<float> {
    static const element value = SINGLE;
};
template <> struct element_of<bf16> {
    static const element value = HALF;
};

/* C (m, n) <- activation(alpha op(A) op(B) + bias) + beta C, row-major, sums in
 * float32. With an activation or a bias beta is 0. */
struct product {
    bool transpose_a, transpose_b;
    size_t m, n, k;
    float alpha, beta;
    const void *a, *b;
    void *c;
    element in, out;  /* of A and B; of C and bias */
    const void *bias; /* (n) or NULL */
    int activation;
    void *pre; /* GELU: (m, n), its argument; or NULL */
    /* Elements from a row of A, B, C, as they lie in memory, to the next; 0:
     * they lie close. With `pre` C lies close. */
    size_t a_stride, b_stride, c_stride;
};

/* False: this library cannot (shapes, alignment), or is not to be used; the
 * caller goes another way. */
bool library_product(const product &p);
} // namespace gpu

#endif
