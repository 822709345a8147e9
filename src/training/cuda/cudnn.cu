/* See cudnn.cuh. Images are (rows, height, width, channels) for both; weights
 * are (kernel, kernel, in, out) here and (out, kernel, kernel, in) there, one
 * matrix transposed, which costs little beside the convolution. The library
 * proposes an algorithm that gives the same bits each time; the choice is kept
 * per shape. KITH_CUDA_CONV=own leaves it all to our kernel, and so does a
 * build with KITH_WITHOUT_CUDNN, for machines that lack cuDNN's headers. */
#include "cudnn.cuh"

#if defined(__CUDACC__) && !defined(KITH_WITHOUT_CUDNN)
#include <cudnn.h>
#include <dlfcn.h>
#include <map>
#include <stdlib.h>
#include <string.h>
#include <tuple>

namespace gpu
{
#define DNN_CALLS(X)                                                           \
    X(cudnnCreate)                                                             \
    X(cudnnSetStream)                                                          \
    X(cudnnCreateTensorDescriptor)                                             \
    X(cudnnSetTensor4dDescriptor)                                              \
    X(cudnnCreateFilterDescriptor)                                             \
    X(cudnnSetFilter4dDescriptor)                                              \
    X(cudnnCreateConvolutionDescriptor)                                        \
    X(cudnnSetConvolution2dDescriptor)                                         \
    X(cudnnSetConvolutionMathType)                                             \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                  \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                             \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                           \
    X(cudnnConvolutionForward)                                                 \
    X(cudnnConvolutionBackwardData)                                            \
    X(cudnnConvolutionBackwardFilter)

static struct {
#define X(name) decltype(&::name) name;
    DNN_CALLS(X)
#undef X
    cudnnHandle_t handle;
    bool opened, good, own; /* own: our kernel was asked for */
} dnn;

static bool open_calls(void *library)
{
#define X(name)                                                                \
    dnn.name = (decltype(dnn.name))dlsym(library, #name);                      \
    if (dnn.name == nullptr)                                                   \
        return false;
    DNN_CALLS(X)
#undef X
    return true;
}

static bool told(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_EXECUTION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR)
        check(cudaGetLastError(), "a convolution");
    return status == CUDNN_STATUS_SUCCESS;
}

static bool open_library()
{
    const char *const how = getenv("KITH_CUDA_CONV");
    dnn.own = how != nullptr && strcmp(how, "own") == 0;
    if (dnn.own)
        return false;
    void *library = nullptr;
    for (const char *name : {"libcudnn.so.9", "libcudnn.so",
                             "/usr/local/cuda/lib64/libcudnn.so.9"})
        if (library == nullptr)
            library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && open_calls(library) &&
           told(dnn.cudnnCreate(&dnn.handle)) &&
           told(dnn.cudnnSetStream(dnn.handle, stream()));
}

static bool here()
{
    if (!dnn.opened) {
        dnn.opened = true;
        dnn.good = open_library();
    }
    return dnn.good && !has_failed();
}

typedef std::tuple<size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                   size_t, int>
    form;

struct plan {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    cudnnConvolutionFwdAlgoPerf_t forward;
    cudnnConvolutionBwdDataAlgoPerf_t data;
    cudnnConvolutionBwdFilterAlgoPerf_t weights;
    bool good;
};

static bool describe(plan *p, const struct kith_conv *op, size_t rows,
                     element type)
{
    const cudnnDataType_t t =
        type == SINGLE ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
    const int pad = (int)op->pad, stride = (int)op->stride;
    return told(dnn.cudnnCreateTensorDescriptor(&p->x)) &&
           told(dnn.cudnnCreateTensorDescriptor(&p->y)) &&
           told(dnn.cudnnCreateFilterDescriptor(&p->w)) &&
           told(dnn.cudnnCreateConvolutionDescriptor(&p->how)) &&
           told(dnn.cudnnSetTensor4dDescriptor(
               p->x, CUDNN_TENSOR_NHWC, t, (int)rows, (int)op->in,
               (int)op->height, (int)op->width)) &&
           told(dnn.cudnnSetTensor4dDescriptor(
               p->y, CUDNN_TENSOR_NHWC, t, (int)rows, (int)op->out,
               (int)op->out_height, (int)op->out_width)) &&
           told(dnn.cudnnSetFilter4dDescriptor(
               p->w, t, CUDNN_TENSOR_NHWC, (int)op->out, (int)op->in,
               (int)op->kernel, (int)op->kernel)) &&
           told(dnn.cudnnSetConvolution2dDescriptor(
               p->how, pad, pad, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION,
               CUDNN_DATA_FLOAT)) &&
           told(dnn.cudnnSetConvolutionMathType(
               p->how, type == SINGLE ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
}

/* The first that works and adds in a fixed order. */
template <typename P> static bool first_of(const P *found, int count, P *chosen)
{
    const size_t most = (size_t)1 << 30;
    for (int i = 0; i < count; i++) {
        if (found[i].status == CUDNN_STATUS_SUCCESS &&
            found[i].determinism == CUDNN_DETERMINISTIC &&
            found[i].memory <= most) {
            *chosen = found[i];
            return true;
        }
    }
    return false;
}

static bool choose(plan *p)
{
    cudnnConvolutionFwdAlgoPerf_t forward[8];
    cudnnConvolutionBwdDataAlgoPerf_t data[8];
    cudnnConvolutionBwdFilterAlgoPerf_t weights[8];
    int count = 0;
    if (!told(dnn.cudnnGetConvolutionForwardAlgorithm_v7(
            dnn.handle, p->x, p->w, p->how, p->y, 8, &count, forward)) ||
        !first_of(forward, count, &p->forward))
        return false;
    if (!told(dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(
            dnn.handle, p->w, p->y, p->how, p->x, 8, &count, data)) ||
        !first_of(data, count, &p->data))
        return false;
    return told(dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
               dnn.handle, p->x, p->y, p->how, p->w, 8, &count, weights)) &&
           first_of(weights, count, &p->weights);
}

static plan *plan_of(const struct kith_conv *op, size_t rows, element type)
{
    static std::map<form, plan> plans;
    const form key(rows, op->height, op->width, op->in, op->out, op->kernel,
                   op->stride, op->pad, (int)type);
    const auto at = plans.find(key);
    if (at != plans.end())
        return at->second.good ? &at->second : nullptr;
    end_segment();
    plan *const made = &plans[key];
    *made = plan();
    made->good = describe(made, op, rows, type) && choose(made);
    return made->good ? made : nullptr;
}

/* (m, n) -> (n, m), narrowed or widened on the way, added or put. */
template <typename A, typename B>
__global__ void turn_kernel(size_t m, size_t n, bool adds, const A *x, B *y)
{
    __shared__ float tile[32][33];
    const size_t i0 = (size_t)blockIdx.y * 32, j0 = (size_t)blockIdx.x * 32;
    const unsigned lane = threadIdx.x % 32, line = threadIdx.x / 32;
    for (unsigned r = line; r < 32; r += 8)
        if (i0 + r < m && j0 + lane < n)
            tile[r][lane] = to_float(x[(i0 + r) * n + j0 + lane]);
    __syncthreads();
    for (unsigned r = line; r < 32; r += 8) {
        if (j0 + r >= n || i0 + lane >= m)
            continue;
        B *const to = &y[(j0 + r) * m + i0 + lane];
        const float v = tile[lane][r];
        from_float(adds ? to_float(*to) + v : v, to);
    }
}

template <typename A, typename B>
static void turn(size_t m, size_t n, bool adds, const void *x, void *y)
{
    const dim3 grid((unsigned)((n + 31) / 32), (unsigned)((m + 31) / 32));
    launch(turn_kernel<A, B>, grid, dim3(256), 0, stream(), m, n, adds,
           (const A *)x, (B *)y);
    launched("a convolution's weights");
}

static size_t filter_bytes(const struct kith_conv *op, element type)
{
    return op->kernel * op->kernel * op->in * op->out *
           (type == SINGLE ? sizeof(float) : sizeof(bf16));
}

/* The weights in the library's order; NULL: no memory. */
static void *filter_of(const struct kith_conv *op, element type, const void *w)
{
    void *const filter = scratch_of(SCRATCH_FILTER, filter_bytes(op, type));
    const size_t m = op->kernel * op->kernel * op->in;
    if (filter == nullptr)
        return nullptr;
    if (type == SINGLE)
        turn<float, float>(m, op->out, false, w, filter);
    else
        turn<float, bf16>(m, op->out, false, w, filter);
    return filter;
}

template <typename T> struct finish_each {
    size_t width;
    int activation;
    const float *bias;
    T *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        load(y, i, v);
        size_t c = i % width;
        for (int k = 0; k < N; k++, c = c + 1 == width ? 0 : c + 1)
            v[k] =
                activate(activation, v[k] + (bias == nullptr ? 0.0f : bias[c]));
        store(v, y, i);
    }
};

template <typename T>
static void finish(const struct kith_conv *op, size_t n, const void *bias,
                   void *y)
{
    each<wide<T>::value>(
        "a convolution's bias", n, aligned(y, 16),
        finish_each<T>{op->out, op->activation, (const float *)bias, (T *)y});
}

const char *cudnn_missing()
{
    return dnn.own    ? "KITH_CUDA_CONV=own"
           : dnn.good ? "cuDNN has no algorithm that adds in a fixed order"
                      : "libcudnn.so.9 does not load: install cuDNN, or name "
                        "its folder in LD_LIBRARY_PATH";
}

bool cudnn_forward(const struct kith_conv *op, size_t rows, element type,
                   const void *x, const void *w, const void *bias, void *y)
{
    const float one = 1, zero = 0;
    const plan *const p = here() ? plan_of(op, rows, type) : nullptr;
    if (p == nullptr)
        return false;
    void *const filter = filter_of(op, type, w);
    void *const room = scratch_of(SCRATCH_PRODUCT, p->forward.memory);
    if (filter == nullptr || room == nullptr ||
        !told(dnn.cudnnConvolutionForward(dnn.handle, &one, p->x, x, p->w,
                                          filter, p->how, p->forward.algo, room,
                                          p->forward.memory, &zero, p->y, y)))
        return false;
    const size_t n = rows * op->out_height * op->out_width * op->out;
    if (bias == nullptr && op->activation == KITH_ACTIVATION_NONE)
        return true;
    if (type == SINGLE)
        finish<float>(op, n, bias, y);
    else
        finish<bf16>(op, n, bias, y);
    return true;
}

bool cudnn_data(const struct kith_conv *op, size_t rows, element type,
                const void *w, const void *dy, void *dx, bool adds)
{
    const float one = 1, kept = adds ? 1.0f : 0.0f;
    const plan *const p = here() ? plan_of(op, rows, type) : nullptr;
    if (p == nullptr)
        return false;
    void *const filter = filter_of(op, type, w);
    void *const room = scratch_of(SCRATCH_PRODUCT, p->data.memory);
    return filter != nullptr && room != nullptr &&
           told(dnn.cudnnConvolutionBackwardData(
               dnn.handle, &one, p->w, filter, p->y, dy, p->how, p->data.algo,
               room, p->data.memory, &kept, p->x, dx));
}

bool cudnn_weights(const struct kith_conv *op, size_t rows, element type,
                   const void *x, const void *dy, void *dw, bool adds)
{
    const float one = 1, zero = 0;
    const plan *const p = here() ? plan_of(op, rows, type) : nullptr;
    if (p == nullptr)
        return false;
    void *const filter = scratch_of(SCRATCH_FILTER, filter_bytes(op, type));
    void *const room = scratch_of(SCRATCH_PRODUCT, p->weights.memory);
    if (filter == nullptr || room == nullptr ||
        !told(dnn.cudnnConvolutionBackwardFilter(
            dnn.handle, &one, p->x, x, p->y, dy, p->how, p->weights.algo, room,
            p->weights.memory, &zero, p->w, filter)))
        return false;
    const size_t m = op->kernel * op->kernel * op->in;
    if (type == SINGLE)
        turn<float, float>(op->out, m, adds, filter, dw);
    else
        turn<bf16, float>(op->out, m, adds, filter, dw);
    return true;
}
} // namespace gpu
#else
namespace gpu
{
const char *cudnn_missing()
{
    return "cuDNN is not here";
}
bool cudnn_forward(const struct kith_conv *, size_t, element, const void *,
                   const void *, const void *, void *)
{
    return false;
}
bool cudnn_data(const struct kith_conv *, size_t, element, const void *,
                const void *, void *, bool)
{
    return false;
}
bool cudnn_weights(const struct kith_conv *, size_t, element, const void *,
                   const void *, void *, bool)
{
    return false;
}
} // namespace gpu
#endif
