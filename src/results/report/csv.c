/* See csv.h: nothing that a database holds can end a field. */
#include "src/results/report/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

void kith_csv_text(FILE *out, const char *text)
{
    fputc('"', out);
    if (text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL)
        fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void kith_csv_value(FILE *out, sqlite3_stmt *row, int at)
{
    switch (sqlite3_column_type(row, at)) {
    case SQLITE_INTEGER:
        fprintf(out, "%" PRId64, (int64_t)sqlite3_column_int64(row, at));
        break;
    case SQLITE_FLOAT:
        if (isfinite(sqlite3_column_double(row, at)))
            fprintf(out, "%.17g", sqlite3_column_double(row, at));
        break;
    case SQLITE_TEXT:
        kith_csv_text(out, (const char *)sqlite3_column_text(row, at));
        break;
    default: /* not measured: an empty field */
        break;
    }
}
