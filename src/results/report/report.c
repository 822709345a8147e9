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

#include "kith/plain_file.h"
#include "kith/limits.h"
#include "kith/text.h"
#include "src/results/report/compare.h"
#include "src/results/report/page.h"
#include "src/results/report/escape.h"

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
    const struct kith_database *databases;
    unsigned count;
    const struct kith_comparison *comparison;
};

static enum kith_err write_runs(const struct writing *writing, FILE *out,
                                char *error)
{
    unsigned lines[KITH_REPORT_RUNS_MAX], all = 0;
    bool any = false;
    for (unsigned i = 0; i < writing->count; i++) {
        const enum kith_err err =
            kith_database_lines(&writing->databases[i], &lines[i], error);
        if (err != KITH_OK) {
            return err;
        }
        all += lines[i];
    }
    for (unsigned i = 0; i < writing->count; i++) {
        if (lines[i] == 0) {
            continue;
        }
        fputs(any ? ",\n" : "", out);
        any = true;
        const enum kith_err err =
            kith_database_json(&writing->databases[i], i, all, out, error);
        if (err != KITH_OK) {
            return err;
        }
    }
    return KITH_OK;
}

static enum kith_err write_page(const struct writing *writing, FILE *out,
                                char *error)
{
    kith_page_begin(out);
    fputs("{\"writer\":", out);
    kith_write_json_text(out, WRITER, strlen(WRITER));
    fputs(",\"runs\":[", out);
    const enum kith_err err = write_runs(writing, out, error);
    if (err != KITH_OK) {
        return err;
    }
    fputs("],\n\"comparison\":{", out);
    kith_comparison_json(writing->comparison, out);
    fputs("}}", out);
    kith_page_end(out);
    return KITH_OK;
}

static enum kith_err write_points(const struct writing *writing, FILE *out,
                                  char *error)
{
    for (unsigned i = 0; i < writing->count; i++) {
        const enum kith_err err =
            kith_database_csv(&writing->databases[i], i == 0, out, error);
        if (err != KITH_OK) {
            return err;
        }
    }
    return KITH_OK;
}

static enum kith_err write_form(const struct writing *writing,
                                enum kith_report_form form, FILE *out,
                                char *error)
{
    switch (form) {
    case KITH_REPORT_PAGE:
        return write_page(writing, out, error);
    case KITH_REPORT_TABLE:
        kith_comparison_csv(writing->comparison, writing->databases, out);
        return KITH_OK;
    case KITH_REPORT_POINTS:
        break;
    }
    return write_points(writing, out, error);
}

/* Temporary file, then rename: `out` appears whole or not at all. */
static enum kith_err write_whole(const struct writing *writing, const char *out,
                                 enum kith_report_form form, char *error)
{
    char temporary[KITH_PATH_BYTES_MAX + 32];

    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", out, (long)getpid());
    FILE *file = fopen(temporary, "wxe");
    if (file == NULL) {
        return fail_write(out, errno, error);
    }
    enum kith_err err = write_form(writing, form, file, error);
    errno = 0;
    const bool broken = fflush(file) != 0 || ferror(file) != 0;
    const int code = errno != 0 ? errno : EIO;
    if (fclose(file) != 0 && err == KITH_OK && !broken) {
        err = fail_write(out, errno, error);
    } else if (err == KITH_OK && broken) {
        err = fail_write(out, code, error);
    }
    if (err == KITH_OK && rename(temporary, out) != 0) {
        err = fail_write(out, errno, error);
    }
    if (err != KITH_OK) {
        unlink(temporary);
    }
    return err;
}

enum kith_err kith_report_write(const char *const *databases, unsigned count,
                                const char *out, enum kith_report_form form,
                                double target_loss, char *error)
{
    struct kith_database open[KITH_REPORT_RUNS_MAX];
    struct kith_comparison comparison = {0};

    if (count == 0 || count > KITH_REPORT_RUNS_MAX) {
        kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                      "a report compares 1 to %u runs, %u were given",
                      KITH_REPORT_RUNS_MAX, count);
        return KITH_EINVAL;
    }
    /* A rename would put a file in the place of a device. */
    char why[KITH_FILE_WHY_BYTES];
    if (kith_file_check(out, why) == KITH_EINVAL) {
        kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                      "writing the report %s: %s; choose another place with "
                      "--out",
                      out, why);
        return KITH_EIO;
    }
    if (strlen(out) >= KITH_PATH_BYTES_MAX) {
        return fail_write(out, ENAMETOOLONG, error);
    }
    unsigned opened = 0;
    enum kith_err err = KITH_OK;
    while (opened < count && err == KITH_OK) {
        err = kith_database_open(databases[opened], &open[opened], error);
        opened += err == KITH_OK ? 1 : 0;
    }
    for (unsigned i = 0; i < opened && err == KITH_OK; i++) {
        err = kith_comparison_add(&comparison, &open[i], i, target_loss, error);
    }
    kith_comparison_finish(&comparison);
    if (err == KITH_OK) {
        const struct writing writing = {open, count, &comparison};
        err = write_whole(&writing, out, form, error);
    }
    kith_comparison_close(&comparison);
    for (unsigned i = 0; i < opened; i++) {
        kith_database_close(&open[i]);
    }
    return err;
}
