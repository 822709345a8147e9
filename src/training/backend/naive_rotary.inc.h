/* Plain loops of rotary positions: elements i and i + size / 2 of a head of q
 * and of k turn by position 10000^(-2 i / size); v stays. REAL is float or
 * double. */

static void naive_turn(const struct kith_arguments *a, const REAL *from,
                       REAL *to, double sign)
{
    const struct kith_attention *op = a->shape;
    const size_t size = op->width / op->heads, half = size / 2;
    for (size_t at = 0; at < a->rows * op->context * 3 * op->width; at++) {
        const size_t channel = at % (3 * op->width), i = channel % size;
        const size_t position = at / (3 * op->width) % op->context;
        if (channel >= 2 * op->width) {
            to[at] = from[at];
            continue;
        }
        if (i >= half)
            continue; /* with its partner */
        const double angle =
            (double)position * pow(10000, -2.0 * (double)i / (double)size);
        const double c = cos(angle), s = sign * sin(angle);
        const double x = (double)from[at], y = (double)from[at + half];
        to[at] = (REAL)(x * c - y * s);
        to[at + half] = (REAL)(y * c + x * s);
    }
}

static void naive_rotary(const struct kith_arguments *a)
{
    naive_turn(a, a->x, a->y, 1);
}

static void naive_rotary_backward(const struct kith_arguments *a)
{
    naive_turn(a, a->dy, a->dx, -1);
}

static const struct kith_kernel naive_rotary_kernel = {
    .forward = naive_rotary, .backward = naive_rotary_backward};
