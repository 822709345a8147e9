/* Convolutions by cuDNN, opened at run time; false: it is not here, or cannot
 * do this one, and nothing has been written. */
#ifndef KITH_TRAINING_CUDA_CUDNN_CUH
#define KITH_TRAINING_CUDA_CUDNN_CUH

#include "products.cuh"

namespace gpu
{
/* Why one of these said false. */
const char *cudnn_missing();
bool cudnn_forward(const struct kith_conv *op, size_t rows, element type,
                   const void *x, const void *w, const void *bias, void *y);
bool cudnn_data(const struct kith_conv *op, size_t rows, element type,
                const void *w, const void *dy, void *dx, bool adds);
bool cudnn_weights(const struct kith_conv *op, size_t rows, element type,
                   const void *x, const void *dy, void *dw, bool adds);
} // namespace gpu

#endif
