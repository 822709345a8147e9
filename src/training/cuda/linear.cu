/* Linear layers. For bfloat16 the weights are narrowed into scratch first: one
 * pass over them, small beside their product with thousands of rows.
 *
 * Scores of an odd number of classes have rows of `stride` elements (ops.h), so
 * that each begins at a multiple of 16 bytes: the library's kernels for Hopper
 * load nothing else. In bfloat16 the scratch holds weights of 0 for the classes
 * that there are not, and the product has even sizes as well; in float32 it
 * leaves them out. The gradient of the weights is always that of `out`. */
#include "columns.cuh"
#include "products.cuh"
#include "state.cuh"
#include "tile.cuh"

namespace gpu
{
template <typename T> struct slope_each {
    int activation;
    const T *pre, *y;
    T *dy;
    template <int N> __device__ void at(size_t i) const
    {
        float d[N], v[N];
        load(dy, i, d);
        load(activation == KITH_ACTIVATION_GELU ? pre : y, i, v);
        for (int k = 0; k < N; k++)
            if (activation == KITH_ACTIVATION_GELU)
                d[k] *= gelu_slope(v[k]);
            else
                d[k] = v[k] > 0 ? d[k] : 0.0f;
        store(d, dy, i);
    }
};

/* dy <- dy activation'(.), in place. */
template <typename T>
static void unactivate(int activation, size_t n, const void *pre, const void *y,
                       void *dy)
{
    if (activation == KITH_ACTIVATION_NONE)
        return;
    const void *const at = activation == KITH_ACTIVATION_GELU ? pre : y;
    each<wide<T>::value>(
        "an activation's way back", n, all_aligned(dy, at),
        slope_each<T>{activation, (const T *)pre, (const T *)y, (T *)dy});
}

/* A layer as its product sees it. */
struct layer {
    const void *weights, *bias;
    size_t out;    /* columns that the product computes */
    size_t stride; /* elements from a row of y to the next */
    size_t across; /* in_out: elements from a row of the weights to the next */
};

/* (rows, width) -> (rows_padded, stride), 0 beyond. */
static void narrow_padded(size_t rows, size_t rows_padded, size_t width,
                          size_t stride, const void *from, bf16 *y)
{
    const float *const x = (const float *)from;
    each_index(
        "converting", rows_padded * stride, 256, [=] __device__(size_t i) {
            const size_t row = i / stride, j = i % stride;
            from_float(row < rows && j < width ? x[row * width + j] : 0.0f,
                       &y[i]);
        });
}

static size_t stride_of(const struct kith_linear *op)
{
    return op->stride > 0 ? op->stride : op->out;
}

/* Weights as the product wants them: themselves, or narrowed. `bias`, too. */
static bool prepare(const float *, const struct kith_linear *op, const void *w,
                    const void *bias, layer *made)
{
    *made = {w, bias, op->out, stride_of(op), op->out};
    return true;
}

static bool prepare(const bf16 *, const struct kith_linear *op, const void *w,
                    const void *bias, layer *made)
{
    const size_t in = op->in, out = op->out, stride = stride_of(op);
    const size_t weights = (in * stride + 63) / 64 * 64;
    bf16 *const room =
        (bf16 *)scratch_of(SCRATCH_WEIGHTS, (weights + stride) * sizeof(bf16));
    if (room == nullptr)
        return false;
    if (stride == out)
        narrow(in * out, w, room);
    else if (op->in_out)
        narrow_padded(in, in, out, stride, w, room);
    else
        narrow_padded(out, stride, in, in, w, room);
    if (bias != nullptr && stride == out)
        narrow(out, bias, room + weights);
    else if (bias != nullptr)
        narrow_padded(1, 1, out, stride, bias, room + weights);
    *made = {room, bias == nullptr ? nullptr : room + weights, stride, stride,
             stride};
    return true;
}

/* -infinity for the classes that there are not. */
template <typename T>
static void pad(const struct kith_linear *op, size_t rows, void *scores)
{
    const size_t stride = stride_of(op), width = op->out, pads = stride - width;
    T *const y = (T *)scores;
    each_index(
        "the rows of scores", rows * pads, 256, [=] __device__(size_t i) {
            from_float(-INFINITY, &y[i / pads * stride + width + i % pads]);
        });
}

template <typename T>
static void product_of(const struct kith_linear *op, size_t rows, const void *x,
                       const layer &l, const void *bias, void *kept, void *y)
{
    const size_t in = op->in;
    product p = {};
    p.transpose_b = !op->in_out;
    p.m = rows;
    p.n = l.out;
    p.k = in;
    p.alpha = 1;
    p.a = x;
    p.b = l.weights;
    p.c = y;
    p.in = p.out = element_of<T>::value;
    p.bias = l.bias;
    p.activation = op->activation;
    p.pre = kept;
    p.c_stride = l.stride;
    if (library_product(p))
        return;
    tile_product("a linear layer", rows, op->out, in,
                 matrix<T>{(const T *)x, in, 1},
                 matrix<T>{(const T *)l.weights, op->in_out ? l.across : 1,
                           op->in_out ? 1 : in},
                 put<T>{(T *)y, (T *)kept, (const float *)bias, l.stride, 1, 0,
                        op->activation});
}

template <typename T> static void linear(const struct kith_arguments *a)
{
    const struct kith_linear *op = (const struct kith_linear *)a->shape;
    const call c;
    layer l;
    void *const kept =
        op->activation == KITH_ACTIVATION_GELU ? a->saved : nullptr;
    if (!c.well() || a->rows == 0 ||
        !prepare((const T *)nullptr, op, a->weight, a->bias, &l))
        return;
    product_of<T>(op, a->rows, a->x, l, a->bias, kept, a->y);
    pad<T>(op, a->rows, a->y);
}

/* dx (rows, in) = dy (rows, out) W^T. */
template <typename T>
static void linear_data(const struct kith_linear *op, size_t rows,
                        const void *w, const void *dy, void *dx, unsigned add)
{
    const size_t in = op->in;
    const float kept = add & KITH_ADD_DATA ? 1.0f : 0.0f;
    layer l;
    if (!prepare((const T *)nullptr, op, w, nullptr, &l))
        return;
    product p = {};
    p.transpose_b = op->in_out;
    p.m = rows;
    p.n = in;
    p.k = l.out;
    p.alpha = 1;
    p.beta = kept;
    p.a = dy;
    p.b = l.weights;
    p.c = dx;
    p.in = p.out = element_of<T>::value;
    p.activation = KITH_ACTIVATION_NONE;
    p.a_stride = l.stride;
    if (library_product(p))
        return;
    tile_product(
        "a linear layer's way back", rows, in, op->out,
        matrix<T>{(const T *)dy, l.stride, 1},
        matrix<T>{(const T *)l.weights, op->in_out ? 1 : in,
                  op->in_out ? l.across : 1},
        put<T>{(T *)dx, nullptr, nullptr, in, 1, kept, KITH_ACTIVATION_NONE});
}

/* dW (in, out) = x^T dy, or (out, in) = dy^T x. */
template <typename T>
static void linear_weights(const struct kith_linear *op, size_t rows,
                           const void *x, const void *dy, void *dw,
                           unsigned add)
{
    const size_t in = op->in, out = op->out, stride = stride_of(op);
    const size_t m = op->in_out ? in : out, n = op->in_out ? out : in;
    const float kept = add & KITH_ADD_WEIGHTS ? 1.0f : 0.0f;
    product p = {};
    p.transpose_a = true;
    p.m = m;
    p.n = n;
    p.k = rows;
    p.alpha = 1;
    p.beta = kept;
    p.a = op->in_out ? x : dy;
    p.b = op->in_out ? dy : x;
    p.c = dw;
    p.in = element_of<T>::value;
    p.out = SINGLE;
    p.activation = KITH_ACTIVATION_NONE;
    p.a_stride = op->in_out ? in : stride;
    p.b_stride = op->in_out ? stride : in;
    if (library_product(p))
        return;
    tile_product("a linear layer's gradient", m, n, rows,
                 matrix<T>{(const T *)p.a, 1, p.a_stride},
                 matrix<T>{(const T *)p.b, p.b_stride, 1},
                 put<float>{(float *)dw, nullptr, nullptr, n, 1, kept,
                            KITH_ACTIVATION_NONE});
}

template <typename T>
static void linear_backward(const struct kith_arguments *a)
{
    const struct kith_linear *op = (const struct kith_linear *)a->shape;
    const call c;
    if (!c.well())
        return;
    unactivate<T>(op->activation, a->rows * op->out, a->saved, a->y, a->dy);
    if (a->dx != nullptr)
        linear_data<T>(op, a->rows, a->weight, a->dy, a->dx, a->flags);
    if (a->dweight != nullptr)
        linear_weights<T>(op, a->rows, a->x, a->dy, a->dweight, a->flags);
    if (a->dbias != nullptr)
        bias_gradient<T>(a->rows, op->out, stride_of(op), a->dy, a->dbias,
                         a->flags);
}

KITH_KERNEL(linear, nullptr, linear, linear_backward)
} // namespace gpu
