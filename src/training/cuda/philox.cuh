/* The block function of kith/rng.h on a device: whole numbers, so the CPU's. */
#ifndef KITH_TRAINING_CUDA_PHILOX_CUH
#define KITH_TRAINING_CUDA_PHILOX_CUH

#include "platform.cuh"

namespace gpu
{
static __host__ __device__ inline void
philox(const uint32_t key[2], const uint32_t counter[4], uint32_t word[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}
} // namespace gpu

#endif
