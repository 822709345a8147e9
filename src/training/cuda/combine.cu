/* What algorithms make of whole vectors in one pass: combine, and the direction
 * of Adam's moments. Rounded as the CPU rounds them: every product, sum,
 * quotient and root by itself. */
#include "reduce.cuh"
#include "state.cuh"

namespace gpu
{
struct term {
    float factor;
    const float *plus, *minus; /* minus: or NULL */
};

/* One update; returns what `change` adds up. */
struct update_each {
    bool reads, asks, squared, plain; /* plain: a term is added to y as it is */
    unsigned count;
    float own, *y;
    term terms[KITH_TERMS_MAX];
    template <int N> __device__ double at(size_t i) const
    {
        float old[N] = {}, value[N], added[N] = {};
        double sum = 0;
        if (reads || asks)
            load(y, i, old);
        for (int k = 0; k < N; k++)
            value[k] = __fmul_rn(own, old[k]);
        for (unsigned t = 0; t < count; t++) {
            added_by(terms[t], i, added);
            for (int k = 0; k < N; k++)
                value[k] =
                    t == 0 && !reads ? added[k] : __fadd_rn(value[k], added[k]);
        }
        for (int k = 0; k < N; k++)
            sum += (double)(plain ? added[k] : __fsub_rn(value[k], old[k]));
        store(value, y, i);
        return sum;
    }
    template <int N>
    __device__ void added_by(const term &t, size_t i, float (&v)[N]) const
    {
        float minus[N];
        load(t.plus, i, v);
        if (t.minus != nullptr) {
            load(t.minus, i, minus);
            for (int k = 0; k < N; k++)
                v[k] = __fsub_rn(v[k], minus[k]);
        }
        for (int k = 0; k < N; k++) {
            v[k] = __fmul_rn(t.factor, v[k]);
            v[k] = squared ? __fmul_rn(v[k], v[k]) : v[k];
        }
    }
};
/* A kernel's arguments, in every CUDA. */
static_assert(sizeof(update_each) < 4096, "an update is an argument");

static const float *source(size_t n, const void *x, bool *waits)
{
    if (of_the_host(x)) {
        end_segment();
        *waits = true;
    }
    return (const float *)readable(x, n * sizeof(float));
}

/* The caller waits for what it read of the host's: *waits. */
static void update(size_t n, const struct kith_update *u, bool *waits)
{
    const size_t bytes = n * sizeof(float);
    update_each f = {};
    f.reads = u->own < 0 || u->own > 0;
    f.asks = u->change != nullptr;
    f.squared = u->squared;
    f.plain = u->own >= 1 && u->own <= 1 && u->count == 1;
    f.count = u->count;
    f.own = (float)u->own;
    bool even = true;
    for (unsigned t = 0; t < u->count; t++) {
        term *const to = &f.terms[t];
        to->factor = (float)u->terms[t].factor;
        to->plus = source(n, u->terms[t].plus, waits);
        if (u->terms[t].minus != nullptr)
            to->minus = source(n, u->terms[t].minus, waits);
        even = even && all_aligned(to->plus, to->minus);
    }
    f.y = (float *)(f.reads || f.asks ? changeable(u->y, bytes)
                                      : writable(u->y, bytes));
    even = even && aligned(f.y, 16);
    if (f.asks)
        reduce("combining", n, even, f);
    else
        each("combining", n, even, f);
    wrote(u->y, bytes);
    if (f.asks)
        *u->change = value();
}

void combine(size_t n, unsigned count, const struct kith_update *updates)
{
    const call c;
    bool waits = false;
    for (unsigned u = 0; u < count; u++) {
        if (updates[u].change != nullptr)
            *updates[u].change = c.well() ? 0 : (double)NAN;
        if (c.well() && n > 0)
            update(n, &updates[u], &waits);
    }
    if (waits)
        check(cudaStreamSynchronize(stream()), "combining");
}

struct direction_each {
    double beta1, beta2, left, epsilon;
    const float *first, *second;
    float *gradient;
    template <int N> __device__ void at(size_t i) const
    {
        float g[N], m[N], v[N];
        load(gradient, i, g);
        load(first, i, m);
        load(second, i, v);
        for (int k = 0; k < N; k++) {
            const double slope = (double)g[k];
            const double heavy =
                __dadd_rn(__dmul_rn(beta1, (double)m[k]), slope);
            const double square =
                __dadd_rn(__dmul_rn(beta2, (double)v[k]),
                          __dmul_rn(__dmul_rn(left, slope), slope));
            g[k] =
                (float)__ddiv_rn(heavy, __dadd_rn(__dsqrt_rn(square), epsilon));
        }
        store(g, gradient, i);
    }
};

void adam_direction(const struct kith_adam *m)
{
    const call c;
    if (!c.well())
        return;
    each("a direction", m->n, all_aligned(m->first, m->second, m->gradient),
         direction_each{m->beta1, m->beta2, 1 - m->beta2, m->epsilon,
                        (const float *)m->first, (const float *)m->second,
                        (float *)m->gradient});
}
} // namespace gpu
