/* A file with one number from each region to each other one: round trips of
 * network.matrix and matrix_p90, rates of network.zone_rates.
 *
 *   JSON  {"data": {FROM: {TO: number, ...}, ...}}, every pair once; regions in
 *         the order of the outer keys
 *   CSV   first line: any word, then the regions; then a line a region, in any
 *         order: its name and a number to each of the first line's. Lines that
 *         are empty or begin with # are passed over
 *
 * Everything is bounded before memory is taken for it. Text of one's own form
 * (network.coordinates) begins with kith_region_table_text(). Test:
 * unit/test_latencies.c, test_zones.c. */
#ifndef KITH_EXPERIMENT_REGION_TABLE_H
#define KITH_EXPERIMENT_REGION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "yaml_tree.h"

#define REGION_BLANKS " \t\r"

/* What its numbers are. */
struct region_cells {
    const char *name, *names; /* "round trip", "round trips" */
    const char *unit;         /* "ms" */
    const char *allowed;      /* of one of them, in words */
    double least, most;
    double scale;          /* value = number * scale, to a whole one */
    uint32_t regions_most; /* <= KITH_REGIONS_MAX */
    bool has_gaps;         /* from a region to itself it may be left out, empty
                              or 0: the value is 0 */
};

struct region_table {
    const struct tree *tree; /* of the experiment */
    const char *key, *path;
    const struct region_cells *cells;
    char *text;       /* (size), then a 0 */
    char *begins;     /* behind a byte order mark */
    struct tree json; /* where it is that: owns the names */
    bool is_json;
    uint32_t line;
    uint32_t regions;
    const char **names; /* (regions); NULL: a text of another form */
    int64_t *values;    /* (regions, regions), from the row's to the column's */
};

/* table <- all of the file, checked. Must be closed whether it fails or not. */
KITH_MUST_CHECK enum kith_err
kith_region_table_read(const struct tree *tree, const char *key,
                       const char *path, const struct region_cells *cells,
                       struct region_table *table);
void kith_region_table_close(struct region_table *table);
/* The region of that name; regions: there is none. */
uint32_t kith_region_table_find(const struct region_table *table,
                                const char *name);
/* own[i] <- the table's region that names[i] is: the same regions, in any
 * order, as those of network.matrix. */
KITH_MUST_CHECK enum kith_err
kith_region_table_order(const struct region_table *table,
                        const char *const *names, uint32_t count,
                        uint32_t own[]);
/* "network.matrix: FILE:LINE: what"; line 0: none. Returns err. */
enum kith_err KITH_PRINTF(3, 4)
    kith_region_table_fail(const struct region_table *table, enum kith_err err,
                           const char *format, ...);

/* The text alone, of table->path. */
KITH_MUST_CHECK enum kith_err
kith_region_table_text(struct region_table *table);
/* The next line that is not empty nor a comment, cut off from the rest; NULL:
 * there is none. */
char *kith_region_table_line(struct region_table *table, char **rest);

#endif
