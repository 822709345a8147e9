/* A comparison in text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kith/text.h"
#include "src/results/report/compare.h"
#include "src/results/report/escape.h"

#define CELL_BYTES 48u

static const struct {
    const char *name, *heading;
} columns[] = {
#define KITH_X(name, heading) {#name, heading},
    KITH_COLUMNS(KITH_X)
#undef KITH_X
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

/* A value as people read it; its unit, where it is always the same, apart. */
static void print_value(enum kith_column column, double value, char text[20])
{
    const char *unit;
    switch (column) {
    case KITH_COLUMN_accuracy:
    case KITH_COLUMN_utilisation:
        kith_text_add(text, 20, 0, "%.2f", 100 * value);
        return;
    case KITH_COLUMN_bytes_mean:
    case KITH_COLUMN_bytes_max:
        value = scaled(value, value, &unit);
        kith_text_add(text, 20, 0, "%.4g %s", value, unit);
        return;
    case KITH_COLUMN_steps:
        kith_text_add(text, 20, 0, "%.10g", value);
        return;
    case KITH_COLUMN_loss:
    case KITH_COLUMN_time_to_target_s:
    case KITH_COLUMN_staleness_mean:
    case KITH_COLUMN_staleness_max:
    case KITH_COLUMN_consensus_distance:
    case KITH_COLUMN_COUNT:
        kith_text_add(text, 20, 0, "%.4g", value);
    }
}

/* Two digits, in the unit of its mean. */
static void print_deviation(enum kith_column column, double mean, double value,
                            char text[20])
{
    const char *unit;
    if (column == KITH_COLUMN_accuracy || column == KITH_COLUMN_utilisation) {
        kith_text_add(text, 20, 0, "%.2f", 100 * value);
        return;
    }
    if (column == KITH_COLUMN_bytes_mean || column == KITH_COLUMN_bytes_max) {
        value = scaled(value, mean, &unit);
    }
    kith_text_add(text, 20, 0, "%.2g", value);
}

static const char *unit_of(enum kith_column column)
{
    return column == KITH_COLUMN_accuracy || column == KITH_COLUMN_utilisation
               ? " %"
           : column == KITH_COLUMN_time_to_target_s ? " s"
                                                    : "";
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
    char mean[20];
    print_value(column, spread->mean, mean);
    size_t at = kith_text_add(text, CELL_BYTES, 0, "%s", mean);
    if (isfinite(spread->deviation) && spread->deviation > 0) {
        print_deviation(column, spread->mean, spread->deviation, mean);
        at = kith_text_add(text, CELL_BYTES, at, " \u00b1%s", mean);
    }
    at = kith_text_add(text, CELL_BYTES, at, "%s", unit_of(column));
    if (spread->count < cell->runs) {
        kith_text_add(text, CELL_BYTES, at, " (%u of %u)", spread->count,
                      cell->runs);
    }
}

/* A cell's text; a refused one has no values. */
static void cell_text(const struct kith_comparison *comparison, uint32_t cell,
                      unsigned column, char text[CELL_BYTES])
{
    if (comparison->cells[cell].runs == 0) {
        kith_text_copy(text, CELL_BYTES, "");
    } else {
        print_spread(&comparison->cells[cell], (enum kith_column)column, text);
    }
}

static bool any_value(const struct kith_comparison *comparison, unsigned column)
{
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        if (comparison->cells[i].spreads[column].count > 0) {
            return true;
        }
    }
    return false;
}

/* Runs that did not come to a good end, and cells that were refused. */
static void print_troubles(const struct kith_comparison *comparison, FILE *out)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        if (outcome->state == KITH_RUN_DONE && outcome->violations == 0) {
            continue;
        }
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
    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
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
        widths[k] = any_value(comparison, k) ? width(columns[k].heading) : 0;
        for (uint32_t i = 0; i < comparison->cell_count && widths[k] > 0; i++) {
            cell_text(comparison, i, k, text);
            widths[k] = width(text) > widths[k] ? width(text) : widths[k];
        }
        if (widths[k] > 0) {
            fprintf(out, "  %*s", widths[k], columns[k].heading);
        }
    }
    fputc('\n', out);
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        const struct kith_cell_outcome *cell = &comparison->cells[i];
        if (cell->refused[0] != '\0') {
            continue; /* told below */
        }
        fprintf(out, "%s%*s  %4" PRIu32, cell->label,
                label - width(cell->label), "", cell->runs);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            cell_text(comparison, i, k, text);
            if (widths[k] > 0) {
                fprintf(out, "  %*s", widths[k], text);
            }
        }
        fputc('\n', out);
    }
    print_troubles(comparison, out);
}

static void put_number(FILE *out, double value, const char *none)
{
    if (isfinite(value)) {
        fprintf(out, "%.9g", value);
    } else {
        fputs(none, out);
    }
}

static void put_text(FILE *out, const char *text)
{
    if (text[0] == '\0') {
        fputs("null", out);
    } else {
        kith_write_json_text(out, text, strlen(text));
    }
}

static void put_settings(const struct kith_cell_outcome *cell, FILE *out)
{
    fputs(", \"settings\": {", out);
    for (uint32_t i = 0; i < cell->setting_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        put_text(out, cell->settings[i].key);
        fputs(": ", out);
        put_text(out, cell->settings[i].value);
    }
    fputc('}', out);
}

static void put_cell(const struct kith_cell_outcome *cell, FILE *out)
{
    fprintf(out,
            "{\"database\": %" PRIu32 ", \"cell\": %" PRIu32 ", \"label\": ",
            cell->database, cell->cell);
    put_text(out, cell->label);
    put_settings(cell, out);
    fputs(", \"refused\": ", out);
    put_text(out, cell->refused);
    fprintf(out, ", \"runs\": %" PRIu32 ", \"violations\": %" PRIu32,
            cell->runs, cell->violations);
    for (unsigned state = 0; state < KITH_RUN_REFUSED; state++) {
        fprintf(out, ", \"%s\": %" PRIu32,
                kith_run_state_name((enum kith_run_state)state),
                cell->states[state]);
    }
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        const struct kith_spread *spread = &cell->spreads[k];
        const struct {
            const char *key;
            double value;
        } parts[] = {{"mean", spread->mean},
                     {"deviation", spread->deviation},
                     {"low", spread->low},
                     {"high", spread->high}};
        fprintf(out, ", \"%s\": {\"count\": %" PRIu32, columns[k].name,
                spread->count);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            fprintf(out, ", \"%s\": ", parts[i].key);
            put_number(out, parts[i].value, "null");
        }
        fputc('}', out);
    }
    fputc('}', out);
}

static void put_run(const struct kith_comparison *comparison,
                    const struct kith_outcome *outcome, FILE *out)
{
    const struct kith_cell_outcome *cell = &comparison->cells[outcome->cell];
    fprintf(out,
            "{\"database\": %" PRIu32 ", \"run_id\": %" PRIu32
            ", \"cell\": %" PRIu32 ", \"label\": ",
            outcome->database, outcome->run_id, cell->cell);
    put_text(out, cell->label);
    put_settings(cell, out);
    fprintf(out, ", \"seed\": %" PRIu64 ", \"state\": \"%s\", \"problem\": ",
            outcome->seed, kith_run_state_name(outcome->state));
    put_text(out, outcome->problem);
    fprintf(out, ", \"violations\": %" PRIu32, outcome->violations);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        fprintf(out, ", \"%s\": ", columns[k].name);
        put_number(out, outcome->values[k], "null");
    }
    fputc('}', out);
}

void kith_comparison_json(const struct kith_comparison *comparison, FILE *out)
{
    fputs("\"cells\": [", out);
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        put_cell(&comparison->cells[i], out);
    }
    fputs("], \"runs\": [", out);
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        put_run(comparison, &comparison->outcomes[i], out);
    }
    fputc(']', out);
}

static void put_csv(FILE *out, const char *text)
{
    fputc(',', out);
    if (text[0] != '\0') {
        kith_write_csv_text(out, text, strlen(text));
    }
}

void kith_comparison_csv(const struct kith_comparison *comparison,
                         const struct kith_database *databases, FILE *out)
{
    fputs("database,run_id,cell,label,seed,state,problem,violations", out);
    for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
        fprintf(out, ",%s", columns[k].name);
    }
    fputs("\r\n", out);
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        const struct kith_cell_outcome *cell =
            &comparison->cells[outcome->cell];
        const char *path = databases[outcome->database].path;
        const char *name = strrchr(path, '/');
        name = name != NULL ? name + 1 : path;
        kith_write_csv_text(out, name, strlen(name));
        fprintf(out, ",%" PRIu32 ",%" PRIu32, outcome->run_id, cell->cell);
        put_csv(out, cell->label);
        fprintf(out, ",%" PRIu64, outcome->seed);
        put_csv(out, kith_run_state_name(outcome->state));
        put_csv(out, outcome->problem);
        fprintf(out, ",%" PRIu32, outcome->violations);
        for (unsigned k = 0; k < KITH_COLUMN_COUNT; k++) {
            fputc(',', out);
            put_number(out, outcome->values[k], "");
        }
        fputs("\r\n", out);
    }
}
