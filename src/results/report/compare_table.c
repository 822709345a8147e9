/* A comparison in text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/text.h"
#include "src/results/report/compare.h"
#include "src/results/report/csv.h"

#define CELL_BYTES 48u

const struct kith_comparison_column kith_comparison_columns[KITH_COLUMN_COUNT] =
    {
#define KITH_RESULT(kind, name)
#define KITH_COMPARED(kind, name, place, heading, title, format)               \
    [place] = {#name, heading, title, KITH_FORMAT_##format},
#define KITH_REACHED(name, place, heading, title, format)                      \
    [place] = {#name, heading, title, KITH_FORMAT_##format},
#include "kith/results.def"
};

/* Bytes in the unit that suits `size`. */
static double scaled(double value, double size, const char **unit)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    unsigned at = 0;
    for (; fabs(size) >= 1000 && at < 5; at++) {
        size /= 1000;
        value /= 1000;
    }
    *unit = units[at];
    return value;
}

/* Appends a value as people read it: in percent, or with so many digits; bytes
 * in the unit that suits `size`. */
static size_t add_value(char text[CELL_BYTES], size_t at,
                        enum kith_comparison_format format, double value,
                        double size, int digits, const char **unit)
{
    if (format == KITH_FORMAT_PERCENT)
        return kith_text_add(text, CELL_BYTES, at, "%.2f", 100 * value);
    if (format == KITH_FORMAT_BYTES)
        value = scaled(value, size, unit);
    return kith_text_add(text, CELL_BYTES, at, "%.*g", digits, value);
}

/* "0.369 ±0.002", "1.2 s (3 of 5)", "-". */
static void print_spread(const struct kith_cell_outcome *cell,
                         enum kith_column column, char text[CELL_BYTES])
{
    const struct kith_spread *spread = &cell->spreads[column];
    if (spread->count == 0) {
        kith_text_copy(text, CELL_BYTES, "-");
        return;
    }
    const enum kith_comparison_format format =
        kith_comparison_columns[column].format;
    const int digits = format == KITH_FORMAT_WHOLE ? 10 : 4;
    const char *unit;
    size_t at =
        add_value(text, 0, format, spread->mean, spread->mean, digits, &unit);
    if (format == KITH_FORMAT_BYTES)
        at = kith_text_add(text, CELL_BYTES, at, " %s", unit);
    if (isfinite(spread->deviation) && spread->deviation > 0) {
        at = kith_text_add(text, CELL_BYTES, at, " \u00b1");
        at = add_value(text, at, format, spread->deviation, spread->mean, 2,
                       &unit);
    }
    at = kith_text_add(text, CELL_BYTES, at, "%s",
                       format == KITH_FORMAT_PERCENT   ? " %"
                       : format == KITH_FORMAT_SECONDS ? " s"
                                                       : "");
    if (spread->count < cell->runs) {
        kith_text_add(text, CELL_BYTES, at, " (%u of %u)", spread->count,
                      cell->runs);
    }
}

/* A cell's text; a refused one has no values. */
static void cell_text(const struct kith_comparison *comparison, uint32_t cell,
                      unsigned column, char text[CELL_BYTES])
{
    if (comparison->cells[cell].runs == 0)
        kith_text_copy(text, CELL_BYTES, "");
    else
        print_spread(&comparison->cells[cell], (enum kith_column)column, text);
}

static bool any_value(const struct kith_comparison *comparison, unsigned column)
{
    for (uint32_t i = 0; i < comparison->cell_count; i++)
        if (comparison->cells[i].spreads[column].count > 0)
            return true;
    return false;
}

/* Runs that did not come to a good end, and cells that were refused. */
static void print_troubles(const struct kith_comparison *comparison, FILE *out)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        if (outcome->state == KITH_RUN_DONE && outcome->violations == 0)
            continue;
        fprintf(out, "  %s, seed %" PRIu64 ": ",
                comparison->cells[outcome->cell].label, outcome->seed);
        if (outcome->state == KITH_RUN_DONE) {
            fprintf(out, "%" PRIu32 " assertion%s broken\n",
                    outcome->violations, outcome->violations == 1 ? "" : "s");
        } else {
            fprintf(out, "%s%s%s\n", kith_run_state_name(outcome->state),
                    outcome->problem[0] == '\0' ? "" : ": ", outcome->problem);
        }
    }
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        if (comparison->cells[i].refused[0] != '\0') {
            fprintf(out, "  refused: %s: %s\n", comparison->cells[i].label,
                    comparison->cells[i].refused);
        }
    }
}

/* Width on a terminal: bytes that begin a character. */
static int width(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* "+0.80 ±0.31 %": the interval's half behind it where there are two pairs. */
static void print_difference(const struct kith_difference *difference,
                             unsigned column, FILE *out)
{
    const enum kith_comparison_format format =
        kith_comparison_columns[column].format;
    char text[CELL_BYTES] = "";
    const char *unit = format == KITH_FORMAT_PERCENT   ? " %"
                       : format == KITH_FORMAT_SECONDS ? " s"
                                                       : "";
    size_t at = kith_text_add(text, CELL_BYTES, 0, "%s",
                              difference->mean > 0 ? "+" : "");
    at = add_value(text, at, format, difference->mean, difference->mean, 4,
                   &unit);
    if (isfinite(difference->half)) {
        at = kith_text_add(text, CELL_BYTES, at, " \u00b1");
        (void)add_value(text, at, format, difference->half, difference->mean, 2,
                        &unit);
    }
    fprintf(out, "    %-20s %s%s%s (%" PRIu32 " pair%s)\n",
            kith_comparison_columns[column].heading, text,
            format == KITH_FORMAT_BYTES ? " " : "", unit, difference->pairs,
            difference->pairs == 1 ? "" : "s");
}

/* A line for each number, of each cell that has a baseline. */
static void print_differences(const struct kith_comparison *comparison,
                              FILE *out)
{
    bool first = true;
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->baseline == 0 || cell->baseline == i + 1 || cell->runs == 0)
            continue;
        if (first)
            fputs("\ndifferences, paired over seeds, \u00b1 half of the 95 % "
                  "confidence interval\n",
                  out);
        first = false;
        fprintf(out, "  %s against %s\n", cell->label,
                comparison->cells[cell->baseline - 1].label);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
            if (cell->differences[k].pairs > 0)
                print_difference(&cell->differences[k], k, out);
    }
}

void kith_comparison_print(const struct kith_comparison *comparison, FILE *out)
{
    int widths[KITH_COLUMN_COUNT], label = 4;
    char text[CELL_BYTES];
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const int wide = width(comparison->cells[i].label);
        label = wide > label ? wide : label;
    }
    fprintf(out, "\n%-*s  runs", label, "cell");
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        widths[k] = any_value(comparison, k)
                        ? width(kith_comparison_columns[k].heading)
                        : 0;
        for (uint32_t i = 0; i < comparison->cell_count && widths[k] > 0; i++) {
            cell_text(comparison, i, k, text);
            widths[k] = width(text) > widths[k] ? width(text) : widths[k];
        }
        if (widths[k] > 0) {
            fprintf(out, "  %*s", widths[k],
                    kith_comparison_columns[k].heading);
        }
    }
    fputc('\n', out);
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->refused[0] != '\0' || cell->runs == 0)
            continue; /* told below, or another shard's */
        fprintf(out, "%s%*s  %4" PRIu32, cell->label,
                label - width(cell->label), "", cell->runs);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            cell_text(comparison, i, k, text);
            if (widths[k] > 0)
                fprintf(out, "  %*s", widths[k], text);
        }
        fputc('\n', out);
    }
    print_differences(comparison, out);
    print_troubles(comparison, out);
}

static json_t *text_or_null(const char *text)
{
    return kith_json_text(text[0] == '\0' ? NULL : text);
}

static json_t *settings_of(const struct kith_cell_outcome *cell)
{
    json_t *settings = json_object();
    for (uint32_t i = 0; i < cell->setting_count; i++)
        (void)json_object_set_new(settings, cell->settings[i].key,
                                  text_or_null(cell->settings[i].value));
    return settings;
}

/* "baseline", its place among the cells from 0 on, and by column. */
static void add_differences(const struct kith_cell_outcome *cell,
                            json_t *object)
{
    json_t *differences = json_object();
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        const struct kith_difference *difference = &cell->differences[k];
        if (difference->pairs > 0)
            (void)json_object_set_new(
                differences, kith_comparison_columns[k].name,
                json_pack("{s:I, s:o, s:o}", "pairs",
                          (json_int_t)difference->pairs, "mean",
                          kith_json_real(difference->mean), "half_width",
                          kith_json_real(difference->half)));
    }
    (void)json_object_set_new(object, "baseline",
                              json_integer(cell->baseline - 1));
    (void)json_object_set_new(object, "differences", differences);
}

static json_t *cell_object(const struct kith_cell_outcome *cell)
{
    json_t *object = json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:I, s:I}", "database",
        (json_int_t)cell->database, "cell", (json_int_t)cell->cell, "label",
        text_or_null(cell->label), "settings", settings_of(cell), "refused",
        text_or_null(cell->refused), "runs", (json_int_t)cell->runs,
        "violations", (json_int_t)cell->violations);
    for (unsigned state = 0; state < KITH_RUN_REFUSED; state++)
        (void)json_object_set_new(
            object, kith_run_state_name((enum kith_run_state)state),
            json_integer(cell->states[state]));
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        const struct kith_spread *spread = &cell->spreads[k];
        (void)json_object_set_new(
            object, kith_comparison_columns[k].name,
            json_pack("{s:I, s:o, s:o, s:o, s:o}", "count",
                      (json_int_t)spread->count, "mean",
                      kith_json_real(spread->mean), "deviation",
                      kith_json_real(spread->deviation), "low",
                      kith_json_real(spread->low), "high",
                      kith_json_real(spread->high)));
    }
    if (cell->baseline > 0)
        add_differences(cell, object);
    return object;
}

static json_t *run_object(const struct kith_comparison *comparison,
                          const struct kith_outcome *outcome)
{
    const struct kith_cell_outcome *cell = &comparison->cells[outcome->cell];
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:I, s:s, s:o, s:I}", "database",
        (json_int_t)outcome->database, "run_id", (json_int_t)outcome->run_id,
        "cell", (json_int_t)cell->cell, "label", text_or_null(cell->label),
        "settings", settings_of(cell), "seed", (json_int_t)outcome->seed,
        "state", kith_run_state_name(outcome->state), "problem",
        text_or_null(outcome->problem), "violations",
        (json_int_t)outcome->violations);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
        (void)json_object_set_new(object, kith_comparison_columns[k].name,
                                  kith_json_real(outcome->values[k]));
    return object;
}

void kith_comparison_add_to(const struct kith_comparison *comparison,
                            json_t *document)
{
    json_t *cells = json_array(), *runs = json_array();
    for (uint32_t i = 0; i < comparison->cell_count; i++)
        (void)json_array_append_new(cells, cell_object(&comparison->cells[i]));
    for (uint32_t i = 0; i < comparison->outcome_count; i++)
        (void)json_array_append_new(
            runs, run_object(comparison, &comparison->outcomes[i]));
    (void)json_object_set_new(document, "cells", cells);
    (void)json_object_set_new(document, "runs", runs);
}

json_t *kith_comparison_heads(void)
{
    static const char *const formats[] = {[KITH_FORMAT_NUMBER] = "number",
                                          [KITH_FORMAT_WHOLE] = "number",
                                          [KITH_FORMAT_SECONDS] = "seconds",
                                          [KITH_FORMAT_BYTES] = "bytes",
                                          [KITH_FORMAT_PERCENT] = "percent"};
    json_t *heads = json_array();
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
        (void)json_array_append_new(
            heads, json_pack("[s, s, s]", kith_comparison_columns[k].name,
                             kith_comparison_columns[k].title,
                             formats[kith_comparison_columns[k].format]));
    return heads;
}

static void put_csv(FILE *out, const char *text)
{
    fputc(',', out);
    if (text[0] != '\0')
        kith_csv_text(out, text);
}

void kith_comparison_csv(const struct kith_comparison *comparison,
                         const struct kith_database *databases, FILE *out)
{
    fputs("database,run_id,cell,label,seed,state,problem,violations", out);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++)
        fprintf(out, ",%s", kith_comparison_columns[k].name);
    fputs("\r\n", out);
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        const struct kith_cell_outcome *cell =
            &comparison->cells[outcome->cell];
        char name[KITH_DATABASE_NAME_BYTES];
        kith_database_name(&databases[outcome->database], name);
        kith_csv_text(out, name);
        fprintf(out, ",%" PRIu32 ",%" PRIu32, outcome->run_id, cell->cell);
        put_csv(out, cell->label);
        fprintf(out, ",%" PRIu64, outcome->seed);
        put_csv(out, kith_run_state_name(outcome->state));
        put_csv(out, outcome->problem);
        fprintf(out, ",%" PRIu32, outcome->violations);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            fputc(',', out);
            if (isfinite(outcome->values[k]))
                fprintf(out, "%.9g", outcome->values[k]);
        }
        fputs("\r\n", out);
    }
}
