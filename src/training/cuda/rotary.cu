/* Rotary positions: a thread turns one pair of every head of a token, so that
 * the sine, in float64 because positions are large, is computed once. */
#include "state.cuh"

namespace gpu
{
template <typename T>
__global__ void rotary_kernel(size_t tokens, struct kith_attention op,
                              double sign, const T *from, T *to)
{
    const size_t size = op.width / op.heads, half = size / 2;
    const size_t step = thread_count();
    for (size_t n = thread_index(); n < tokens * half; n += step) {
        const size_t token = n / half, i = n % half;
        const double angle = (double)(token % op.context) *
                             pow(10000.0, -2.0 * (double)i / (double)size);
        const float c = (float)cos(angle), s = (float)(sign * sin(angle));
        for (size_t head = 0; head < 2 * op.heads; head++) {
            const size_t at = token * 3 * op.width + head * size + i;
            const float x = to_float(from[at]);
            const float y = to_float(from[at + half]);
            from_float(x * c - y * s, &to[at]);
            from_float(y * c + x * s, &to[at + half]);
        }
        const size_t v = token * 3 * op.width + 2 * op.width;
        for (size_t j = i; from != to && j < op.width; j += half)
            to[v + j] = from[v + j];
    }
}

template <typename T>
static void turn(const struct kith_arguments *a, double sign, const void *from,
                 void *to)
{
    const struct kith_attention *op = (const struct kith_attention *)a->shape;
    const call c;
    const size_t tokens = a->rows * op->context;
    const size_t n = tokens * (op->width / op->heads / 2);
    if (!c.well() || n == 0)
        return;
    launch(rotary_kernel<T>, dim3(blocks_for(n, 128)), dim3(128), 0, stream(),
           tokens, *op, sign, (const T *)from, (T *)to);
    launched("rotary positions");
}

template <typename T> static void rotary(const struct kith_arguments *a)
{
    turn<T>(a, 1, a->x, a->y);
}

template <typename T>
static void rotary_backward(const struct kith_arguments *a)
{
    turn<T>(a, -1, a->dy, a->dx);
}
KITH_KERNEL(rotary, nullptr, rotary, rotary_backward)
} // namespace gpu
