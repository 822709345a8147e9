/* Backend cuda: float32 on an NVIDIA GPU, by the module that cuda_module.c
 * loads when it is first asked for. */
#define RECORD kith_backend_cuda
#define NAME "cuda"
#define SUMMARY "float32 on an NVIDIA GPU"
#define MEMBER single
#define ACTIVATION_BYTES 0
#include "cuda.inc.h"
