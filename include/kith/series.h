/* The series of a run: one row for each peer and point in time. Its columns
 * stand in kith/series.def; all that handles a row goes through the table that
 * is made of them here. */
#ifndef KITH_SERIES_H
#define KITH_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "kith/speed.h"
#include "kith/types.h"

/* What a database is marked with, "kith" in ASCII. The shape of its tables is
 * KITH_RUNDB_SCHEMA_VERSION; a reader refuses a later one. 1 has no speed; 1
 * and 2 hold one run, without run_id, age, runs, cells and settings; 3 has no
 * use of the channel, 4 no test_loss. Reports read them all. */
#define KITH_RUNDB_APPLICATION_ID 0x6b697468
#define KITH_RUNDB_SCHEMA_OLDEST 1

enum kith_series_place { KITH_SERIES_row, KITH_SERIES_speed };

enum kith_series_kind {
    KITH_SERIES_ALWAYS,
    KITH_SERIES_COUNT,
    KITH_SERIES_KNOWN,
    KITH_SERIES_REAL, /* from here on: double */
    KITH_SERIES_MEASURE,
    KITH_SERIES_SHARE,
};

/* Incarnations of a peer, and then peers: */
enum kith_series_add {
    KITH_SERIES_COUNTER,       /* both are summed */
    KITH_SERIES_CURRENT,       /* the last incarnation's; summed over peers */
    KITH_SERIES_MEAN,          /* the last incarnation's; mean over peers */
    KITH_SERIES_MODEL,         /* of a model: as MEAN, and nothing that a run
                                  counts */
    KITH_SERIES_MOST,          /* the largest */
    KITH_SERIES_MEAN_RECEIVED, /* over the models that were received */
    KITH_SERIES_MOST_RECEIVED,
};

/* One point of a peer's series. NaN: not measured. peer KITH_NOBODY: the
 * averaged model. */
struct kith_row {
    kith_id peer;
    kith_ns time_ns; /* since the start of the run, virtual or real */
#define KITH_FIELD_row(type, name) type name;
#define KITH_FIELD_speed(type, name)
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    KITH_FIELD_##place(KITH_TYPE_##kind, name)
#include "kith/series.def"
#undef KITH_FIELD_row
#undef KITH_FIELD_speed
    struct kith_speed speed;
};

struct kith_series_column {
    const char *name;
    enum kith_series_place place;
    int schema; /* that brought it */
    enum kith_series_kind kind;
    enum kith_series_add add;
    size_t offset; /* in struct kith_row */
    int chart;     /* its place on the page; 0: it has none */
    const char *title, *unit, *format;
};
extern const struct kith_series_column kith_series_columns[];
extern const unsigned kith_series_column_count;

/* Nothing counted, nothing measured: what is real is NaN. */
struct kith_row kith_row_unknown(kith_id peer);
/* What an earlier incarnation of the same peer counted goes into `row`. */
void kith_row_add_incarnation(struct kith_row *row,
                              const struct kith_row *earlier);
/* Sums over peers: adds one to `sum`, which begins as zeros; what was not
 * measured counts as nothing, and means are sums. */
void kith_row_add_peer(struct kith_row *sum, const struct kith_row *peer);
/* The same of speeds alone; kith_speed_mean() makes means of such sums. */
void kith_speed_add_peer(struct kith_speed *sum, const struct kith_speed *peer);
void kith_speed_mean(struct kith_speed *sum, uint32_t speeds);

#endif
