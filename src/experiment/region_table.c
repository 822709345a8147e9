/* See region_table.h. */
#include "region_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/limits.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define UNKNOWN (-1)

enum kith_err kith_region_table_fail(const struct region_table *table,
                                     enum kith_err err, const char *format, ...)
{
    char where[16] = "", what[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (table->line > 0)
        (void)snprintf(where, sizeof where, ":%u", table->line);
    return kith_yaml_fail(table->tree, kith_yaml_find(table->tree, table->key),
                          table->key, err, "%.200s%s: %s", table->path, where,
                          what);
}

void kith_region_table_close(struct region_table *table)
{
    if (table->is_json)
        kith_yaml_close(&table->json);
    free(table->text);
    free(table->names);
    free(table->values);
    *table = (struct region_table){.regions = 0};
}

/* ---- the text */

static enum kith_err read_stream(struct region_table *table, FILE *stream,
                                 size_t size)
{
    table->text = malloc(size + 1);
    if (table->text == NULL)
        return kith_region_table_fail(table, KITH_ENOMEM,
                                      "out of memory: %zu bytes", size);
    const size_t got = fread(table->text, 1, size, stream);
    table->text[got] = '\0';
    if (ferror(stream))
        return kith_region_table_fail(table, KITH_EIO,
                                      "cannot be read to its end");
    if (memchr(table->text, 0, got) != NULL)
        return kith_region_table_fail(
            table, KITH_EPARSE,
            "found a byte 0; allowed: text, in ASCII or UTF-8");
    table->begins = table->text;
    if (strncmp(table->text, "\xef\xbb\xbf", 3) == 0)
        table->begins += 3;
    return KITH_OK;
}

enum kith_err kith_region_table_text(struct region_table *table)
{
    char why[KITH_FILE_WHY_BYTES];
    size_t size;
    int fd;
    enum kith_err err = kith_file_open(table->path, &fd, &size, why);
    if (err != KITH_OK)
        return kith_region_table_fail(table, err, "cannot be opened: %s", why);
    FILE *stream = kith_file_stream(fd, "rb");
    if (stream == NULL)
        return kith_region_table_fail(table, KITH_EIO, "cannot be opened");
    err = size > KITH_LATENCIES_BYTES_MAX
              ? kith_region_table_fail(
                    table, KITH_ELIMIT,
                    "found %zu bytes; allowed: at most %u, for %u regions",
                    size, KITH_LATENCIES_BYTES_MAX, KITH_REGIONS_MAX)
              : read_stream(table, stream, size);
    (void)fclose(stream);
    return err;
}

char *kith_region_table_line(struct region_table *table, char **rest)
{
    while (*rest != NULL && **rest != '\0') {
        char *line = *rest;
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        *rest = end == NULL ? NULL : end + 1;
        table->line++;
        line += strspn(line, REGION_BLANKS);
        if (*line != '\0' && *line != '#')
            return line;
    }
    return NULL;
}

/* The next cell of a line, without blanks around it; NULL: there is none. */
static char *next_cell(char **rest)
{
    char *cell = *rest;
    if (cell == NULL)
        return NULL;
    char *end = strchr(cell, ',');
    *rest = end == NULL ? NULL : end + 1;
    if (end == NULL)
        end = cell + strlen(cell);
    *end = '\0';
    cell += strspn(cell, REGION_BLANKS);
    while (end > cell && strchr(REGION_BLANKS, end[-1]) != NULL)
        *--end = '\0';
    return cell;
}

/* ---- the table */

static enum kith_err open_table(struct region_table *table, uint32_t regions)
{
    const uint32_t most = table->cells->regions_most;
    KITH_ASSERT(most > 0 && most <= KITH_REGIONS_MAX);
    if (regions == 0 || regions > most)
        return kith_region_table_fail(
            table, regions == 0 ? KITH_EINVAL : KITH_ELIMIT,
            "found %s%u regions; allowed: 1 to %u",
            regions > most ? "at least " : "", regions, most);
    const size_t pairs = (size_t)regions * regions;
    table->regions = regions;
    table->names = calloc(regions, sizeof *table->names);
    table->values = malloc(pairs * sizeof *table->values);
    if (table->names == NULL || table->values == NULL)
        return kith_region_table_fail(table, KITH_ENOMEM,
                                      "out of memory: %u regions", regions);
    for (size_t i = 0; i < pairs; i++)
        table->values[i] = UNKNOWN;
    return KITH_OK;
}

uint32_t kith_region_table_find(const struct region_table *table,
                                const char *name)
{
    uint32_t i = 0;
    while (i < table->regions &&
           (table->names[i] == NULL || strcmp(table->names[i], name) != 0))
        i++;
    return i;
}

static enum kith_err put_name(struct region_table *table, uint32_t i,
                              const char *name)
{
    KITH_ASSERT(i < table->regions);
    if (name[0] == '\0' || name[0] == '"')
        return kith_region_table_fail(
            table, KITH_EPARSE,
            "found region %u named %s; allowed: a name without "
            "quotes",
            i, name[0] == '\0' ? "nothing" : name);
    if (kith_region_table_find(table, name) < table->regions)
        return kith_region_table_fail(
            table, KITH_EINVAL,
            "found the region %.60s twice; allowed: each once", name);
    table->names[i] = name;
    return KITH_OK;
}

/* A number as it stands; false: not one that these cells may have. */
static bool read_value(const struct region_cells *cells, bool may_lack,
                       const char *text, int64_t *value)
{
    double number;
    *value = 0;
    if (may_lack && text[0] == '\0')
        return true;
    if (kith_text_double(text, &number) != KITH_OK)
        return false;
    const bool is_none = may_lack && number >= 0 && number <= 0;
    if (!is_none && !(number >= cells->least && number <= cells->most))
        return false;
    *value = (int64_t)(number * cells->scale + 0.5);
    return true;
}

static enum kith_err put_value(struct region_table *table, uint32_t from,
                               uint32_t to, const char *text)
{
    const struct region_cells *const cells = table->cells;
    int64_t value;
    KITH_ASSERT(from < table->regions && to < table->regions);
    if (!read_value(cells, cells->has_gaps && from == to, text, &value))
        return kith_region_table_fail(
            table, KITH_EPARSE,
            "found \"%.40s\" from %.60s to %.60s; allowed: %s", text,
            table->names[from], table->names[to], cells->allowed);
    table->values[(size_t)from * table->regions + to] = value;
    return KITH_OK;
}

/* ---- CSV */

static enum kith_err read_header(struct region_table *table, char *line)
{
    uint32_t regions = 0;
    for (const char *at = line; *at != '\0'; at++)
        regions += *at == ',';
    enum kith_err err = open_table(table, regions);
    (void)next_cell(&line);
    for (uint32_t i = 0; err == KITH_OK && i < regions; i++)
        err = put_name(table, i, next_cell(&line));
    return err;
}

static enum kith_err read_row(struct region_table *table, char *line)
{
    const char *const name = next_cell(&line);
    const uint32_t from = kith_region_table_find(table, name);
    enum kith_err err = KITH_OK;
    if (from == table->regions)
        return kith_region_table_fail(
            table, KITH_EINVAL,
            "found a row of %.60s, which the first line does not "
            "name; allowed: its regions, each once",
            name);
    if (table->values[(size_t)from * table->regions] != UNKNOWN)
        return kith_region_table_fail(
            table, KITH_EINVAL,
            "found a second row of %.60s; allowed: one a region", name);
    for (uint32_t to = 0; err == KITH_OK && to < table->regions; to++) {
        const char *const cell = next_cell(&line);
        err = cell == NULL
                  ? kith_region_table_fail(
                        table, KITH_EPARSE,
                        "found %u %s from %.60s; allowed: %u, one to each "
                        "region of the first line",
                        to, table->cells->names, name, table->regions)
                  : put_value(table, from, to, cell);
    }
    if (err == KITH_OK && line != NULL)
        err = kith_region_table_fail(
            table, KITH_EPARSE,
            "found more than %u %s from %.60s; allowed: one to each "
            "region of the first line",
            table->regions, table->cells->names, name);
    return err;
}

static enum kith_err read_csv(struct region_table *table)
{
    char *rest = table->begins;
    char *line = kith_region_table_line(table, &rest);
    if (line == NULL)
        return kith_region_table_fail(
            table, KITH_EPARSE,
            "found nothing; allowed: JSON as {\"data\": {FROM: "
            "{TO: %s}}}, or CSV whose first line and first column "
            "name the regions",
            table->cells->unit);
    enum kith_err err = read_header(table, line);
    while (err == KITH_OK &&
           (line = kith_region_table_line(table, &rest)) != NULL)
        err = read_row(table, line);
    return err;
}

/* ---- JSON, which is YAML */

static enum kith_err read_pairs(struct region_table *table,
                                const struct tree_item *row, uint32_t from)
{
    const struct tree_item *item = kith_yaml_first(&table->json, row);
    enum kith_err err = KITH_OK;
    for (; err == KITH_OK && item != NULL;
         item = kith_yaml_next(&table->json, item)) {
        const uint32_t to = kith_region_table_find(table, item->key);
        table->line = item->line;
        if (to == table->regions)
            err = kith_region_table_fail(
                table, KITH_EINVAL,
                "found %.60s in %.60s, which is not one of the %u "
                "regions themselves; allowed: those",
                item->key, row->key, table->regions);
        else if (item->kind != TREE_SCALAR)
            err = kith_region_table_fail(table, KITH_EPARSE,
                                         "found no number from %.60s to %.60s",
                                         row->key, item->key);
        else
            err = put_value(table, from, to, item->text);
    }
    return err;
}

static enum kith_err read_json(struct region_table *table)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    table->is_json = true;
    enum kith_err err = kith_yaml_open(&table->json, table->path, table->begins,
                                       strlen(table->begins), error);
    if (err != KITH_OK)
        return kith_yaml_fail(
            table->tree, kith_yaml_find(table->tree, table->key), table->key,
            err, "%.600s%s", error,
            err != KITH_ELIMIT ? ""
                               : " (more regions than JSON has room for "
                                 "here: give CSV)");
    const struct tree_item *data = kith_yaml_find(&table->json, "data");
    table->line = data == NULL ? 1 : data->line;
    if (data == NULL || data->kind != TREE_MAP)
        return kith_region_table_fail(
            table, KITH_EPARSE,
            "found no mapping \"data\"; allowed: {\"data\": "
            "{FROM: {TO: %s}}}",
            table->cells->unit);
    err = open_table(table, data->count);
    const struct tree_item *row = kith_yaml_first(&table->json, data);
    for (uint32_t i = 0; err == KITH_OK && row != NULL;
         i++, row = kith_yaml_next(&table->json, row)) {
        table->line = row->line;
        err = row->kind == TREE_MAP
                  ? put_name(table, i, row->key)
                  : kith_region_table_fail(
                        table, KITH_EPARSE,
                        "found no mapping of %.60s; allowed: {TO: %s}",
                        row->key, table->cells->unit);
    }
    row = kith_yaml_first(&table->json, data);
    for (uint32_t i = 0; err == KITH_OK && row != NULL;
         i++, row = kith_yaml_next(&table->json, row))
        err = read_pairs(table, row, i);
    return err;
}

/* ---- all of it */

/* What a region has for itself may be left out. */
static enum kith_err check_whole(struct region_table *table)
{
    const uint32_t n = table->regions;
    table->line = 0;
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++) {
            int64_t *value = &table->values[(size_t)from * n + to];
            if (*value != UNKNOWN)
                continue;
            if (!table->cells->has_gaps || from != to)
                return kith_region_table_fail(
                    table, KITH_EINVAL,
                    "found no %s from %.60s to %.60s; allowed: one for each "
                    "pair of the %u regions",
                    table->cells->name, table->names[from], table->names[to],
                    n);
            *value = 0;
        }
    return KITH_OK;
}

enum kith_err kith_region_table_read(const struct tree *tree, const char *key,
                                     const char *path,
                                     const struct region_cells *cells,
                                     struct region_table *table)
{
    *table = (struct region_table){
        .tree = tree, .key = key, .path = path, .cells = cells};
    enum kith_err err = kith_region_table_text(table);
    if (err != KITH_OK)
        return err;
    err = table->begins[strspn(table->begins, REGION_BLANKS "\n")] == '{'
              ? read_json(table)
              : read_csv(table);
    return err == KITH_OK ? check_whole(table) : err;
}

enum kith_err kith_region_table_order(const struct region_table *table,
                                      const char *const *names, uint32_t count,
                                      uint32_t own[])
{
    if (table->regions != count)
        return kith_region_table_fail(
            table, KITH_EINVAL,
            "found %u regions; allowed: the %u of network.matrix",
            table->regions, count);
    for (uint32_t i = 0; i < count; i++) {
        own[i] = kith_region_table_find(table, names[i]);
        if (own[i] == count)
            return kith_region_table_fail(
                table, KITH_EINVAL,
                "found no region %.60s, which network.matrix has; allowed: the "
                "same regions",
                names[i]);
    }
    return KITH_OK;
}
