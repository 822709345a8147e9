/* Sections of .sql files, their lists of columns written out. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/query.h"
#include "kith/series.h"
#include "rundb_store.h"

struct writer {
    char *text; /* (KITH_SQL_BYTES) */
    size_t at;
    int schema;
};

static void KITH_PRINTF(2, 3)
    put(struct writer *writer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(writer->text + writer->at,
                                 KITH_SQL_BYTES - writer->at, format, list);
    va_end(list);
    KITH_ASSERT(length >= 0 && writer->at + (size_t)length < KITH_SQL_BYTES);
    writer->at += (size_t)length;
}

/* How a column stands in a list. */
enum form { NAME, TYPE, VALUE, CHART };

static void put_column(struct writer *writer, enum form form, const char *name,
                       const char *type, bool there)
{
    if (form == TYPE)
        put(writer, ", %s %s", name, type);
    else if (form == VALUE)
        put(writer, ", ?");
    else
        put(writer, there ? ", %s" : ", NULL AS %s", name);
}

static void put_one(struct writer *writer, enum form form,
                    const struct kith_series_column *column)
{
    put_column(writer, form, column->name,
               column->kind == KITH_SERIES_ALWAYS ? "INTEGER NOT NULL"
               : column->kind < KITH_SERIES_REAL  ? "INTEGER"
                                                  : "REAL",
               column->schema <= writer->schema);
}

/* CSV keeps its columns' places: older ones come first, then the speeds. */
static void put_csv(struct writer *writer, enum form form)
{
    for (int rank = 1; rank <= 2 * KITH_RUNDB_SCHEMA_VERSION; rank++)
        for (unsigned i = 0; i < kith_series_column_count; i++) {
            const struct kith_series_column *column = &kith_series_columns[i];
            const bool speed = column->place == KITH_SERIES_speed;
            if (column->schema + speed * KITH_RUNDB_SCHEMA_VERSION == rank)
                put_one(writer, form, column);
        }
}

static void put_series(struct writer *writer, enum form form)
{
    for (unsigned i = 0; i < kith_series_column_count; i++)
        if (form != CHART || kith_series_columns[i].chart > 0)
            put_one(writer, form, &kith_series_columns[i]);
}

static void put_results(struct writer *writer, enum form form)
{
    static const char REAL[] = "REAL", COUNT[] = "INTEGER";
#define KITH_RESULT(kind, name) put_column(writer, form, #name, kind, true);
#include "kith/results.def"
}

static void put_events(struct writer *writer, enum form form)
{
    (void)form;
    for (unsigned i = 0; i < RUNDB_TOGETHER; i++)
        put(writer, "%s(?1, ?, ?, ?, ?, ?, ?, ?, ?, ?)", i > 0 ? ", " : "");
}

static const struct {
    const char *name;
    void (*put)(struct writer *writer, enum form form);
    enum form form;
} lists[] = {
    {"{series}", put_series, NAME},
    {"{series.types}", put_series, TYPE},
    {"{series.values}", put_series, VALUE},
    {"{series.csv}", put_csv, NAME},
    {"{series.charts}", put_series, CHART},
    {"{results}", put_results, NAME},
    {"{results.types}", put_results, TYPE},
    {"{results.values}", put_results, VALUE},
    {"{events}", put_events, VALUE},
};

/* Writes the list out that `text` begins with; its length. */
static size_t put_list(struct writer *writer, const char *text)
{
    size_t i = 0;
    while (strncmp(text, lists[i].name, strlen(lists[i].name)) != 0) {
        i++;
        KITH_ASSERT(i < sizeof lists / sizeof *lists); /* a list of no table */
    }
    lists[i].put(writer, lists[i].form);
    return strlen(lists[i].name);
}

void kith_sql(const char *file, const char *name, int schema,
              char text[KITH_SQL_BYTES])
{
    struct writer writer = {.text = text, .schema = schema};
    char heading[64];
    (void)snprintf(heading, sizeof heading, "-- :%s\n", name);
    const char *from = strstr(file, heading);
    KITH_ASSERT(from != NULL);
    from += strlen(heading);
    const char *next = strstr(from, "-- :");
    const char *end = next != NULL ? next : from + strlen(from);
    text[0] = '\0';
    while (from < end) {
        const size_t plain = strcspn(from, "{");
        const size_t left = (size_t)(end - from);
        put(&writer, "%.*s", (int)(plain < left ? plain : left), from);
        from += plain;
        if (from < end)
            from += put_list(&writer, from);
    }
}
