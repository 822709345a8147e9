/* Plain loops of the root-mean-square norm, r = 1 / sqrt(mean x^2 + epsilon):
 *   y = x r scale;  with g = dy scale, h = x r:
 *   dx = r (g - h mean(g h));  dscale = sum dy h
 * REAL is float or double. */

static void naive_rms_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels;
    const REAL *x = a->x, *scale = a->weight;
    REAL *y = a->y, *saved = a->saved;
    for (size_t i = 0; i < a->rows; i++, x += n, y += n) {
        double square = 0;
        for (size_t j = 0; j < n; j++)
            square += (double)x[j] * (double)x[j];
        const double inverse = 1 / sqrt(square / (double)n + op->epsilon);
        if (saved != NULL)
            saved[i] = (REAL)inverse;
        for (size_t j = 0; j < n; j++)
            y[j] = (REAL)((double)x[j] * inverse * (double)scale[j]);
    }
}

static void naive_rms_norm_data(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels;
    const REAL *x = a->x, *dy = a->dy, *scale = a->weight, *saved = a->saved;
    REAL *dx = a->dx;
    for (size_t i = 0; i < a->rows; i++, x += n, dy += n, dx += n) {
        const double inverse = (double)saved[i];
        double product = 0;
        for (size_t j = 0; j < n; j++)
            product += (double)dy[j] * (double)scale[j] * (double)x[j];
        product *= inverse / (double)n;
        for (size_t j = 0; j < n; j++) {
            const double g = (double)dy[j] * (double)scale[j];
            const double h = (double)x[j] * inverse;
            naive_put(&dx[j], (REAL)(inverse * (g - h * product)),
                      a->flags & KITH_ADD_DATA);
        }
    }
}

static void naive_rms_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels;
    const REAL *x = a->x, *dy = a->dy, *saved = a->saved;
    REAL *dscale = a->dweight;
    for (size_t j = 0; dscale != NULL && j < n; j++) {
        double sum = 0;
        for (size_t i = 0; i < a->rows; i++)
            sum +=
                (double)dy[i * n + j] * (double)x[i * n + j] * (double)saved[i];
        naive_put(&dscale[j], (REAL)sum, a->flags & KITH_ADD_WEIGHTS);
    }
    if (a->dx != NULL)
        naive_rms_norm_data(a);
}

static const struct kith_kernel naive_rms_norm_kernel = {
    .forward = naive_rms_norm, .backward = naive_rms_norm_backward};
