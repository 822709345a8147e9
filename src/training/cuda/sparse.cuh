/* What kernels of compressors that keep some values share (top_k.cu,
 * ms_top_k.cu): a vector's blocks in runs, which of a block are kept, and the
 * message of those (sparse.cu). */
#ifndef KITH_TRAINING_CUDA_SPARSE_CUH
#define KITH_TRAINING_CUDA_SPARSE_CUH

#include "state.cuh"
#include "wire.cuh"

namespace gpu
{
enum { NUMBER = sizeof(float), RUN = 4096 /* values that a warp looks at */ };

/* What is kept of a block, as kith_choice has it
 * (src/gossip/compressor/sparse.h), sizes by their bits: those of at least
 * `sure`; and of those in [from, sure), `of` in number, `count` from the
 * first-th on, the first of them after the last. */
struct choice {
    uint32_t from, sure, first, count, of;
};

/* A vector's blocks, in runs. */
struct sparse_blocks {
    kith_cut cut;
    kith_sparse whole, last;
    size_t runs; /* of a block; in the last some may be empty */
    __host__ __device__ size_t count() const
    {
        return (cut.n + cut.block - 1) / cut.block;
    }
    __device__ const kith_sparse &of(size_t b) const
    {
        return b + 1 == count() ? last : whole;
    }
    __device__ size_t first_rank(size_t b) const
    {
        return b * whole.kept;
    }
};

/* In runs of `items` of a block at most. */
static inline sparse_blocks blocks_in(const kith_cut *cut,
                                      const kith_sparse sparse[2], size_t items)
{
    return {*cut, sparse[0], cut->n % cut->block == 0 ? sparse[0] : sparse[1],
            (items + RUN - 1) / RUN};
}

static __device__ inline uint32_t size_at(const float *x, size_t i)
{
    return __float_as_uint(x[i]) & 0x7fffffffu;
}

/* Lanes before this one that say so. */
static __device__ inline unsigned before(unsigned votes, unsigned lane)
{
    return (unsigned)__popc(votes & ((1u << lane) - 1));
}

/* wire <- what is kept of v, and where it stands. `choices`, one a block, on
 * the device; SCRATCH_PLACES is used. */
void pack_chosen(const sparse_blocks &blocks, const float *v,
                 const choice *choices, uint8_t *wire);
} // namespace gpu

#endif
