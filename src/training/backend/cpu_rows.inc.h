/* What goes row by row, over f16: layer norm, cross-entropy, dropout, sums,
 * AdamW.
 *
 *   y = (x - mean) r, scaled and shifted; with g = dy scale, h = (x - mean) r:
 *   dx = r (g - mean(g) - h mean(g h)); dscale = sum dy h; dshift = sum dy
 */

static void norm(const struct kith_arguments *a, size_t first, size_t rows)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels;
    const float *x = (const float *)a->x + first * n;
    const float *scale = a->weight, *shift = a->bias;
    float *saved = a->saved, *y = (float *)a->y + first * n;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    const float share = 1 / (float)n;
    for (size_t row = 0; row < rows; row++, x += n, y += n) {
        f16 sum = f16_all(0), square = f16_all(0);
        for (size_t j = 0; j < n; j += 16)
            sum = f16_add(sum, part_load(x + j, n - j));
        const float mean = f16_sum(sum) * share;
        const f16 middle = f16_all(mean);
        for (size_t j = 0; j < n; j += 16) {
            f16 d = f16_sub(part_load(x + j, n - j), middle);
            if (n - j < 16) {
                float whole[16] = {0};
                f16_store_part(whole, d, n - j);
                d = f16_load(whole);
            }
            square = f16_fma(d, d, square);
        }
        const double variance = (double)(f16_sum(square) * share);
        const float inverse = (float)(1 / sqrt(variance + op->epsilon));
        const f16 factor = f16_all(inverse);
        EACH_SIXTEEN(n, j, left, {
            const f16 h =
                f16_mul(f16_sub(part_load(x + j, left), middle), factor);
            f16 out = f16_fma(h, part_load(scale + j, left),
                              part_load(shift + j, left));
            if (relu)
                out = f16_relu(out);
            part_store(y + j, out, left);
        });
        if (saved != NULL) {
            saved[first + row] = mean;
            saved[a->rows + first + row] = inverse;
        }
    }
}

/* dy where the activation let something through. */
FORCE f16 norm_slope(bool relu, const float *y, const float *dy, size_t left)
{
    const f16 d = part_load(dy, left);
    return relu ? f16_where_positive(part_load(y, left), d) : d;
}

static void norm_backward(const struct kith_arguments *a, size_t first_row,
                          size_t rows)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels;
    const float *x = a->x, *scale = a->weight, *y = a->y, *dy = a->dy;
    const float *means = a->saved, *inverses = means + a->rows;
    const bool add = a->flags & KITH_ADD_DATA;
    float *dx = a->dx;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    const float share = 1 / (float)n;
    for (size_t row = first_row; row < first_row + rows; row++) {
        const size_t at = row * n;
        const f16 mean = f16_all(means[row]), inverse = f16_all(inverses[row]);
        f16 sum = f16_all(0), product = f16_all(0);
        EACH_SIXTEEN(n, j, left, {
            const f16 d = norm_slope(relu, y + at + j, dy + at + j, left);
            const f16 g = f16_mul(d, part_load(scale + j, left));
            sum = f16_add(sum, g);
            product =
                f16_fma(g, f16_sub(part_load(x + at + j, left), mean), product);
        });
        const f16 first = f16_all(f16_sum(sum) * share);
        const f16 second =
            f16_all(f16_sum(product) * share * inverses[row] * inverses[row]);
        EACH_SIXTEEN(n, j, left, {
            const f16 d = norm_slope(relu, y + at + j, dy + at + j, left);
            const f16 g = f16_mul(d, part_load(scale + j, left));
            const f16 c = f16_sub(part_load(x + at + j, left), mean);
            f16 out = f16_sub(f16_sub(g, first), f16_mul(c, second));
            out = f16_mul(out, inverse);
            if (add)
                out = f16_add(part_load(dx + at + j, left), out);
            part_store(dx + at + j, out, left);
        });
    }
}

static void norm_weights(const struct kith_arguments *a, size_t first, size_t n)
{
    const struct kith_norm *op = a->shape;
    const size_t stride = op->channels;
    const float *x = a->x, *y = a->y, *dy = a->dy;
    const float *means = a->saved, *inverses = means + a->rows;
    const bool add = a->flags & KITH_ADD_WEIGHTS;
    float *dscale = a->dweight, *dshift = a->dbias;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    for (size_t j = first; j < first + n; j += 16) {
        const size_t left = first + n - j;
        f16 scales = f16_all(0), shifts = f16_all(0);
        for (size_t i = 0; i < a->rows; i++) {
            const size_t at = i * stride + j;
            const f16 d = norm_slope(relu, y + at, dy + at, left);
            const f16 h =
                f16_mul(f16_sub(part_load(x + at, left), f16_all(means[i])),
                        f16_all(inverses[i]));
            scales = f16_fma(d, h, scales);
            shifts = f16_add(shifts, d);
        }
        if (dscale != NULL)
            part_store(dscale + j,
                       add ? f16_add(part_load(dscale + j, left), scales)
                           : scales,
                       left);
        if (dshift != NULL)
            part_store(dshift + j,
                       add ? f16_add(part_load(dshift + j, left), shifts)
                           : shifts,
                       left);
    }
}

/* The largest of a row; n > 0. A NaN may be passed over: the sum shows it. */
static float row_most(size_t n, const float *row)
{
    size_t j = 0;
    float most = row[0];
    if (n >= 16) {
        f16 top = f16_load(row);
        for (j = 16; j + 16 <= n; j += 16)
            top = f16_max(f16_load(row + j), top);
        most = f16_most(top);
    }
    for (; j < n; j++)
        most = row[j] > most ? row[j] : most;
    return most;
}

/* The first place of `value` in a row; n where it is not there. */
static size_t row_find(size_t n, const float *row, float value)
{
    const f16 wanted = f16_all(value);
    size_t j = 0;
    while (j + 16 <= n && f16_equal(f16_load(row + j), wanted) == 0)
        j += 16;
    while (j < n && !(row[j] >= value && row[j] <= value))
        j++;
    return j;
}

/* row <- e^(row - top); returns their sum, float64 every 64 vectors. */
static double row_exp(size_t n, float top, float *row)
{
    const f16 shift = f16_all(top);
    d16 sums = d16_zero();
    float rest = 0;
    for (size_t j0 = 0; j0 < n; j0 += 1024) {
        const size_t end = n - j0 < 1024 ? n : j0 + 1024;
        f16 some = f16_all(0);
        size_t j = j0;
        for (; j + 16 <= end; j += 16) {
            const f16 e = f16_exp(f16_sub(f16_load(row + j), shift));
            f16_store(row + j, e);
            some = f16_add(some, e);
        }
        sums = d16_add(sums, some);
        if (j < end) {
            float whole[16] = {0};
            const f16 e =
                f16_exp(f16_sub(f16_load_part(row + j, end - j), shift));
            f16_store_part(whole, e, end - j);
            f16_store_part(row + j, e, end - j);
            rest = f16_sum(f16_load(whole));
        }
    }
    return d16_fold(sums, (double)rest);
}

/* q = (1 - smoothing) one-hot + smoothing / classes
 * loss = log sum e^z - sum q z;  d loss / d z = p - q */
static double loss(size_t classes, size_t label, double smoothing,
                   double factor, float *row, bool *right)
{
    const float top = row_most(classes, row);
    *right = row_find(classes, row, top) == label;
    const double spread = smoothing / (double)classes;
    double expected = (1 - smoothing) * ((double)row[label] - (double)top);
    if (smoothing > 0)
        expected +=
            spread * (loop_sum(classes, row) - (double)classes * (double)top);
    const double sum = row_exp(classes, top, row);
    const f16 by = f16_all((float)(factor / sum));
    const f16 less = f16_all((float)(-spread * factor));
    EACH_SIXTEEN(classes, j, left, {
        part_store(row + j, f16_fma(part_load(row + j, left), by, less), left);
    });
    row[label] -= (float)((1 - smoothing) * factor);
    return kith_log(sum) - expected;
}

/* Sixteen blocks of Philox4x32-10 (Salmon et al., SC 2011), one a lane: word w
 * of block b says whether element 4 b + w is kept. */
static void dropout_words(const struct kith_mask *mask, uint64_t block,
                          w16 word[4])
{
    uint32_t low[16], high[16];
    for (uint64_t lane = 0; lane < 16; lane++) {
        low[lane] = (uint32_t)(block + lane);
        high[lane] = (uint32_t)((block + lane) >> 32);
    }
    w16 a = w16_load(low), b = w16_load(high);
    w16 c = w16_all(mask->tail[0]), d = w16_all(mask->tail[1]);
    uint32_t k0 = mask->key[0], k1 = mask->key[1];
    for (int round = 0; round < 10; round++) {
        w16 first, second;
        const w16 low0 = w16_multiply(a, 0xd2511f53u, &first);
        const w16 low1 = w16_multiply(c, 0xcd9e8d57u, &second);
        a = w16_xor(w16_xor(second, b), w16_all(k0));
        c = w16_xor(w16_xor(first, d), w16_all(k1));
        b = low1;
        d = low0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    word[0] = a;
    word[1] = b;
    word[2] = c;
    word[3] = d;
}

static void dropout(const struct kith_mask *mask, float grown, uint64_t first,
                    size_t n, const float *x, float *y)
{
    const uint32_t least = (uint32_t)mask->threshold;
    for (size_t i = 0; i < n; i += 64) {
        w16 word[4];
        float factor[4][16];
        dropout_words(mask, (first + i) / 4, word);
        for (int w = 0; w < 4; w++)
            f16_store(factor[w],
                      w16_where_least(word[w], least, f16_all(grown)));
        const size_t count = n - i < 64 ? n - i : 64;
        for (size_t j = 0; j < count; j++)
            y[i + j] = factor[j % 4][j / 4] > 0 ? grown * x[i + j] : 0;
    }
}

static bool adamw(size_t n, const struct kith_adamw_factors *factors,
                  const float *g, float *m, float *v, float *x)
{
    const f16 beta1 = f16_all(factors->beta1), left1 = f16_all(factors->left1);
    const f16 beta2 = f16_all(factors->beta2), left2 = f16_all(factors->left2);
    const f16 fix1 = f16_all(factors->fix1), fix2 = f16_all(factors->fix2);
    const f16 rate = f16_all(factors->rate), kept = f16_all(factors->kept);
    const f16 epsilon = f16_all(factors->epsilon);
    bool finite = true;
    EACH_SIXTEEN(n, i, left, {
        const f16 slope = part_load(g + i, left);
        const f16 first = f16_moment(f16_add(
            f16_mul(beta1, part_load(m + i, left)), f16_mul(left1, slope)));
        const f16 second = f16_add(f16_mul(beta2, part_load(v + i, left)),
                                   f16_mul(f16_mul(left2, slope), slope));
        const f16 deviation = f16_sqrt(f16_mul(second, fix2));
        const f16 by =
            f16_div(f16_mul(first, fix1), f16_add(deviation, epsilon));
        const f16 new =
            f16_sub(f16_mul(kept, part_load(x + i, left)), f16_mul(rate, by));
        part_store(m + i, first, left);
        part_store(v + i, second, left);
        part_store(x + i, new, left);
        finite = f16_finite(new) && finite;
    });
    return finite;
}
