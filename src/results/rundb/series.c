/* The table of the series' columns, and rows added up by it. */
#include "kith/series.h"

#include <math.h>

#define OFFSET_row(name) offsetof(struct kith_row, name)
#define OFFSET_speed(name) offsetof(struct kith_row, speed.name)
#define KITH_CHART(place, title, unit, format) place, title, unit, format
#define KITH_NO_CHART 0, NULL, NULL, NULL
const struct kith_series_column kith_series_columns[] = {
#define KITH_SERIES_COLUMN(place, schema, kind, name, add, chart)              \
    {#name,                                                                    \
     KITH_SERIES_##place,                                                      \
     schema,                                                                   \
     KITH_SERIES_##kind,                                                       \
     KITH_SERIES_##add,                                                        \
     OFFSET_##place(name),                                                     \
     chart},
#include "kith/series.def"
};
#define COLUMNS (sizeof kith_series_columns / sizeof *kith_series_columns)
const unsigned kith_series_column_count = COLUMNS;

static void *at(void *row, const struct kith_series_column *column)
{
    return (char *)row + column->offset;
}

static bool is_real(const struct kith_series_column *column)
{
    return column->kind >= KITH_SERIES_REAL;
}

struct kith_row kith_row_unknown(kith_id peer)
{
    struct kith_row row = {.peer = peer};
    for (unsigned i = 0; i < COLUMNS; i++)
        if (is_real(&kith_series_columns[i]))
            *(double *)at(&row, &kith_series_columns[i]) = NAN;
    return row;
}

static double add_reals(double sum, double value)
{
    return isnan(sum) ? value : isnan(value) ? sum : sum + value;
}

static void add_column(const struct kith_series_column *column, void *sum,
                       const void *value)
{
    if (is_real(column))
        *(double *)sum = add_reals(*(double *)sum, *(const double *)value);
    else
        *(uint64_t *)sum += *(const uint64_t *)value;
}

static void most_column(const struct kith_series_column *column, void *sum,
                        const void *value)
{
    if (is_real(column))
        *(double *)sum = fmax(*(double *)sum, *(const double *)value);
    else if (*(uint64_t *)sum < *(const uint64_t *)value)
        *(uint64_t *)sum = *(const uint64_t *)value;
}

/* (share) of all models that were received are those of `row`. */
static void mean_column(void *sum, const void *value, double share)
{
    const double one = *(const double *)value, rest = *(double *)sum;
    *(double *)sum = share >= 1 ? one : share * one + (1 - share) * rest;
}

static void add_row(struct kith_row *sum, const struct kith_row *row,
                    bool same_peer, bool speed)
{
    const double all = (double)(sum->received + row->received);
    const double share = (double)row->received / all;
    for (unsigned i = 0; i < COLUMNS; i++) {
        const struct kith_series_column *column = &kith_series_columns[i];
        void *to = at(sum, column);
        const void *from = (const char *)row + column->offset;
        if ((column->place == KITH_SERIES_speed) != speed)
            continue;
        switch (column->add) {
        case KITH_SERIES_CURRENT:
        case KITH_SERIES_MEAN:
        case KITH_SERIES_MODEL:
            if (!same_peer)
                add_column(column, to, from);
            break;
        case KITH_SERIES_COUNTER:
            add_column(column, to, from);
            break;
        case KITH_SERIES_MOST:
            most_column(column, to, from);
            break;
        case KITH_SERIES_MEAN_RECEIVED:
            if (row->received > 0)
                mean_column(to, from, share);
            break;
        case KITH_SERIES_MOST_RECEIVED:
            if (row->received > 0)
                most_column(column, to, from);
            break;
        }
    }
}

void kith_row_add_incarnation(struct kith_row *row,
                              const struct kith_row *earlier)
{
    add_row(row, earlier, true, false);
    if (earlier->speed.measured)
        add_row(row, earlier, true, true);
}

void kith_speed_add_peer(struct kith_speed *sum, const struct kith_speed *peer)
{
    if (!peer->measured)
        return;
    if (!sum->measured) {
        *sum = *peer;
        return;
    }
    struct kith_row all = {.speed = *sum};
    const struct kith_row one = {.speed = *peer};
    add_row(&all, &one, false, true);
    *sum = all.speed;
}

void kith_row_add_peer(struct kith_row *sum, const struct kith_row *peer)
{
    add_row(sum, peer, false, false);
    kith_speed_add_peer(&sum->speed, &peer->speed);
}

void kith_speed_mean(struct kith_speed *sum, uint32_t speeds)
{
    struct kith_row all = {.speed = *sum};
    for (unsigned i = 0; i < COLUMNS && speeds > 0; i++) {
        const struct kith_series_column *column = &kith_series_columns[i];
        if (column->place == KITH_SERIES_speed &&
            column->add == KITH_SERIES_MEAN)
            *(double *)at(&all, column) /= speeds;
    }
    *sum = all.speed;
}
