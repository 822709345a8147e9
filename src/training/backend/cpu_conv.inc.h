/* The two kernels of convolutions over f16. A tile of outputs stays in
 * registers while the window is walked: each weight vector that is loaded
 * serves every pixel of the tile, each value of x every vector of the panel.
 * The variant file says how many pixels fit: LINE_1 beside one vector of
 * outputs, LINE_2 beside two (0: never two). */

/* The compiler may not think about this value: it would trade three pointers
 * and two distances for sixteen pointers, and spill them. */
#define OPAQUE(value) __asm__("" : "+r"(value))

/* Pixel p of a tile lies p steps on; four share a pointer, because an address
 * is a pointer plus 0, 1 or 2 times one distance, or another distance. */
struct corner {
    const char *quarter[4];
    size_t step, step3; /* bytes */
};

FORCE struct corner corner_of(const float *x, size_t step)
{
    const char *from = (const char *)x;
    const size_t bytes = step * sizeof(float);
    return (struct corner){
        {from, from + 4 * bytes, from + 8 * bytes, from + 12 * bytes},
        bytes,
        3 * bytes};
}

FORCE float corner_at(const struct corner *c, int p)
{
    const size_t distance = p % 4 == 0   ? 0
                            : p % 4 == 3 ? c->step3
                                         : (size_t)(p % 4) * c->step;
    float value;
    memcpy(&value, c->quarter[p / 4] + distance, sizeof value);
    return value;
}

FORCE void corner_next(struct corner *c)
{
    for (int q = 0; q < 4; q++)
        c->quarter[q] += sizeof(float);
    OPAQUE(c->quarter[0]);
    OPAQUE(c->quarter[1]);
    OPAQUE(c->quarter[2]);
    OPAQUE(c->quarter[3]);
    OPAQUE(c->step3);
}

FORCE f16 load_of(const float *from, int b, int vectors, size_t last)
{
    return part_load(from + 16 * b, b + 1 < vectors ? 16 : last);
}

FORCE void store_of(float *to, f16 value, int b, int vectors, size_t last)
{
    part_store(to + 16 * b, value, b + 1 < vectors ? 16 : last);
}

/* `pixels` outputs from x on, `vectors` of 16 channels; `last` of them in the
 * last vector. pixels and vectors are constants where this is used. */
FORCE void line_tile(const struct kith_cpu_line *line, const float *x, float *y,
                     int pixels, int vectors)
{
    f16 sum[16][2];
    const size_t last = line->outs - 16 * (size_t)(vectors - 1);
    UNROLL for (int p = 0; p < pixels; p++)
    {
        UNROLL for (int b = 0; b < vectors; b++) sum[p][b] =
            line->bias == NULL ? f16_all(0)
                               : load_of(line->bias, b, vectors, last);
    }
    const float *w = line->w;
    for (size_t t = 0; t < line->taps; t++, x += line->x_row) {
        struct corner at = corner_of(x, line->x_step);
        for (size_t j = 0; j < line->run; j++, w += 16 * vectors) {
            f16 weight[2];
            UNROLL for (int b = 0; b < vectors; b++) weight[b] =
                f16_load(w + 16 * b);
            UNROLL for (int p = 0; p < pixels; p++)
            {
                const f16 value = f16_all(corner_at(&at, p));
                UNROLL for (int b = 0; b < vectors; b++) sum[p][b] =
                    f16_fma(value, weight[b], sum[p][b]);
            }
            corner_next(&at);
        }
    }
    UNROLL for (int p = 0; p < pixels; p++)
    {
        float *to = y + (size_t)p * line->y_step;
        UNROLL for (int b = 0; b < vectors; b++)
        {
            f16 value = sum[p][b];
            if (line->add)
                value = f16_add(load_of(to, b, vectors, last), value);
            if (line->relu)
                value = f16_relu(value);
            store_of(to, value, b, vectors, last);
        }
    }
}

/* Every size of a tile, beside one vector and beside two. */
#define TILES(X, b) X(1, b) X(2, b) X(3, b) X(4, b) X(5, b) X(6, b)
#define TILES_WIDE(X, b)                                                       \
    X(7, b) X(8, b) X(9, b) X(10, b) X(11, b) X(12, b) X(13, b) X(14, b)
#if LINE_1 > 6
#define TILES_1(X) TILES(X, 1) TILES_WIDE(X, 1) X(15, 1) X(16, 1)
#else
#define TILES_1(X) TILES(X, 1)
#endif
#if LINE_2 > 0
#define TILES_2(X) TILES(X, 2) TILES_WIDE(X, 2)
#else
#define TILES_2(X)
#endif

#define LINE_TILE(p, b)                                                        \
    static void line_tile_##p##_##b(const struct kith_cpu_line *line,          \
                                    const float *x, float *y)                  \
    {                                                                          \
        line_tile(line, x, y, p, b);                                           \
    }
#define LINE_NAME(p, b) line_tile_##p##_##b,
TILES_1(LINE_TILE)
TILES_2(LINE_TILE)

typedef void line_kernel(const struct kith_cpu_line *line, const float *x,
                         float *y);
static line_kernel *const line_narrow[] = {TILES_1(LINE_NAME) NULL};
static line_kernel *const line_wide[] = {TILES_2(LINE_NAME) NULL};

/* Tiles of nearly equal size: 32 pixels at most 14 at a time are 11, 11, 10. */
static void line_run(const struct kith_cpu_line *line, line_kernel *const *tile,
                     size_t most)
{
    const size_t tiles = (line->pixels + most - 1) / most;
    size_t done = 0;
    for (size_t i = 0; i < tiles; i++) {
        const size_t now = (line->pixels - done) / (tiles - i);
        tile[now - 1](line, line->x + done * line->x_step,
                      line->y + done * line->y_step);
        done += now;
    }
}

static void image_correlate(const struct kith_cpu_line *line)
{
    if (LINE_2 > 0 && line->outs > 16)
        line_run(line, line_wide, LINE_2);
    else
        line_run(line, line_narrow, LINE_1);
}

/* The same, for the weights: a tile of `count` values of a window's row by one
 * panel stays in registers while the pixels are walked. `heights` rows of the
 * window at once, where its rows are short. */
FORCE void outer_tile(const struct kith_cpu_outer *o, const float *x, float *dw,
                      int heights, int count, int vectors)
{
    f16 sum[28][2];
    const size_t last = o->outs - 16 * (size_t)(vectors - 1);
    UNROLL for (int i = 0; i < heights * count; i++)
    {
        UNROLL for (int b = 0; b < vectors; b++) sum[i][b] = f16_all(0);
    }
    for (size_t r = 0; r < o->rows; r++) {
        const float *from = x + r * o->x_line;
        const float *dy = o->dy + r * o->dy_line;
        for (size_t p = 0; p < o->pixels; p++) {
            f16 d[2];
            UNROLL for (int b = 0; b < vectors; b++) d[b] =
                load_of(dy, b, vectors, last);
            UNROLL for (int i = 0; i < heights * count; i++)
            {
                const f16 value = f16_all(
                    from[(size_t)(i / count) * o->x_row + (size_t)(i % count)]);
                UNROLL for (int b = 0; b < vectors; b++) sum[i][b] =
                    f16_fma(value, d[b], sum[i][b]);
            }
            from += o->x_step;
            dy += o->dy_step;
        }
    }
    UNROLL for (int i = 0; i < heights * count; i++)
    {
        float *to =
            dw + (size_t)(i / count * (int)o->run + i % count) * o->dw_step;
        UNROLL for (int b = 0; b < vectors; b++)
            store_of(to, f16_add(load_of(to, b, vectors, last), sum[i][b]), b,
                     vectors, last);
    }
}

#define OUTER_TILE(n, b)                                                       \
    static void outer_tile_##n##_##b(const struct kith_cpu_outer *o,           \
                                     const float *x, float *dw)                \
    {                                                                          \
        outer_tile(o, x, dw, 1, n, b);                                         \
    }
#define OUTER_NAME(n, b) outer_tile_##n##_##b,

TILES_1(OUTER_TILE)
TILES_2(OUTER_TILE)

typedef void outer_kernel(const struct kith_cpu_outer *o, const float *x,
                          float *dw);
static outer_kernel *const outer_narrow[] = {TILES_1(OUTER_NAME) NULL};
static outer_kernel *const outer_wide[] = {TILES_2(OUTER_NAME) NULL};

static void outer_run(const struct kith_cpu_outer *o, outer_kernel *const *tile,
                      size_t most)
{
    const size_t tiles = (o->run + most - 1) / most;
    for (size_t t = 0; t < o->taps; t++) {
        size_t done = 0;
        for (size_t i = 0; i < tiles; i++) {
            const size_t now = (o->run - done) / (tiles - i);
            tile[now - 1](o, o->x + t * o->x_row + done,
                          o->dw + (t * o->run + done) * o->dw_step);
            done += now;
        }
    }
}

static void image_outer(const struct kith_cpu_outer *o)
{
    /* A first layer's window, 3 x 3 of one or of three channels, is one tile
     * where there are registers for it. */
    const bool first = LINE_1 > 6 && o->taps == 3 && o->outs <= 16;
    if (first && o->run == 3)
        outer_tile(o, o->x, o->dw, 3, 3, 1);
    else if (first && o->run == 9)
        outer_tile(o, o->x, o->dw, 3, 9, 1);
    else if (LINE_2 > 0 && o->outs > 16)
        outer_run(o, outer_wide, LINE_2);
    else
        outer_run(o, outer_narrow, LINE_1);
}

static void image_gate(size_t rows, size_t n, const float *y, float *dy,
                       float *sums)
{
    for (size_t j = 0; j < n; j += 16) {
        const size_t count = n - j < 16 ? n - j : 16;
        f16 sum = f16_all(0);
        for (size_t i = 0; i < rows; i++) {
            float *at = dy + i * n + j;
            f16 d = part_load(at, count);
            if (y != NULL) {
                d = f16_where_positive(part_load(y + i * n + j, count), d);
                part_store(at, d, count);
            }
            sum = f16_add(sum, d);
        }
        if (sums != NULL)
            part_store(sums + j, f16_add(part_load(sums + j, count), sum),
                       count);
    }
}
