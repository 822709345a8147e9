/* A figure for a paper: one quantity against another, a line a setting, mean
 * and deviation over its seeds. figure_lines.c finds what is drawn,
 * figure_draw.c draws it. */
#ifndef KITH_RESULTS_REPORT_FIGURE_H
#define KITH_RESULTS_REPORT_FIGURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/report.h"
#include "src/results/report/database.h"

#define KITH_FIGURE_LINES_MAX 12u
/* Of a line: where its runs are read, between those that they have. */
#define KITH_FIGURE_POINTS 160u

struct kith_figure_axis {
    const char *name;  /* as --figure has it */
    const char *title; /* with its unit */
    double low, high;  /* in that unit */
    bool is_log;
};

struct kith_figure_line {
    char label[KITH_LABEL_BYTES];
    uint32_t runs, count; /* points; one: a mark */
    double x[KITH_FIGURE_POINTS], mean[KITH_FIGURE_POINTS];
    double deviation[KITH_FIGURE_POINTS]; /* of a sample; 0 for one run */
};

struct kith_figure {
    struct kith_figure_axis x, y;
    char x_title[64], y_title[64];
    char key[KITH_LABEL_BYTES]; /* what lines differ in; "": by their names */
    uint32_t line_count;
    struct kith_figure_line lines[KITH_FIGURE_LINES_MAX];
};

/* `what` is Y:X, each a quantity or log(QUANTITY). Of the averaged model's rows
 * of every run; counts are of all peers together. Releases nothing: lines stand
 * in the figure. KITH_EINVAL (what was asked), KITH_EPARSE (what the databases
 * hold), KITH_ENOMEM, with a line in `error` (KITH_REPORT_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_figure_find(const char *what, const struct kith_comparison *comparison,
                 struct kith_database *databases, struct kith_figure *figure,
                 char *error);

enum kith_figure_kind { KITH_FIGURE_PDF, KITH_FIGURE_SVG, KITH_FIGURE_PNG };

/* Draws it at a column's width of 88 mm, its fonts embedded. KITH_EIO, with
 * errno; KITH_ENOMEM; KITH_EUNSUPPORTED in a build without cairo. */
KITH_MUST_CHECK enum kith_err kith_figure_draw(const struct kith_figure *figure,
                                               enum kith_figure_kind kind,
                                               FILE *out);

#endif
