/* Draws a figure with cairo: PDF and SVG with their fonts embedded, or PNG of
 * 300 dots an inch. 88 x 62 mm, a column of two.
 *
 * Colours: Okabe and Ito's, which are told apart by most eyes, with dashes from
 * the second round on, so that a print in grey has both. */
#include "src/results/report/figure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "kith/text.h"

#ifdef KITH_HAVE_CAIRO
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

#define POINTS_PER_MM (72 / 25.4)
#define WIDTH (88 * POINTS_PER_MM)
#define HEIGHT (62 * POINTS_PER_MM)
#define PNG_SCALE (300 / 72.0)
#define FONT 7.0 /* points, as captions have it */
#define LEFT 34.0
#define RIGHT 6.0
#define TOP 6.0
#define BOTTOM 26.0
#define TICKS_MAX 12

struct ticks {
    double at[TICKS_MAX];
    int count, decimals;
};

struct drawing {
    cairo_t *cairo;
    const struct kith_figure *figure;
    struct kith_figure_axis x, y; /* widened to whole ticks */
    struct ticks x_ticks, y_ticks;
};

static const double colours[][3] = {
    {0.00, 0.45, 0.70}, {0.84, 0.37, 0.00}, {0.00, 0.62, 0.45},
    {0.80, 0.47, 0.65}, {0.90, 0.62, 0.00}, {0.34, 0.71, 0.91},
};
#define COLOURS (sizeof colours / sizeof *colours)

/* 1, 2 or 5 times a power of ten, so that some five steps fill the range. */
static double step_of(double range)
{
    const double rough = range / 5;
    const double power = pow(10, floor(log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

static void linear_ticks(struct kith_figure_axis *axis, struct ticks *ticks)
{
    if (axis->high <= axis->low) {
        const double about = fmax(fabs(axis->high), 1) / 10;
        axis->low -= about;
        axis->high += about;
    }
    const double step = step_of(axis->high - axis->low);
    const double first = floor(axis->low / step + 1e-9) * step;
    ticks->decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    for (double at = first; ticks->count < TICKS_MAX; at += step) {
        ticks->at[ticks->count++] = at;
        if (at >= axis->high - 1e-9 * step)
            break;
    }
    axis->low = first;
    axis->high = ticks->at[ticks->count - 1];
}

/* Whole powers of ten; a range within one has its ends at 1, 2 or 5 of it. */
static void log_ticks(struct kith_figure_axis *axis, struct ticks *ticks)
{
    static const double parts[] = {1, 2, 5};
    const double low = fmax(axis->low, 1e-300);
    const double high = fmax(axis->high, low);
    const double first = floor(log10(low)), last = ceil(log10(high));
    const bool is_wide = last - first > 2;
    const double every = ceil((last - first + 1) / TICKS_MAX);
    double below = pow(10, first), above = pow(10, last);
    for (double power = first; power <= last; power += every)
        for (int part = 0; part < (is_wide ? 1 : 3); part++) {
            const double at = parts[part] * pow(10, power);
            if (at <= low * (1 + 1e-9))
                below = fmax(below, at);
            if (at >= high * (1 - 1e-9))
                above = fmin(above, at);
        }
    above = above > below ? above : 10 * below;
    for (double power = first; power <= last; power += every)
        for (int part = 0; part < (is_wide ? 1 : 3); part++) {
            const double at = parts[part] * pow(10, power);
            if (at >= below * (1 - 1e-9) && at <= above * (1 + 1e-9) &&
                ticks->count < TICKS_MAX)
                ticks->at[ticks->count++] = at;
        }
    axis->low = below;
    axis->high = above;
    ticks->decimals = -1; /* as short as it is */
}

static double place(const struct kith_figure_axis *axis, double value)
{
    if (!axis->is_log)
        return (value - axis->low) / (axis->high - axis->low);
    const double low = log10(axis->low);
    return (log10(fmax(value, axis->low)) - low) / (log10(axis->high) - low);
}

static double x_of(const struct drawing *drawing, double value)
{
    return LEFT + place(&drawing->x, value) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct drawing *drawing, double value)
{
    return HEIGHT - BOTTOM -
           place(&drawing->y, value) * (HEIGHT - TOP - BOTTOM);
}

static double width_of(cairo_t *cairo, const char *text)
{
    cairo_text_extents_t extents;
    cairo_text_extents(cairo, text, &extents);
    return extents.x_advance;
}

/* `anchor`: what share of the text lies left of x. */
static void write_at(cairo_t *cairo, double x, double y, double anchor,
                     const char *text)
{
    cairo_move_to(cairo, x - anchor * width_of(cairo, text), y);
    cairo_show_text(cairo, text);
}

static void number(double value, int decimals, char text[32])
{
    if (decimals >= 0 && fabs(value) < 1e5)
        (void)kith_text_add(text, 32, 0, "%.*f", decimals,
                            fabs(value) < 1e-12 ? 0 : value);
    else
        (void)kith_text_add(text, 32, 0, "%g", value);
}

static void draw_axes(const struct drawing *drawing)
{
    cairo_t *const cairo = drawing->cairo;
    const double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    char text[32];
    cairo_set_line_width(cairo, 0.4);
    for (int i = 0; i < drawing->y_ticks.count; i++) {
        const double y = y_of(drawing, drawing->y_ticks.at[i]);
        cairo_set_source_rgb(cairo, 0.87, 0.87, 0.87);
        cairo_move_to(cairo, LEFT, y);
        cairo_line_to(cairo, right, y);
        cairo_stroke(cairo);
        cairo_set_source_rgb(cairo, 0, 0, 0);
        number(drawing->y_ticks.at[i], drawing->y_ticks.decimals, text);
        write_at(cairo, LEFT - 3, y + 0.35 * FONT, 1, text);
    }
    for (int i = 0; i < drawing->x_ticks.count; i++) {
        const double x = x_of(drawing, drawing->x_ticks.at[i]);
        cairo_move_to(cairo, x, bottom);
        cairo_line_to(cairo, x, bottom + 2);
        cairo_stroke(cairo);
        number(drawing->x_ticks.at[i], drawing->x_ticks.decimals, text);
        write_at(cairo, x, bottom + 3 + FONT, i == 0 ? 0.3 : 0.5, text);
    }
    cairo_move_to(cairo, LEFT, TOP);
    cairo_line_to(cairo, LEFT, bottom);
    cairo_line_to(cairo, right, bottom);
    cairo_stroke(cairo);
    write_at(cairo, (LEFT + right) / 2, HEIGHT - 4, 0.5,
             drawing->figure->x_title);
    cairo_save(cairo);
    cairo_translate(cairo, FONT + 1, (TOP + bottom) / 2);
    cairo_rotate(cairo, -acos(0));
    write_at(cairo, 0, 0, 0.5, drawing->figure->y_title);
    cairo_restore(cairo);
}

static void set_colour(cairo_t *cairo, uint32_t line, double alpha)
{
    static const double dashes[][2] = {{1, 0}, {4, 2}};
    const double *colour = colours[line % COLOURS];
    const bool is_dashed = line >= COLOURS;
    cairo_set_source_rgba(cairo, colour[0], colour[1], colour[2], alpha);
    cairo_set_dash(cairo, dashes[is_dashed], is_dashed ? 2 : 0, 0);
}

static void draw_band(const struct drawing *drawing, uint32_t index)
{
    const struct kith_figure_line *line = &drawing->figure->lines[index];
    cairo_t *const cairo = drawing->cairo;
    if (line->runs < 2 || line->count < 2)
        return;
    cairo_new_path(cairo); /* text leaves a point behind */
    for (uint32_t k = 0; k < line->count; k++)
        cairo_line_to(cairo, x_of(drawing, line->x[k]),
                      y_of(drawing, line->mean[k] + line->deviation[k]));
    for (uint32_t k = line->count; k > 0; k--)
        cairo_line_to(
            cairo, x_of(drawing, line->x[k - 1]),
            y_of(drawing, line->mean[k - 1] - line->deviation[k - 1]));
    cairo_close_path(cairo);
    set_colour(cairo, index, 0.18);
    cairo_fill(cairo);
}

static void draw_line(const struct drawing *drawing, uint32_t index)
{
    const struct kith_figure_line *line = &drawing->figure->lines[index];
    cairo_t *const cairo = drawing->cairo;
    set_colour(cairo, index, 1);
    cairo_set_line_width(cairo, 1);
    cairo_new_path(cairo);
    if (line->count == 1) {
        const double x = x_of(drawing, line->x[0]);
        const double off = line->deviation[0];
        cairo_move_to(cairo, x, y_of(drawing, line->mean[0] - off));
        cairo_line_to(cairo, x, y_of(drawing, line->mean[0] + off));
        cairo_stroke(cairo);
        cairo_arc(cairo, x, y_of(drawing, line->mean[0]), 1.8, 0, 4 * acos(0));
        cairo_fill(cairo);
        return;
    }
    for (uint32_t k = 0; k < line->count; k++)
        cairo_line_to(cairo, x_of(drawing, line->x[k]),
                      y_of(drawing, line->mean[k]));
    cairo_stroke(cairo);
}

/* How many points of lines lie in a corner: the legend takes the emptiest. */
static unsigned points_in(const struct drawing *drawing, double left,
                          double top, double width, double height)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < drawing->figure->line_count; i++) {
        const struct kith_figure_line *line = &drawing->figure->lines[i];
        for (uint32_t k = 0; k < line->count; k++) {
            const double x = x_of(drawing, line->x[k]);
            const double y = y_of(drawing, line->mean[k]);
            count +=
                x > left && x < left + width && y > top && y < top + height;
        }
    }
    return count;
}

static void draw_legend(const struct drawing *drawing)
{
    const struct kith_figure *figure = drawing->figure;
    cairo_t *const cairo = drawing->cairo;
    const double row = FONT + 1.5;
    const bool is_titled = figure->key[0] != '\0' && figure->line_count > 1;
    double width = is_titled ? width_of(cairo, figure->key) : 0;
    for (uint32_t i = 0; i < figure->line_count; i++)
        width = fmax(width, 15 + width_of(cairo, figure->lines[i].label));
    width += 6;
    const double height = row * (figure->line_count + is_titled) + 4;
    const double lefts[] = {LEFT + 4, WIDTH - RIGHT - width};
    const double tops[] = {TOP, HEIGHT - BOTTOM - height - 3};
    double left = lefts[1], top = tops[1];
    unsigned least = UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        const unsigned found =
            points_in(drawing, lefts[i & 1], tops[i >> 1], width, height);
        if (found < least) {
            least = found;
            left = lefts[i & 1];
            top = tops[i >> 1];
        }
    }
    cairo_set_source_rgba(cairo, 1, 1, 1, 0.8);
    cairo_rectangle(cairo, left, top, width, height);
    cairo_fill(cairo);
    double y = top + FONT;
    if (is_titled) {
        cairo_set_source_rgb(cairo, 0.3, 0.3, 0.3);
        write_at(cairo, left + 2, y, 0, figure->key);
        y += row;
    }
    for (uint32_t i = 0; i < figure->line_count; i++, y += row) {
        set_colour(cairo, i, 1);
        cairo_set_line_width(cairo, 1.4);
        cairo_move_to(cairo, left + 2, y - 0.35 * FONT);
        cairo_line_to(cairo, left + 13, y - 0.35 * FONT);
        cairo_stroke(cairo);
        cairo_set_dash(cairo, NULL, 0, 0);
        cairo_set_source_rgb(cairo, 0, 0, 0);
        write_at(cairo, left + 16, y, 0, figure->lines[i].label);
    }
}

static cairo_status_t give(void *out, const unsigned char *bytes,
                           unsigned int count)
{
    return fwrite(bytes, 1, count, out) == count ? CAIRO_STATUS_SUCCESS
                                                 : CAIRO_STATUS_WRITE_ERROR;
}

static cairo_surface_t *surface_of(enum kith_figure_kind kind, FILE *out)
{
    switch (kind) {
    case KITH_FIGURE_PDF:
        return cairo_pdf_surface_create_for_stream(give, out, WIDTH, HEIGHT);
    case KITH_FIGURE_SVG:
        return cairo_svg_surface_create_for_stream(give, out, WIDTH, HEIGHT);
    case KITH_FIGURE_PNG:
        break;
    }
    return cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                      (int)ceil(WIDTH * PNG_SCALE),
                                      (int)ceil(HEIGHT * PNG_SCALE));
}

static void draw(struct drawing *drawing)
{
    cairo_t *const cairo = drawing->cairo;
    (drawing->x.is_log ? log_ticks : linear_ticks)(&drawing->x,
                                                   &drawing->x_ticks);
    (drawing->y.is_log ? log_ticks : linear_ticks)(&drawing->y,
                                                   &drawing->y_ticks);
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, FONT);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    draw_axes(drawing);
    for (uint32_t i = 0; i < drawing->figure->line_count; i++)
        draw_band(drawing, i);
    for (uint32_t i = 0; i < drawing->figure->line_count; i++)
        draw_line(drawing, i);
    cairo_set_dash(cairo, NULL, 0, 0);
    draw_legend(drawing);
}

enum kith_err kith_figure_draw(const struct kith_figure *figure,
                               enum kith_figure_kind kind, FILE *out)
{
    cairo_surface_t *const surface = surface_of(kind, out);
    struct drawing drawing = {.cairo = cairo_create(surface),
                              .figure = figure,
                              .x = figure->x,
                              .y = figure->y};
    if (kind == KITH_FIGURE_PDF) /* The same bytes for the same runs. */
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
    if (kind == KITH_FIGURE_PNG)
        cairo_scale(drawing.cairo, PNG_SCALE, PNG_SCALE);
    draw(&drawing);
    cairo_status_t status = cairo_status(drawing.cairo);
    cairo_destroy(drawing.cairo);
    if (kind == KITH_FIGURE_PNG && status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png_stream(surface, give, out);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status == CAIRO_STATUS_SUCCESS     ? KITH_OK
           : status == CAIRO_STATUS_NO_MEMORY ? KITH_ENOMEM
                                              : KITH_EIO;
}

#else
enum kith_err kith_figure_draw(const struct kith_figure *figure,
                               enum kith_figure_kind kind, FILE *out)
{
    (void)figure;
    (void)kind;
    (void)out;
    return KITH_EUNSUPPORTED;
}
#endif
