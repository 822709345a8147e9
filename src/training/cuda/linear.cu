/* Linear layers. For bfloat16 the weights are narrowed into scratch first: one
 * pass over them, small beside their product with thousands of rows. */
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
        for (int k = 0; k < N; k++) {
            if (activation == KITH_ACTIVATION_GELU)
                d[k] *= gelu_slope(v[k]);
            else
                d[k] = v[k] > 0 ? d[k] : 0.0f;
        }
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
    each("an activation's way back", n,
         aligned(dy, 4 * sizeof(T)) && aligned(at, 4 * sizeof(T)),
         slope_each<T>{activation, (const T *)pre, (const T *)y, (T *)dy});
}

/* Weights as the product wants them: themselves, or narrowed. `bias`, too. */
static bool prepare(const float *, size_t, const void *w, const void *bias,
                    size_t, const void **w_out, const void **bias_out)
{
    *w_out = w;
    *bias_out = bias;
    return true;
}

static bool prepare(const bf16 *, size_t n, const void *w, const void *bias,
                    size_t out, const void **w_out, const void **bias_out)
{
    const size_t weights = (n + 63) / 64 * 64;
    bf16 *const room =
        (bf16 *)scratch_of(SCRATCH_WEIGHTS, (weights + out) * sizeof(bf16));
    if (room == nullptr)
        return false;
    narrow(n, w, room);
    if (bias != nullptr)
        narrow(out, bias, room + weights);
    *w_out = room;
    *bias_out = bias == nullptr ? nullptr : room + weights;
    return true;
}

template <typename T>
void dense<T>::linear(const struct kith_linear *op, size_t rows, const void *x,
                      const void *w, const void *bias, void *pre, void *y)
{
    const call c;
    const size_t in = op->in, out = op->out;
    const void *weights, *narrowed;
    void *const kept = op->activation == KITH_ACTIVATION_GELU ? pre : nullptr;
    if (!c.well() || rows == 0 ||
        !prepare((const T *)nullptr, in * out, w, bias, out, &weights,
                 &narrowed))
        return;
    const product p = {false,
                       !op->in_out,
                       rows,
                       out,
                       in,
                       1,
                       0,
                       x,
                       weights,
                       y,
                       element_of<T>::value,
                       element_of<T>::value,
                       narrowed,
                       op->activation,
                       kept};
    if (library_product(p))
        return;
    tile_product("a linear layer", rows, out, in,
                 matrix<T>{(const T *)x, in, 1},
                 matrix<T>{(const T *)weights, op->in_out ? out : 1,
                           op->in_out ? 1 : in},
                 put<T>{(T *)y, (T *)kept, (const float *)bias, out, 1, 0,
                        op->activation});
}

/* dx (rows, in) = dy (rows, out) W^T. */
template <typename T>
static void linear_data(const struct kith_linear *op, size_t rows,
                        const void *w, const void *dy, void *dx, unsigned add)
{
    const size_t in = op->in, out = op->out;
    const float kept = add & KITH_ADD_DATA ? 1.0f : 0.0f;
    const void *weights, *none;
    if (!prepare((const T *)nullptr, in * out, w, nullptr, 0, &weights, &none))
        return;
    const product p = {false,
                       op->in_out,
                       rows,
                       in,
                       out,
                       1,
                       kept,
                       dy,
                       weights,
                       dx,
                       element_of<T>::value,
                       element_of<T>::value,
                       nullptr,
                       KITH_ACTIVATION_NONE,
                       nullptr};
    if (library_product(p))
        return;
    tile_product(
        "a linear layer's way back", rows, in, out,
        matrix<T>{(const T *)dy, out, 1},
        matrix<T>{(const T *)weights, op->in_out ? 1 : in,
                  op->in_out ? out : 1},
        put<T>{(T *)dx, nullptr, nullptr, in, 1, kept, KITH_ACTIVATION_NONE});
}

/* dW (in, out) = x^T dy, or (out, in) = dy^T x. */
template <typename T>
static void linear_weights(const struct kith_linear *op, size_t rows,
                           const void *x, const void *dy, void *dw,
                           unsigned add)
{
    const size_t in = op->in, out = op->out;
    const size_t m = op->in_out ? in : out, n = op->in_out ? out : in;
    const void *const left = op->in_out ? x : dy, *const right =
                                                      op->in_out ? dy : x;
    const float kept = add & KITH_ADD_WEIGHTS ? 1.0f : 0.0f;
    const product p = {true,
                       false,
                       m,
                       n,
                       rows,
                       1,
                       kept,
                       left,
                       right,
                       dw,
                       element_of<T>::value,
                       SINGLE,
                       nullptr,
                       KITH_ACTIVATION_NONE,
                       nullptr};
    if (library_product(p))
        return;
    tile_product("a linear layer's gradient", m, n, rows,
                 matrix<T>{(const T *)left, 1, m},
                 matrix<T>{(const T *)right, n, 1},
                 put<float>{(float *)dw, nullptr, nullptr, n, 1, kept,
                            KITH_ACTIVATION_NONE});
}

template <typename T>
void dense<T>::linear_backward(const struct kith_linear *op, size_t rows,
                               const void *x, const void *w, const void *pre,
                               const void *y, void *dy, void *dx, void *dw,
                               void *dbias, unsigned add)
{
    const call c;
    if (!c.well())
        return;
    unactivate<T>(op->activation, rows * op->out, pre, y, dy);
    if (dx != nullptr)
        linear_data<T>(op, rows, w, dy, dx, add);
    if (dw != nullptr)
        linear_weights<T>(op, rows, x, dy, dw, add);
    if (dbias != nullptr)
        columns<1>("a bias's gradient", rows, op->out,
                   column_of<T>{(const T *)dy, op->out},
                   column_put{(float *)dbias, (add & KITH_ADD_WEIGHTS) != 0});
}

template struct dense<float>;
template struct dense<bf16>;
} // namespace gpu
