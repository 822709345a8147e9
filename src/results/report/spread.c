/* See spread.h.
 *
 * A page of a thousand peers cannot carry, nor a reader tell apart, a thousand
 * curves: their quantiles are counted here, over all of them, and only a sample
 * is drawn one by one. */
#include "src/results/report/spread.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/report.h"
#include "kith/text.h"

/* In front of a row's values: the peer's place, and its time. */
#define AHEAD 2
/* Of the values: step and samples have a mean alone. */
#define PLAIN 2

struct spread {
    size_t peers, columns; /* columns: with step and samples */
    double *last;          /* (columns, peers): carried forward; NaN: none */
    double *sorted;        /* (peers) */
    bool *told;            /* (peers): since the last point */
    int distance;          /* column whose mean is a root mean square, or -1 */
    int loss, accuracy;    /* columns, or -1: see spread.mixed of report.sql */
    bool mixed;
    json_t *rows;
};

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double quantile(const double *sorted, size_t count, double share)
{
    const double place = share * (double)(count - 1);
    const size_t below = (size_t)place;
    const size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] +
           (place - (double)below) * (sorted[above] - sorted[below]);
}

static void put_column(const struct spread *spread, size_t column, json_t *row)
{
    const double *values = spread->last + column * spread->peers;
    const bool square = (int)column == spread->distance;
    size_t count = 0;
    double sum = 0;
    for (size_t i = 0; i < spread->peers; i++) {
        if (!isfinite(values[i]))
            continue;
        sum += square ? values[i] * values[i] : values[i];
        spread->sorted[count++] = values[i];
    }
    double mean = count == 0 ? NAN : sum / (double)count;
    mean = square ? sqrt(mean) : mean;
    if (column >= PLAIN) {
        static const double shares[] = {0.1, 0.5, 0.9};
        if (count > 0)
            qsort(spread->sorted, count, sizeof *spread->sorted, compare);
        for (size_t i = 0; i < 3; i++)
            (void)json_array_append_new(
                row, kith_json_real(count == 0 ? NAN
                                               : quantile(spread->sorted, count,
                                                          shares[i])));
    }
    (void)json_array_append_new(row, kith_json_real(mean));
}

static void put_point(const struct spread *spread, double time_s)
{
    json_t *row = json_array();
    (void)json_array_append_new(row, kith_json_real(time_s));
    for (size_t i = 0; i < spread->columns; i++)
        put_column(spread, i, row);
    (void)json_array_append_new(spread->rows, row);
}

static json_t *heads(sqlite3_stmt *statement, struct spread *spread)
{
    static const char *const ends[] = {"low", "mid", "high", "mean"};
    json_t *heads = json_array();
    (void)json_array_append_new(heads, json_string("time_s"));
    for (size_t i = 0; i < spread->columns; i++) {
        const char *name = sqlite3_column_name(statement, AHEAD + (int)i);
        if (strcmp(name, "consensus_distance") == 0)
            spread->distance = (int)i;
        if (strcmp(name, "loss") == 0)
            spread->loss = (int)i;
        if (strcmp(name, "accuracy") == 0)
            spread->accuracy = (int)i;
        if (i < PLAIN)
            (void)json_array_append_new(heads, json_string(name));
        for (size_t k = 0; k < 4 && i >= PLAIN; k++)
            (void)json_array_append_new(heads,
                                        json_sprintf("%s.%s", name, ends[k]));
    }
    return heads;
}

static void take_row(const struct spread *spread, size_t peer,
                     const struct kith_query *query)
{
    const bool of_test =
        spread->mixed && spread->accuracy >= 0 &&
        isfinite(kith_query_real(query, AHEAD + spread->accuracy));
    for (size_t i = 0; i < spread->columns; i++) {
        const double value = kith_query_real(query, AHEAD + (int)i);
        if (isfinite(value) && !(of_test && (int)i == spread->loss))
            spread->last[i * spread->peers + peer] = value;
    }
    spread->told[peer] = true;
}

/* A point before a peer tells a second time, and at the end: all that are up
 * have told then, at one instant in a simulation, in turn in a lab. Not before
 * `stride` rows came, nor while time stands. */
static void read_rows(const struct spread *spread, struct kith_query *query,
                      int64_t stride)
{
    int64_t since = 0;
    double time_s = 0;
    bool again = false;
    while (kith_query_next(query)) {
        const int64_t peer = kith_query_whole(query, 0);
        const double now = kith_query_real(query, 1);
        if (peer < 0 || (uint64_t)peer >= spread->peers)
            continue; /* a row came since they were counted */
        again = again || spread->told[peer];
        if (again && now > time_s && since >= stride) {
            put_point(spread, time_s);
            memset(spread->told, 0, spread->peers * sizeof *spread->told);
            since = 0;
            again = false;
        }
        time_s = now;
        since++;
        take_row(spread, (size_t)peer, query);
    }
    if (since > 0)
        put_point(spread, time_s);
}

static enum kith_err make_room(struct spread *spread)
{
    const size_t count = spread->columns * spread->peers;
    spread->last = calloc(count, sizeof *spread->last);
    spread->sorted = calloc(spread->peers, sizeof *spread->sorted);
    spread->told = calloc(spread->peers, sizeof *spread->told);
    if (!spread->last || !spread->sorted || !spread->told)
        return KITH_ENOMEM;
    for (size_t i = 0; i < count; i++)
        spread->last[i] = NAN;
    return KITH_OK;
}

static void read_spread(struct kith_database *database, struct spread *spread,
                        struct kith_query *query, int64_t stride, json_t *page)
{
    spread->columns = (size_t)(sqlite3_column_count(query->statement) - AHEAD);
    if (make_room(spread) != KITH_OK) {
        database->err = kith_text_fail(
            database->error, KITH_REPORT_ERROR_BYTES, KITH_ENOMEM,
            "reading the run database %s: out of memory for the curves of "
            "%zu peers",
            database->path, spread->peers);
        return;
    }
    spread->rows = json_array();
    json_t *columns = heads(query->statement, spread);
    read_rows(spread, query, stride);
    (void)json_object_set_new(
        page, "spread",
        json_pack("{s:o, s:o}", "columns", columns, "rows", spread->rows));
}

void kith_spread_add(struct kith_database *database, int64_t peers,
                     json_t *page)
{
    if (peers <= 0)
        return;
    const int64_t every = (peers - 1) / KITH_SPREAD_PEERS_MAX + 1;
    const int64_t counted = (peers - 1) / every + 1;
    const int64_t rows = kith_database_count(database, "spread.count", 0);
    const int64_t stride = rows / every / KITH_SPREAD_POINTS_MAX;
    struct spread spread = {
        .peers = (size_t)counted,
        .distance = -1,
        .loss = -1,
        .accuracy = -1,
        .mixed = kith_database_count(database, "spread.mixed", 0) > 0};
    if (database->err != KITH_OK)
        return;
    struct kith_query query;
    kith_database_query(database, "spread", &query, "i", every);
    if (query.statement != NULL)
        read_spread(database, &spread, &query, stride, page);
    free(spread.last);
    free(spread.sorted);
    free(spread.told);
    kith_database_end(database, &query);
}
