/* What every kernel file uses: element types, packs, reductions, and the host
 * side of a call: one state per process, one compute stream, a sticky word of
 * failure.
 *
 * Calls are made on any thread but one at a time (`call` holds the lock); all
 * kernels run on the compute stream in the order of the calls. Sums run in a
 * fixed order: a block's threads by a tree, blocks by their index; no float is
 * ever added atomically, so the same build and device give the same bits. */
#ifndef KITH_TRAINING_CUDA_COMMON_CUH
#define KITH_TRAINING_CUDA_COMMON_CUH

#include "kith/backend.h"
#include "platform.cuh"

#include <optional>

namespace gpu
{
/* ---- elements */

struct bf16 {
    uint16_t bits;
};

static __host__ __device__ inline float to_float(float v)
{
    return v;
}
static __device__ inline float to_float(bf16 v)
{
    return __uint_as_float((uint32_t)v.bits << 16);
}
static __device__ inline void from_float(float v, float *out)
{
    *out = v;
}
static __device__ inline void from_float(float v, bf16 *out)
{
    out->bits = (uint16_t)bf16_pair(v, 0);
}

/* To bfloat16 as a CPU does it, bit for bit: a number that is none keeps its
 * bits. */
static __device__ inline uint16_t nearest_half(float v)
{
    const uint32_t bits = __float_as_uint(v);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (uint16_t)((is_nan ? bits | 1u << 22
                              : bits + ((bits >> 16 & 1u) + 0x7fffu)) >>
                      16);
}

template <typename T, int N> struct alignas(N * sizeof(T)) pack {
    T v[N];
};

/* Elements of 16 bytes, the most that a thread loads at once. */
template <typename T> struct wide {
    static const int value = 16 / (int)sizeof(T);
};
/* Elements of one of the packs that N elements are moved in. */
template <typename T, int N> struct part {
    static const int value = N < wide<T>::value ? N : wide<T>::value;
};

/* v <- x[i .. i + N); x + i is aligned to N elements or to 16 bytes. */
template <int N, typename T>
static __device__ inline void load(const T *x, size_t i, float (&v)[N])
{
    const int M = part<T, N>::value;
    for (int m = 0; m < N; m += M) {
        const pack<T, M> p = *reinterpret_cast<const pack<T, M> *>(x + i + m);
        for (int k = 0; k < M; k++)
            v[m + k] = to_float(p.v[k]);
    }
}
template <int N, typename T>
static __device__ inline void store(const float (&v)[N], T *x, size_t i)
{
    const int M = part<T, N>::value;
    for (int m = 0; m < N; m += M) {
        pack<T, M> p;
        for (int k = 0; k < M; k++)
            from_float(v[m + k], &p.v[k]);
        *reinterpret_cast<pack<T, M> *>(x + i + m) = p;
    }
}

static __device__ inline size_t thread_index()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ inline size_t thread_count()
{
    return (size_t)gridDim.x * blockDim.x;
}

/* NaN stays NaN. */
static __device__ inline float relu(float v)
{
    return v < 0 ? 0.0f : v;
}
/* gelu(v) = v gate, gate = 1 / (1 + e^-2u), u = sqrt(2/pi) (v + .044715 v^3) */
static __device__ inline float gelu_gate(float v)
{
    const float u = 0.7978845608f * (v + 0.044715f * v * v * v);
    return 1 / (1 + expf(-2 * u));
}
static __device__ inline float gelu_slope(float v)
{
    const float gate = gelu_gate(v);
    const float du = 0.7978845608f * (1 + 3 * 0.044715f * v * v);
    return gate + v * gate * (1 - gate) * 2 * du;
}
static __device__ inline float activate(int activation, float v)
{
    return activation == KITH_ACTIVATION_RELU   ? relu(v)
           : activation == KITH_ACTIVATION_GELU ? v * gelu_gate(v)
                                                : v;
}

/* ---- reductions within a block */

template <typename T> static __device__ inline T warp_sum(T v)
{
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* The same value to all threads; blockDim.x is a multiple of 32, at most 1024.
 * room (32). */
template <typename T> static __device__ inline T block_sum(T v, T *room)
{
    v = warp_sum(v);
    __syncthreads(); /* what was read of the room before has been read */
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = v;
    __syncthreads();
    T sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++)
        sum += room[w];
    return sum;
}

/* ---- the host's side */

enum scratch {
    SCRATCH_PARTIALS, /* sums of blocks */
    SCRATCH_WEIGHTS,  /* a matrix in bfloat16, and its bias */
    SCRATCH_SPLITS,   /* parts of a product */
    SCRATCH_PRODUCT,  /* cuBLAS's own, cuDNN's own */
    SCRATCH_FILTER,   /* a convolution's weights in another order */
    SCRATCH_INDEX,    /* of tokens */
    SCRATCH_BLOCKS,   /* what is found of the blocks of a message */
    SCRATCH_PLACES,   /* of the values that a message keeps */
    SCRATCH_COUNT
};

/* What kernels find; on the device. */
struct numbers {
    double loss, norm, value;
    unsigned correct, bad; /* bad: something that was not finite */
    unsigned most;         /* of sizes, as bits */
};

/* While it lives the device is the thread's current one; then again the one
 * that a caller computes on, besides, where that is in use. */
class current
{
  public:
    current();
    ~current();
    current(const current &) = delete;
    current &operator=(const current &) = delete;

  private:
    int theirs_ = -1; /* -1: none to go back to */
};

/* A call of the backend: holds the lock while it lives, on the device. */
class call
{
  public:
    call();
    ~call();
    call(const call &) = delete;
    call &operator=(const call &) = delete;
    /* The device is open and nothing has failed. */
    bool well() const
    {
        return well_;
    }

  private:
    bool well_;
    std::optional<current> current_;
};

cudaStream_t stream();
unsigned processors();
numbers *found(); /* on the device */
bool in_step();
/* The numbers, when all that was asked for is done; false: failed. */
bool collect(numbers *out);
void forget_numbers();
/* Memory of the device that lasts until the next call asks for the same kind;
 * NULL: none, and the backend has failed. */
void *scratch_of(scratch kind, size_t bytes);

/* Notes an error for good; true where there was none. */
bool check(cudaError_t code, const char *doing);
void fail(const char *text);
bool has_failed();
/* A way that is slower than another one; each kind is told once. */
enum slow {
    SLOW_PRODUCT,   /* by our own kernel */
    SLOW_ROWS,      /* by a kernel of the library for odd addresses */
    SLOW_CONV,      /* by our own kernel */
    SLOW_ATTENTION, /* without tensor cores */
    SLOW_NORM,      /* one element at a time, as all below */
    SLOW_LOSS,
    SLOW_COLUMNS,
    SLOW_VECTOR,
    SLOW_COUNT
};
__attribute__((format(printf, 2, 3))) void took(slow way, const char *format,
                                                ...);
/* Notes what the last launch said. */
void launched(const char *kernel);
/* Ends what is being captured, so that the host may wait or allocate. */
void end_segment();

/* Where the device finds what stands in `memory`: itself, or for a shared
 * vector the copy on the device where that is newer or fetched already. */
const void *readable(const void *memory, size_t bytes);
/* Is it a shared vector that the host writes? It may do so again as soon as a
 * call returns: one that reads it waits until it is done. */
bool of_the_host(const void *memory);
/* Where the device is to write; wrote() sends it on. */
void *writable(void *memory, size_t bytes);
/* The same with the values that stand in `memory`. */
void *changeable(void *memory, size_t bytes);
void wrote(void *memory, size_t bytes);

/* ---- launching */

static inline unsigned blocks_for(size_t items, unsigned threads)
{
    const size_t wanted = (items + threads - 1) / threads;
    const size_t most = (size_t)processors() * 16;
    return (unsigned)(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

static inline bool aligned(const void *p, size_t bytes)
{
    return p == nullptr || (uintptr_t)p % bytes == 0;
}

/* All of them begin at multiples of 16 bytes. */
template <typename... P> static inline bool all_aligned(const P *...p)
{
    return (aligned(p, 16) && ...);
}

/* f(i) for every i < n, on threads of their own where there are so many. */
template <typename F> __global__ void indices_kernel(size_t n, F f)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step)
        f(i);
}
template <typename F>
static void each_index(const char *name, size_t n, unsigned threads, const F &f)
{
    if (n == 0)
        return;
    launch(indices_kernel<F>, dim3(blocks_for(n, threads)), dim3(threads), 0,
           stream(), n, f);
    launched(name);
}

/* Fewer take no time worth a word. */
enum { SLOW_VALUES = 1 << 16 };

/* f.at<N>(i) for elements [i, i + N), every element once. */
template <int N, typename F> __global__ void each_kernel(size_t n, F f)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n / N; i += step)
        f.template at<N>(i * N);
    if (N > 1 && thread_index() < n % N)
        f.template at<1>(n - n % N + thread_index());
}

/* even: every vector that f touches is aligned to 16 bytes; N: elements of the
 * narrowest of them in 16 bytes. */
template <int N = 4, typename F>
static void each(const char *name, size_t n, bool even, const F &f)
{
    if (n == 0)
        return;
    const unsigned threads = 256;
    if (!even && n >= SLOW_VALUES)
        took(SLOW_VECTOR,
             "%s of %zu values that do not begin at a multiple of 16 bytes: "
             "one at a time",
             name, n);
    const size_t items = even ? (n + N - 1) / N : n;
    const dim3 grid(blocks_for(items, threads));
    if (even)
        launch(each_kernel<N, F>, grid, dim3(threads), 0, stream(), n, f);
    else
        launch(each_kernel<1, F>, grid, dim3(threads), 0, stream(), n, f);
    launched(name);
}
/* dy <- dy where y > 0. */
template <typename T> struct mask_each {
    const T *y;
    T *dy;
    template <int N> __device__ void at(size_t i) const
    {
        float d[N], v[N];
        load(dy, i, d);
        load(y, i, v);
        for (int k = 0; k < N; k++)
            d[k] = v[k] > 0 ? d[k] : 0.0f;
        store(d, dy, i);
    }
};
template <typename T>
static void mask(const char *name, size_t n, const void *y, void *dy)
{
    each<wide<T>::value>(name, n, all_aligned(y, dy),
                         mask_each<T>{(const T *)y, (T *)dy});
}

/* The tensors of a call, by their types. */
template <typename T> struct tensors {
    const T *x, *other;
    const float *weight, *bias;
    float *buffers, *saved;
    T *y, *dy, *dx;
    float *dweight, *dbias;
    bool adds_data, adds_weights;
    explicit tensors(const struct kith_arguments *a)
        : x((const T *)a->x), other((const T *)a->other),
          weight((const float *)a->weight), bias((const float *)a->bias),
          buffers((float *)a->buffers), saved((float *)a->saved), y((T *)a->y),
          dy((T *)a->dy), dx((T *)a->dx), dweight((float *)a->dweight),
          dbias((float *)a->dbias), adds_data((a->flags & KITH_ADD_DATA) != 0),
          adds_weights((a->flags & KITH_ADD_WEIGHTS) != 0)
    {
    }
};
} // namespace gpu

#endif
