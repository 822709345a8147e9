/* Root-mean-square norm: a warp per row (rows.cuh), and sums down the columns
 * for the gradient of the scale. */
#include "columns.cuh"
#include "rows.cuh"
#include "state.cuh"

namespace gpu
{
template <typename T> static void rms_norm(const struct kith_arguments *a)
{
    const call c;
    if (c.well() && a->rows > 0)
        rows_forward<false, T>(a);
}

template <typename T> struct rms_sums {
    typedef float partial;
    const T *x, *dy;
    const float *saved;
    size_t width;
    template <int N>
    __device__ void at(size_t row, size_t column, float (&sums)[1][N]) const
    {
        float v[N], d[N];
        load(x, row * width + column, v);
        load(dy, row * width + column, d);
        for (int k = 0; k < N; k++)
            sums[0][k] += d[k] * (v[k] * saved[row]);
    }
};

template <typename T>
static void rms_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const size_t width = op->channels;
    const tensors<T> t(a);
    const call c;
    if (!c.well() || a->rows == 0)
        return;
    if (t.dweight != nullptr)
        columns<1, wide<T>::value>("an RMS norm's gradient", a->rows, width,
                                   even_rows(t.x, width) && aligned(t.dy, 16),
                                   rms_sums<T>{t.x, t.dy, t.saved, width},
                                   column_put{t.dweight, t.adds_weights});
    if (t.dx != nullptr)
        rows_backward<false, T>(a);
}

KITH_KERNEL(rms_norm, nullptr, rms_norm, rms_norm_backward)
} // namespace gpu
