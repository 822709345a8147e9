/* kith report: run databases -> one page, or a table. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/report.h"

int cli_report(const struct cli_arguments *arguments)
{
    char error[KITH_REPORT_ERROR_BYTES] = "", path[KITH_PATH_BYTES_MAX];
    const bool csv = cli_given(arguments, CLI_CSV);
    const char *out = arguments->values[CLI_OUT];
    if (out == NULL) { /* beside the first database */
        const char *first = arguments->words[0];
        size_t length = strlen(first);
        if (length > 3 && strcmp(first + length - 3, ".db") == 0)
            length -= 3;
        const int written = snprintf(path, sizeof path, "%.*s.%s", (int)length,
                                     first, csv ? "csv" : "html");
        if (written < 0 || (size_t)written >= sizeof path)
            return cli_fail(arguments, KITH_EXIT_USAGE, "the path is too long");
        out = path;
    }
    const enum kith_err err = kith_report_write(
        arguments->words, arguments->word_count, out, csv, error);
    if (err == KITH_EPARSE || err == KITH_ENOENT)
        return cli_fail(arguments, KITH_EXIT_DATA, "%s", error);
    if (err == KITH_EINVAL)
        return cli_fail(arguments, KITH_EXIT_USAGE, "%s", error);
    if (err != KITH_OK)
        return cli_fail(arguments, cli_exit_of(err), "%s", error);
    printf("wrote %s\n", out);
    return KITH_EXIT_OK;
}
