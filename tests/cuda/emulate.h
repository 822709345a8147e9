/* The part of CUDA that src/training/cuda uses, on the host, so that its
 * kernels can be held against naive64 on a machine without a GPU.
 *
 * A kernel runs block after block; each thread of a block is a fiber that runs
 * until it meets a barrier or exchanges values with its warp. Threads of one
 * warp that wait for different things, or leave some behind, end the program
 * with a message. Streams do at once what they are told, but that copies out of
 * device memory may be told to come late, and everything to come as late as
 * streams and events allow (kith_emulate_order), so that a caller who does not
 * wait for what it needs is caught. Device memory is out
 * of reach between calls, so a host that reads it directly is caught. What the
 * emulation cannot show: speed, races within a barrier's interval, and what the
 * compiler makes of it. */
#ifndef KITH_TESTS_CUDA_EMULATE_H
#define KITH_TESTS_CUDA_EMULATE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

typedef struct emulate_stream *cudaStream_t;

namespace emulate
{
struct place {
    dim3 thread, block, block_size, grid_size;
};
extern place here; /* of the thread that runs */
extern unsigned char *dynamic_shared;

/* In stream order: now, or where kith_emulate_order says so, later. */
bool is_in_use(int device);
void submit(cudaStream_t stream, dim3 grid, dim3 block, size_t shared,
            const std::function<void()> &kernel);
void barrier();
/* All lanes of the mask hand in 8 bytes and get everyone's, by lane. */
const uint64_t *exchange(unsigned mask, uint64_t value);
unsigned lane();
} // namespace emulate

#define threadIdx emulate::here.thread
#define blockIdx emulate::here.block
#define blockDim emulate::here.block_size
#define gridDim emulate::here.grid_size
#define UNROLLED
#define DYNAMIC_SHARED(name) unsigned char *const name = emulate::dynamic_shared

template <typename... P, typename... A>
static inline void launch(void (*kernel)(P...), dim3 grid, dim3 block,
                          size_t shared, cudaStream_t stream, A... arguments)
{
    emulate::submit(
        stream, grid, block, shared,
        [=] { kernel(static_cast<P>(arguments)...); });
}

static inline void __syncthreads()
{
    emulate::barrier();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    (void)emulate::exchange(mask, 0);
}
template <typename T>
static inline T emulate_lane(unsigned mask, T value, unsigned from)
{
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = emulate::exchange(mask, word)[from % 32];
    memcpy(&value, &word, sizeof value);
    return value;
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int from)
{
    return emulate_lane(mask, value, (unsigned)from);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits)
{
    return emulate_lane(mask, value, emulate::lane() ^ (unsigned)bits);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const uint64_t *all = emulate::exchange(mask, predicate != 0);
    unsigned votes = 0;
    for (unsigned i = 0; i < 32; i++)
        votes |= (mask >> i & 1u && all[i] ? 1u : 0u) << i;
    return votes;
}
static inline int __popc(unsigned word)
{
    return __builtin_popcount(word);
}
static inline unsigned atomicOr(unsigned *at, unsigned bits)
{
    const unsigned old = *at;
    *at |= bits;
    return old;
}
static inline unsigned atomicAdd(unsigned *at, unsigned value)
{
    const unsigned old = *at;
    *at += value;
    return old;
}
static inline unsigned atomicMax(unsigned *at, unsigned value)
{
    const unsigned old = *at;
    *at = value > old ? value : old;
    return old;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __dsqrt_rn(double a)
{
    return sqrt(a);
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline float fast_exp2(float x)
{
    return exp2f(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint32_t bf16_pair(float low, float high);
void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2]);
void load_matrices(uint32_t r[4], const void *row);
void load_transposed(uint32_t r[4], const void *row);

/* ---- the runtime */

typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorGraphExecUpdateFailure = 910
};
typedef struct emulate_event *cudaEvent_t;
typedef struct emulate_graph *cudaGraph_t;
typedef struct emulate_graph *cudaGraphExec_t;
struct cudaDeviceProp {
    char name[256];
};
struct cudaGraphExecUpdateResultInfo {
    int result;
};
enum cudaMemcpyKind { cudaMemcpyDefault };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum { cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
enum { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrComputeCapabilityMajor
};
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
    int type, device;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found,
                                     const void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *target, int byte, size_t bytes,
                            cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t code);
template <typename K>
static inline cudaError_t cudaFuncSetAttribute(K, int, int)
{
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t run, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

#pragma GCC visibility push(default)
extern "C" {
/* From now on the launch after `launches` more fails for good with `code`;
 * negative: never. At first KITH_EMULATE_FAIL=LAUNCHES:CODE says so. */
void kith_emulate_fail(long launches, int code);
/* From now on a copy out of device memory is made when the event behind it has
 * been asked for more than so often, or is waited for; 0: at once. */
void kith_emulate_late(long queries);
enum {
    KITH_EMULATE_EARLY,      /* at once, the first */
    KITH_EMULATE_LATE,       /* when something waits for it */
    KITH_EMULATE_LATE_FETCH, /* LATE, but copies into device memory are made at
                                once in a stream with nothing left to do */
};
/* When streams do what they are told from now on; what waits is done first. */
void kith_emulate_order(int order);
/* Device memory there is, bytes; 0: as at first. */
void kith_emulate_memory(size_t bytes);
/* Host memory that may be pinned, bytes; 0: as at first, any. */
void kith_emulate_pinnable(size_t bytes);
/* Host memory that is pinned now, bytes. */
size_t kith_emulate_pinned(void);
/* Another runtime's in the same process, as a caller's loop has it: memory of
 * the device, a stream, and a copy that it is told to make. */
void *kith_emulate_allocate(size_t bytes);
void *kith_emulate_stream(void);
void kith_emulate_copy(void *stream, void *target, const void *source,
                       size_t bytes);
void kith_emulate_synchronise(void *stream);
/* This thread's current device, as another runtime sees it. Streams, memory and
 * kernels are those of device 0; another is in use from kith_emulate_choose()
 * on. */
void kith_emulate_choose(int device);
int kith_emulate_chosen(void);
/* Kernels run so far. */
unsigned long kith_emulate_launches(void);
/* Kernels, copies and fills that streams were told so far. */
unsigned long kith_emulate_commands(void);
}
#pragma GCC visibility pop

#endif
