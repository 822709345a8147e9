/* A caller's vectors in this device's memory: see kith/outside.h.
 *
 * They are read and written where they lie, by kernels on the compute stream,
 * which waits for the caller's by an event and is waited for by another. The
 * handle of a stream is the driver's, so one that another CUDA runtime of the
 * process made (PyTorch's) is one here. */
#include "kith/half.h"
#include "state.cuh"

#include <stdio.h>

namespace gpu
{
/* Elements as they lie, and float32 between. */
struct ieee_half {
    uint16_t bits;
};
static __device__ inline float to_float(ieee_half v)
{
    return kith_from_half(v.bits);
}
static __device__ inline void from_float(float v, ieee_half *out)
{
    out->bits = kith_to_half(v);
}
/* As the host's: NaNs become quiet and keep their bits. */
struct brain_half {
    uint16_t bits;
};
static __device__ inline float to_float(brain_half v)
{
    return __uint_as_float((uint32_t)v.bits << 16);
}
static __device__ inline void from_float(float v, brain_half *out)
{
    out->bits = nearest_half(v);
}

template <typename A, typename B> struct convert_each {
    const A *from;
    float factor;
    B *to;
    __device__ void operator()(size_t i) const
    {
        from_float(__fmul_rn(factor, to_float(from[i])), to + i);
    }
};

template <typename A, typename B>
static void convert(size_t n, const void *from, double factor, void *to)
{
    each_index("a caller's vector", n, 256,
               convert_each<A, B>{(const A *)from, (float)factor, (B *)to});
}

static void take(size_t n, enum kith_outside_dtype dtype, const void *z,
                 double factor, void *x)
{
    const call c;
    if (!c.well() || n == 0)
        return;
    void *const to = writable(x, n * sizeof(float));
    if (dtype == KITH_OUTSIDE_FLOAT32)
        convert<float, float>(n, z, factor, to);
    else if (dtype == KITH_OUTSIDE_BFLOAT16)
        convert<brain_half, float>(n, z, factor, to);
    else
        convert<ieee_half, float>(n, z, factor, to);
    wrote(x, n * sizeof(float));
}

static void give(size_t n, enum kith_outside_dtype dtype, const void *x,
                 double factor, void *z)
{
    const call c;
    if (!c.well() || n == 0)
        return;
    const void *const from = readable(x, n * sizeof(float));
    if (dtype == KITH_OUTSIDE_FLOAT32)
        convert<float, float>(n, from, factor, z);
    else if (dtype == KITH_OUTSIDE_BFLOAT16)
        convert<float, brain_half>(n, from, factor, z);
    else
        convert<float, ieee_half>(n, from, factor, z);
}

/* What `later` is told from now on comes behind what `earlier` was told. */
static void behind(cudaStream_t earlier, cudaStream_t later)
{
    static cudaEvent_t event; /* a wait keeps what was recorded before it */
    if (event == nullptr &&
        !check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
               "opening a stream"))
        return;
    if (check(cudaEventRecord(event, earlier), "a caller's stream"))
        check(cudaStreamWaitEvent(later, event, 0), "a caller's stream");
}

static void enter(void *theirs)
{
    const call c;
    if (!c.well())
        return;
    end_segment();
    behind((cudaStream_t)theirs, stream());
}

static void leave(void *theirs)
{
    const call c;
    if (!c.well())
        return;
    end_segment();
    behind(stream(), (cudaStream_t)theirs);
}

static const char *misplaced(const void *memory)
{
    static thread_local char text[128];
    const call c;
    cudaPointerAttributes found;
    if (!c.well())
        return failed();
    if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
        (void)cudaGetLastError();
        return "it is memory that CUDA does not know";
    }
    if (found.type != cudaMemoryTypeDevice)
        return "it does not lie in a device's memory";
    if (found.device == device_number())
        return nullptr;
    snprintf(text, sizeof text,
             "it lies on device %d, and kith computes on device %d; set "
             "KITH_CUDA_DEVICE=%d",
             found.device, device_number(), found.device);
    return text;
}

const struct kith_outside_kernels outside = {misplaced, enter, leave, take,
                                             give};
} // namespace gpu
