/* The loops of backend cpu over f16, sixteen floats at a time. A variant file
 * defines f16, d16 (sixteen float64 lanes) and their few operations for one
 * instruction set, then includes this:
 *
 *   VARIANT   the table's name    TEXT, IMAGE, SUPPORTED  its fields
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
    if (streams)
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

/* What term t of an update adds. */
static float term_of(const struct kith_update *update, unsigned t, size_t i)
{
    const struct kith_term *term = &update->terms[t];
    const float *plus = term->plus, *minus = term->minus;
    const float value =
        (float)term->factor * (minus == NULL ? plus[i] : plus[i] - minus[i]);
    return update->squared ? value * value : value;
}

/* How combine goes about an update. */
struct recipe {
    float *y;
    unsigned count;
    bool reads, squared, streams;
    bool plain;           /* a term is added to y as it is */
    const double *change; /* NULL: nobody asks for the sum */
    const float *plus[KITH_TERMS_MAX], *minus[KITH_TERMS_MAX];
    float own, factors[KITH_TERMS_MAX];
    d16 sum;
};

static void recipe_of(struct recipe *recipe, const struct kith_update *update)
{
    const double own = update->own;
    recipe->y = update->y;
    recipe->count = update->count;
    recipe->reads = own < 0 || own > 0;
    recipe->squared = update->squared;
    recipe->change = update->change;
    recipe->streams = false;
    recipe->plain = own >= 1 && own <= 1 && update->count == 1;
    recipe->own = (float)own;
    recipe->sum = d16_zero();
    for (unsigned t = 0; t < update->count; t++) {
        recipe->plus[t] = update->terms[t].plus;
        recipe->minus[t] = update->terms[t].minus;
        recipe->factors[t] = (float)update->terms[t].factor;
    }
}

/* So many blocks at a time: what is to be done is found out once for them. */
#define TOGETHER 4

/* `blocks` is known where this is inlined. */
static inline void recipe_run(struct recipe *recipe, size_t i, unsigned blocks)
{
    f16 old[TOGETHER], term[TOGETHER], value[TOGETHER];
    float *y = recipe->y + i;
    const bool reads = recipe->reads;
    for (unsigned b = 0; b < blocks; b++) {
        old[b] = term[b] = f16_all(0);
        if (reads || recipe->change != NULL)
            old[b] = f16_load(y + b * BLOCK);
        value[b] = f16_mul(f16_all(recipe->own), old[b]);
    }
    for (unsigned t = 0; t < recipe->count; t++) {
        const float *plus = recipe->plus[t] + i;
        const float *minus = recipe->minus[t];
        for (unsigned b = 0; b < blocks; b++)
            term[b] = f16_load(plus + b * BLOCK);
        for (unsigned b = 0; minus != NULL && b < blocks; b++)
            term[b] = f16_sub(term[b], f16_load(minus + i + b * BLOCK));
        for (unsigned b = 0; b < blocks; b++)
            term[b] = f16_mul(f16_all(recipe->factors[t]), term[b]);
        for (unsigned b = 0; recipe->squared && b < blocks; b++)
            term[b] = f16_mul(term[b], term[b]);
        for (unsigned b = 0; b < blocks; b++)
            value[b] = t == 0 && !reads ? term[b] : f16_add(value[b], term[b]);
    }
    for (unsigned b = 0; b < blocks; b++) {
        if (recipe->streams)
            f16_stream(y + b * BLOCK, value[b]);
        else
            f16_store(y + b * BLOCK, value[b]);
    }
    for (unsigned b = 0; recipe->change != NULL && b < blocks; b++)
        recipe->sum = d16_add(
            recipe->sum, recipe->plain ? term[b] : f16_sub(value[b], old[b]));
}

/* The rest of n / 16, and the sum. */
static void recipe_end(const struct recipe *recipe,
                       const struct kith_update *update, size_t i, size_t n)
{
    const bool reads = recipe->reads;
    float *y = update->y;
    double lanes[BLOCK];
    d16_store(lanes, recipe->sum);
    for (size_t lane = 0; i < n; i++, lane++) {
        const float old = reads || recipe->change != NULL ? y[i] : 0;
        const float first = update->count == 0 ? 0 : term_of(update, 0, i);
        float value = reads ? (float)update->own * old : first;
        for (unsigned t = reads ? 0 : 1; t < update->count; t++)
            value = value + term_of(update, t, i);
        lanes[lane] += (double)(recipe->plain ? first : value - old);
        y[i] = value;
    }
    if (update->change != NULL)
        *update->change = lanes_fold(lanes);
}

/* A vector that is written and of no use to any update. */
static bool is_sink(unsigned count, const struct recipe *recipes, unsigned u)
{
    const float *y = recipes[u].y;
    bool used = recipes[u].reads || recipes[u].change != NULL;
    for (unsigned v = 0; v < count; v++) {
        used = used || (v != u && recipes[v].y == y);
        for (unsigned t = 0; t < recipes[v].count; t++)
            used = used || recipes[v].plus[t] == y || recipes[v].minus[t] == y;
    }
    return !used;
}

static void loop_combine(size_t n, unsigned count,
                         const struct kith_update *updates)
{
    struct recipe recipes[KITH_UPDATES_MAX];
    bool streams = false;
    for (unsigned u = 0; u < count; u++)
        recipe_of(&recipes[u], &updates[u]);
    for (unsigned u = 0; u < count; u++) {
        recipes[u].streams =
            is_streamed(n, recipes[u].y) && is_sink(count, recipes, u);
        streams = streams || recipes[u].streams;
    }
    size_t i = 0;
    for (; i + TOGETHER * BLOCK <= n; i += TOGETHER * BLOCK)
        for (unsigned u = 0; u < count; u++)
            recipe_run(&recipes[u], i, TOGETHER);
    for (; i + BLOCK <= n; i += BLOCK)
        for (unsigned u = 0; u < count; u++)
            recipe_run(&recipes[u], i, 1);
    if (streams)
        f16_fence();
    for (unsigned u = 0; u < count; u++)
        recipe_end(&recipes[u], &updates[u], i, n);
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

static bool loop_sgd(const struct kith_sgd *sgd)
{
    const float rate = (float)sgd->rate, momentum = (float)sgd->momentum;
    const float decay = (float)sgd->decay;
    const size_t n = sgd->n;
    const float *gradient = sgd->gradient;
    float *velocity = sgd->velocity, *x = sgd->x;
    const f16 eta = f16_all(rate), beta = f16_all(momentum);
    const f16 lambda = f16_all(decay);
    const bool heavy = momentum > 0;
    bool finite = true;
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const f16 old = f16_load(x + i);
        const f16 slope = f16_add(f16_load(gradient + i), f16_mul(lambda, old));
        f16 direction = slope;
        if (heavy) {
            direction = f16_add(f16_mul(beta, f16_load(velocity + i)), slope);
            f16_store(velocity + i, direction);
            if (sgd->nesterov)
                direction = f16_add(slope, f16_mul(beta, direction));
        }
        const f16 new = f16_sub(old, f16_mul(eta, direction));
        f16_store(x + i, new);
        finite = f16_finite(new) && finite;
    }
    for (; i < n; i++) {
        const float slope = gradient[i] + decay * x[i];
        float direction = slope;
        if (heavy) {
            velocity[i] = momentum * velocity[i] + slope;
            direction =
                sgd->nesterov ? slope + momentum * velocity[i] : velocity[i];
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

static void loop_to_bf16(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        f16_to_bf16(y + i, f16_load(x + i));
    if (i == n)
        return;
    float rest[BLOCK] = {0};
    uint16_t rounded[BLOCK];
    memcpy(rest, x + i, (n - i) * sizeof *rest);
    f16_to_bf16(rounded, f16_load(rest));
    memcpy(y + i, rounded, (n - i) * sizeof *rounded);
}

/* Chains that do not wait for each other, in variables: an array might be kept
 * in memory. Six vectors of sixteen floats fill AVX2's sixteen registers; eight
 * hide the latency of AVX-512's two units (four cycles). */
static double loop_fuse(size_t rounds, float *sink)
{
    enum { CHAINS = 8, ROUND = 16 };
    const f16 factor = f16_all(0.5f), term = f16_load(sink);
    f16 a = term, b = term, c = term, d = term, e = term, f = term;
    f16 g = term, h = term;
    for (size_t i = 0; i < rounds; i++) {
        for (int k = 0; k < ROUND; k++) {
            a = f16_fma(a, factor, term);
            b = f16_fma(b, factor, term);
            c = f16_fma(c, factor, term);
            d = f16_fma(d, factor, term);
            e = f16_fma(e, factor, term);
            f = f16_fma(f, factor, term);
#ifdef FUSE_WIDE
            g = f16_fma(g, factor, term);
            h = f16_fma(h, factor, term);
#endif
        }
    }
    a = f16_add(f16_add(f16_add(a, b), f16_add(c, d)), f16_add(e, f));
    f16_store(sink, f16_add(a, f16_add(g, h)));
#ifdef FUSE_WIDE
    return 2.0 * BLOCK * CHAINS * ROUND * (double)rounds;
#else
    return 2.0 * BLOCK * (CHAINS - 2) * ROUND * (double)rounds;
#endif
}

const struct kith_cpu_loops VARIANT = {
    .name = TEXT,
    .image = &IMAGE,
    .supported = SUPPORTED,
    .scale = loop_scale,
    .add = loop_add,
    .mix = loop_mix,
    .swap_mix = loop_swap_mix,
    .mix_bf16 = loop_mix_bf16,
    .combine = loop_combine,
    .sum = loop_sum,
    .distance_squared = loop_distance_squared,
    .finite = loop_finite,
    .sgd = loop_sgd,
    .from_bytes = loop_from_bytes,
    .to_bf16 = loop_to_bf16,
    .fuse = loop_fuse,
};
