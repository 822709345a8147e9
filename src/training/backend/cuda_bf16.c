/* Backend cuda-bf16: weights and optimiser in float32, products and what
 * stands between a network's operations in bfloat16. See cuda.c. */
#define RECORD kith_backend_cuda_bf16
#define NAME "cuda-bf16"
#define SUMMARY "an NVIDIA GPU, bfloat16 between float32 weights"
#define MEMBER half
#define ACTIVATION_BYTES 2
#include "cuda.inc.h"
