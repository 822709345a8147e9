/* Convolutions: by cuDNN where it is here, a plain product where the kernel is
 * one pixel, else an implicit product by our own kernel.
 *
 *   forward   pixels out x (taps in)  times (taps in) x out
 *   data      pixels in x (taps out)  times (taps out) x in
 *   weights   (taps in) x pixels out  times pixels out x out */
#include "columns.cuh"
#include "cudnn.cuh"
#include "products.cuh"
#include "state.cuh"
#include "tile.cuh"

namespace gpu
{
/* One side as numbers that fit registers; sizes were checked. */
struct frame {
    uint32_t height, width, in, out, kernel, stride, pad, down, across;
};

static frame frame_of(const struct kith_conv *op)
{
    return {(uint32_t)op->height,   (uint32_t)op->width,
            (uint32_t)op->in,       (uint32_t)op->out,
            (uint32_t)op->kernel,   (uint32_t)op->stride,
            (uint32_t)op->pad,      (uint32_t)op->out_height,
            (uint32_t)op->out_width};
}

static __device__ inline uint32_t row_of(uint32_t pixel, uint32_t height,
                                         uint32_t width, uint32_t *y,
                                         uint32_t *x)
{
    const uint32_t line = pixel / width;
    *x = pixel - line * width;
    const uint32_t row = line / height;
    *y = line - row * height;
    return row;
}

/* x at output pixel `out` and place l = (tap, channel). */
template <typename T> struct patch {
    frame f;
    const T *x;
    __device__ float operator()(size_t out, size_t l) const
    {
        uint32_t y, column;
        const uint32_t row =
            row_of((uint32_t)out, f.down, f.across, &y, &column);
        const uint32_t tap = (uint32_t)l / f.in, c = (uint32_t)l - tap * f.in;
        const uint32_t ky = tap / f.kernel, kx = tap - ky * f.kernel;
        /* Below 0 wraps to far above. */
        const uint32_t h = y * f.stride + ky - f.pad;
        const uint32_t w = column * f.stride + kx - f.pad;
        if (h >= f.height || w >= f.width)
            return 0;
        return to_float(
            x[(((size_t)row * f.height + h) * f.width + w) * f.in + c]);
    }
};

/* The same with its indices the other way round. */
template <typename T> struct patch_turned {
    patch<T> of;
    __device__ float operator()(size_t l, size_t out) const
    {
        return of(out, l);
    }
};

/* dy at input pixel `in` and place l = (tap, channel out). */
template <typename T> struct spread {
    frame f;
    const T *dy;
    __device__ float operator()(size_t in, size_t l) const
    {
        uint32_t h, w;
        const uint32_t row = row_of((uint32_t)in, f.height, f.width, &h, &w);
        const uint32_t tap = (uint32_t)l / f.out, o = (uint32_t)l - tap * f.out;
        const uint32_t ky = tap / f.kernel, kx = tap - ky * f.kernel;
        const uint32_t down = h + f.pad, right = w + f.pad;
        if (down < ky || right < kx || (down - ky) % f.stride != 0 ||
            (right - kx) % f.stride != 0)
            return 0;
        const uint32_t y = (down - ky) / f.stride;
        const uint32_t x = (right - kx) / f.stride;
        if (y >= f.down || x >= f.across)
            return 0;
        return to_float(
            dy[(((size_t)row * f.down + y) * f.across + x) * f.out + o]);
    }
};

/* w (tap, in, out) at l = (tap, out) and channel in. */
struct filter_turned {
    frame f;
    const float *w;
    __device__ float operator()(size_t l, size_t in) const
    {
        const uint32_t tap = (uint32_t)l / f.out, o = (uint32_t)l - tap * f.out;
        return w[((size_t)tap * f.in + in) * f.out + o];
    }
};

/* A pointwise convolution is a linear operation on all pixels. */
static bool by_linear(const struct kith_arguments *a, size_t pixels,
                      void (*kernel)(const struct kith_arguments *a))
{
    const struct kith_conv *op = (const struct kith_conv *)a->shape;
    if (op->kernel != 1 || op->stride != 1 || op->pad != 0)
        return false;
    struct kith_linear linear = {};
    linear.in = op->in;
    linear.out = op->out;
    linear.in_out = true;
    linear.activation = op->activation;
    struct kith_arguments own = *a;
    own.shape = &linear;
    own.rows = pixels;
    kernel(&own);
    return true;
}

static bool fits(const struct kith_conv *op, size_t rows)
{
    const size_t most = (size_t)1 << 31;
    const size_t taps = op->kernel * op->kernel;
    const bool good = rows * op->height * op->width < most &&
                      rows * op->out_height * op->out_width < most &&
                      taps * op->in < most && taps * op->out < most;
    if (!good)
        fail("a convolution is too large: lower train.batch");
    return good;
}

/* True where the library took it. */
static bool by_library(const struct kith_conv *op, bool taken)
{
    if (!taken && !has_failed())
        took(SLOW_CONV,
             "a convolution (%zu x %zu x %zu to %zu, kernel %zu) by the kernel "
             "of our own: %s",
             op->height, op->width, op->in, op->out, op->kernel,
             cudnn_missing());
    return taken;
}

template <typename T> static void conv(const struct kith_arguments *a)
{
    const struct kith_conv *op = (const struct kith_conv *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0 || !fits(op, a->rows))
        return;
    const size_t pixels = a->rows * op->out_height * op->out_width;
    if (by_linear(a, pixels, linear_kernel<T>()->forward))
        return;
    if (by_library(op, cudnn_forward(op, a->rows, element_of<T>::value, a->x,
                                     a->weight, a->bias, a->y)))
        return;
    const size_t taps = op->kernel * op->kernel;
    tile_product("a convolution", pixels, op->out, taps * op->in,
                 patch<T>{frame_of(op), (const T *)a->x},
                 matrix<float>{(const float *)a->weight, op->out, 1},
                 put<T>{(T *)a->y, nullptr, (const float *)a->bias, op->out, 1,
                        0, op->activation});
}

template <typename T>
static void data_gradient(const struct kith_conv *op, size_t rows,
                          const void *w, const void *dy, void *dx, unsigned add)
{
    const frame f = frame_of(op);
    const bool adds = (add & KITH_ADD_DATA) != 0;
    if (by_library(op,
                   cudnn_data(op, rows, element_of<T>::value, w, dy, dx, adds)))
        return;
    tile_product("a convolution's way back", rows * op->height * op->width,
                 op->in, op->kernel * op->kernel * op->out,
                 spread<T>{f, (const T *)dy},
                 filter_turned{f, (const float *)w},
                 put<T>{(T *)dx, nullptr, nullptr, op->in, 1,
                        adds ? 1.0f : 0.0f, KITH_ACTIVATION_NONE});
}

template <typename T>
static void weight_gradient(const struct kith_conv *op, size_t rows,
                            const void *x, const void *dy, void *dw,
                            unsigned add)
{
    const bool adds = (add & KITH_ADD_WEIGHTS) != 0;
    if (by_library(
            op, cudnn_weights(op, rows, element_of<T>::value, x, dy, dw, adds)))
        return;
    tile_product("a convolution's gradient", op->kernel * op->kernel * op->in,
                 op->out, rows * op->out_height * op->out_width,
                 patch_turned<T>{{frame_of(op), (const T *)x}},
                 matrix<T>{(const T *)dy, op->out, 1},
                 put<float>{(float *)dw, nullptr, nullptr, op->out, 1,
                            adds ? 1.0f : 0.0f, KITH_ACTIVATION_NONE});
}

template <typename T> static void conv_backward(const struct kith_arguments *a)
{
    const struct kith_conv *op = (const struct kith_conv *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0 || !fits(op, a->rows))
        return;
    const size_t pixels = a->rows * op->out_height * op->out_width;
    if (by_linear(a, pixels, linear_kernel<T>()->backward))
        return;
    if (op->activation == KITH_ACTIVATION_RELU)
        mask<T>("an activation's way back", pixels * op->out, a->y, a->dy);
    if (a->dx != nullptr)
        data_gradient<T>(op, a->rows, a->weight, a->dy, a->dx, a->flags);
    if (a->dweight != nullptr)
        weight_gradient<T>(op, a->rows, a->x, a->dy, a->dweight, a->flags);
    if (a->dbias != nullptr)
        bias_gradient<T>(pixels, op->out, op->out, a->dy, a->dbias, a->flags);
}

KITH_KERNEL(conv, nullptr, conv, conv_backward)
} // namespace gpu
