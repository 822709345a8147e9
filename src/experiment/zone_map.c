/* Where zones are, for a map; see kith/zone_map.h.
 *
 * An eigenvector of B is what power iteration comes to, v <- (B + r I) v / |.|,
 * beside those found before. r is about the largest eigenvalue by size, so that
 * one below 0, which latencies have where no plane has them, is never the
 * largest. B is not kept: v sums to 0, so J v = v, and a pass over the times
 * gives S v. */
#include "kith/zone_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "kith/text.h"

#define PASSES_MAX 2000u
/* Of all passes over R x R times: some seconds with the most regions. */
#define WORK_MAX 2e9
#define NEAR 1e-12
#define NONE ((double)NAN)

/* Of R zones the times one way, `stride` to a row. */
struct times {
    const kith_ns *ns;
    size_t stride;
    uint32_t count;
};

/* ---- classical scaling */

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* y <- y + a x */
static void add(double *y, double a, const double *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static void centre(double *v, uint32_t n)
{
    double mean = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += v[i] / n;
    for (uint32_t i = 0; i < n; i++)
        v[i] -= mean;
}

/* w <- B v, in ms^2, where v sums to 0. */
static void multiply(const struct times *times, const double *v, double *w)
{
    const uint32_t n = times->count;
    memset(w, 0, n * sizeof *w);
    for (uint32_t i = 0; i < n; i++) {
        const kith_ns *row = times->ns + i * times->stride;
        double sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            const double ms = j == i ? 0 : (double)row[j] / KITH_MS;
            const double part = -0.25 * ms * ms;
            sum += part * v[j];
            w[j] += part * v[i];
        }
        w[i] += sum;
    }
    centre(w, n);
}

/* v <- v / |v|; false: nothing is left of it beside rounding. */
static bool make_unit(double *v, double least, uint32_t n)
{
    const double length = sqrt(dot(v, v, n));
    if (!(length > least))
        return false;
    for (uint32_t i = 0; i < n; i++)
        v[i] /= length;
    return true;
}

/* Without any pattern, and the same always. */
static void start(double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = (double)((i + 1) * UINT32_C(2654435761)) / 4294967296.0 - 0.5;
    centre(v, n);
    (void)make_unit(v, 0, n);
}

static uint32_t passes_of(uint32_t n)
{
    const double passes = WORK_MAX / ((double)n * n);
    return passes > PASSES_MAX ? PASSES_MAX : (uint32_t)passes;
}

/* The size of the largest eigenvalue, about: from below. */
static double radius_of(const struct times *times, double *v, double *w)
{
    const uint32_t n = times->count;
    double radius = 0;
    start(v, n);
    for (uint32_t pass = 0; pass < 32; pass++) {
        multiply(times, v, w);
        radius = sqrt(dot(w, w, n));
        if (!make_unit(w, 0, n))
            return 0;
        memcpy(v, w, n * sizeof *v);
    }
    return radius;
}

/* v <- the largest eigenvector that is orthogonal to `other` (or NULL); its
 * eigenvalue, or 0 where that is none. */
static double largest(const struct times *times, double radius,
                      const double *other, double *v, double *w)
{
    const uint32_t n = times->count;
    double value = 0, step = INFINITY;
    start(v, n);
    for (uint32_t pass = passes_of(n); pass > 0 && step > NEAR; pass--) {
        if (other != NULL)
            add(v, -dot(v, other, n), other, n);
        if (!make_unit(v, NEAR, n))
            return 0;
        multiply(times, v, w);
        value = dot(v, w, n);
        add(w, radius, v, n);
        if (!make_unit(w, 0, n))
            return 0;
        add(v, -1, w, n);
        step = sqrt(dot(v, v, n));
        memcpy(v, w, n * sizeof *v);
    }
    return value > NEAR * radius ? value : 0;
}

/* axis <- sqrt(l) v, its largest element positive. */
static void put_axis(const double *v, double value, double *axis, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        if (fabs(v[i]) > fabs(most) * (1 + 1e-9))
            most = v[i];
    for (uint32_t i = 0; i < n; i++)
        axis[i] = value > 0 ? sqrt(value) * (most < 0 ? -v[i] : v[i]) : 0;
}

/* axes (2, R); scratch (3, R). */
static void scale(const struct times *times, double *axes, double *scratch)
{
    const uint32_t n = times->count;
    double *first = scratch, *second = scratch + n,
           *w = scratch + 2 * (size_t)n;
    const double radius = radius_of(times, first, w);
    const double one = largest(times, radius, NULL, first, w);
    put_axis(first, one, axes, n);
    const double two = largest(times, radius, first, second, w);
    put_axis(second, two, axes + n, n);
}

/* ---- joining */

struct at {
    double key;
    uint32_t zone;
};

static int compare(const void *left, const void *right)
{
    const struct at *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->zone < b->zone ? -1 : a->zone > b->zone;
}

/* Sorted along the axis on which they are further apart. */
static void sort_part(struct at *part, uint32_t count, const double *axes,
                      uint32_t n)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < count; i++)
        for (unsigned axis = 0; axis < 2; axis++) {
            const double at = axes[axis * (size_t)n + part[i].zone];
            low[axis] = fmin(low[axis], at);
            high[axis] = fmax(high[axis], at);
        }
    const unsigned wide = high[1] - low[1] > high[0] - low[0];
    for (uint32_t i = 0; i < count; i++)
        part[i].key = axes[wide * (size_t)n + part[i].zone];
    qsort(part, count, sizeof *part, compare);
}

/* The k-th of so many equal parts of a list of n begins there. */
static uint32_t begin_of(uint32_t n, uint32_t k, uint32_t parts)
{
    return (uint32_t)((uint64_t)n * k / parts);
}

/* Zones in the order of a walk through halves of halves. */
static void order_zones(struct at *order, const double *axes, uint32_t n)
{
    for (uint32_t parts = 1; parts < KITH_PLACES_MAX; parts *= 2)
        for (uint32_t k = 0; k < parts; k++) {
            const uint32_t first = begin_of(n, k, parts);
            sort_part(order + first, begin_of(n, k + 1, parts) - first, axes,
                      n);
        }
}

static void join_zones(struct kith_zone_map *map, struct at *order,
                       const double *axes)
{
    const uint32_t n = map->zones;
    map->count = n < KITH_PLACES_MAX ? n : KITH_PLACES_MAX;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct at){.zone = i};
    if (n > KITH_PLACES_MAX && axes != NULL)
        order_zones(order, axes, n);
    for (uint32_t k = 0; k < map->count; k++)
        for (uint32_t i = begin_of(n, k, map->count);
             i < begin_of(n, k + 1, map->count); i++)
            map->place_of[order[i].zone] = (uint8_t)k;
}

/* ---- the map */

static uint32_t peers_of(const struct kith_zones *zones, uint32_t zone,
                         uint32_t peers)
{
    return zones->first != NULL ? zones->first[zone + 1] - zones->first[zone]
                                : (peers - zone - 1) / zones->count + 1;
}

/* A name that is cut ends with a whole character of UTF-8. */
static void copy_name(char *name, const char *from)
{
    size_t length = strlen(from);
    if (length >= KITH_REGION_NAME_BYTES) {
        length = KITH_REGION_NAME_BYTES - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
    }
    memcpy(name, from, length);
    name[length] = '\0';
}

/* By its first zone; where there are more, that is said. */
static void name_place(const struct kith_latencies *latencies, uint32_t zone,
                       struct kith_map_place *place)
{
    const char *const kind = latencies->places != NULL ? "host" : "zone";
    if (latencies->names != NULL)
        copy_name(place->name, latencies->names[zone]);
    else
        (void)snprintf(place->name, sizeof place->name, "%s %u", kind, zone);
}

static void fill_places(struct kith_zone_map *map,
                        const struct kith_zones *zones,
                        const struct kith_latencies *latencies, uint32_t peers,
                        const double *axes)
{
    for (uint32_t zone = 0; zone < map->zones; zone++) {
        struct kith_map_place *place = &map->places[map->place_of[zone]];
        if (place->zones++ == 0)
            name_place(latencies, zone, place);
        place->peers += peers_of(zones, zone, peers);
        place->x += axes == NULL ? NONE : axes[zone];
        place->y += axes == NULL ? NONE : axes[map->zones + zone];
    }
    for (uint32_t k = 0; k < map->count; k++) {
        struct kith_map_place *place = &map->places[k];
        KITH_ASSERT(place->zones > 0 && place->peers > 0);
        place->x /= place->zones;
        place->y /= place->zones;
        if (place->zones > 1)
            (void)kith_text_add(place->name, sizeof place->name,
                                strlen(place->name), " and %u more",
                                place->zones - 1);
    }
}

/* (5, zones): two axes, and scratch. */
static void place_zones(const struct kith_latencies *latencies, uint32_t n,
                        double *numbers)
{
    if (latencies->places == NULL) {
        const struct times times = {.ns = latencies->latency_ns,
                                    .stride = latencies->regions,
                                    .count = n};
        scale(&times, numbers, numbers + 2 * (size_t)n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = latencies->places[2 * (size_t)i];
        numbers[n + i] = latencies->places[2 * (size_t)i + 1];
    }
}

enum kith_err kith_zone_map_open(const struct kith_zones *zones,
                                 const struct kith_latencies *latencies,
                                 uint32_t peers, struct kith_zone_map *map)
{
    *map = (struct kith_zone_map){.zones = zones->count < peers ? zones->count
                                                                : peers};
    KITH_ASSERT(map->zones <= KITH_REGIONS_MAX);
    if (map->zones == 0)
        return KITH_OK;
    const bool is_plane = latencies->regions > 0;
    double *numbers =
        is_plane ? calloc(5 * (size_t)map->zones, sizeof *numbers) : NULL;
    struct at *order = calloc(map->zones, sizeof *order);
    map->place_of = malloc(map->zones);
    const bool done = map->place_of != NULL && order != NULL &&
                      (numbers != NULL || !is_plane);
    if (done) {
        if (is_plane)
            place_zones(latencies, map->zones, numbers);
        join_zones(map, order, numbers);
        fill_places(map, zones, latencies, peers, numbers);
    } else {
        kith_zone_map_close(map);
    }
    free(numbers);
    free(order);
    return done ? KITH_OK : KITH_ENOMEM;
}

void kith_zone_map_close(struct kith_zone_map *map)
{
    free(map->place_of);
    *map = (struct kith_zone_map){.count = 0};
}
