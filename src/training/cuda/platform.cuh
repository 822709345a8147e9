/* What kernels are written against: CUDA, or for tests on a machine without a
 * GPU the emulation of tests/cuda/emulate.h, which runs the same sources on
 * the host, a thread of a block at a time. */
#ifndef KITH_TRAINING_CUDA_PLATFORM_CUH
#define KITH_TRAINING_CUDA_PLATFORM_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>

/* Before a loop whose loads are to be under way together. */
#define UNROLLED _Pragma("unroll")
#define DYNAMIC_SHARED(name)                                                   \
    extern __shared__ __align__(16) unsigned char name[]

template <typename... P, typename... A>
static inline void launch(void (*kernel)(P...), dim3 grid, dim3 block,
                          size_t shared, cudaStream_t stream, A... arguments)
{
    kernel<<<grid, block, shared, stream>>>(static_cast<P>(arguments)...);
}

/* 2^x to two units in the last place; 0 for -infinity. */
static __device__ inline float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two bfloat16 in a word, the first in its lower half. */
static __device__ inline uint32_t bf16_pair(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    uint32_t word;
    memcpy(&word, &both, sizeof word);
    return word;
}

/* D (16, 8) <- A (16, 16) B (16, 8) + D, all threads of a warp: lane l holds
 * of D rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next one. */
static __device__ inline void mma_bf16(float d[4], const uint32_t a[4],
                                       const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]));
}

/* Four 8 x 8 matrices of 2-byte values out of shared memory: lane l names row
 * l % 8 of matrix l / 8, and gets of each row l / 4, columns 2 (l % 4) and the
 * next one; transposed: of the transpose. */
static __device__ inline void load_matrices(uint32_t r[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
static __device__ inline void load_transposed(uint32_t r[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
#else
#include "emulate.h"
#endif

#endif
