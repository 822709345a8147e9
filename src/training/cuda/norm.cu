/* Norms. A set is what shares a mean: for LAYER
 * a row, which one warp takes; for GROUP neighbours of one row, which one block
 * takes; for BATCH a channel, whose sums run down the columns. Where a set is
 * one warp's or one block's, the mean comes first and squares are of what is
 * left, as on the CPU. */
#include "columns.cuh"
#include "rows.cuh"
#include "state.cuh"

namespace gpu
{
struct sets {
    size_t pixels, channels, width; /* width: channels of one set */
    size_t groups;                  /* sets of one row */
};

static sets sets_of(const struct kith_norm *op)
{
    const size_t groups = op->kind == KITH_NORM_GROUP ? op->groups : 1;
    return {op->pixels, op->channels, op->channels / groups, groups};
}

/* Where element e of a set stands in the tensor, and its channel. */
static __device__ inline size_t place_of(const sets &s, size_t set, size_t e,
                                         size_t *channel)
{
    const size_t pixel = e / s.width;
    *channel = set % s.groups * s.width + e % s.width;
    return (set / s.groups * s.pixels + pixel) * s.channels + *channel;
}

template <typename T>
__global__ void set_kernel(sets s, double epsilon, int activation, size_t count,
                           tensors<T> t)
{
    __shared__ double room[32];
    const size_t set = blockIdx.x, size = s.pixels * s.width;
    double sum = 0, squares = 0;
    size_t c;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x)
        sum += (double)to_float(t.x[place_of(s, set, e, &c)]);
    const double mean = block_sum(sum, room) / (double)size;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const double d = (double)to_float(t.x[place_of(s, set, e, &c)]) - mean;
        squares += d * d;
    }
    const double variance = block_sum(squares, room) / (double)size;
    const float inverse = (float)(1 / sqrt(variance + epsilon));
    const float middle = (float)mean;
    if (t.saved != nullptr && threadIdx.x == 0) {
        t.saved[set] = middle;
        t.saved[count + set] = inverse;
    }
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float hat = (to_float(t.x[i]) - middle) * inverse;
        from_float(activate(activation, hat * t.weight[c] + t.bias[c]),
                   &t.y[i]);
    }
}

/* dx = (g - mean g - hat mean(g hat)) / deviation, g = dy scale. */
template <typename T>
__global__ void set_back_kernel(sets s, bool masks, size_t count, tensors<T> t)
{
    __shared__ float room[32];
    const size_t set = blockIdx.x, size = s.pixels * s.width;
    const float mean = t.saved[set], inverse = t.saved[count + set];
    float first = 0, second = 0;
    size_t c;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float d =
            masks && !(to_float(t.y[i]) > 0) ? 0 : to_float(t.dy[i]);
        const float g = d * t.weight[c];
        first += g;
        second += g * (to_float(t.x[i]) - mean) * inverse;
    }
    first = block_sum(first, room) / (float)size;
    second = block_sum(second, room) / (float)size;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float d =
            masks && !(to_float(t.y[i]) > 0) ? 0 : to_float(t.dy[i]);
        const float hat = (to_float(t.x[i]) - mean) * inverse;
        const float v = (d * t.weight[c] - first - hat * second) * inverse;
        from_float(t.adds_data ? to_float(t.dx[i]) + v : v, &t.dx[i]);
    }
}

/* ---- BATCH: sums down the columns */

/* In float64: the variance is a difference of two such sums. */
template <typename T> struct batch_sums {
    typedef double partial;
    const T *x;
    size_t width;
    template <int N>
    __device__ void at(size_t row, size_t column, double (&sums)[2][N]) const
    {
        float v[N];
        load(x, row * width + column, v);
        for (int k = 0; k < N; k++) {
            sums[0][k] += (double)v[k];
            sums[1][k] += (double)v[k] * (double)v[k];
        }
    }
};

struct batch_put {
    size_t channels;
    double size, epsilon, momentum;
    float *buffers, *saved;
    __device__ void operator()(size_t c, const double *sums) const
    {
        const double mean = sums[0] / size;
        const double square = sums[1] / size - mean * mean;
        const double variance = square < 0 ? 0 : square;
        const double unbiased =
            size > 1 ? variance * size / (size - 1) : variance;
        saved[c] = (float)mean;
        saved[channels + c] = (float)(1 / sqrt(variance + epsilon));
        if (momentum != 0) {
            const double m = (double)buffers[c];
            const double v = (double)buffers[channels + c];
            buffers[c] = (float)(m + momentum * (mean - m));
            buffers[channels + c] = (float)(v + momentum * (unbiased - v));
        }
    }
};

/* From saved means and 1 / deviations, or from the buffers. */
template <typename T> struct batch_apply {
    size_t channels;
    int activation;
    float epsilon;
    const float *saved, *buffers, *scale, *shift;
    const T *x;
    T *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        load(x, i, v);
        size_t c = i % channels;
        for (int k = 0; k < N; k++, c = c + 1 == channels ? 0 : c + 1) {
            const float mean = saved != nullptr ? saved[c] : buffers[c];
            const float inverse = saved != nullptr
                                      ? saved[channels + c]
                                      : rsqrtf(buffers[channels + c] + epsilon);
            v[k] = activate(activation,
                            (v[k] - mean) * inverse * scale[c] + shift[c]);
        }
        store(v, y, i);
    }
};

template <typename T> static void batch_forward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const bool training = (a->flags & KITH_STATISTICS) != 0;
    const size_t positions = a->rows * op->pixels;
    const tensors<T> t(a);
    if (training)
        columns<2, wide<T>::value>(
            "batch statistics", positions, op->channels,
            even_rows(t.x, op->channels), batch_sums<T>{t.x, op->channels},
            batch_put{op->channels, (double)positions, op->epsilon,
                      op->momentum, t.buffers, t.saved});
    each<wide<T>::value>(
        "a batch norm", positions * op->channels, all_aligned(t.x, t.y),
        batch_apply<T>{op->channels, op->activation, (float)op->epsilon,
                       training ? t.saved : nullptr, t.buffers, t.weight,
                       t.bias, t.x, t.y});
}

static unsigned set_threads(size_t size)
{
    return size <= 256 ? 64 : size <= 4096 ? 256 : 512;
}

template <typename T> static void norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0)
        return;
    if (op->kind == KITH_NORM_BATCH) {
        batch_forward<T>(a);
        return;
    }
    if (op->kind == KITH_NORM_LAYER) {
        rows_forward<true, T>(a);
        return;
    }
    const sets s = sets_of(op);
    const size_t count = a->rows * s.groups;
    launch(set_kernel<T>, dim3((unsigned)count),
           dim3(set_threads(s.pixels * s.width)), 0, stream(), s, op->epsilon,
           op->activation, count, tensors<T>(a));
    launched("a norm");
}

/* ---- gradients of scale and shift, for every kind; and for BATCH the means
 * that dx needs */

/* LAYER: a set is a row, whose numbers are loaded once. */
template <typename T, bool LAYER> struct gain_sums {
    sets s;
    enum kith_norm_kind kind;
    bool masks;
    size_t count;
    const T *x, *y, *dy;
    const float *saved;
    typedef float partial;
    __device__ size_t set_of(size_t row, size_t c) const
    {
        return kind == KITH_NORM_BATCH
                   ? c
                   : row / s.pixels * s.groups + c / s.width;
    }
    template <int N>
    __device__ void at(size_t row, size_t c, float (&sums)[2][N]) const
    {
        const size_t i = row * s.channels + c;
        float v[N], d[N], u[N] = {};
        float mean = LAYER ? saved[row] : 0.0f;
        float inverse = LAYER ? saved[count + row] : 0.0f;
        load(x, i, v);
        load(dy, i, d);
        if (masks)
            load(y, i, u);
        for (int k = 0; k < N; k++) {
            if (!LAYER) {
                const size_t set = set_of(row, c + k);
                mean = saved[set];
                inverse = saved[count + set];
            }
            const float g = masks && !(u[k] > 0) ? 0 : d[k];
            sums[0][k] += g;
            sums[1][k] += g * ((v[k] - mean) * inverse);
        }
    }
};

struct gain_put {
    float *shift, *scale, *sums; /* sums (2, channels), or NULL */
    size_t channels;
    bool adds;
    __device__ void operator()(size_t c, const double *s) const
    {
        if (shift != nullptr)
            shift[c] = (adds ? shift[c] : 0.0f) + (float)s[0];
        if (scale != nullptr)
            scale[c] = (adds ? scale[c] : 0.0f) + (float)s[1];
        if (sums != nullptr) {
            sums[c] = (float)s[0];
            sums[channels + c] = (float)s[1];
        }
    }
};

template <typename T>
static void gain_gradient(size_t positions, size_t channels,
                          const gain_sums<T, false> &f, const gain_put &put)
{
    const char *const name = "a norm's gradient";
    const bool even = even_rows(f.x, channels) && aligned(f.dy, 16) &&
                      (!f.masks || aligned(f.y, 16));
    if (f.kind == KITH_NORM_LAYER)
        columns<2, wide<T>::value>(name, positions, channels, even,
                                   gain_sums<T, true>{f.s, f.kind, f.masks,
                                                      f.count, f.x, f.y, f.dy,
                                                      f.saved},
                                   put);
    else
        columns<2, wide<T>::value>(name, positions, channels, even, f, put);
}

template <typename T> struct batch_back {
    size_t channels;
    bool masks, adds;
    float size;
    const float *saved, *scale, *sums;
    const T *x, *y, *dy;
    T *dx;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N], d[N], u[N] = {}, old[N] = {};
        load(x, i, v);
        load(dy, i, d);
        if (masks)
            load(y, i, u);
        if (adds)
            load(dx, i, old);
        size_t c = i % channels;
        for (int k = 0; k < N; k++, c = c + 1 == channels ? 0 : c + 1) {
            const float inverse = saved[channels + c];
            const float hat = (v[k] - saved[c]) * inverse;
            const float g = masks && !(u[k] > 0) ? 0 : d[k];
            v[k] = old[k] +
                   (g - sums[c] / size - hat * sums[channels + c] / size) *
                       scale[c] * inverse;
        }
        store(v, dx, i);
    }
};

template <typename T> static void norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0)
        return;
    const bool batch = op->kind == KITH_NORM_BATCH;
    const bool masks = op->activation == KITH_ACTIVATION_RELU;
    const sets s = sets_of(op);
    const size_t positions = a->rows * op->pixels;
    const size_t count = batch ? op->channels : a->rows * s.groups;
    const tensors<T> t(a);
    float *sums = nullptr;
    if (batch && t.dx != nullptr) {
        sums =
            (float *)scratch_of(SCRATCH_INDEX, 2 * op->channels * sizeof *sums);
        if (sums == nullptr)
            return;
    }
    if (sums != nullptr || t.dweight != nullptr || t.dbias != nullptr)
        gain_gradient(
            positions, op->channels,
            gain_sums<T, false>{s, op->kind, masks, count, t.x, t.y, t.dy,
                                t.saved},
            gain_put{t.dbias, t.dweight, sums, op->channels, t.adds_weights});
    if (t.dx == nullptr)
        return;
    if (batch) {
        each<wide<T>::value>(
            "a batch norm's way back", positions * op->channels,
            all_aligned(t.x, t.dy, t.dx, masks ? t.y : t.dy),
            batch_back<T>{op->channels, masks, t.adds_data, (float)positions,
                          t.saved, t.weight, sums, t.x, t.y, t.dy, t.dx});
        return;
    }
    if (op->kind == KITH_NORM_LAYER) {
        rows_backward<true, T>(a);
        return;
    }
    launch(set_back_kernel<T>, dim3((unsigned)count),
           dim3(set_threads(s.pixels * s.width)), 0, stream(), s, masks, count,
           t);
    launched("a norm's way back");
}

KITH_KERNEL(norm, nullptr, norm, norm_backward)
} // namespace gpu
