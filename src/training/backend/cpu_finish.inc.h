/* What stands before and after a product, over f16: bias, activation and their
 * way back; exp.
 *
 *   gelu(v) = v sigma(2 u), u = sqrt(2/pi) (v + 0.044715 v^3), since
 *   (1 + tanh u) / 2 = sigma(2 u) = 1 / (1 + e^-2u)
 */

/* sqrt(8/pi), twice the u's factor. */
#define GELU_SLOPE 1.5957691216057308f
#define GELU_CUBE 0.044715f

/* Vectors of one row whose column sums stay in registers. */
enum { COLUMNS_WIDE = 4 };

/* e^x within 2 units in the last place; 0 below -87.3, and x > 88 counts as 88
 * (1.7e38); NaN stays NaN. x = n ln 2 + r, ln 2 in two parts of which the first
 * has few bits; e^r by Moshier's polynomial (Cephes, expf). */
static inline f16 f16_exp(f16 x)
{
    const f16 bounded = f16_min(f16_all(88), f16_max(f16_all(-87.4f), x));
    const f16 n = f16_round(f16_mul(bounded, f16_all(1.44269504f)));
    const f16 r = f16_fma(n, f16_all(2.12194440e-4f),
                          f16_fma(n, f16_all(-0.693359375f), bounded));
    f16 sum = f16_all(1.9875691500e-4f);
    sum = f16_fma(sum, r, f16_all(1.3981999507e-3f));
    sum = f16_fma(sum, r, f16_all(8.3334519073e-3f));
    sum = f16_fma(sum, r, f16_all(4.1665795894e-2f));
    sum = f16_fma(sum, r, f16_all(1.6666665459e-1f));
    sum = f16_fma(sum, r, f16_all(5.0000001201e-1f));
    sum = f16_fma(sum, f16_mul(r, r), f16_add(r, f16_all(1)));
    return f16_where_least(x, -87.3f, f16_scale_two(sum, n));
}

/* e^-2u of v. */
static inline f16 gelu_exp(f16 v, f16 square)
{
    const f16 cubic =
        f16_fma(square, f16_all(-GELU_SLOPE * GELU_CUBE), f16_all(-GELU_SLOPE));
    return f16_exp(f16_mul(v, cubic));
}

static inline f16 gelu(f16 v)
{
    const f16 e = gelu_exp(v, f16_mul(v, v));
    return f16_div(v, f16_add(f16_all(1), e));
}

/* sigma + v sigma (1 - sigma) 2u', with 1 - sigma = sigma e^-2u: nothing is
 * lost where sigma is nearly 1. */
static inline f16 gelu_slope(f16 v)
{
    const f16 square = f16_mul(v, v), e = gelu_exp(v, square);
    const f16 gate = f16_div(f16_all(1), f16_add(f16_all(1), e));
    const f16 du = f16_fma(square, f16_all(3 * GELU_SLOPE * GELU_CUBE),
                           f16_all(GELU_SLOPE));
    const f16 rest = f16_mul(gate, f16_mul(gate, e));
    return f16_fma(f16_mul(v, rest), du, gate);
}

static inline f16 part_load(const float *from, size_t left)
{
    return left >= 16 ? f16_load(from) : f16_load_part(from, left);
}

static inline void part_store(float *to, f16 a, size_t left)
{
    if (left >= 16)
        f16_store(to, a);
    else
        f16_store_part(to, a, left);
}

static inline ALWAYS void finish_as(enum kith_activation activation,
                                    struct kith_rows at, const float *bias,
                                    float *pre, float *y)
{
    for (size_t i = 0; i < at.rows; i++) {
        for (size_t j = 0; j < at.n; j += 16) {
            const size_t left = at.n - j, here = i * at.stride + j;
            f16 v = part_load(y + here, left);
            if (bias != NULL)
                v = f16_add(v, part_load(bias + j, left));
            if (pre != NULL)
                part_store(pre + here, v, left);
            if (activation == KITH_ACTIVATION_RELU)
                v = f16_relu(v);
            else if (activation == KITH_ACTIVATION_GELU)
                v = gelu(v);
            part_store(y + here, v, left);
        }
    }
}

static void finish(struct kith_rows at, const float *bias,
                   enum kith_activation activation, float *pre, float *y)
{
    switch (activation) {
    case KITH_ACTIVATION_NONE:
        if (bias != NULL || pre != NULL)
            finish_as(KITH_ACTIVATION_NONE, at, bias, pre, y);
        break;
    case KITH_ACTIVATION_RELU:
        finish_as(KITH_ACTIVATION_RELU, at, bias, pre, y);
        break;
    case KITH_ACTIVATION_GELU:
        finish_as(KITH_ACTIVATION_GELU, at, bias, pre, y);
        break;
    }
}

/* `kept` is y of RELU, its argument of GELU: `wide` vectors of columns, all
 * rows; a last vector may be cut at `at.n`. */
static inline ALWAYS void finish_columns(enum kith_activation activation,
                                         const int wide, struct kith_rows at,
                                         const float *kept, float *dy,
                                         float *dbias, bool add)
{
    f16 sum[COLUMNS_WIDE];
    UNROLL
    for (int j = 0; j < wide; j++)
        sum[j] = f16_all(0);
    for (size_t i = 0; i < at.rows; i++) {
        UNROLL
        for (int j = 0; j < wide; j++) {
            const size_t left = wide == 1 ? at.n : 16;
            const size_t here = i * at.stride + 16 * (size_t)j;
            f16 d = part_load(dy + here, left);
            if (activation == KITH_ACTIVATION_RELU)
                d = f16_where_positive(part_load(kept + here, left), d);
            else if (activation == KITH_ACTIVATION_GELU)
                d = f16_mul(d, gelu_slope(part_load(kept + here, left)));
            if (activation != KITH_ACTIVATION_NONE)
                part_store(dy + here, d, left);
            sum[j] = f16_add(sum[j], d);
        }
    }
    UNROLL
    for (int j = 0; j < wide && dbias != NULL; j++) {
        const size_t left = wide == 1 ? at.n : 16;
        if (add)
            sum[j] = f16_add(part_load(dbias + 16 * j, left), sum[j]);
        part_store(dbias + 16 * j, sum[j], left);
    }
}

static inline ALWAYS void finish_stripe(enum kith_activation activation,
                                        struct kith_rows at, const float *kept,
                                        float *dy, float *dbias, bool add)
{
    const size_t whole = 16 * COLUMNS_WIDE;
    while (at.n > 0) {
        const bool wide = at.n >= whole;
        const size_t step = wide ? whole : at.n < 16 ? at.n : 16;
        if (wide)
            finish_columns(activation, COLUMNS_WIDE, at, kept, dy, dbias, add);
        else
            finish_columns(activation, 1, at, kept, dy, dbias, add);
        at.n -= step;
        kept += activation != KITH_ACTIVATION_NONE ? step : 0;
        dy += step;
        dbias += dbias == NULL ? 0 : step;
    }
}

static void finish_backward(struct kith_rows at,
                            enum kith_activation activation, const float *pre,
                            const float *y, float *dy, float *dbias, bool add)
{
    switch (activation) {
    case KITH_ACTIVATION_NONE:
        finish_stripe(KITH_ACTIVATION_NONE, at, NULL, dy, dbias, add);
        break;
    case KITH_ACTIVATION_RELU:
        finish_stripe(KITH_ACTIVATION_RELU, at, y, dy, dbias, add);
        break;
    case KITH_ACTIVATION_GELU:
        finish_stripe(KITH_ACTIVATION_GELU, at, pre, dy, dbias, add);
        break;
    }
}
