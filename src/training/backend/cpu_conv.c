/* Convolutions of backend cpu, without unfolding the images: a window's row is
 * kernel * in neighbouring floats of an image, so that each output pixel is
 *
 *   y[p] = sum over window rows t of  x[from p's place in row t, a run] W[t]
 *
 * for the tile kernels of cpu_conv.inc.h, at any stride. Only the border needs
 * care: bands of an image are copied into a frame of zeros (2 % of the time of
 * a 3 x 3 convolution over 16 channels).
 *
 * The way back to the data is the same sum over dy with the weights turned
 * round; a stride s cuts dx into s x s lattices of pixels, each with the part
 * of the window that meets it. The way back to the weights keeps tiles of dw
 * in registers while it walks the pixels.
 *
 * Work is cut into KITH_IMAGE_PARTS parts; each weight gradient is summed part
 * by part in their order, whoever did them. */
#include <string.h>

#include "cpu.h"
#include "cpu_image.h"
#include "cpu_ops.h"
#include "pool.h"

enum {
    PARTS = KITH_IMAGE_PARTS,
    VECTOR = 16,
    FRAME = 1 << 14,      /* floats of a band, at least one line of it: L2 */
    BAND_PIXELS = 64,     /* of a band that is cut for the sake of threads */
    PARTIAL = 1 << 20,    /* floats of partial weight gradients in all */
    PARTIAL_PIXELS = 128, /* of one: clearing and adding cost about five */
    GATE_PIXELS = 64      /* rows of dy that stay in the nearest cache */
};

static size_t whole(size_t n)
{
    return (n + VECTOR - 1) / VECTOR * VECTOR;
}

/* One correlation of (rows, height, width, in) with windows: output line i,
 * pixel j read from input line i * stride + top, pixel j * stride + left. */
struct sweep {
    size_t rows, height, width, in, stride;
    ptrdiff_t top, left; /* negative: padding */
    size_t taps, reach;  /* the window: lines, pixels */
    size_t lines, pixels, out;
    size_t band;  /* output lines per band */
    size_t bands; /* per image */
    bool framed;  /* some window leaves the image */
};

static void sweep_plan(struct sweep *s)
{
    const ptrdiff_t below =
        s->top + (ptrdiff_t)((s->lines - 1) * s->stride + s->taps);
    const ptrdiff_t right =
        s->left + (ptrdiff_t)((s->pixels - 1) * s->stride + s->reach);
    s->framed = s->top < 0 || s->left < 0 || below > (ptrdiff_t)s->height ||
                right > (ptrdiff_t)s->width;
    const size_t line = ((s->pixels - 1) * s->stride + s->reach) * s->in;
    const size_t fits = FRAME / line;
    size_t band =
        fits < s->taps + s->stride ? 1 : (fits - s->taps) / s->stride + 1;
    /* Few images: enough bands for every part, if they are worth one. */
    const size_t worth = s->lines * s->pixels / BAND_PIXELS;
    const size_t wanted = kith_least((PARTS + s->rows - 1) / s->rows, worth);
    if (wanted > 1)
        band = kith_least(band, (s->lines + wanted - 1) / wanted);
    s->bands = (s->lines + band - 1) / band;
    s->band = (s->lines + s->bands - 1) / s->bands;
}

static size_t sweep_frame_line(const struct sweep *s)
{
    return ((s->pixels - 1) * s->stride + s->reach) * s->in;
}

/* Floats of one part's frame. */
static size_t sweep_frame(const struct sweep *s)
{
    if (!s->framed)
        return 0;
    return whole(((s->band - 1) * s->stride + s->taps) * sweep_frame_line(s));
}

/* A band ready to be read: its first window's corner, floats per line. */
struct band {
    const float *x;
    size_t line;       /* floats */
    size_t row, first; /* image; first output line */
    size_t count;      /* output lines */
};

/* One input line into the frame; the image's pixels `from` to `to` of it. */
static void frame_line(const struct sweep *s, const float *x, ptrdiff_t y,
                       float *to)
{
    const size_t length = sweep_frame_line(s);
    const ptrdiff_t pixels = (ptrdiff_t)(length / s->in);
    if (y < 0 || y >= (ptrdiff_t)s->height) {
        memset(to, 0, length * sizeof *to);
        return;
    }
    const ptrdiff_t from = s->left < 0 ? 0 : s->left;
    const ptrdiff_t end = s->left + pixels < (ptrdiff_t)s->width
                              ? s->left + pixels
                              : (ptrdiff_t)s->width;
    if (end <= from) {
        memset(to, 0, length * sizeof *to);
        return;
    }
    const size_t before = (size_t)(from - s->left) * s->in;
    const size_t inside = (size_t)(end - from) * s->in;
    const float *line = x + ((size_t)y * s->width + (size_t)from) * s->in;
    memset(to, 0, before * sizeof *to);
    memcpy(to + before, line, inside * sizeof *to);
    memset(to + before + inside, 0, (length - before - inside) * sizeof *to);
}

/* Band number `task` of all images; framed in `frame` where it must be. */
static struct band band_of(const struct sweep *s, size_t task, const float *x,
                           float *frame)
{
    struct band b = {.row = task / s->bands,
                     .first = task % s->bands * s->band};
    b.count = kith_least(s->band, s->lines > b.first ? s->lines - b.first : 0);
    const float *image = x + b.row * s->height * s->width * s->in;
    const ptrdiff_t top = s->top + (ptrdiff_t)(b.first * s->stride);
    if (!s->framed) {
        b.x = image + ((size_t)top * s->width + (size_t)s->left) * s->in;
        b.line = s->width * s->in;
        return b;
    }
    b.x = frame;
    b.line = sweep_frame_line(s);
    const size_t deep = b.count == 0 ? 0 : (b.count - 1) * s->stride + s->taps;
    for (size_t i = 0; i < deep; i++)
        frame_line(s, image, top + (ptrdiff_t)i, frame + i * b.line);
    return b;
}

/* Weights of the packed panel that starts at output channel `o`. */
static size_t panel_width(const struct kith_cpu_image *kernels, size_t out,
                          size_t o)
{
    return out - o > VECTOR && kernels->panel > VECTOR ? 2 * VECTOR : VECTOR;
}

/* One correlation under way. */
struct correlation {
    const struct kith_cpu_image *kernels;
    struct sweep sweep;
    const float *x, *w, *bias; /* w packed */
    float *y;
    size_t y_image, y_line, y_step; /* floats */
    bool add, relu;
    float *frames;
};

static void correlate_band(const struct correlation *c, const struct band *b)
{
    const struct sweep *s = &c->sweep;
    const size_t run = s->reach * s->in;
    size_t width;
    for (size_t o = 0; o < s->out; o += width) {
        width = panel_width(c->kernels, s->out, o);
        struct kith_cpu_line line = {.w = c->w + o * s->taps * run,
                                     .bias =
                                         c->bias == NULL ? NULL : c->bias + o,
                                     .pixels = s->pixels,
                                     .taps = s->taps,
                                     .run = run,
                                     .outs = kith_least(width, s->out - o),
                                     .x_step = s->stride * s->in,
                                     .x_row = b->line,
                                     .y_step = c->y_step,
                                     .add = c->add,
                                     .relu = c->relu};
        for (size_t i = 0; i < b->count; i++) {
            line.x = b->x + i * s->stride * b->line;
            line.y =
                c->y + b->row * c->y_image + (b->first + i) * c->y_line + o;
            c->kernels->correlate(&line);
        }
    }
}

static void correlate_part(void *context, size_t part)
{
    const struct correlation *c = context;
    const size_t tasks = c->sweep.rows * c->sweep.bands;
    float *frame = c->frames + part * sweep_frame(&c->sweep);
    for (size_t t = tasks * part / PARTS; t < tasks * (part + 1) / PARTS; t++) {
        const struct band b = band_of(&c->sweep, t, c->x, frame);
        correlate_band(c, &b);
    }
}

/* The forward pass as a sweep. A 1 x 1 window at stride 1 sees an image as one
 * line. */
static struct sweep sweep_forward(const struct kith_conv *op, size_t rows)
{
    struct sweep s = {.rows = rows,
                      .height = op->height,
                      .width = op->width,
                      .in = op->in,
                      .stride = op->stride,
                      .top = -(ptrdiff_t)op->pad,
                      .left = -(ptrdiff_t)op->pad,
                      .taps = op->kernel,
                      .reach = op->kernel,
                      .lines = op->out_height,
                      .pixels = op->out_width,
                      .out = op->out};
    sweep_plan(&s);
    return s;
}

/* The lattice of input pixels (down, across) modulo the stride, as a sweep over
 * dy; *first is its first line or pixel. No window meets it: taps or reach is
 * 0, no pixel in it: lines or pixels. */
static void lattice(const struct kith_conv *op, size_t phase, size_t size,
                    size_t *first, size_t *count, size_t *taps, ptrdiff_t *from)
{
    const size_t s = op->stride;
    *first = (phase + s - op->pad % s) % s;
    *count = size > *first ? (size - *first + s - 1) / s : 0;
    *taps = op->kernel > phase ? (op->kernel - phase + s - 1) / s : 0;
    *from = (ptrdiff_t)((*first + op->pad - phase) / s) - (ptrdiff_t)*taps + 1;
}

struct lattices {
    struct sweep sweep;
    size_t down, across, first_line, first_pixel;
};

static bool lattice_of(const struct kith_conv *op, size_t rows, size_t index,
                       struct lattices *l)
{
    struct sweep *s = &l->sweep;
    l->down = index / op->stride;
    l->across = index % op->stride;
    *s = (struct sweep){.rows = rows,
                        .height = op->out_height,
                        .width = op->out_width,
                        .in = op->out,
                        .stride = 1,
                        .out = op->in};
    lattice(op, l->down, op->height, &l->first_line, &s->lines, &s->taps,
            &s->top);
    lattice(op, l->across, op->width, &l->first_pixel, &s->pixels, &s->reach,
            &s->left);
    if (s->lines == 0 || s->pixels == 0 || s->taps == 0 || s->reach == 0)
        return false;
    sweep_plan(s);
    return true;
}

/* (taps run, out) -> panels of (taps run, width), zeros beyond out. */
static void pack_forward(const struct kith_cpu_image *kernels,
                         const struct kith_conv *op, const float *w, float *to)
{
    const size_t depth = op->kernel * op->kernel * op->in;
    size_t width;
    for (size_t o = 0; o < op->out; o += width) {
        width = panel_width(kernels, op->out, o);
        const size_t outs = kith_least(width, op->out - o);
        for (size_t i = 0; i < depth; i++, to += width) {
            memcpy(to, w + i * op->out + o, outs * sizeof *to);
            memset(to + outs, 0, (width - outs) * sizeof *to);
        }
    }
}

/* The windows that a lattice meets, turned round, in and out exchanged. */
static void pack_backward(const struct kith_cpu_image *kernels,
                          const struct kith_conv *op, const struct lattices *l,
                          const float *w, float *to)
{
    const size_t taps = l->sweep.taps, reach = l->sweep.reach;
    const size_t in = op->in, out = op->out;
    size_t width;
    for (size_t c = 0; c < in; c += width) {
        width = panel_width(kernels, in, c);
        const size_t ins = kith_least(width, in - c);
        for (size_t t = 0; t < taps * reach; t++) {
            const size_t down = l->down + op->stride * (taps - 1 - t / reach);
            const size_t across =
                l->across + op->stride * (reach - 1 - t % reach);
            const float *from =
                w + ((down * op->kernel + across) * in + c) * out;
            for (size_t o = 0; o < out; o++, to += width)
                for (size_t i = 0; i < width; i++)
                    to[i] = i < ins ? from[i * out + o] : 0;
        }
    }
}

/* Floats of packed weights, either way. */
static size_t packed_size(const struct kith_conv *op)
{
    const size_t taps = op->kernel * op->kernel;
    const size_t forward = taps * op->in * whole(op->out);
    const size_t backward = taps * op->out * whole(op->in);
    return whole(forward > backward ? forward : backward);
}

/* Floats of one partial gradient of the weights, and how many there are. */
static size_t partial_size(const struct kith_conv *op)
{
    return whole(op->kernel * op->kernel * op->in * op->out);
}

static size_t partial_count(const struct kith_conv *op, size_t rows)
{
    const size_t fit = PARTIAL / partial_size(op);
    const size_t worth = rows * op->out_height * op->out_width / PARTIAL_PIXELS;
    const size_t count = kith_least(kith_least(fit, worth), PARTS);
    return count < 1 ? 1 : count;
}

/* packed weights | frames of the parts | partial gradients | bias sums */
struct layout {
    size_t frames, partials, biases, end; /* floats */
};

static struct layout layout_of(const struct kith_conv *op, size_t rows)
{
    const struct sweep forward = sweep_forward(op, rows);
    size_t frame = sweep_frame(&forward);
    for (size_t i = 0; i < op->stride * op->stride; i++) {
        struct lattices l;
        if (lattice_of(op, rows, i, &l) && sweep_frame(&l.sweep) > frame)
            frame = sweep_frame(&l.sweep);
    }
    struct layout at = {.frames = packed_size(op)};
    at.partials = at.frames + PARTS * frame;
    at.biases = at.partials + partial_count(op, rows) * partial_size(op);
    at.end = at.biases + PARTS * whole(op->out);
    return at;
}

static size_t conv_scratch(const void *shape, size_t rows)
{
    return layout_of(shape, rows).end * sizeof(float);
}

static void conv(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    float *room = a->scratch;
    struct correlation c = {.kernels = kith_cpu_best()->image,
                            .sweep = sweep_forward(op, a->rows),
                            .x = a->x,
                            .w = room,
                            .bias = a->bias,
                            .y = a->y,
                            .y_image = op->out_height * op->out_width * op->out,
                            .y_line = op->out_width * op->out,
                            .y_step = op->out,
                            .relu = op->activation == KITH_ACTIVATION_RELU,
                            .frames = room + layout_of(op, a->rows).frames};
    pack_forward(c.kernels, op, a->weight, room);
    kith_pool_run(PARTS, correlate_part, &c);
}

/* dx <- 0 on a lattice that no window meets. */
static void clear_lattice(const struct kith_conv *op, size_t rows,
                          const struct lattices *l, float *dx)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t y = l->first_line; y < op->height; y += op->stride) {
            float *line = dx + (row * op->height + y) * op->width * op->in;
            for (size_t x = l->first_pixel; x < op->width; x += op->stride)
                memset(line + x * op->in, 0, op->in * sizeof *line);
        }
    }
}

static void conv_data(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    const bool add = a->flags & KITH_ADD_DATA;
    float *room = a->scratch, *dx = a->dx;
    for (size_t i = 0; i < op->stride * op->stride; i++) {
        struct lattices l;
        if (!lattice_of(op, a->rows, i, &l)) {
            if (!add)
                clear_lattice(op, a->rows, &l, dx);
            continue;
        }
        struct correlation c = {
            .kernels = kith_cpu_best()->image,
            .sweep = l.sweep,
            .x = a->dy,
            .w = room,
            .y = dx + (l.first_line * op->width + l.first_pixel) * op->in,
            .y_image = op->height * op->width * op->in,
            .y_line = op->stride * op->width * op->in,
            .y_step = op->stride * op->in,
            .add = add,
            .frames = room + layout_of(op, a->rows).frames};
        pack_backward(c.kernels, op, &l, a->weight, room);
        kith_pool_run(PARTS, correlate_part, &c);
    }
}

/* The gradient of the weights under way: task (group of bands, panel). */
struct gradient {
    const struct kith_cpu_image *kernels;
    const struct kith_conv *op;
    struct sweep sweep;
    const float *x, *dy;
    float *frames, *partials;
    size_t groups, panels;
};

static void gradient_band(const struct gradient *g, const struct band *b,
                          size_t o, float *dw)
{
    const struct kith_conv *op = g->op;
    const size_t pixel = (b->row * op->out_height + b->first) * op->out_width;
    const struct kith_cpu_outer outer = {
        .x = b->x,
        .dy = g->dy + pixel * op->out + o,
        .dw = dw + o,
        .rows = b->count,
        .pixels = op->out_width,
        .taps = op->kernel,
        .run = op->kernel * op->in,
        .outs = kith_least(g->kernels->panel, op->out - o),
        .x_line = op->stride * b->line,
        .x_step = op->stride * op->in,
        .x_row = b->line,
        .dy_line = op->out_width * op->out,
        .dy_step = op->out,
        .dw_step = op->out};
    g->kernels->outer(&outer);
}

static void gradient_part(void *context, size_t part)
{
    const struct gradient *g = context;
    const size_t tasks = g->groups * g->panels;
    const size_t bands = g->sweep.rows * g->sweep.bands;
    const size_t depth = g->op->kernel * g->op->kernel * g->op->in;
    float *frame = g->frames + part * sweep_frame(&g->sweep);
    for (size_t t = tasks * part / PARTS; t < tasks * (part + 1) / PARTS; t++) {
        const size_t group = t / g->panels;
        const size_t o = t % g->panels * g->kernels->panel;
        const size_t outs = kith_least(g->kernels->panel, g->op->out - o);
        float *dw = g->partials + group * partial_size(g->op);
        for (size_t i = 0; i < depth; i++)
            memset(dw + i * g->op->out + o, 0, outs * sizeof *dw);
        for (size_t i = bands * group / g->groups;
             i < bands * (group + 1) / g->groups; i++) {
            const struct band b = band_of(&g->sweep, i, g->x, frame);
            gradient_band(g, &b, o, dw);
        }
    }
}

/* target (n) (+)= the sum of `count` vectors that lie `step` apart. */
static void add_partials(size_t n, size_t count, size_t step,
                         const float *partials, bool add, float *target)
{
    const struct kith_cpu_loops *loops = kith_cpu_best();
    if (!add)
        memcpy(target, partials, n * sizeof *target);
    for (size_t i = add ? 0 : 1; i < count; i++)
        loops->add(n, 1, partials + i * step, target);
}

static void conv_weights(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    const struct layout at = layout_of(op, a->rows);
    float *room = a->scratch;
    struct gradient g = {.kernels = kith_cpu_best()->image,
                         .op = op,
                         .sweep = sweep_forward(op, a->rows),
                         .x = a->x,
                         .dy = a->dy,
                         .frames = room + at.frames,
                         .partials = room + at.partials,
                         .groups = partial_count(op, a->rows)};
    g.panels = (op->out + g.kernels->panel - 1) / g.kernels->panel;
    kith_pool_run(PARTS, gradient_part, &g);
    add_partials(op->kernel * op->kernel * op->in * op->out, g.groups,
                 partial_size(op), g.partials, a->flags & KITH_ADD_WEIGHTS,
                 a->dweight);
}

/* dy gated by y, and its columns summed, part by part. */
struct gate {
    const struct kith_cpu_image *kernels;
    size_t pixels, out;
    const float *y;
    float *dy, *sums;
};

static void gate_part(void *context, size_t part)
{
    const struct gate *g = context;
    const size_t end = g->pixels * (part + 1) / PARTS;
    float *sums = NULL;
    if (g->sums != NULL) {
        sums = g->sums + part * whole(g->out);
        memset(sums, 0, g->out * sizeof *sums);
    }
    for (size_t p = g->pixels * part / PARTS; p < end; p += GATE_PIXELS)
        g->kernels->gate(kith_least(GATE_PIXELS, end - p), g->out,
                         g->y == NULL ? NULL : g->y + p * g->out,
                         g->dy + p * g->out, sums);
}

static void conv_backward(const struct kith_arguments *a)
{
    const struct kith_conv *op = a->shape;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    if (relu || a->dbias != NULL) {
        struct gate g = {.kernels = kith_cpu_best()->image,
                         .pixels = a->rows * op->out_height * op->out_width,
                         .out = op->out,
                         .y = relu ? a->y : NULL,
                         .dy = a->dy};
        if (a->dbias != NULL)
            g.sums = (float *)a->scratch + layout_of(op, a->rows).biases;
        kith_pool_run(PARTS, gate_part, &g);
        if (a->dbias != NULL)
            add_partials(op->out, PARTS, whole(op->out), g.sums,
                         a->flags & KITH_ADD_WEIGHTS, a->dbias);
    }
    if (a->dweight != NULL)
        conv_weights(a);
    if (a->dx != NULL)
        conv_data(a);
}

const struct kith_kernel kith_cpu_conv_kernel = {
    .scratch = conv_scratch, .forward = conv, .backward = conv_backward};
