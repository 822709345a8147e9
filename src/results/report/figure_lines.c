/* What a figure draws: of each setting the mean of its runs and their
 * deviation, at the same places.
 *
 * Runs of one setting have points at other places, in bytes at least, so each
 * is read between its points (linearly in the axis as it is drawn), from where
 * all have begun to where the first has ended. Rows whose x does not grow are
 * left out: what a run had sent before it sent anything more.
 *
 * Test: tests/integration/test_figure.sh. */
#include "src/results/report/figure.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"

/* Rows of one run: more are not drawn. */
#define ROWS_MAX 100000u

static const struct quantity {
    const char *name, *column, *title;
    enum { PLAIN, SHARE, COUNT, BYTES, SECONDS } kind;
} quantities[] = {
    {"time", "time_s", "time", SECONDS},
    {"steps", "step", "steps of all peers", COUNT},
    {"samples", "samples", "samples of all peers", COUNT},
    {"bytes", "bytes_sent", "bytes sent by all peers", BYTES},
    {"accuracy", "accuracy", "test accuracy", SHARE},
    {"loss", "loss", "test loss", PLAIN},
    {"distance", "consensus_distance", "consensus distance", PLAIN},
    {"staleness", "staleness", "staleness, steps", PLAIN},
};
#define QUANTITIES (sizeof quantities / sizeof *quantities)

struct run {
    double *x, *y; /* (count) */
    uint32_t count;
};

static enum kith_err fail(char *error, const char *what, const char *found)
{
    return kith_text_fail(
        error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
        "drawing --figure %s: %s; give Y:X of time, steps, samples, bytes, "
        "accuracy, loss, distance and staleness, each also as log(...), as in "
        "accuracy:bytes",
        what, found);
}

/* "bytes", "log(bytes)": NULL where it is neither. */
static const struct quantity *read_axis(const char *text, size_t length,
                                        bool *is_log)
{
    *is_log =
        length > 5 && strncmp(text, "log(", 4) == 0 && text[length - 1] == ')';
    if (*is_log) {
        text += 4;
        length -= 5;
    }
    for (size_t i = 0; i < QUANTITIES; i++)
        if (strlen(quantities[i].name) == length &&
            memcmp(quantities[i].name, text, length) == 0)
            return &quantities[i];
    return NULL;
}

static int column_of(const struct kith_query *query, const char *name)
{
    int at = sqlite3_column_count(query->statement) - 1;
    while (at >= 0 &&
           strcmp(sqlite3_column_name(query->statement, at), name) != 0)
        at--;
    return at;
}

static bool add_point(struct run *run, double x, double y)
{
    if ((run->count & (run->count - 1)) == 0) {
        const size_t room = run->count == 0 ? 1 : 2 * (size_t)run->count;
        double *const xs = realloc(run->x, room * sizeof *xs);
        run->x = xs != NULL ? xs : run->x;
        double *const ys = realloc(run->y, room * sizeof *ys);
        run->y = ys != NULL ? ys : run->y;
        if (xs == NULL || ys == NULL)
            return false;
    }
    run->x[run->count] = x;
    run->y[run->count++] = y;
    return true;
}

static void run_close(struct run *run)
{
    free(run->x);
    free(run->y);
    *run = (struct run){0};
}

/* As the axis has it; NaN where a logarithm has none. */
static double on_axis(double value, bool is_log)
{
    return !is_log ? value : value > 0 ? log10(value) : NAN;
}

static enum kith_err read_run(struct kith_database *database, uint32_t run_id,
                              const struct quantity *x, bool is_log,
                              const struct quantity *y, struct run *run)
{
    struct kith_query query;
    enum kith_err err = KITH_OK;
    kith_database_query(database, "figure", &query, "ii", (int64_t)run_id,
                        (int64_t)ROWS_MAX);
    const int x_at = column_of(&query, x->column);
    const int y_at = column_of(&query, y->column);
    while (err == KITH_OK && kith_query_next(&query)) {
        const double at = on_axis(kith_query_real(&query, x_at), is_log);
        const double value = kith_query_real(&query, y_at);
        const bool grows = run->count == 0 || at > run->x[run->count - 1];
        if (isfinite(at) && isfinite(value) && grows &&
            !add_point(run, at, value))
            err = KITH_ENOMEM;
    }
    return kith_query_end(&query) ? err : KITH_EPARSE;
}

/* Between two points, from `*from` on, which only grows. */
static double read_between(const struct run *run, double at, uint32_t *from)
{
    while (*from + 1 < run->count && run->x[*from + 1] < at)
        (*from)++;
    if (*from + 1 >= run->count)
        return run->y[run->count - 1];
    const double left = run->x[*from], right = run->x[*from + 1];
    const double share = at <= left ? 0 : (at - left) / (right - left);
    return run->y[*from] + share * (run->y[*from + 1] - run->y[*from]);
}

/* Welford's running mean and squares. */
static void add_up(struct kith_figure_line *line, uint32_t at, double value,
                   uint32_t n)
{
    const double off = value - line->mean[at];
    line->mean[at] += off / n;
    line->deviation[at] += off * (value - line->mean[at]);
}

static void make_line(const struct run *runs, uint32_t count, bool is_log,
                      struct kith_figure_line *line)
{
    double low = -INFINITY, high = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        low = fmax(low, runs[i].x[0]);
        high = fmin(high, runs[i].x[runs[i].count - 1]);
    }
    line->runs = count;
    line->count = high > low ? KITH_FIGURE_POINTS : 1;
    for (uint32_t k = 0; k < line->count; k++) {
        const double at =
            line->count == 1 ? low : low + (high - low) * k / (line->count - 1);
        line->x[k] = is_log ? pow(10, at) : at;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = 0;
        for (uint32_t k = 0; k < line->count; k++)
            add_up(line, k,
                   read_between(&runs[i], on_axis(line->x[k], is_log), &from),
                   i + 1);
    }
    for (uint32_t k = 0; k < line->count; k++)
        line->deviation[k] =
            count > 1 ? sqrt(line->deviation[k] / (count - 1)) : 0;
}

static void name_line(const struct kith_cell_outcome *cell,
                      struct kith_figure *figure, struct kith_figure_line *line)
{
    size_t at = 0, key = 0;
    for (uint32_t i = 0; i < cell->setting_count; i++) {
        at = kith_text_add(line->label, sizeof line->label, at, "%s%s",
                           i == 0 ? "" : ", ", cell->settings[i].value);
        key = kith_text_add(figure->key, sizeof figure->key, key, "%s%s",
                            i == 0 ? "" : ", ", cell->settings[i].key);
    }
    if (cell->setting_count == 0)
        (void)kith_text_add(line->label, sizeof line->label, 0, "%s",
                            cell->label);
}

/* All runs of a cell that have points. */
static enum kith_err add_cell(const struct kith_comparison *comparison,
                              uint32_t cell, struct kith_database *databases,
                              const struct quantity *x,
                              const struct quantity *y,
                              struct kith_figure *figure)
{
    struct run *runs = NULL;
    uint32_t count = 0;
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < comparison->outcome_count && err == KITH_OK; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        if (outcome->cell != cell)
            continue;
        struct run *more = realloc(runs, (count + 1) * sizeof *runs);
        if (more == NULL) {
            err = KITH_ENOMEM;
            break;
        }
        runs = more;
        runs[count] = (struct run){0};
        err = read_run(&databases[outcome->database], outcome->run_id, x,
                       figure->x.is_log, y, &runs[count]);
        if (runs[count].count > 0)
            count++;
        else
            run_close(&runs[count]);
    }
    if (err == KITH_OK && count > 0) {
        struct kith_figure_line *line = &figure->lines[figure->line_count++];
        name_line(&comparison->cells[cell], figure, line);
        make_line(runs, count, figure->x.is_log, line);
    }
    for (uint32_t i = 0; i < count; i++)
        run_close(&runs[i]);
    free(runs);
    return err;
}

/* What both ends of a line's band span. */
static void find_bounds(struct kith_figure *figure)
{
    struct kith_figure_axis *x = &figure->x, *y = &figure->y;
    x->low = y->low = INFINITY;
    x->high = y->high = -INFINITY;
    for (uint32_t i = 0; i < figure->line_count; i++) {
        const struct kith_figure_line *line = &figure->lines[i];
        for (uint32_t k = 0; k < line->count; k++) {
            const double low = line->mean[k] - line->deviation[k];
            x->low = fmin(x->low, line->x[k]);
            x->high = fmax(x->high, line->x[k]);
            y->low = fmin(y->low, y->is_log && low <= 0 ? line->mean[k] : low);
            y->high = fmax(y->high, line->mean[k] + line->deviation[k]);
        }
    }
}

/* The unit that numbers are written in, and what it divides by. */
static double unit_of(const struct quantity *quantity, double most,
                      const char **unit)
{
    static const char *const bytes[] = {"B", "kB", "MB", "GB", "TB"};
    double factor = 1;
    unsigned at = 0;
    switch (quantity->kind) {
    case SHARE:
        *unit = "%";
        return 0.01;
    case BYTES:
        for (; most / factor >= 1000 && at < 4; at++)
            factor *= 1000;
        *unit = bytes[at];
        return factor;
    case SECONDS:
        factor = most >= 7200 ? 3600 : most >= 300 ? 60 : 1;
        *unit = most >= 7200 ? "h" : most >= 300 ? "min" : "s";
        return factor;
    case COUNT:
    case PLAIN:
        break;
    }
    *unit = "";
    return 1;
}

static void title_axis(const struct quantity *quantity,
                       struct kith_figure_axis *axis, char title[64],
                       double *factor)
{
    const char *unit;
    *factor = unit_of(quantity, axis->high, &unit);
    axis->low /= *factor;
    axis->high /= *factor;
    (void)kith_text_add(title, 64, 0, unit[0] ? "%s [%s]" : "%s%s",
                        quantity->title, unit);
    axis->title = title;
    axis->name = quantity->name;
}

static void scale(struct kith_figure *figure, const struct quantity *x,
                  const struct quantity *y)
{
    double x_factor, y_factor;
    find_bounds(figure);
    title_axis(x, &figure->x, figure->x_title, &x_factor);
    title_axis(y, &figure->y, figure->y_title, &y_factor);
    for (uint32_t i = 0; i < figure->line_count; i++)
        for (uint32_t k = 0; k < figure->lines[i].count; k++) {
            figure->lines[i].x[k] /= x_factor;
            figure->lines[i].mean[k] /= y_factor;
            figure->lines[i].deviation[k] /= y_factor;
        }
}

enum kith_err kith_figure_find(const char *what,
                               const struct kith_comparison *comparison,
                               struct kith_database *databases,
                               struct kith_figure *figure, char *error)
{
    const char *colon = strchr(what, ':');
    enum kith_err err = KITH_OK;
    memset(figure, 0, sizeof *figure);
    if (colon == NULL)
        return fail(error, what, "found no colon");
    const struct quantity *y =
        read_axis(what, (size_t)(colon - what), &figure->y.is_log);
    const struct quantity *x =
        read_axis(colon + 1, strlen(colon + 1), &figure->x.is_log);
    if (x == NULL || y == NULL)
        return fail(error, what, "knows no such quantity");
    if (x == y)
        return fail(error, what, "found one quantity twice");
    for (uint32_t cell = 0; cell < comparison->cell_count && err == KITH_OK;
         cell++)
        if (figure->line_count == KITH_FIGURE_LINES_MAX)
            err = kith_text_fail(
                error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                "drawing --figure %s: more than %u settings cannot be told "
                "apart; give databases, or a sweep, of fewer",
                what, KITH_FIGURE_LINES_MAX);
        else
            err = add_cell(comparison, cell, databases, x, y, figure);
    if (err == KITH_ENOMEM)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, err,
                              "drawing --figure %s: out of memory", what);
    if (err == KITH_EPARSE)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, err,
                              "drawing --figure %s: a series cannot be read",
                              what);
    if (err == KITH_OK && figure->line_count == 0)
        return kith_text_fail(
            error, KITH_REPORT_ERROR_BYTES, KITH_EPARSE,
            "drawing --figure %s: no run has %s of the averaged model beside "
            "%s; evaluate: TIME gives points",
            what, y->name, x->name);
    if (err == KITH_OK)
        scale(figure, x, y);
    return err;
}
