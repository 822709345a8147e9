/* kith report: run databases -> one page, or a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "follow_server.h"
#include "kith/json.h"
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

/* The one thing that is written in place of the page. */
static int choose_form(const struct cli_arguments *arguments,
                       enum kith_report_form *form, const char **ending,
                       const char **what)
{
    static const struct {
        enum cli_option option;
        enum kith_report_form form;
        const char *ending;
    } forms[] = {{CLI_CSV, KITH_REPORT_TABLE, "csv"},
                 {CLI_POINTS, KITH_REPORT_POINTS, "points.csv"},
                 {CLI_FIGURE, KITH_REPORT_FIGURE, "pdf"},
                 {CLI_TABLE, KITH_REPORT_SETTINGS, "tex"},
                 {CLI_JSON, KITH_REPORT_PAGE, "html"}};
    const char *first = NULL;
    *form = KITH_REPORT_PAGE;
    *ending = "html";
    *what = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!kith_cli_given(arguments, forms[i].option))
            continue;
        const char *name = kith_cli_option_text(forms[i].option).name;
        if (first != NULL)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "%s and %s are two files: give one of them, "
                                 "then the other",
                                 first, name);
        first = name;
        *form = forms[i].form;
        *ending = forms[i].ending;
        *what = arguments->values[forms[i].option];
    }
    return KITH_EXIT_OK;
}

/* Beside the first database. */
static bool name_beside(const char *first, const char *ending,
                        char path[KITH_PATH_BYTES_MAX])
{
    size_t length = strlen(first);
    if (length > 3 && strcmp(first + length - 3, ".db") == 0)
        length -= 3;
    const int written = snprintf(path, KITH_PATH_BYTES_MAX, "%.*s.%s",
                                 (int)length, first, ending);
    return written >= 0 && (size_t)written < KITH_PATH_BYTES_MAX;
}

static void print_json(const struct cli_arguments *arguments,
                       const struct kith_comparison *comparison)
{
    json_t *document = json_object(), *databases = json_array();
    for (unsigned i = 0; i < arguments->word_count; i++)
        (void)json_array_append_new(databases,
                                    kith_json_text(arguments->words[i]));
    (void)json_object_set_new(document, "databases", databases);
    kith_comparison_add_to(comparison, document);
    kith_json_print(document, 9);
}

/* Until Ctrl-C; nothing is written. */
static int follow_runs(const struct cli_arguments *arguments,
                       struct kith_target target)
{
    static const enum cli_option others[] = {
        CLI_CSV,  CLI_POINTS, CLI_FIGURE,   CLI_TABLE,
        CLI_JSON, CLI_MERGE,  CLI_BASELINE, CLI_OUT};
    char error[KITH_REPORT_ERROR_BYTES] = "";
    struct kith_follow *follow;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (kith_cli_given(arguments, others[i]))
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--follow serves a page and writes none: "
                                 "leave %s out",
                                 kith_cli_option_text(others[i]).name);
    const enum kith_err err = kith_follow_open(
        arguments->words, arguments->word_count, target, &follow, error);
    if (err != KITH_OK)
        return refuse(arguments, err, error);
    const int code = kith_cli_follow_serve(arguments, follow);
    kith_follow_close(follow);
    return kith_cli_flush(arguments, code);
}

int kith_cli_report(const struct cli_arguments *arguments)
{
    char error[KITH_REPORT_ERROR_BYTES] = "", path[KITH_PATH_BYTES_MAX];
    enum kith_report_form form;
    const char *ending, *out = arguments->values[CLI_OUT];
    const bool json = kith_cli_given(arguments, CLI_JSON);
    struct kith_report_options options = {.baseline =
                                              arguments->values[CLI_BASELINE]};
    if (kith_cli_given(arguments, CLI_MERGE) &&
        !kith_cli_given(arguments, CLI_FOLLOW))
        return merge(arguments);
    int code = choose_form(arguments, &form, &ending, &options.what);
    if (code == KITH_EXIT_OK)
        code = kith_cli_target(arguments, &options.target);
    if (code != KITH_EXIT_OK)
        return code;
    if (kith_cli_given(arguments, CLI_FOLLOW))
        return follow_runs(arguments, options.target);
    if (out == NULL && !name_beside(arguments->words[0], ending, path))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "the path is too long");
    out = out == NULL ? path : out;
    enum kith_err err =
        json ? KITH_OK
             : kith_report_write(arguments->words, arguments->word_count, out,
                                 form, &options, error);
    if (err != KITH_OK)
        return refuse(arguments, err, error);
    struct kith_comparison comparison;
    err = kith_compare(arguments->words, arguments->word_count, &options,
                       &comparison, error);
    if (err != KITH_OK)
        return refuse(arguments, err, error);
    if (json)
        print_json(arguments, &comparison);
    else if (comparison.cell_count > 1 || arguments->word_count > 1)
        kith_comparison_print(&comparison, stdout);
    kith_comparison_close(&comparison);
    if (!json)
        printf("wrote %s\n", out);
    return kith_cli_flush(arguments, code);
}
