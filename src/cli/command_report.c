/* kith report: run databases -> one page, or a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/report.h"

static int refuse(const struct cli_arguments *arguments, enum kith_err err,
                  const char *error)
{
    const int code = err == KITH_EPARSE || err == KITH_ENOENT ? KITH_EXIT_DATA
                     : err == KITH_EINVAL                     ? KITH_EXIT_USAGE
                                          : kith_cli_exit_of(err);
    return kith_cli_fail(arguments, code, "%s", error);
}

/* --merge OUT.db: what is missing can be run. */
static int merge(const struct cli_arguments *arguments)
{
    static const enum cli_option others[] = {CLI_OUT, CLI_CSV, CLI_POINTS,
                                             CLI_FIGURE, CLI_TARGET_LOSS};
    const char *out = arguments->values[CLI_MERGE];
    char error[KITH_REPORT_ERROR_BYTES] = "";
    uint32_t missing;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (kith_cli_given(arguments, others[i]))
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--merge writes a database and nothing else; "
                                 "report on %s when it is there",
                                 out);
    const enum kith_err err = kith_report_merge(
        arguments->words, arguments->word_count, out, &missing, error);
    if (err == KITH_EEXIST || err == KITH_ENOSPC || err == KITH_EIO)
        return kith_cli_fail(arguments, KITH_EXIT_WRITE, "%s", error);
    if (err != KITH_OK)
        return refuse(arguments, err == KITH_EMISMATCH ? KITH_EPARSE : err,
                      error);
    printf("wrote %s\n", out);
    if (missing > 0)
        return kith_cli_fail(arguments, KITH_EXIT_FAILED,
                             "%" PRIu32 " runs are missing; merge their "
                             "shards, too, or run them with: kith sim --resume "
                             "%s",
                             missing, out);
    return kith_cli_flush(arguments, KITH_EXIT_OK);
}

int kith_cli_report(const struct cli_arguments *arguments)
{
    if (kith_cli_given(arguments, CLI_MERGE))
        return merge(arguments);
    char error[KITH_REPORT_ERROR_BYTES] = "", path[KITH_PATH_BYTES_MAX];
    const bool points = kith_cli_given(arguments, CLI_POINTS);
    const bool csv = points || kith_cli_given(arguments, CLI_CSV);
    if (points && kith_cli_given(arguments, CLI_CSV))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--csv and --points are two files: give one of "
                             "them, then the other");
    double target_loss;
    int code = kith_cli_target_loss(arguments, &target_loss);
    if (code != KITH_EXIT_OK)
        return code;
    const char *const figure = arguments->values[CLI_FIGURE];
    if (figure != NULL && csv)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--figure and %s write different files: give one",
                             points ? "--points" : "--csv");
    const char *out = arguments->values[CLI_OUT];
    if (out == NULL) { /* beside the first database */
        const char *first = arguments->words[0];
        size_t length = strlen(first);
        if (length > 3 && strcmp(first + length - 3, ".db") == 0)
            length -= 3;
        const int written =
            snprintf(path, sizeof path, "%.*s.%s", (int)length, first,
                     figure != NULL ? "pdf"
                     : points       ? "points.csv"
                     : csv          ? "csv"
                                    : "html");
        if (written < 0 || (size_t)written >= sizeof path)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "the path is too long");
        out = path;
    }
    const enum kith_report_form form = figure   ? KITH_REPORT_FIGURE
                                       : points ? KITH_REPORT_POINTS
                                       : csv    ? KITH_REPORT_TABLE
                                                : KITH_REPORT_PAGE;
    enum kith_err err =
        kith_report_write(arguments->words, arguments->word_count, out, form,
                          target_loss, figure, error);
    if (err != KITH_OK)
        return refuse(arguments, err, error);
    struct kith_comparison comparison;
    err = kith_compare(arguments->words, arguments->word_count, target_loss,
                       &comparison, error);
    if (err != KITH_OK)
        return refuse(arguments, err, error);
    if (comparison.cell_count > 1 || arguments->word_count > 1)
        kith_comparison_print(&comparison, stdout);
    kith_comparison_close(&comparison);
    printf("wrote %s\n", out);
    return kith_cli_flush(arguments, code);
}
