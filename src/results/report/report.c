/* `kith report`: run databases -> one page, or CSV.
 *
 * All databases are opened first, so that a bad one is told before anything is
 * written; the result goes to a temporary file beside the target and is
 * renamed, so that a full disk leaves no half page. */
#include "kith/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/limits.h"
#include "kith/plain_file.h"
#include "kith/series.h"
#include "kith/text.h"
#include "src/results/report/compare.h"
#include "src/results/report/databases.h"
#include "src/results/report/document.h"
#include "src/results/report/figure.h"
#include "src/results/report/page.h"

#define WRITER "kith " PACKAGE_VERSION

static enum kith_err fail_write(const char *out, int code, char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "writing the report %s: %s; choose another place with --out",
                  out, strerror(code));
    return code == ENOSPC ? KITH_ENOSPC : KITH_EIO;
}

/* What is written: open databases, and their runs side by side. */
struct writing {
    struct kith_database *databases; /* (count), of runs */
    unsigned count;
    const struct kith_comparison *comparison;
    const struct kith_report_options *options;
    const char *out;
    char *error; /* of a figure, or a table */
};

/* The first failure. */
static enum kith_err failure(const struct writing *writing)
{
    for (unsigned i = 0; i < writing->count; i++)
        if (writing->databases[i].err != KITH_OK)
            return writing->databases[i].err;
    return KITH_OK;
}

static enum kith_err add_runs(const struct writing *writing, json_t *runs)
{
    unsigned lines[KITH_REPORT_RUNS_MAX], all = 0;
    for (unsigned i = 0; i < writing->count; i++)
        all += lines[i] = kith_database_lines(&writing->databases[i]);
    for (unsigned i = 0; i < writing->count && failure(writing) == KITH_OK; i++)
        if (lines[i] > 0)
            kith_database_json(&writing->databases[i], i, all, runs);
    return failure(writing);
}

/* The charts of the series' columns, in the order of the page. A counter has no
 * value of the averaged model. */
static json_t *charts(void)
{
    json_t *charts = json_array();
    for (int place = 1; place <= (int)kith_series_column_count; place++)
        for (unsigned i = 0; i < kith_series_column_count; i++) {
            const struct kith_series_column *column = &kith_series_columns[i];
            if (column->chart == place)
                (void)json_array_append_new(
                    charts,
                    json_pack("{s:s, s:s, s:s, s:b, s:s?}", "key", column->name,
                              "title", column->title, "unit", column->unit,
                              "counter", column->add != KITH_SERIES_MODEL,
                              "format", column->format));
        }
    /* The one that report.sql makes of two columns. */
    (void)json_array_append_new(
        charts, json_pack("{s:s, s:s, s:s, s:b, s:s}", "key", "step_s", "title",
                          "Step time", "unit",
                          "training time of a step, between two rows",
                          "counter", 1, "format", "seconds"));
    return charts;
}

static enum kith_err make_document(const struct writing *writing,
                                   json_t **document)
{
    json_t *runs = json_array(), *comparison = json_object();
    const enum kith_err err = add_runs(writing, runs);
    (void)json_object_set_new(comparison, "columns", kith_comparison_heads());
    kith_comparison_add_to(writing->comparison, comparison);
    *document = json_pack("{s:s, s:o, s:o, s:o}", "writer", WRITER, "charts",
                          charts(), "runs", runs, "comparison", comparison);
    if (err == KITH_OK)
        return KITH_OK;
    json_decref(*document);
    *document = NULL;
    return err;
}

static enum kith_err write_page(const struct writing *writing, FILE *out)
{
    json_t *document;
    const enum kith_err err = make_document(writing, &document);
    if (err == KITH_OK) {
        kith_page_begin(out, false);
        kith_json_embed(out, document);
        kith_page_end(out);
    }
    return err;
}

static bool ends_with(const char *out, const char *end)
{
    const size_t length = strlen(out);
    return length > strlen(end) && strcmp(out + length - strlen(end), end) == 0;
}

static bool goes_on(const struct kith_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++)
        if (comparison->outcomes[i].state == KITH_RUN_RUNNING ||
            comparison->outcomes[i].state == KITH_RUN_PLANNED)
            return true;
    return false;
}

enum kith_err kith_report_document(const char *const *databases, unsigned count,
                                   int wait_ms, struct kith_target target,
                                   json_t **document, bool *running,
                                   char *error)
{
    struct kith_databases open = {.count = 0};
    struct kith_comparison comparison = {0};
    enum kith_err err = KITH_OK;
    if (count > 0)
        err = kith_databases_open(databases, count, wait_ms, &open, error);
    if (err != KITH_OK)
        return err;
    for (unsigned i = 0; i < open.count && err == KITH_OK; i++) {
        kith_comparison_add(&comparison, &open.list[i], i, target);
        err = open.list[i].err;
    }
    kith_comparison_finish(&comparison);
    const struct writing writing = {.databases = open.list,
                                    .count = open.count,
                                    .comparison = &comparison,
                                    .error = error};
    if (err == KITH_OK)
        err = make_document(&writing, document);
    *running = goes_on(&comparison);
    kith_comparison_close(&comparison);
    kith_databases_close(&open);
    return err;
}

/* The kind that the end of a name says, -1: none. */
static int kind_of(const char *out)
{
    static const char *const ends[] = {".pdf", ".svg", ".png"};
    for (int i = 0; i < 3; i++)
        if (ends_with(out, ends[i]))
            return i;
    return -1;
}

static enum kith_err write_figure(const struct writing *writing, FILE *out)
{
    enum kith_err err = KITH_ENOMEM;
    struct kith_figure *figure = malloc(sizeof *figure);
    if (figure != NULL)
        err = kith_figure_find(writing->options->what, writing->comparison,
                               writing->databases, figure, writing->error);
    if (err == KITH_OK) {
        err = kith_figure_draw(
            figure, (enum kith_figure_kind)kind_of(writing->out), out);
        if (err == KITH_EUNSUPPORTED)
            kith_text_add(writing->error, KITH_REPORT_ERROR_BYTES, 0,
                          "drawing %s: this kith was built without cairo; "
                          "install libcairo2-dev and configure again, or use "
                          "--points",
                          writing->out);
        if (err == KITH_EIO && ferror(out))
            err = KITH_OK; /* the stream says it, with errno */
        else if (err == KITH_EIO)
            kith_text_add(writing->error, KITH_REPORT_ERROR_BYTES, 0,
                          "drawing %s: cairo refused it; is the name of a run "
                          "or a setting no UTF-8?",
                          writing->out);
        else if (err == KITH_ENOMEM)
            kith_text_add(writing->error, KITH_REPORT_ERROR_BYTES, 0,
                          "drawing %s: out of memory", writing->out);
    }
    free(figure);
    return err;
}

static enum kith_err write_form(const struct writing *writing,
                                enum kith_report_form form, FILE *out)
{
    switch (form) {
    case KITH_REPORT_PAGE:
        return write_page(writing, out);
    case KITH_REPORT_TABLE:
        kith_comparison_csv(writing->comparison, writing->databases, out);
        break;
    case KITH_REPORT_SETTINGS:
        return kith_comparison_settings(
            writing->comparison, writing->options->what,
            writing->options->baseline != NULL, ends_with(writing->out, ".tex"),
            out, writing->error);
    case KITH_REPORT_POINTS:
        for (unsigned i = 0; i < writing->count && failure(writing) == KITH_OK;
             i++)
            kith_database_csv(&writing->databases[i], i == 0, out);
        break;
    case KITH_REPORT_FIGURE:
        return write_figure(writing, out);
    }
    return failure(writing);
}

/* Temporary file, then rename: `out` appears whole or not at all. */
static enum kith_err write_whole(const struct writing *writing, const char *out,
                                 enum kith_report_form form, char *error)
{
    char temporary[KITH_PATH_BYTES_MAX + 32];
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", out, (long)getpid());
    FILE *file = kith_file_create_stream(temporary);
    if (file == NULL)
        return fail_write(out, errno, error);
    const enum kith_err err = write_form(writing, form, file);
    if (err != KITH_OK) {
        (void)fclose(file);
        unlink(temporary);
        return err;
    }
    errno = 0;
    (void)fflush(file); /* Of a stream that failed, too: errno says why. */
    const int code = kith_file_commit(file, temporary, out);
    return code == 0 ? KITH_OK : fail_write(out, code, error);
}

enum kith_err kith_report_write(const char *const *databases, unsigned count,
                                const char *out, enum kith_report_form form,
                                const struct kith_report_options *options,
                                char *error)
{
    struct kith_databases open;
    struct kith_comparison comparison = {0};

    /* A rename would put a file in the place of a device. */
    char why[KITH_FILE_WHY_BYTES];
    if (kith_file_check(out, why) == KITH_EINVAL) {
        kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                      "writing the report %s: %s; choose another place with "
                      "--out",
                      out, why);
        return KITH_EIO;
    }
    if (form == KITH_REPORT_FIGURE && kind_of(out) < 0)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "drawing %s: a figure is a .pdf, .svg or .png",
                              out);
    if (form == KITH_REPORT_SETTINGS && !ends_with(out, ".tex") &&
        !ends_with(out, ".csv"))
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "writing %s: a table of settings is a .tex or "
                              ".csv",
                              out);
    if (strlen(out) >= KITH_PATH_BYTES_MAX)
        return fail_write(out, ENAMETOOLONG, error);
    enum kith_err err = kith_databases_open(
        databases, count, KITH_DATABASE_WAIT_MS, &open, error);
    if (err != KITH_OK)
        return err;
    const struct writing writing = {open.list, open.count, &comparison,
                                    options,   out,        error};
    for (unsigned i = 0; i < open.count && err == KITH_OK; i++) {
        if (form == KITH_REPORT_FIGURE && open.list[i].version < 3)
            open.list[i].err = kith_text_fail(
                error, KITH_REPORT_ERROR_BYTES, KITH_EPARSE,
                "drawing a figure of %s: found a database of an older kith; "
                "run it again",
                open.list[i].path);
        else
            kith_comparison_add(&comparison, &open.list[i], i, options->target);
        err = open.list[i].err;
    }
    kith_comparison_finish(&comparison);
    if (err == KITH_OK && options->baseline != NULL)
        err = kith_comparison_pair(&comparison, options->baseline, error);
    if (err == KITH_OK)
        err = write_whole(&writing, out, form, error);
    kith_comparison_close(&comparison);
    kith_databases_close(&open);
    return err;
}
