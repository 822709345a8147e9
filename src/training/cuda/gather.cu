/* A few coordinates of a vector, by their places, which the host has drawn into
 * shared memory: read across the bus, once. Rounded as mix is. */
#include "reduce.cuh"
#include "state.cuh"

namespace gpu
{
struct gather_each {
    const uint32_t *places;
    const float *x;
    float *y;
    __device__ void operator()(size_t i) const
    {
        y[i] = x[places[i]];
    }
};

/* x is whole vectors of the device: it has no other copy. */
void gather(size_t n, const uint32_t *places, const void *x, void *y)
{
    const call c;
    if (!c.well() || n == 0)
        return;
    end_segment();
    const size_t bytes = n * sizeof(float);
    each_index(
        "gathering", n, 256,
        gather_each{(const uint32_t *)readable(places, n * sizeof *places),
                    (const float *)x, (float *)writable(y, bytes)});
    wrote(y, bytes);
    check(cudaStreamSynchronize(stream()), "gathering");
}

struct mix_at_each {
    float weight;
    const uint32_t *places;
    const float *received, *sent;
    float *x;
    template <int N> __device__ double at(size_t i) const
    {
        double sum = 0;
        for (int k = 0; k < N; k++) {
            float *const v = x + places[i + k];
            const float delta =
                __fmul_rn(weight, __fsub_rn(received[i + k], sent[i + k]));
            *v = __fadd_rn(*v, delta);
            sum += (double)delta;
        }
        return sum;
    }
};

double mix_at(size_t n, double weight, const uint32_t *places,
              const void *received, const void *sent, void *x)
{
    const call c;
    if (!c.well())
        return (double)NAN;
    if (n == 0)
        return 0;
    const size_t bytes = n * sizeof(float);
    reduce<1>(
        "mixing coordinates", n, true,
        mix_at_each{(float)weight,
                    (const uint32_t *)readable(places, n * sizeof *places),
                    (const float *)readable(received, bytes),
                    (const float *)readable(sent, bytes), (float *)x});
    return value();
}
} // namespace gpu
