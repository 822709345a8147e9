/* Kernels of norms, pools and sums over f16, for some pixels whose channels lie
 * side by side: sixteen channels outside, pixels inside. Where fewer than
 * sixteen are left, the other lanes are neither read nor written. */

FORCE f16 lanes_load(const float *from, size_t count)
{
    return count == 16 ? f16_load(from) : f16_load_part(from, count);
}

FORCE void lanes_store(float *to, f16 value, size_t count)
{
    if (count == 16)
        f16_store(to, value);
    else
        f16_store_part(to, value, count);
}

/* Runs `body(j, count)` for each sixteen channels of n, with a constant count
 * where they are sixteen. */
#define EACH_SIXTEEN(n, body)                                                  \
    do {                                                                       \
        size_t j_ = 0;                                                         \
        for (; j_ + 16 <= (n); j_ += 16)                                       \
            body(j_, 16);                                                      \
        if (j_ < (n))                                                          \
            body(j_, (n)-j_);                                                  \
    } while (0)

/* Four sums at once hide the time that one addition takes. */
struct sums {
    f16 a[4];
};

FORCE struct sums sums_zero(void)
{
    const f16 zero = f16_all(0);
    return (struct sums){{zero, zero, zero, zero}};
}

FORCE f16 sums_fold(const struct sums *s)
{
    return f16_add(f16_add(s->a[0], s->a[1]), f16_add(s->a[2], s->a[3]));
}

FORCE void moments_of(size_t pixels, size_t step, const float *x, float *mean,
                      float *square, size_t count)
{
    struct sums sum = sums_zero();
    size_t p = 0;
    for (; p + 4 <= pixels; p += 4) {
        UNROLL for (size_t k = 0; k < 4; k++) sum.a[k] =
            f16_add(sum.a[k], lanes_load(x + (p + k) * step, count));
    }
    for (; p < pixels; p++)
        sum.a[0] = f16_add(sum.a[0], lanes_load(x + p * step, count));
    const f16 centre = f16_mul(sums_fold(&sum), f16_all(1 / (float)pixels));
    lanes_store(mean, centre, count);
    sum = sums_zero();
    for (p = 0; p + 4 <= pixels; p += 4) {
        UNROLL for (size_t k = 0; k < 4; k++)
        {
            const f16 d =
                f16_sub(lanes_load(x + (p + k) * step, count), centre);
            sum.a[k] = f16_fma(d, d, sum.a[k]);
        }
    }
    for (; p < pixels; p++) {
        const f16 d = f16_sub(lanes_load(x + p * step, count), centre);
        sum.a[0] = f16_fma(d, d, sum.a[0]);
    }
    lanes_store(square, sums_fold(&sum), count);
}

static void image_moments(size_t pixels, size_t n, size_t step, const float *x,
                          float *mean, float *square)
{
#define BODY(j, count)                                                         \
    moments_of(pixels, step, x + (j), mean + (j), square + (j), count)
    EACH_SIXTEEN(n, BODY);
#undef BODY
}

FORCE void normalise_of(size_t pixels, const struct kith_cpu_channels *c,
                        const float *x, bool relu, float *y, size_t j,
                        size_t count)
{
    const f16 mean = lanes_load(c->mean + j, count);
    const f16 gain = lanes_load(c->gain + j, count);
    const f16 shift = lanes_load(c->first + j, count);
    for (size_t p = 0; p < pixels; p++) {
        const size_t at = p * c->step + j;
        const f16 d = f16_sub(lanes_load(x + at, count), mean);
        const f16 value = f16_fma(d, gain, shift);
        lanes_store(y + at, relu ? f16_relu(value) : value, count);
    }
}

static void image_normalise(size_t pixels, const struct kith_cpu_channels *c,
                            const float *x, bool relu, float *y)
{
#define BODY(j, count) normalise_of(pixels, c, x, relu, y, j, count)
    EACH_SIXTEEN(c->n, BODY);
#undef BODY
}

/* dy, or where y is given only where that is positive. */
FORCE f16 gated(const float *y, const float *dy, size_t at, size_t count)
{
    const f16 d = lanes_load(dy + at, count);
    return y == NULL ? d : f16_where_positive(lanes_load(y + at, count), d);
}

FORCE void slopes_of(size_t pixels, const struct kith_cpu_channels *c,
                     const float *x, const float *y, const float *dy,
                     float *first, float *second, size_t j, size_t count)
{
    const f16 mean = lanes_load(c->mean + j, count);
    struct sums one = sums_zero(), two = sums_zero();
    size_t p = 0;
    for (; p + 4 <= pixels; p += 4) {
        UNROLL for (size_t k = 0; k < 4; k++)
        {
            const size_t at = (p + k) * c->step + j;
            const f16 g = gated(y, dy, at, count);
            const f16 d = f16_sub(lanes_load(x + at, count), mean);
            one.a[k] = f16_add(one.a[k], g);
            two.a[k] = f16_fma(g, d, two.a[k]);
        }
    }
    for (; p < pixels; p++) {
        const size_t at = p * c->step + j;
        const f16 g = gated(y, dy, at, count);
        const f16 d = f16_sub(lanes_load(x + at, count), mean);
        one.a[0] = f16_add(one.a[0], g);
        two.a[0] = f16_fma(g, d, two.a[0]);
    }
    lanes_store(first + j, sums_fold(&one), count);
    lanes_store(second + j, sums_fold(&two), count);
}

static void image_slopes(size_t pixels, const struct kith_cpu_channels *c,
                         const float *x, const float *y, const float *dy,
                         float *first, float *second)
{
#define BODY(j, count) slopes_of(pixels, c, x, y, dy, first, second, j, count)
    EACH_SIXTEEN(c->n, BODY);
#undef BODY
}

FORCE void back_of(size_t pixels, const struct kith_cpu_channels *c,
                   const float *x, const float *y, const float *dy, bool add,
                   float *dx, size_t j, size_t count)
{
    const f16 mean = lanes_load(c->mean + j, count);
    const f16 gain = lanes_load(c->gain + j, count);
    const f16 first = lanes_load(c->first + j, count);
    const f16 second = f16_sub(f16_all(0), lanes_load(c->second + j, count));
    for (size_t p = 0; p < pixels; p++) {
        const size_t at = p * c->step + j;
        const f16 g = gated(y, dy, at, count);
        const f16 d = f16_sub(lanes_load(x + at, count), mean);
        const f16 rest = f16_sub(f16_mul(g, gain), first);
        const f16 value = f16_fma(d, second, rest);
        lanes_store(dx + at,
                    add ? f16_add(lanes_load(dx + at, count), value) : value,
                    count);
    }
}

static void image_normalise_back(size_t pixels,
                                 const struct kith_cpu_channels *c,
                                 const float *x, const float *y,
                                 const float *dy, bool add, float *dx)
{
#define BODY(j, count) back_of(pixels, c, x, y, dy, add, dx, j, count)
    EACH_SIXTEEN(c->n, BODY);
#undef BODY
}

/* From the last tap to the first, so that the first of equals is left:
 * place = tap[i] where the largest is not above x[i]. Small whole numbers are
 * exact in float32. */
FORCE void largest_of(size_t count, const float *const *x, const uint8_t *tap,
                      float *y, uint8_t *which, size_t j, size_t lanes)
{
    f16 most = lanes_load(x[0] + j, lanes);
    for (size_t i = 1; i < count; i++)
        most = f16_max(most, lanes_load(x[i] + j, lanes));
    lanes_store(y + j, most, lanes);
    f16 place = f16_all((float)tap[count - 1]);
    for (size_t i = count - 1; i-- > 0;) {
        const f16 own = f16_all((float)tap[i]);
        const f16 short_of = f16_sub(most, lanes_load(x[i] + j, lanes));
        place = f16_add(own, f16_where_positive(short_of, f16_sub(place, own)));
    }
    float places[16];
    f16_store(places, place);
    for (size_t k = 0; k < lanes; k++)
        which[j + k] = (uint8_t)places[k];
}

static void image_largest(size_t channels, size_t count, const float *const *x,
                          const uint8_t *tap, float *y, uint8_t *which)
{
#define BODY(j, lanes) largest_of(count, x, tap, y, which, j, lanes)
    EACH_SIXTEEN(channels, BODY);
#undef BODY
}

/* which is tap where 1/2 - (which - tap)^2 is positive. */
FORCE void scatter_of(size_t count, float *const *dx, const uint8_t *tap,
                      const float *dy, const uint8_t *which, bool add, size_t j,
                      size_t lanes)
{
    uint8_t taken[16] = {0};
    memcpy(taken, which + j, lanes);
    const f16 place = f16_from_bytes(taken), half = f16_all(0.5f);
    const f16 d = lanes_load(dy + j, lanes);
    for (size_t i = 0; i < count; i++) {
        const f16 apart = f16_sub(place, f16_all((float)tap[i]));
        const f16 near = f16_sub(half, f16_mul(apart, apart));
        const f16 own = f16_where_positive(near, d);
        lanes_store(dx[i] + j,
                    add ? f16_add(lanes_load(dx[i] + j, lanes), own) : own,
                    lanes);
    }
}

static void image_scatter(size_t channels, size_t count, float *const *dx,
                          const uint8_t *tap, const float *dy,
                          const uint8_t *which, bool add)
{
#define BODY(j, lanes) scatter_of(count, dx, tap, dy, which, add, j, lanes)
    EACH_SIXTEEN(channels, BODY);
#undef BODY
}

FORCE void sum_of(const float *a, const float *b, bool relu, float *y, size_t j,
                  size_t count)
{
    const f16 value =
        f16_add(lanes_load(a + j, count), lanes_load(b + j, count));
    lanes_store(y + j, relu ? f16_relu(value) : value, count);
}

static void image_sum(size_t n, const float *a, const float *b, bool relu,
                      float *y)
{
#define BODY(j, count) sum_of(a, b, relu, y, j, count)
    EACH_SIXTEEN(n, BODY);
#undef BODY
}

FORCE void mean_of(size_t pixels, size_t channels, float factor, const float *x,
                   float *y, size_t count)
{
    struct sums sum = sums_zero();
    size_t p = 0;
    for (; p + 4 <= pixels; p += 4) {
        UNROLL for (size_t k = 0; k < 4; k++) sum.a[k] =
            f16_add(sum.a[k], lanes_load(x + (p + k) * channels, count));
    }
    for (; p < pixels; p++)
        sum.a[0] = f16_add(sum.a[0], lanes_load(x + p * channels, count));
    lanes_store(y, f16_mul(sums_fold(&sum), f16_all(factor)), count);
}

static void image_mean(size_t pixels, size_t channels, float factor,
                       const float *x, float *y)
{
#define BODY(j, count)                                                         \
    mean_of(pixels, channels, factor, x + (j), y + (j), count)
    EACH_SIXTEEN(channels, BODY);
#undef BODY
}

FORCE void mean_back_of(size_t pixels, size_t channels, float factor,
                        const float *dy, bool add, float *dx, size_t count)
{
    const f16 d = f16_mul(lanes_load(dy, count), f16_all(factor));
    for (size_t p = 0; p < pixels; p++, dx += channels)
        lanes_store(dx, add ? f16_add(lanes_load(dx, count), d) : d, count);
}

static void image_mean_back(size_t pixels, size_t channels, float factor,
                            const float *dy, bool add, float *dx)
{
#define BODY(j, count)                                                         \
    mean_back_of(pixels, channels, factor, dy + (j), add, dx + (j), count)
    EACH_SIXTEEN(channels, BODY);
#undef BODY
}

const struct kith_cpu_image IMAGE = {
    .panel = TILE_2 > 0 ? 32 : 16,
    .correlate = image_correlate,
    .outer = image_outer,
    .gate = image_gate,
    .moments = image_moments,
    .normalise = image_normalise,
    .slopes = image_slopes,
    .normalise_back = image_normalise_back,
    .largest = image_largest,
    .scatter = image_scatter,
    .sum = image_sum,
    .mean = image_mean,
    .mean_back = image_mean_back,
};
