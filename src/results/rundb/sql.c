/* Sections of .sql files, their lists of columns written out. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/query.h"
#include "kith/series.h"

struct writer {
    char *text; /* (KITH_SQL_BYTES) */
    size_t at;
    int schema;
};

static void put(struct writer *writer, const char *format, ...)
    KITH_PRINTF(2, 3);

static void put(struct writer *writer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(writer->text + writer->at,
                                 KITH_SQL_BYTES - writer->at, format, list);
    va_end(list);
    KITH_ASSERT(length >= 0 && writer->at + (size_t)length < KITH_SQL_BYTES);
    writer->at += (size_t)length;
}

static void put_name(struct writer *writer,
                     const struct kith_series_column *column)
{
    const bool there = kith_series_since(column->group) <= writer->schema;
    put(writer, there ? ", %s" : ", NULL AS %s", column->name);
}

static void put_typed(struct writer *writer,
                      const struct kith_series_column *column)
{
    put(writer, ", %s %s", column->name,
        column->kind == KITH_SERIES_ALWAYS ? "INTEGER NOT NULL"
        : column->kind >= KITH_SERIES_REAL ? "REAL"
                                           : "INTEGER");
}

static void put_value(struct writer *writer,
                      const struct kith_series_column *column)
{
    (void)column;
    put(writer, ", ?");
}

static void put_charted(struct writer *writer,
                        const struct kith_series_column *column)
{
    if (column->chart > 0)
        put_name(writer, column);
}

static void each_column(struct writer *writer,
                        void (*form)(struct writer *,
                                     const struct kith_series_column *))
{
    for (unsigned i = 0; i < kith_series_column_count; i++)
        form(writer, &kith_series_columns[i]);
}

static void put_series(struct writer *writer)
{
    each_column(writer, put_name);
}

static void put_series_types(struct writer *writer)
{
    each_column(writer, put_typed);
}

static void put_series_values(struct writer *writer)
{
    each_column(writer, put_value);
}

static void put_series_charts(struct writer *writer)
{
    each_column(writer, put_charted);
}

static void put_series_csv(struct writer *writer)
{
    for (unsigned group = 0; group < KITH_SERIES_GROUP_COUNT; group++)
        for (unsigned i = 0; i < kith_series_column_count; i++)
            if (kith_series_columns[i].group == group)
                put_name(writer, &kith_series_columns[i]);
}

static void put_results(struct writer *writer)
{
#define KITH_RESULT(kind, name) put(writer, ", " #name);
#include "kith/results.def"
}

static void put_results_types(struct writer *writer)
{
#define REAL "REAL"
#define COUNT "INTEGER"
#define KITH_RESULT(kind, name) put(writer, ", %s %s", #name, kind);
#include "kith/results.def"
}

static void put_results_values(struct writer *writer)
{
#define KITH_RESULT(kind, name) put(writer, ", ?");
#include "kith/results.def"
}

static const struct {
    const char *name;
    void (*put)(struct writer *writer);
} lists[] = {
    {"{series}", put_series},
    {"{series.types}", put_series_types},
    {"{series.values}", put_series_values},
    {"{series.csv}", put_series_csv},
    {"{series.charts}", put_series_charts},
    {"{results}", put_results},
    {"{results.types}", put_results_types},
    {"{results.values}", put_results_values},
};

/* Writes the list out that `text` begins with; its length. */
static size_t put_list(struct writer *writer, const char *text)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const size_t length = strlen(lists[i].name);
        if (strncmp(text, lists[i].name, length) == 0) {
            lists[i].put(writer);
            return length;
        }
    }
    KITH_ASSERT(!"a list that no table has");
    return 1;
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
