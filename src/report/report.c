/* `kith report`: run databases -> one page, or one CSV table.
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

#include "kith/file.h"
#include "kith/limits.h"
#include "kith/text.h"
#include "src/report/database.h"
#include "src/report/page.h"
#include "src/report/write.h"

#define WRITER "kith " PACKAGE_VERSION

static enum kith_err fail_write(const char *out, int code, char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "writing the report %s: %s; choose another place with --out",
                  out, strerror(code));
    return code == ENOSPC ? KITH_ENOSPC : KITH_EIO;
}

static enum kith_err write_page(const struct kith_database *databases,
                                unsigned count, FILE *out, char *error)
{
    kith_page_begin(out);
    fputs("{\"writer\":", out);
    kith_write_json_text(out, WRITER, strlen(WRITER));
    fputs(",\"runs\":[", out);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0) {
            fputs(",\n", out);
        }
        const enum kith_err err =
            kith_database_json(&databases[i], count, out, error);
        if (err != KITH_OK) {
            return err;
        }
    }
    fputs("]}", out);
    kith_page_end(out);
    return KITH_OK;
}

static enum kith_err write_csv(const struct kith_database *databases,
                               unsigned count, FILE *out, char *error)
{
    for (unsigned i = 0; i < count; i++) {
        const enum kith_err err =
            kith_database_csv(&databases[i], i == 0, out, error);
        if (err != KITH_OK) {
            return err;
        }
    }
    return KITH_OK;
}

/* Temporary file, then rename: `out` appears whole or not at all. */
static enum kith_err write_whole(const struct kith_database *databases,
                                 unsigned count, const char *out, bool csv,
                                 char *error)
{
    char temporary[KITH_PATH_BYTES_MAX + 32];

    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", out, (long)getpid());
    FILE *file = fopen(temporary, "wxe");
    if (file == NULL) {
        return fail_write(out, errno, error);
    }
    enum kith_err err = csv ? write_csv(databases, count, file, error)
                            : write_page(databases, count, file, error);
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
                                const char *out, bool csv, char *error)
{
    struct kith_database open[KITH_REPORT_RUNS_MAX];

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
    if (err == KITH_OK) {
        err = write_whole(open, count, out, csv, error);
    }
    for (unsigned i = 0; i < opened; i++) {
        kith_database_close(&open[i]);
    }
    return err;
}
