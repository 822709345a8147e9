/* A row for each setting, for papers: LaTeX (booktabs) or CSV, with what it
 * differs in from a baseline where one is named. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kith/text.h"
#include "src/results/report/compare.h"
#include "src/results/report/csv.h"

/* "accuracy,loss", or all that have a value. */
static enum kith_err choose(const struct kith_comparison *comparison,
                            const char *what, bool shown[KITH_COLUMN_COUNT],
                            char *error)
{
    memset(shown, 0, KITH_COLUMN_COUNT * sizeof *shown);
    if (strcmp(what, "all") == 0) {
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
            for (uint32_t i = 0; i < comparison->cell_count; i++)
                shown[k] =
                    shown[k] || comparison->cells[i].spreads[k].count > 0;
        return KITH_OK;
    }
    for (const char *at = what;; at++) {
        const size_t length = strcspn(at, ",");
        char allowed[256] = "";
        size_t end = 0;
        bool found = false;
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            const char *name = kith_comparison_columns[k].name;
            end = kith_text_add(allowed, sizeof allowed, end, "%s, ", name);
            if (strlen(name) == length && memcmp(name, at, length) == 0)
                found = shown[k] = true;
        }
        if (!found)
            return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                                  "--table: found \"%.60s\"; allowed: %sor all",
                                  at, allowed);
        at += length;
        if (*at == '\0')
            return KITH_OK;
    }
}

static void put_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

static void write_csv(const struct kith_comparison *comparison,
                      const bool *shown, bool paired, FILE *out)
{
    fputs("cell,runs", out);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        const char *name = kith_comparison_columns[k].name;
        if (shown[k])
            fprintf(out, ",%s,%s_deviation,%s_count", name, name, name);
        if (shown[k] && paired)
            fprintf(out, ",%s_difference,%s_half_width,%s_pairs", name, name,
                    name);
    }
    fputs("\r\n", out);
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->runs == 0)
            continue;
        kith_csv_text(out, cell->label);
        fprintf(out, ",%" PRIu32, cell->runs);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            if (!shown[k])
                continue;
            put_number(out, cell->spreads[k].mean);
            put_number(out, cell->spreads[k].deviation);
            fprintf(out, ",%" PRIu32, cell->spreads[k].count);
            if (!paired)
                continue;
            const struct kith_difference *difference = &cell->differences[k];
            put_number(out, difference->pairs > 0 ? difference->mean : NAN);
            put_number(out, difference->pairs > 1 ? difference->half : NAN);
            fprintf(out, ",%" PRIu32, difference->pairs);
        }
        fputs("\r\n", out);
    }
}

/* Text of a database: nothing in it is a command, nor ends the line. */
static void put_latex(FILE *out, const char *text)
{
    static const struct {
        char c;
        const char *text;
    } special[] = {
        {'\\', "\\textbackslash{}"},
        {'~', "\\textasciitilde{}"},
        {'^', "\\textasciicircum{}"},
        {'<', "\\textless{}"},
        {'>', "\\textgreater{}"},
        {'|', "\\textbar{}"},
        {'{', "\\{"},
        {'}', "\\}"},
        {'$', "\\$"},
        {'&', "\\&"},
        {'#', "\\#"},
        {'_', "\\_"},
        {'%', "\\%"},
        {'"', "''"},
        {'[', "{[}"}, /* no argument of the row before */
        {'*', "{*}"},
    };
    for (; *text != '\0'; text++) {
        const char *as = NULL;
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            if (*text == special[i].c)
                as = special[i].text;
        if (as != NULL)
            fputs(as, out);
        else
            fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text,
                  out);
    }
}

/* Of a column: what its numbers are divided by, and that unit. */
static double unit_of(const struct kith_comparison *comparison, unsigned column,
                      const char **unit)
{
    static const char *const bytes[] = {"B", "kB", "MB", "GB", "TB"};
    double most = 0, factor = 1;
    unsigned at = 0;
    *unit = "";
    switch (kith_comparison_columns[column].format) {
    case KITH_FORMAT_PERCENT:
        *unit = "\\%";
        return 0.01;
    case KITH_FORMAT_SECONDS:
        *unit = "s";
        return 1;
    case KITH_FORMAT_BYTES:
        for (uint32_t i = 0; i < comparison->cell_count; i++)
            most = fmax(most, comparison->cells[i].spreads[column].mean);
        for (; most / factor >= 1000 && at < 4; at++)
            factor *= 1000;
        *unit = bytes[at];
        return factor;
    case KITH_FORMAT_NUMBER:
    case KITH_FORMAT_WHOLE:
        break;
    }
    return 1;
}

/* "& $95.80 \pm 0.21$": as many digits behind the point as the second has two
 * digits, at most six; of one run four digits. */
static void put_pair(FILE *out, double value, double about, bool sign,
                     double unit)
{
    if (!isfinite(value)) {
        fputs(" & --", out);
        return;
    }
    value /= unit;
    about /= unit;
    if (!isfinite(about) || about <= 0) {
        fprintf(out, sign ? " & $%+.4g$" : " & $%.4g$", value);
        return;
    }
    const int digits = (int)fmax(0, fmin(6, 1 - floor(log10(about))));
    fprintf(out, sign ? " & $%+.*f \\pm %.*f$" : " & $%.*f \\pm %.*f$", digits,
            value, digits, about);
}

static void write_latex(const struct kith_comparison *comparison,
                        const bool *shown, bool paired, FILE *out)
{
    fputs("% Mean and standard deviation over seeds", out);
    if (paired)
        fputs("; differences from the baseline, paired\n% over seeds, with "
              "their 95 % confidence interval (Student)",
              out);
    fputs(". Needs booktabs.\n\\begin{tabular}{l", out);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
        if (shown[k])
            fputs(paired ? "rr" : "r", out);
    fputs("}\n\\toprule\nsetting", out);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        const char *unit;
        (void)unit_of(comparison, k, &unit);
        if (shown[k])
            fprintf(out, unit[0] ? " & %s [%s]" : " & %s%s",
                    kith_comparison_columns[k].title, unit);
        if (shown[k] && paired)
            fputs(" & difference", out);
    }
    fputs(" \\\\\n\\midrule\n", out);
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->runs == 0)
            continue;
        put_latex(out, cell->label);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            const struct kith_difference *difference = &cell->differences[k];
            const char *name;
            const double unit = unit_of(comparison, k, &name);
            if (!shown[k])
                continue;
            put_pair(out, cell->spreads[k].mean, cell->spreads[k].deviation,
                     false, unit);
            if (paired)
                put_pair(out, difference->pairs > 0 ? difference->mean : NAN,
                         difference->half, true, unit);
        }
        fputs(" \\\\\n", out);
    }
    fputs("\\bottomrule\n\\end{tabular}\n", out);
}

enum kith_err kith_comparison_settings(const struct kith_comparison *comparison,
                                       const char *what, bool paired,
                                       bool latex, FILE *out, char *error)
{
    bool shown[KITH_COLUMN_COUNT];
    const enum kith_err err = choose(comparison, what, shown, error);
    if (err == KITH_OK)
        (latex ? write_latex : write_csv)(comparison, shown, paired, out);
    return err;
}
