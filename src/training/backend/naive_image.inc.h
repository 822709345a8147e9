/* Plain loops of ops.h, part 2: convolutions, norms and pools over images
 * (rows, height, width, channels). REAL is float or double. */

/* The input row that output row y reads through kernel row k; false: padding.
 * The same for columns. */
static bool naive_tap(size_t y, size_t k, size_t stride, size_t pad,
                      size_t height, size_t *place)
{
    const size_t at = y * stride + k;
    *place = at - pad;
    return at >= pad && at - pad < height;
}

/* Calls of these walk (row, y, x) outside and (kernel, kernel) inside; pixel
 * offsets of input and output are handed to the leaf. */
struct naive_pair {
    size_t input, output, tap; /* pixel, pixel, kernel place */
};

/* Every (input pixel, output pixel, tap) that meet, output by output. Returns
 * false after the last; start with {0}. */
struct naive_walk {
    size_t row, y, x, k;
};

static bool naive_walk_next(const struct kith_conv *op, size_t rows,
                            struct naive_walk *at, struct naive_pair *pair)
{
    const size_t taps = op->kernel * op->kernel;
    for (;;) {
        if (at->k == taps) {
            at->k = 0;
            if (++at->x == op->out_width) {
                at->x = 0;
                if (++at->y == op->out_height) {
                    at->y = 0;
                    at->row++;
                }
            }
        }
        if (at->row >= rows)
            return false;
        const size_t tap = at->k++;
        size_t above, left;
        if (!naive_tap(at->y, tap / op->kernel, op->stride, op->pad, op->height,
                       &above) ||
            !naive_tap(at->x, tap % op->kernel, op->stride, op->pad, op->width,
                       &left))
            continue;
        *pair = (struct naive_pair){
            .input = (at->row * op->height + above) * op->width + left,
            .output =
                (at->row * op->out_height + at->y) * op->out_width + at->x,
            .tap = tap};
        return true;
    }
}

static void naive_conv(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    const size_t in = op->in, out = op->out;
    const size_t pixels = a->rows * op->out_height * op->out_width;
    const REAL *input = a->x, *weight = a->weight, *b = a->bias;
    REAL *output = a->y;
    for (size_t i = 0; i < pixels * out; i++)
        output[i] = b == NULL ? 0 : b[i % out];
    struct naive_walk walk = {0};
    struct naive_pair p;
    while (naive_walk_next(op, a->rows, &walk, &p)) {
        for (size_t c = 0; c < in; c++) {
            for (size_t o = 0; o < out; o++)
                output[p.output * out + o] +=
                    input[p.input * in + c] *
                    weight[(p.tap * in + c) * out + o];
        }
    }
    for (size_t i = 0; i < pixels * out; i++)
        output[i] = naive_activate(op->activation, output[i]);
}

static void naive_conv_data(const struct kith_conv *op, size_t rows,
                            const REAL *w, const REAL *dy, REAL *dx,
                            unsigned add)
{
    const size_t in = op->in, out = op->out;
    if (!(add & KITH_ADD_DATA))
        memset(dx, 0, rows * op->height * op->width * in * sizeof *dx);
    struct naive_walk walk = {0};
    struct naive_pair p;
    while (naive_walk_next(op, rows, &walk, &p)) {
        for (size_t c = 0; c < in; c++) {
            REAL sum = 0;
            for (size_t o = 0; o < out; o++)
                sum += w[(p.tap * in + c) * out + o] * dy[p.output * out + o];
            dx[p.input * in + c] += sum;
        }
    }
}

static void naive_conv_weights(const struct kith_conv *op, size_t rows,
                               const REAL *x, const REAL *dy, REAL *dw,
                               unsigned add)
{
    const size_t in = op->in, out = op->out;
    if (!(add & KITH_ADD_WEIGHTS))
        memset(dw, 0, op->kernel * op->kernel * in * out * sizeof *dw);
    struct naive_walk walk = {0};
    struct naive_pair p;
    while (naive_walk_next(op, rows, &walk, &p)) {
        for (size_t c = 0; c < in; c++) {
            for (size_t o = 0; o < out; o++)
                dw[(p.tap * in + c) * out + o] +=
                    x[p.input * in + c] * dy[p.output * out + o];
        }
    }
}

static void naive_conv_backward(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    const size_t pixels = a->rows * op->out_height * op->out_width;
    naive_activate_backward(op->activation, pixels * op->out, NULL, a->y,
                            a->dy);
    if (a->dx != NULL)
        naive_conv_data(op, a->rows, a->weight, a->dy, a->dx, a->flags);
    if (a->dweight != NULL)
        naive_conv_weights(op, a->rows, a->x, a->dy, a->dweight, a->flags);
    if (a->dbias != NULL)
        naive_bias_backward(pixels, op->out, a->dy, a->dbias, a->flags);
}

static const struct kith_kernel naive_conv_kernel = {
    .forward = naive_conv, .backward = naive_conv_backward};

/* Which elements share one mean: element (row, pixel, channel) belongs to set
 *   BATCH channel   GROUP row * groups + channel / (channels / groups)
 *   LAYER row (pixels = 1) */
static size_t naive_set(const struct kith_norm *op, size_t i)
{
    const size_t channel = i % op->channels;
    const size_t row = i / op->channels / op->pixels;
    switch (op->kind) {
    case KITH_NORM_BATCH:
        return channel;
    case KITH_NORM_GROUP:
        return row * op->groups + channel / (op->channels / op->groups);
    case KITH_NORM_LAYER:
        break;
    }
    return row;
}

/* Elements of one set. */
static size_t naive_set_size(const struct kith_norm *op, size_t rows)
{
    switch (op->kind) {
    case KITH_NORM_BATCH:
        return rows * op->pixels;
    case KITH_NORM_GROUP:
        return op->pixels * (op->channels / op->groups);
    case KITH_NORM_LAYER:
        break;
    }
    return op->pixels * op->channels;
}

struct naive_moments {
    double mean, variance;
};

/* Two passes in float64 over one set. Its elements are found by walking all of
 * the tensor: slow, and plainly right. */
static struct naive_moments naive_moments_of(const struct kith_norm *op,
                                             size_t n, size_t size, size_t set,
                                             const REAL *x)
{
    struct naive_moments m = {0};
    for (size_t i = 0; i < n; i++)
        m.mean += naive_set(op, i) == set ? (double)x[i] : 0;
    m.mean /= (double)size;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - m.mean;
        m.variance += naive_set(op, i) == set ? d * d : 0;
    }
    m.variance /= (double)size;
    return m;
}

/* buffer <- buffer + momentum (batch's - buffer), variance unbiased. */
static void naive_buffers_move(const struct kith_norm *op, size_t channel,
                               size_t size, const struct naive_moments *m,
                               REAL *buffers)
{
    const double n = (double)size, unbiased = size > 1 ? n / (n - 1) : 1;
    REAL *mean = &buffers[channel],
         *variance = &buffers[op->channels + channel];
    *mean += (REAL)(op->momentum * (m->mean - (double)*mean));
    *variance +=
        (REAL)(op->momentum * (m->variance * unbiased - (double)*variance));
}

static void naive_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = a->rows * op->pixels * op->channels;
    const size_t sets = kith_norm_saved(op, a->rows) / 2;
    const size_t size = naive_set_size(op, a->rows);
    const bool statistics = a->flags & KITH_STATISTICS;
    const bool stored = op->kind == KITH_NORM_BATCH && !statistics;
    const REAL *input = a->x, *gain = a->weight, *offset = a->bias;
    const REAL *kept = a->buffers;
    REAL *output = a->y, *out = a->saved;
    for (size_t set = 0; set < sets; set++) {
        struct naive_moments m;
        if (stored)
            m = (struct naive_moments){(double)kept[set],
                                       (double)kept[op->channels + set]};
        else
            m = naive_moments_of(op, n, size, set, input);
        const double inverse = 1 / sqrt(m.variance + op->epsilon);
        if (op->kind == KITH_NORM_BATCH && statistics)
            naive_buffers_move(op, set, size, &m, a->buffers);
        if (out != NULL) {
            out[set] = (REAL)m.mean;
            out[sets + set] = (REAL)inverse;
        }
        for (size_t i = 0; i < n; i++) {
            if (naive_set(op, i) != set)
                continue;
            const size_t c = i % op->channels;
            const double hat = ((double)input[i] - m.mean) * inverse;
            output[i] =
                naive_activate(op->activation, (REAL)(hat * (double)gain[c] +
                                                      (double)offset[c]));
        }
    }
}

/* dx = (g - mean g - hat mean(g hat)) / deviation, g = dy scale, hat = the
 * normalised x, means over the set. */
static void naive_norm_data(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = a->rows * op->pixels * op->channels;
    const size_t sets = kith_norm_saved(op, a->rows) / 2;
    const double size = (double)naive_set_size(op, a->rows);
    const REAL *x = a->x, *scale = a->weight, *saved = a->saved, *dy = a->dy;
    REAL *dx = a->dx;
    for (size_t set = 0; set < sets; set++) {
        const double mean = (double)saved[set];
        const double inverse = (double)saved[sets + set];
        double first = 0, second = 0;
        for (size_t i = 0; i < n; i++) {
            if (naive_set(op, i) != set)
                continue;
            const double g = (double)dy[i] * (double)scale[i % op->channels];
            first += g;
            second += g * ((double)x[i] - mean) * inverse;
        }
        for (size_t i = 0; i < n; i++) {
            if (naive_set(op, i) != set)
                continue;
            const double g = (double)dy[i] * (double)scale[i % op->channels];
            const double hat = ((double)x[i] - mean) * inverse;
            const double d = g - first / size - hat * (second / size);
            naive_put(&dx[i], (REAL)(d * inverse), a->flags & KITH_ADD_DATA);
        }
    }
}

static void naive_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = a->rows * op->pixels * op->channels;
    const size_t sets = kith_norm_saved(op, a->rows) / 2;
    const REAL *input = a->x, *kept = a->saved, *d = a->dy;
    REAL *gain = a->dweight, *offset = a->dbias;
    naive_activate_backward(op->activation, n, NULL, a->y, a->dy);
    if (a->dx != NULL)
        naive_norm_data(a);
    for (size_t c = 0; c < op->channels; c++) {
        double by_scale = 0, by_shift = 0;
        for (size_t i = c; i < n; i += op->channels) {
            const size_t set = naive_set(op, i);
            by_shift += (double)d[i];
            by_scale += (double)d[i] * ((double)input[i] - (double)kept[set]) *
                        (double)kept[sets + set];
        }
        if (gain != NULL)
            naive_put(&gain[c], (REAL)by_scale, a->flags & KITH_ADD_WEIGHTS);
        if (offset != NULL)
            naive_put(&offset[c], (REAL)by_shift, a->flags & KITH_ADD_WEIGHTS);
    }
}

static const struct kith_kernel naive_norm_kernel = {
    .forward = naive_norm, .backward = naive_norm_backward};

static void naive_max_pool(const struct kith_arguments *a)
{
    const struct kith_pool *op = a->shape;
    const size_t channels = op->channels, outs = op->out_height * op->out_width;
    const REAL *input = a->x;
    REAL *output = a->y;
    uint8_t *which = a->saved;
    for (size_t i = 0; i < a->rows * outs * channels; i++) {
        const size_t c = i % channels, pixel = i / channels % outs;
        const size_t row = i / channels / outs;
        bool found = false;
        for (size_t k = 0; k < op->kernel * op->kernel; k++) {
            size_t above, left;
            if (!naive_tap(pixel / op->out_width, k / op->kernel, op->stride,
                           op->pad, op->height, &above) ||
                !naive_tap(pixel % op->out_width, k % op->kernel, op->stride,
                           op->pad, op->width, &left))
                continue;
            const REAL v =
                input[((row * op->height + above) * op->width + left) *
                          channels +
                      c];
            /* Written so that a NaN wins, and stays. */
            if (!found || (output[i] == output[i] && !(v <= output[i]))) {
                output[i] = v;
                which[i] = (uint8_t)k;
                found = true;
            }
        }
    }
}

static void naive_max_pool_backward(const struct kith_arguments *a)
{
    const struct kith_pool *op = a->shape;
    const size_t channels = op->channels, outs = op->out_height * op->out_width;
    const size_t n = a->rows * op->height * op->width * channels;
    const uint8_t *which = a->saved;
    const REAL *d = a->dy;
    REAL *out = a->dx;
    if (!(a->flags & KITH_ADD_DATA))
        memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < a->rows * outs * channels; i++) {
        const size_t c = i % channels, pixel = i / channels % outs;
        const size_t row = i / channels / outs;
        const size_t above = pixel / op->out_width * op->stride +
                             which[i] / op->kernel - op->pad;
        const size_t left = pixel % op->out_width * op->stride +
                            which[i] % op->kernel - op->pad;
        out[((row * op->height + above) * op->width + left) * channels + c] +=
            d[i];
    }
}

static const struct kith_kernel naive_max_pool_kernel = {
    .forward = naive_max_pool, .backward = naive_max_pool_backward};

static void naive_mean_pool(const struct kith_arguments *a)
{
    const struct kith_mean *op = a->shape;
    const REAL *input = a->x;
    REAL *output = a->y;
    for (size_t i = 0; i < a->rows * op->channels; i++) {
        const size_t row = i / op->channels, c = i % op->channels;
        REAL sum = 0;
        for (size_t p = 0; p < op->pixels; p++)
            sum += input[(row * op->pixels + p) * op->channels + c];
        output[i] = sum / (REAL)op->pixels;
    }
}

static void naive_mean_pool_backward(const struct kith_arguments *a)
{
    const struct kith_mean *op = a->shape;
    const REAL *d = a->dy;
    REAL *out = a->dx;
    for (size_t i = 0; i < a->rows * op->pixels * op->channels; i++) {
        const size_t row = i / op->channels / op->pixels, c = i % op->channels;
        naive_put(&out[i], d[row * op->channels + c] / (REAL)op->pixels,
                  a->flags & KITH_ADD_DATA);
    }
}

static const struct kith_kernel naive_mean_pool_kernel = {
    .forward = naive_mean_pool, .backward = naive_mean_pool_backward};
