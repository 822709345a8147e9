/* Flat float32 vectors: backend.h's arithmetic, conversions and optimisers.
 *
 * What two peers must agree on (mix and its like) is rounded as the CPU rounds
 * it: a product, then a sum, never one fused; deltas are the same bits on both
 * sides of a pair, whatever computes them. Sums of them are float64 in a fixed
 * order, but not the CPU's order. */
#include "reduce.cuh"
#include "state.cuh"

namespace gpu
{
/* ---- elementwise */

struct scale_each {
    float factor, *x;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        load(x, i, v);
        for (int k = 0; k < N; k++)
            v[k] = factor * v[k];
        store(v, x, i);
    }
};

void scale(size_t n, double factor, void *x)
{
    const call c;
    if (!c.well() || n == 0) /* it may be where another slot begins */
        return;
    const size_t bytes = n * sizeof(float);
    float *const to = (float *)changeable(x, bytes);
    each("scaling", n, aligned(to, 16), scale_each{(float)factor, to});
    wrote(x, bytes);
}

struct add_each {
    float factor;
    const float *x;
    float *y;
    template <int N> __device__ void at(size_t i) const
    {
        float a[N], b[N];
        load(x, i, a);
        load(y, i, b);
        for (int k = 0; k < N; k++)
            b[k] = __fadd_rn(b[k], __fmul_rn(factor, a[k]));
        store(b, y, i);
    }
};

void add(size_t n, double factor, const void *x, void *y)
{
    const call c;
    if (!c.well() || n == 0)
        return;
    const size_t bytes = n * sizeof(float);
    const bool waits = of_the_host(x);
    if (waits)
        end_segment();
    const float *const from = (const float *)readable(x, bytes);
    float *const to = (float *)changeable(y, bytes);
    each("adding", n, all_aligned(from, to), add_each{(float)factor, from, to});
    wrote(y, bytes);
    if (waits)
        check(cudaStreamSynchronize(stream()), "adding");
}

struct bytes_each {
    const uint8_t *bytes;
    float *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        for (int k = 0; k < N; k++)
            v[k] = (float)bytes[i + k] / 255.0f;
        store(v, y, i);
    }
};

void from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    const call c;
    if (!c.well())
        return;
    float *const to = (float *)writable(y, n * sizeof(float));
    each("converting", n, aligned(to, 16), bytes_each{bytes, to});
    wrote(y, n * sizeof(float));
}

template <typename A, typename B> struct convert_each {
    const A *x;
    B *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        load(x, i, v);
        store(v, y, i);
    }
};

template <typename A, typename B>
static void convert(size_t n, const void *x, void *y)
{
    const call c;
    if (c.well())
        each<8>("converting", n, all_aligned(x, y),
                convert_each<A, B>{(const A *)x, (B *)y});
}

void narrow(size_t n, const void *elements, void *activations)
{
    convert<float, bf16>(n, elements, activations);
}

void widen(size_t n, const void *activations, void *elements)
{
    convert<bf16, float>(n, activations, elements);
}

/* ---- mixing */

/* x <- base + delta; base may be x. */
template <typename R> struct mix_each {
    float weight;
    const R *received, *sent;
    const float *base;
    float *x;
    template <int N> __device__ double at(size_t i) const
    {
        float r[N], s[N], v[N];
        double sum = 0;
        load(received, i, r);
        load(sent, i, s);
        load(base, i, v);
        for (int k = 0; k < N; k++) {
            const float delta = __fmul_rn(weight, __fsub_rn(r[k], s[k]));
            v[k] = __fadd_rn(v[k], delta);
            sum += (double)delta;
        }
        store(v, x, i);
        return sum;
    }
};

template <typename R>
static double mix_with(size_t n, double weight, const R *received,
                       const R *sent, const void *base, void *x)
{
    const call c;
    if (!c.well())
        return (double)NAN;
    if (n == 0)
        return 0;
    const R *const r = (const R *)readable(received, n * sizeof(R));
    const R *const s = (const R *)readable(sent, n * sizeof(R));
    const size_t bytes = n * sizeof(float);
    float *const to =
        (float *)(base == x ? changeable(x, bytes) : writable(x, bytes));
    const float *const from =
        base == x ? to : (const float *)readable(base, bytes);
    reduce<wide<R>::value>("mixing", n, all_aligned(r, s, from, to),
                           mix_each<R>{(float)weight, r, s, from, to});
    wrote(x, bytes);
    return value();
}

double mix(size_t n, double weight, const void *received, const void *sent,
           void *x)
{
    return mix_with(n, weight, (const float *)received, (const float *)sent, x,
                    x);
}

double mix_bf16(size_t n, double weight, const uint16_t *received,
                const uint16_t *sent, void *x)
{
    return mix_with(n, weight, (const bf16 *)(const void *)received,
                    (const bf16 *)(const void *)sent, x, x);
}

double swap_mix(size_t n, double weight, const void *received, const void *sent,
                const void *base, void *x)
{
    return mix_with(n, weight, (const float *)received, (const float *)sent,
                    base, x);
}

/* ---- sums and the gate */

struct sum_each {
    const float *x;
    template <int N> __device__ double at(size_t i) const
    {
        float v[N];
        double sum = 0;
        load(x, i, v);
        for (int k = 0; k < N; k++)
            sum += (double)v[k];
        return sum;
    }
};

double sum(size_t n, const void *x)
{
    const call c;
    if (!c.well())
        return (double)NAN;
    const float *const v = (const float *)readable(x, n * sizeof(float));
    reduce("summing", n, aligned(v, 16), sum_each{v});
    return value();
}

struct distance_each {
    const float *x, *y;
    template <int N> __device__ double at(size_t i) const
    {
        float v[N], u[N] = {};
        double sum = 0;
        load(x, i, v);
        if (y != nullptr)
            load(y, i, u);
        for (int k = 0; k < N; k++) {
            const double d = (double)(v[k] - u[k]);
            sum += d * d;
        }
        return sum;
    }
};

double distance_squared(size_t n, const void *x, const void *y)
{
    const call c;
    if (!c.well())
        return (double)NAN;
    const float *const v = (const float *)readable(x, n * sizeof(float));
    const float *const u =
        y == nullptr ? nullptr : (const float *)readable(y, n * sizeof(float));
    reduce("measuring a distance", n, all_aligned(v, u), distance_each{v, u});
    return value();
}

struct finite_each {
    const float *x;
    template <int N> __device__ double at(size_t i) const
    {
        float v[N];
        int bad = 0;
        load(x, i, v);
        for (int k = 0; k < N; k++)
            bad += !(v[k] - v[k] <= 0);
        return bad;
    }
};

bool finite(size_t n, const void *x)
{
    const call c;
    if (!c.well())
        return false;
    const float *const v = (const float *)readable(x, n * sizeof(float));
    reduce("checking", n, aligned(v, 16), finite_each{v});
    return value() <= 0;
}

/* ---- clipping: the norm stays on the device */

__global__ void norm_kernel(numbers *found)
{
    found->norm = sqrt(found->value);
}

struct clip_each {
    double limit;
    const numbers *found;
    float *g;
    template <int N> __device__ void at(size_t i) const
    {
        if (!(found->norm > limit))
            return;
        const float factor = (float)(limit / found->norm);
        float v[N];
        load(g, i, v);
        for (int k = 0; k < N; k++)
            v[k] = factor * v[k];
        store(v, g, i);
    }
};

double clip(size_t n, double limit, void *g)
{
    const call c;
    if (!c.well())
        return (double)NAN;
    float *const v = (float *)g;
    reduce("clipping", n, aligned(v, 16), distance_each{v, nullptr});
    launch(norm_kernel, dim3(1), dim3(1), 0, stream(), found());
    each("clipping", n, aligned(v, 16), clip_each{limit, found(), v});
    if (in_step())
        return 0;
    numbers got;
    return collect(&got) ? got.norm : (double)NAN;
}

/* ---- optimisers */

template <int N>
static __device__ void note_finite(const float (&v)[N], numbers *found)
{
    int bad = 0;
    for (int k = 0; k < N; k++)
        bad |= !(v[k] - v[k] <= 0);
    if (bad)
        (void)atomicOr(&found->bad, 1u);
}

/* Whether every new value is finite; within a step `bad` gathers. */
template <typename F> static bool optimise(size_t n, bool even, const F &f)
{
    numbers got;
    if (!in_step())
        forget_numbers();
    each("an optimiser's step", n, even, f);
    return in_step() || (collect(&got) && got.bad == 0);
}

__device__ float moment(float value)
{
    return fabsf(value) < KITH_MOMENT_LEAST ? 0 : value;
}

struct sgd_each {
    float rate, momentum, decay;
    bool nesterov;
    const float *gradient;
    float *velocity, *x;
    numbers *found;
    template <int N> __device__ void at(size_t i) const
    {
        float g[N], v[N] = {}, w[N];
        load(gradient, i, g);
        load(x, i, w);
        if (momentum > 0)
            load(velocity, i, v);
        for (int k = 0; k < N; k++) {
            const float slope = g[k] + decay * w[k];
            v[k] = momentum > 0 ? moment(momentum * v[k] + slope) : slope;
            const float direction =
                momentum > 0 && nesterov ? slope + momentum * v[k] : v[k];
            w[k] = w[k] - rate * direction;
        }
        if (momentum > 0)
            store(v, velocity, i);
        store(w, x, i);
        note_finite(w, found);
    }
};

bool sgd(const struct kith_sgd *s)
{
    const call c;
    if (!c.well())
        return false;
    const bool even = all_aligned(s->gradient, s->x) &&
                      (s->momentum <= 0 || aligned(s->velocity, 16));
    return optimise(s->n, even,
                    sgd_each{(float)s->rate, (float)s->momentum,
                             (float)s->decay, s->nesterov,
                             (const float *)s->gradient, (float *)s->velocity,
                             (float *)s->x, found()});
}

struct adamw_each {
    float b1, b2, left1, left2, fix1, fix2, rate, small, kept;
    const float *gradient;
    float *first, *second, *x;
    numbers *found;
    template <int N> __device__ void at(size_t i) const
    {
        float g[N], m[N], v[N], w[N];
        load(gradient, i, g);
        load(first, i, m);
        load(second, i, v);
        load(x, i, w);
        for (int k = 0; k < N; k++) {
            m[k] = moment(b1 * m[k] + left1 * g[k]);
            v[k] = b2 * v[k] + left2 * g[k] * g[k];
            w[k] = kept * w[k] -
                   rate * (m[k] * fix1 / (sqrtf(v[k] * fix2) + small));
        }
        store(m, first, i);
        store(v, second, i);
        store(w, x, i);
        note_finite(w, found);
    }
};

bool adamw(const struct kith_adamw *a)
{
    const call c;
    if (!c.well())
        return false;
    const bool even = all_aligned(a->g, a->m, a->v, a->x);
    const double steps = (double)a->t;
    return optimise(a->n, even,
                    adamw_each{(float)a->beta1, (float)a->beta2,
                               (float)(1 - a->beta1), (float)(1 - a->beta2),
                               (float)(1 / (1 - pow(a->beta1, steps))),
                               (float)(1 / (1 - pow(a->beta2, steps))),
                               (float)a->rate, (float)a->epsilon,
                               (float)(1 - a->rate * a->decay),
                               (const float *)a->g, (float *)a->m,
                               (float *)a->v, (float *)a->x, found()});
}
} // namespace gpu
