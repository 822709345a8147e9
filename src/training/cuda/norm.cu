/* Norms. A set is what shares a mean: for LAYER a row, which one warp takes;
 * for GROUP neighbours of one row, which one block takes; for BATCH a channel,
 * whose sums run down the columns. Where a set is one warp's or one block's,
 * the mean comes first and squares are of what is left, as on the CPU. */
#include "columns.cuh"
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
                           const T *x, const float *scale, const float *shift,
                           float *saved, T *y)
{
    __shared__ double room[32];
    const size_t set = blockIdx.x, size = s.pixels * s.width;
    double sum = 0, squares = 0;
    size_t c;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x)
        sum += (double)to_float(x[place_of(s, set, e, &c)]);
    const double mean = block_sum(sum, room) / (double)size;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const double d = (double)to_float(x[place_of(s, set, e, &c)]) - mean;
        squares += d * d;
    }
    const double variance = block_sum(squares, room) / (double)size;
    const float inverse = (float)(1 / sqrt(variance + epsilon));
    const float middle = (float)mean;
    if (saved != nullptr && threadIdx.x == 0) {
        saved[set] = middle;
        saved[count + set] = inverse;
    }
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float hat = (to_float(x[i]) - middle) * inverse;
        from_float(activate(activation, hat * scale[c] + shift[c]), &y[i]);
    }
}

/* dx = (g - mean g - hat mean(g hat)) / deviation, g = dy scale. */
template <typename T>
__global__ void set_back_kernel(sets s, bool masks, bool adds, size_t count,
                                const T *x, const float *scale, const T *y,
                                const float *saved, const T *dy, T *dx)
{
    __shared__ float room[32];
    const size_t set = blockIdx.x, size = s.pixels * s.width;
    const float mean = saved[set], inverse = saved[count + set];
    float first = 0, second = 0;
    size_t c;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float d = masks && !(to_float(y[i]) > 0) ? 0 : to_float(dy[i]);
        const float g = d * scale[c];
        first += g;
        second += g * (to_float(x[i]) - mean) * inverse;
    }
    first = block_sum(first, room) / (float)size;
    second = block_sum(second, room) / (float)size;
    for (size_t e = threadIdx.x; e < size; e += blockDim.x) {
        const size_t i = place_of(s, set, e, &c);
        const float d = masks && !(to_float(y[i]) > 0) ? 0 : to_float(dy[i]);
        const float hat = (to_float(x[i]) - mean) * inverse;
        const float v = (d * scale[c] - first - hat * second) * inverse;
        from_float(adds ? to_float(dx[i]) + v : v, &dx[i]);
    }
}

/* ---- LAYER: a warp per row, which its L1 cache keeps between the passes */

enum { ROW_WARPS = 4 };

template <int N, typename T>
__global__ void row_kernel(size_t rows, unsigned width, float epsilon,
                           int activation, const T *x, const float *scale,
                           const float *shift, float *saved, T *y)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const T *const in = x + row * width;
    float v[N], a[N], b[N], sum = 0, squares = 0;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        for (int k = 0; k < N; k++)
            sum += v[k];
    }
    const float mean = warp_sum(sum) / (float)width;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        for (int k = 0; k < N; k++)
            squares += (v[k] - mean) * (v[k] - mean);
    }
    const float variance = warp_sum(squares) / (float)width;
    const float inverse = 1 / sqrtf(variance + epsilon);
    if (saved != nullptr && lane == 0) {
        saved[row] = mean;
        saved[rows + row] = inverse;
    }
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        load(scale, i, a);
        load(shift, i, b);
        for (int k = 0; k < N; k++)
            v[k] = activate(activation, (v[k] - mean) * inverse * a[k] + b[k]);
        store(v, y + row * width, i);
    }
}

template <int N, typename T>
__global__ void row_back_kernel(size_t rows, unsigned width, bool masks,
                                bool adds, const T *x, const float *scale,
                                const T *y, const float *saved, const T *dy,
                                T *dx)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const size_t from = row * width;
    const float mean = saved[row], inverse = saved[rows + row];
    float v[N], g[N], a[N], u[N] = {}, old[N] = {}, first = 0, second = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = lane * N; i < width; i += 32 * N) {
            load(x, from + i, v);
            load(dy, from + i, g);
            load(scale, i, a);
            if (masks)
                load(y, from + i, u);
            if (adds && pass == 1)
                load(dx, from + i, old);
            for (int k = 0; k < N; k++) {
                g[k] = masks && !(u[k] > 0) ? 0 : g[k] * a[k];
                v[k] = (v[k] - mean) * inverse;
                if (pass == 0) {
                    first += g[k];
                    second += g[k] * v[k];
                } else {
                    v[k] = old[k] + (g[k] - first - v[k] * second) * inverse;
                }
            }
            if (pass == 1)
                store(v, dx, from + i);
        }
        if (pass == 0) {
            first = warp_sum(first) / (float)width;
            second = warp_sum(second) / (float)width;
        }
    }
}

static void told_rows(bool even, size_t rows, size_t width)
{
    if (!even && rows * width >= SLOW_VALUES)
        took(SLOW_NORM,
             "a layer norm of %zu channels whose rows, scale or shift do not "
             "begin at multiples of 16 bytes: one at a time",
             width);
}

static dim3 row_grid(size_t rows)
{
    return dim3((unsigned)((rows + ROW_WARPS - 1) / ROW_WARPS));
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
    if (training)
        columns<2, wide<T>::value>(
            "batch statistics", positions, op->channels,
            even_rows((const T *)a->x, op->channels),
            batch_sums<T>{(const T *)a->x, op->channels},
            batch_put{op->channels, (double)positions, op->epsilon,
                      op->momentum, (float *)a->buffers, (float *)a->saved});
    each<wide<T>::value>(
        "a batch norm", positions * op->channels,
        aligned(a->x, 16) && aligned(a->y, 16),
        batch_apply<T>{op->channels, op->activation, (float)op->epsilon,
                       training ? (const float *)a->saved : nullptr,
                       (const float *)a->buffers, (const float *)a->weight,
                       (const float *)a->bias, (const T *)a->x, (T *)a->y});
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
        const int N = wide<T>::value;
        const bool even = even_rows((const T *)a->x, op->channels) &&
                          aligned(a->y, 16) && aligned(a->weight, 16) &&
                          aligned(a->bias, 16);
        told_rows(even, a->rows, op->channels);
        launch(even ? row_kernel<N, T> : row_kernel<1, T>, row_grid(a->rows),
               dim3(ROW_WARPS * 32), 0, stream(), a->rows,
               (unsigned)op->channels, (float)op->epsilon, (int)op->activation,
               (const T *)a->x, (const float *)a->weight,
               (const float *)a->bias, (float *)a->saved, (T *)a->y);
        launched("a layer norm");
        return;
    }
    const sets s = sets_of(op);
    const size_t count = a->rows * s.groups, size = s.pixels * s.width;
    const unsigned threads = size <= 256 ? 64 : size <= 4096 ? 256 : 512;
    launch(set_kernel<T>, dim3((unsigned)count), dim3(threads), 0, stream(), s,
           op->epsilon, op->activation, count, (const T *)a->x,
           (const float *)a->weight, (const float *)a->bias, (float *)a->saved,
           (T *)a->y);
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
    const bool adds = (a->flags & KITH_ADD_DATA) != 0;
    const sets s = sets_of(op);
    const size_t positions = a->rows * op->pixels;
    const size_t count = batch ? op->channels : a->rows * s.groups;
    float *sums = nullptr;
    if (batch && a->dx != nullptr) {
        sums =
            (float *)scratch_of(SCRATCH_INDEX, 2 * op->channels * sizeof *sums);
        if (sums == nullptr)
            return;
    }
    if (sums != nullptr || a->dweight != nullptr || a->dbias != nullptr)
        gain_gradient(
            positions, op->channels,
            gain_sums<T, false>{s, op->kind, masks, count, (const T *)a->x,
                                (const T *)a->y, (const T *)a->dy,
                                (const float *)a->saved},
            gain_put{(float *)a->dbias, (float *)a->dweight, sums, op->channels,
                     (a->flags & KITH_ADD_WEIGHTS) != 0});
    if (a->dx == nullptr)
        return;
    if (batch) {
        each<wide<T>::value>(
            "a batch norm's way back", positions * op->channels,
            aligned(a->x, 16) && aligned(a->dy, 16) && aligned(a->dx, 16) &&
                (!masks || aligned(a->y, 16)),
            batch_back<T>{op->channels, masks, adds, (float)positions,
                          (const float *)a->saved, (const float *)a->weight,
                          sums, (const T *)a->x, (const T *)a->y,
                          (const T *)a->dy, (T *)a->dx});
        return;
    }
    if (op->kind == KITH_NORM_LAYER) {
        const int N = wide<T>::value;
        const bool even = even_rows((const T *)a->x, op->channels) &&
                          aligned(a->dy, 16) && aligned(a->dx, 16) &&
                          aligned(a->weight, 16) &&
                          (!masks || aligned(a->y, 16));
        told_rows(even, a->rows, op->channels);
        launch(even ? row_back_kernel<N, T> : row_back_kernel<1, T>,
               row_grid(a->rows), dim3(ROW_WARPS * 32), 0, stream(), a->rows,
               (unsigned)op->channels, masks, adds, (const T *)a->x,
               (const float *)a->weight, (const T *)a->y,
               (const float *)a->saved, (const T *)a->dy, (T *)a->dx);
        launched("a layer norm's way back");
        return;
    }
    const size_t size = s.pixels * s.width;
    const unsigned threads = size <= 256 ? 64 : size <= 4096 ? 256 : 512;
    launch(set_back_kernel<T>, dim3((unsigned)count), dim3(threads), 0,
           stream(), s, masks, adds, count, (const T *)a->x,
           (const float *)a->weight, (const T *)a->y, (const float *)a->saved,
           (const T *)a->dy, (T *)a->dx);
    launched("a norm's way back");
}

KITH_KERNEL(norm, nullptr, norm, norm_backward)
} // namespace gpu
