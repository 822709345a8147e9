/* The loops of backend cpu over f16, sixteen floats at a time. A variant file
 * defines f16, d16 (sixteen float64 lanes) and their few operations for one
 * instruction set, then includes this:
 *
 *   VARIANT   the table's name    TEXT, SUPPORTED  its fields
 *
 * Element i of a sum goes to lane i mod 16 and lanes fold from 0 to 15, as in
 * naive.inc.h: every variant gives the same bits, and since each delta is
 * w * (r - s), rounded twice and never contracted, the two sides of a pair get
 * exact negatives. The rest of n / 16 is done by the formula itself. */

#define BLOCK 16

static double lanes_fold(const double lanes[BLOCK])
{
    double sum = 0;
    for (int lane = 0; lane < BLOCK; lane++)
        sum += lanes[lane];
    return sum;
}

/* A target that is only written and larger than what a core may call its own
 * of the caches goes past them: no line of it is read first. */
#define STREAM_BYTES ((size_t)8 << 20)

static bool is_streamed(size_t n, const float *target)
{
    return n * sizeof *target >= STREAM_BYTES &&
           (uintptr_t)target % (BLOCK * sizeof *target) == 0;
}

static bool is_finite(float x)
{
    const float difference = x - x;
    return difference <= 0;
}

static void loop_scale(size_t n, float factor, float *x)
{
    const f16 f = f16_all(factor);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        f16_store(x + i, f16_mul(f, f16_load(x + i)));
    for (; i < n; i++)
        x[i] = factor * x[i];
}

static void loop_add(size_t n, float factor, const float *x, float *y)
{
    const f16 f = f16_all(factor);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        f16_store(y + i, f16_add(f16_load(y + i), f16_mul(f, f16_load(x + i))));
    for (; i < n; i++)
        y[i] = y[i] + factor * x[i];
}

static double loop_mix(size_t n, float weight, const float *received,
                       const float *sent, float *x)
{
    const f16 w = f16_all(weight);
    d16 sums = d16_zero();
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const f16 difference =
            f16_sub(f16_load(received + i), f16_load(sent + i));
        const f16 delta = f16_mul(w, difference);
        f16_store(x + i, f16_add(f16_load(x + i), delta));
        sums = d16_add(sums, delta);
    }
    double lanes[BLOCK];
    d16_store(lanes, sums);
    for (size_t lane = 0; i < n; i++, lane++) {
        const float delta = weight * (received[i] - sent[i]);
        x[i] = x[i] + delta;
        lanes[lane] += (double)delta;
    }
    return lanes_fold(lanes);
}

static double loop_swap_mix(size_t n, float weight, const float *received,
                            const float *sent, float *x)
{
    const f16 w = f16_all(weight);
    const bool streams = is_streamed(n, x);
    d16 sums = d16_zero();
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const f16 old = f16_load(sent + i);
        const f16 delta = f16_mul(w, f16_sub(f16_load(received + i), old));
        if (streams)
            f16_stream(x + i, f16_add(old, delta));
        else
            f16_store(x + i, f16_add(old, delta));
        sums = d16_add(sums, delta);
    }
    f16_fence();
    double lanes[BLOCK];
    d16_store(lanes, sums);
    for (size_t lane = 0; i < n; i++, lane++) {
        const float delta = weight * (received[i] - sent[i]);
        x[i] = sent[i] + delta;
        lanes[lane] += (double)delta;
    }
    return lanes_fold(lanes);
}

static double loop_mix_bf16(size_t n, float weight, const uint16_t *received,
                            const float *sent, float *x)
{
    const f16 w = f16_all(weight);
    d16 sums = d16_zero();
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const f16 difference =
            f16_sub(f16_from_bf16(received + i), f16_load(sent + i));
        const f16 delta = f16_mul(w, difference);
        f16_store(x + i, f16_add(f16_load(x + i), delta));
        sums = d16_add(sums, delta);
    }
    double lanes[BLOCK];
    d16_store(lanes, sums);
    for (size_t lane = 0; i < n; i++, lane++) {
        const uint32_t bits = (uint32_t)received[i] << 16;
        float r;
        memcpy(&r, &bits, sizeof r);
        const float delta = weight * (r - sent[i]);
        x[i] = x[i] + delta;
        lanes[lane] += (double)delta;
    }
    return lanes_fold(lanes);
}

static double loop_sum(size_t n, const float *x)
{
    d16 sums = d16_zero();
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        sums = d16_add(sums, f16_load(x + i));
    double lanes[BLOCK];
    d16_store(lanes, sums);
    for (size_t lane = 0; i < n; i++, lane++)
        lanes[lane] += (double)x[i];
    return lanes_fold(lanes);
}

static double loop_distance_squared(size_t n, const float *x, const float *y)
{
    d16 sums = d16_zero();
    size_t i = 0;
    if (y == NULL) {
        for (; i + BLOCK <= n; i += BLOCK)
            sums = d16_add_square(sums, f16_load(x + i));
    } else {
        for (; i + BLOCK <= n; i += BLOCK)
            sums =
                d16_add_square(sums, f16_sub(f16_load(x + i), f16_load(y + i)));
    }
    double lanes[BLOCK];
    d16_store(lanes, sums);
    for (size_t lane = 0; i < n; i++, lane++) {
        const double difference = (double)(y == NULL ? x[i] : x[i] - y[i]);
        lanes[lane] += difference * difference;
    }
    return lanes_fold(lanes);
}

static bool loop_finite(size_t n, const float *x)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        if (!f16_finite(f16_load(x + i)))
            return false;
    }
    for (; i < n; i++) {
        if (!is_finite(x[i]))
            return false;
    }
    return true;
}

static void loop_add_bias(size_t rows, size_t n, const float *bias, bool relu,
                          float *y)
{
    for (size_t row = 0; row < rows; row++, y += n) {
        size_t j = 0;
        for (; j + BLOCK <= n; j += BLOCK) {
            const f16 sum = f16_add(f16_load(y + j), f16_load(bias + j));
            f16_store(y + j, relu ? f16_relu(sum) : sum);
        }
        for (; j < n; j++) {
            const float sum = y[j] + bias[j];
            /* Written so that a NaN stays one. */
            y[j] = relu && sum < 0 ? 0 : sum;
        }
    }
}

static void loop_column_sum(size_t rows, size_t n, const float *d, float *out)
{
    size_t j = 0;
    for (; j + BLOCK <= n; j += BLOCK) {
        f16 sum = f16_all(0);
        for (size_t row = 0; row < rows; row++)
            sum = f16_add(sum, f16_load(d + row * n + j));
        f16_store(out + j, sum);
    }
    for (; j < n; j++) {
        float sum = 0;
        for (size_t row = 0; row < rows; row++)
            sum += d[row * n + j];
        out[j] = sum;
    }
}

static void loop_relu_backward(size_t n, const float *y, float *d)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        f16_store(d + i, f16_where_positive(f16_load(y + i), f16_load(d + i)));
    for (; i < n; i++)
        d[i] = y[i] > 0 ? d[i] : 0;
}

static bool loop_sgd(size_t n, float rate, float momentum, float decay,
                     const float *gradient, float *velocity, float *x)
{
    const f16 eta = f16_all(rate), beta = f16_all(momentum);
    const f16 lambda = f16_all(decay);
    const bool heavy = momentum > 0;
    bool finite = true;
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const f16 old = f16_load(x + i);
        f16 direction = f16_add(f16_load(gradient + i), f16_mul(lambda, old));
        if (heavy) {
            direction =
                f16_add(f16_mul(beta, f16_load(velocity + i)), direction);
            f16_store(velocity + i, direction);
        }
        const f16 new = f16_sub(old, f16_mul(eta, direction));
        f16_store(x + i, new);
        finite = f16_finite(new) && finite;
    }
    for (; i < n; i++) {
        float direction = gradient[i] + decay * x[i];
        if (heavy) {
            direction = momentum * velocity[i] + direction;
            velocity[i] = direction;
        }
        x[i] = x[i] - rate * direction;
        finite = is_finite(x[i]) && finite;
    }
    return finite;
}

static void loop_from_bytes(size_t n, const uint8_t *bytes, float *y)
{
    const f16 scale = f16_all(255.0f);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        f16_store(y + i, f16_div(f16_from_bytes(bytes + i), scale));
    for (; i < n; i++)
        y[i] = (float)bytes[i] / 255.0f;
}

const struct kith_cpu_loops VARIANT = {
    .name = TEXT,
    .supported = SUPPORTED,
    .scale = loop_scale,
    .add = loop_add,
    .mix = loop_mix,
    .swap_mix = loop_swap_mix,
    .mix_bf16 = loop_mix_bf16,
    .sum = loop_sum,
    .distance_squared = loop_distance_squared,
    .finite = loop_finite,
    .add_bias = loop_add_bias,
    .column_sum = loop_column_sum,
    .relu_backward = loop_relu_backward,
    .sgd = loop_sgd,
    .from_bytes = loop_from_bytes,
};
