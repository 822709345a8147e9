/* The module's two records, and the symbol by which they are found. */
#include "kith/cuda_module.h"
#include "state.cuh"

namespace gpu
{
template <typename T> static struct kith_ops ops_of()
{
    struct kith_ops o = {};
#define KITH_X(NAME, name) o.kernels[KITH_OP_##NAME] = name##_kernel<T>();
    KITH_OPERATIONS(KITH_X)
#undef KITH_X
    o.cross_entropy = cross_entropy<T>;
    o.scores_stride = scores_stride;
    o.adamw = adamw;
    return o;
}
static const struct kith_ops single_ops = ops_of<float>(),
                             half_ops = ops_of<bf16>();

/* Filled by attach, before anybody else sees them. */
static struct kith_backend single, half;

static struct kith_backend record(const char *name, const struct kith_ops *ops,
                                  size_t activation_bytes,
                                  const struct kith_backend *host)
{
    struct kith_backend b = {};
    b.name = name;
    b.summary = "";
    b.element_bytes = sizeof(float);
    b.host = host;
    b.missing = missing;
    b.alloc = alloc;
    b.release = release;
    b.copy = copy;
    b.clear = clear;
    b.scale = scale;
    b.add = add;
    b.mix = mix;
    b.swap_mix = swap_mix;
    b.mix_bf16 = mix_bf16;
    b.combine = combine;
    b.sum = sum;
    b.distance_squared = distance_squared;
    b.finite = finite;
    b.read = read;
    b.write = write;
    b.gemm = gemm;
    b.sgd = sgd;
    b.adam_direction = adam_direction;
    b.ops = ops;
    b.from_bytes = from_bytes;
    b.gather = gather;
    b.mix_at = mix_at;
    b.to_bf16 = to_bf16;
    b.from_bf16 = from_bf16;
    b.residue_messages = &residue_messages;
    b.compressed = &compressed;
    b.outside = &outside;
    b.pack_int8 = pack_int8;
    b.unpack_int8 = unpack_int8;
    b.activation_bytes = activation_bytes;
    b.narrow = narrow;
    b.widen = widen;
    b.step_begin = step_begin;
    b.step_end = step_end;
    b.clip = clip;
    b.settled = settled;
    b.arrived = arrived;
    b.failed = failed;
    b.notice = notice;
    return b;
}

static void attach(const struct kith_backend *host)
{
    single = record("cuda", &single_ops, 0, host);
    half = record("cuda-bf16", &half_ops, sizeof(bf16), host);
}
} // namespace gpu

extern "C" __attribute__((visibility("default")))
const struct kith_cuda_module kith_cuda_module = {KITH_CUDA_MAGIC,
                                                  PACKAGE_VERSION,
                                                  KITH_CUDA_ABI,
                                                  sizeof(struct kith_backend),
                                                  sizeof(struct kith_ops),
                                                  &gpu::single,
                                                  &gpu::half,
                                                  gpu::attach};
