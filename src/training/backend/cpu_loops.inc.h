/* The vector loops of backend cpu over f16, sixteen floats at a time.
 *
 * Element i of a sum goes to lane i mod 16 and lanes fold from 0 to 15, as in
 * naive.inc.h: every instruction set gives the same bits, and since each delta
 * is w * (r - s), rounded twice and never contracted, the two sides of a pair
 * get exact negatives. Lanes past the end are 0, which changes no sum. */

#define BLOCK 16

/* A target that is only written and larger than what a core may call its own
 * of the caches goes past them: no line of it is read first. */
#define STREAM_BYTES ((size_t)8 << 20)

static bool is_streamed(size_t n, const float *target)
{
    return n * sizeof *target >= STREAM_BYTES &&
           (uintptr_t)target % (BLOCK * sizeof *target) == 0;
}

static void loop_scale(size_t n, float factor, float *x)
{
    const f16 f = f16_all(factor);
    EACH_SIXTEEN(n, i, left, {
        part_store(x + i, f16_mul(f, part_load(x + i, left)), left);
    });
}

static void loop_add(size_t n, float factor, const float *x, float *y)
{
    const f16 f = f16_all(factor);
    EACH_SIXTEEN(n, i, left, {
        const f16 term = f16_mul(f, part_load(x + i, left));
        part_store(y + i, f16_add(part_load(y + i, left), term), left);
    });
}

/* Elements [i, i + 16) of a received vector, the last `left` of them. */
typedef f16 received_load(const void *received, size_t i, size_t left);

FORCE f16 received_single(const void *received, size_t i, size_t left)
{
    return part_load((const float *)received + i, left);
}

FORCE f16 received_bf16(const void *received, size_t i, size_t left)
{
    const uint16_t *from = (const uint16_t *)received + i;
    uint16_t rest[BLOCK] = {0};
    if (left < BLOCK)
        from = memcpy(rest, from, left * sizeof *from);
    return f16_from_bf16(from);
}

/* x <- base + weight (received - sent), past the caches where x is only
 * written. */
FORCE double mix_with(size_t n, float weight, received_load *load,
                      const void *received, const void *sent, const float *base,
                      float *x)
{
    const f16 w = f16_all(weight);
    const bool streams = base != x && is_streamed(n, x);
    d16 sums = d16_zero();
    EACH_SIXTEEN(n, i, left, {
        const f16 difference =
            f16_sub(load(received, i, left), load(sent, i, left));
        const f16 delta = f16_mul(w, difference);
        const f16 new = f16_add(part_load(base + i, left), delta);
        if (streams && left >= BLOCK)
            f16_stream(x + i, new);
        else
            part_store(x + i, new, left);
        sums = d16_add(sums, delta);
    });
    if (streams)
        f16_fence();
    return d16_fold(sums, 0);
}

static double loop_mix(size_t n, float weight, const float *received,
                       const float *sent, float *x)
{
    return mix_with(n, weight, received_single, received, sent, x, x);
}

static double loop_swap_mix(size_t n, float weight, const float *received,
                            const float *sent, const float *base, float *x)
{
    return base == sent
               ? mix_with(n, weight, received_single, received, sent, sent, x)
               : mix_with(n, weight, received_single, received, sent, base, x);
}

static double loop_mix_bf16(size_t n, float weight, const uint16_t *received,
                            const uint16_t *sent, float *x)
{
    return mix_with(n, weight, received_bf16, received, sent, x, x);
}

/* How combine goes about an update. */
struct recipe {
    float *y;
    unsigned count;
    bool reads, squared, streams;
    bool plain;     /* a term is added to y as it is */
    double *change; /* NULL: nobody asks for the sum */
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

/* TOGETHER blocks fit the registers: what is to be done is found out once for
 * them. TILE blocks of one update before the next update's turn: stores that go
 * past the caches and others, changed every 256 bytes, take up to twice as
 * long. What goes past them asks for its sources AHEAD_BYTES ahead. */
enum { TOGETHER = LANES >= 16 ? 4 : 2, TILE = 8, AHEAD_BYTES = 4096 };

/* An address past the end is asked for, too, which does no harm. */
FORCE void fetch_ahead(const float *from)
{
    __builtin_prefetch((const void *)((uintptr_t)from + AHEAD_BYTES));
}

/* Unrolled, so that no block leaves its register. */
#define EACH_BLOCK(B, DO)                                                      \
    _Pragma("GCC unroll 4") for (unsigned B = 0; B < blocks; B++) DO

/* `blocks` is known where this is inlined, and `left` where it is BLOCK: what
 * the last block has. */
FORCE void recipe_run(struct recipe *recipe, size_t i, unsigned blocks,
                      size_t left)
{
    f16 old[TOGETHER], term[TOGETHER], value[TOGETHER];
    float *y = recipe->y + i;
    const bool reads = recipe->reads;
    const bool sums = recipe->change != NULL;
    const bool streams = recipe->streams && left >= BLOCK;
    EACH_BLOCK(b, term[b] = old[b] = f16_all(0));
    if (reads || sums)
        EACH_BLOCK(b, old[b] = part_load(y + b * BLOCK, left));
    EACH_BLOCK(b, value[b] = f16_mul(f16_all(recipe->own), old[b]));
    for (unsigned t = 0; t < recipe->count; t++) {
        const float *plus = recipe->plus[t] + i;
        const float *minus = recipe->minus[t];
        if (streams)
            EACH_BLOCK(b, fetch_ahead(plus + b * BLOCK));
        if (streams && minus != NULL)
            EACH_BLOCK(b, fetch_ahead(minus + i + b * BLOCK));
        EACH_BLOCK(b, term[b] = part_load(plus + b * BLOCK, left));
        if (minus != NULL)
            EACH_BLOCK(b, term[b] = f16_sub(
                              term[b], part_load(minus + i + b * BLOCK, left)));
        EACH_BLOCK(b, term[b] = f16_mul(f16_all(recipe->factors[t]), term[b]));
        if (recipe->squared)
            EACH_BLOCK(b, term[b] = f16_mul(term[b], term[b]));
        if (t == 0 && !reads)
            EACH_BLOCK(b, value[b] = term[b]);
        else
            EACH_BLOCK(b, value[b] = f16_add(value[b], term[b]));
    }
    if (streams)
        EACH_BLOCK(b, f16_stream(y + b * BLOCK, value[b]));
    else
        EACH_BLOCK(b, part_store(y + b * BLOCK, value[b], left));
    if (!sums)
        return;
    if (!recipe->plain)
        EACH_BLOCK(b, term[b] = f16_sub(value[b], old[b]));
    d16 sum = recipe->sum;
    EACH_BLOCK(b, sum = d16_add(sum, term[b]));
    recipe->sum = sum;
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
    for (unsigned u = 0; u < count; u++)
        recipe_of(&recipes[u], &updates[u]);
    /* What is one of the loops above takes no longer than there. */
    if (count == 1 && recipes->plain && recipes->minus[0] == NULL &&
        !recipes->squared && recipes->change == NULL) {
        loop_add(n, recipes->factors[0], recipes->plus[0], recipes->y);
        return;
    }
    for (unsigned u = 0; u < count; u++)
        recipes[u].streams =
            is_streamed(n, recipes[u].y) && is_sink(count, recipes, u);
    size_t i = 0;
    for (; i + TILE * BLOCK <= n; i += TILE * BLOCK)
        for (unsigned u = 0; u < count; u++)
            for (unsigned b = 0; b < TILE; b += TOGETHER)
                recipe_run(&recipes[u], i + b * BLOCK, TOGETHER, BLOCK);
    for (; i < n; i += BLOCK)
        for (unsigned u = 0; u < count; u++)
            recipe_run(&recipes[u], i, 1, n - i);
    if (n * sizeof *recipes->y >= STREAM_BYTES)
        f16_fence();
    for (unsigned u = 0; u < count; u++)
        if (recipes[u].change != NULL)
            *recipes[u].change = d16_fold(recipes[u].sum, 0);
}

static double loop_sum(size_t n, const float *x)
{
    d16 sums = d16_zero();
    EACH_SIXTEEN(n, i, left, { sums = d16_add(sums, part_load(x + i, left)); });
    return d16_fold(sums, 0);
}

static double loop_distance_squared(size_t n, const float *x, const float *y)
{
    d16 sums = d16_zero();
    EACH_SIXTEEN(n, i, left, {
        f16 difference = part_load(x + i, left);
        if (y != NULL)
            difference = f16_sub(difference, part_load(y + i, left));
        sums = d16_add_square(sums, difference);
    });
    return d16_fold(sums, 0);
}

static double loop_distance_bf16(size_t n, const uint16_t *x, const uint16_t *y)
{
    d16 sums = d16_zero();
    EACH_SIXTEEN(n, i, left, {
        f16 difference = received_bf16(x, i, left);
        if (y != NULL)
            difference = f16_sub(difference, received_bf16(y, i, left));
        sums = d16_add_square(sums, difference);
    });
    return d16_fold(sums, 0);
}

static bool loop_finite(size_t n, const float *x)
{
    EACH_SIXTEEN(n, i, left, {
        if (!f16_finite(part_load(x + i, left)))
            return false;
    });
    return true;
}

static bool loop_sgd(const struct kith_sgd *sgd)
{
    const size_t n = sgd->n;
    const float *gradient = sgd->gradient;
    float *velocity = sgd->velocity, *x = sgd->x;
    /* x + (-rate) d has the bits of x - rate d, and its x needs no register. */
    const f16 back = f16_all(-(float)sgd->rate);
    const f16 beta = f16_all((float)sgd->momentum);
    const f16 lambda = f16_all((float)sgd->decay);
    const bool heavy = (float)sgd->momentum > 0, nesterov = sgd->nesterov;
    f16_part doubt = {0};
    EACH_SIXTEEN(n, i, left, {
        const f16 old = part_load(x + i, left);
        const f16 slope =
            f16_add(part_load(gradient + i, left), f16_mul(lambda, old));
        f16 direction = slope;
        if (heavy) {
            direction = f16_moment(
                f16_add(f16_mul(beta, part_load(velocity + i, left)), slope));
            part_store(velocity + i, direction, left);
            if (nesterov)
                direction = f16_add(slope, f16_mul(beta, direction));
        }
        const f16 new = f16_add(old, f16_mul(back, direction));
        part_store(x + i, new, left);
        doubt = f16_doubt(doubt, new);
    });
    return lanes_sure(doubt);
}

static void loop_from_bytes(size_t n, const uint8_t *bytes, float *y)
{
    const f16 scale = f16_all(255.0f);
    EACH_SIXTEEN(n, i, left, {
        const uint8_t *from = bytes + i;
        uint8_t rest[BLOCK] = {0};
        if (left < BLOCK)
            from = memcpy(rest, from, left);
        part_store(y + i, f16_div(f16_from_bytes(from), scale), left);
    });
}

static void loop_to_bf16(size_t n, const float *x, uint16_t *y)
{
    EACH_SIXTEEN(
        n, i, left,
        {
            uint16_t rest[BLOCK];
            f16_to_bf16(left < BLOCK ? rest : y + i, part_load(x + i, left));
            if (left < BLOCK)
                memcpy(y + i, rest, left * sizeof *rest);
        });
}

static void loop_from_bf16(size_t n, const uint16_t *x, float *y)
{
    EACH_SIXTEEN(
        n, i, left, { part_store(y + i, received_bf16(x, i, left), left); });
}

/* Compilers make vectors of the plain loops below. Sizes are compared as whole
 * numbers: so compared, what is not finite is larger than what is. */
static uint32_t loop_most(size_t n, const float *x)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return (uint32_t)most;
}

/* To the nearest whole number: from 2^23 to 2^24 floats are whole. */
static float loop_to_int8(size_t n, const float *x, int8_t *y)
{
    const float whole = 0x1.8p23f, least = 0x1p-126f;
    const uint32_t most = loop_most(n, x);
    float largest;
    memcpy(&largest, &most, sizeof largest);
    if (!(largest / 127 >= least) || most >= 0x7f800000u) {
        memset(y, 0, n);
        return most >= 0x7f800000u ? (float)INFINITY : 0;
    }
    const float inverse = 127 / largest;
    for (size_t i = 0; i < n; i++)
        y[i] = (int8_t)(int32_t)(x[i] * inverse + whole - whole);
    return largest / 127;
}

static void loop_from_int8(size_t n, float scale, const int8_t *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = scale * (float)x[i];
}

/* Chains that do not wait for each other, in variables: an array might be kept
 * in memory. Six vectors of sixteen floats fill AVX2's sixteen registers; eight
 * hide the latency of AVX-512's two units (four cycles). */
static double loop_fuse(size_t rounds, float *sink)
{
    enum { ROUND = 16 };
    const f16 factor = f16_all(0.5f), term = f16_load(sink);
    f16 chains[FUSE], sum = term;
    UNROLL
    for (int c = 0; c < FUSE; c++)
        chains[c] = term;
    for (size_t i = 0; i < rounds; i++) {
        UNROLL
        for (int k = 0; k < ROUND; k++) {
            UNROLL
            for (int c = 0; c < FUSE; c++)
                chains[c] = f16_fma(chains[c], factor, term);
        }
    }
    UNROLL
    for (int c = 0; c < FUSE; c++)
        sum = f16_add(sum, chains[c]);
    f16_store(sink, sum);
    return 2.0 * BLOCK * FUSE * ROUND * (double)rounds;
}
