/* Goal: classical scaling finds a plane again from its distances, says the same
 * each time, and stays finite where there is no plane; zones beyond the places
 * of a map are joined with their neighbours, every peer is in one place, and
 * names are the file's.
 * Method: drawn points, whose distances are given as latencies and asked of the
 * map again; times that are no distances; a file in a scratch folder, those of
 * the test data where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment_base.h"
#include "kith/rng.h"
#include "kith/zone_map.h"

#define POINTS 64u

static struct kith_zone_map map_of(const struct kith_zones *zones,
                                   const struct kith_latencies *latencies,
                                   uint32_t peers)
{
    struct kith_zone_map map;
    assert_int_equal(kith_zone_map_open(zones, latencies, peers, &map),
                     KITH_OK);
    return map;
}

static double apart(const double *a, const double *b)
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]));
}

/* Uniform in [0, most). */
static double draw(struct kith_rng *rng, double most)
{
    return most * (double)kith_rng_u32(rng) / 4294967296.0;
}

/* Within a region some time passes, too. */
static void fill_times(double points[POINTS][2], uint32_t n, kith_ns *times)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            times[i * n + j] =
                i == j
                    ? 3 * KITH_MS
                    : (kith_ns)(apart(points[i], points[j]) * (double)KITH_MS);
}

/* To a microsecond: times are whole nanoseconds. */
static void test_plane(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 7, KITH_STREAM_TEST, 0);
    static double points[POINTS][2];
    static kith_ns times[POINTS * POINTS];
    for (uint32_t n = 2; n <= POINTS; n += 31) {
        for (uint32_t i = 0; i < n; i++) {
            points[i][0] = draw(&rng, 200);
            points[i][1] = draw(&rng, 60);
        }
        fill_times(points, n, times);
        const struct kith_latencies latencies = {.regions = n,
                                                 .latency_ns = times};
        const struct kith_zones zones = {.count = n};
        struct kith_zone_map map = map_of(&zones, &latencies, 2000);
        assert_int_equal(map.count, n);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                const double a[2] = {map.places[i].x, map.places[i].y};
                const double b[2] = {map.places[j].x, map.places[j].y};
                const double wanted = apart(points[i], points[j]);
                if (fabs(apart(a, b) - wanted) > 1e-3)
                    fail_msg("%u to %u of %u: %g ms, not %g", i, j, n,
                             apart(a, b), wanted);
            }
        kith_zone_map_close(&map);
    }
}

/* (x, y) to the last bit. */
static void assert_same(const struct kith_zone_map *a,
                        const struct kith_zone_map *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_memory_equal(&a->places[i].x, &b->places[i].x, sizeof(double));
        assert_memory_equal(&a->places[i].y, &b->places[i].y, sizeof(double));
        assert_true(isfinite(a->places[i].x) && isfinite(a->places[i].y));
    }
}

/* All alike; none away from another; anything; 0 or the longest. */
static kith_ns odd_time(struct kith_rng *rng, unsigned kind)
{
    switch (kind) {
    case 0:
        return 20 * KITH_MS;
    case 1:
        return 0;
    case 2:
        return (kith_ns)draw(rng, 1e8);
    default:
        return draw(rng, 1) < 0.5 ? 0 : KITH_TRIP_MAX_NS / 2;
    }
}

static void test_no_plane(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 11, KITH_STREAM_TEST, 0);
    static kith_ns times[POINTS * POINTS];
    for (unsigned kind = 0; kind < 4; kind++)
        for (uint32_t n = 2; n <= POINTS; n += 31) {
            for (uint32_t i = 0; i < n * n; i++)
                times[i] = odd_time(&rng, kind);
            const struct kith_latencies latencies = {.regions = n,
                                                     .latency_ns = times};
            const struct kith_zones zones = {.count = n};
            struct kith_zone_map one = map_of(&zones, &latencies, 2000);
            struct kith_zone_map other = map_of(&zones, &latencies, 2000);
            assert_same(&one, &other);
            for (uint32_t i = 0; kind == 1 && i < n; i++)
                assert_true(one.places[i].x == 0 && one.places[i].y == 0);
            kith_zone_map_close(&one);
            kith_zone_map_close(&other);
        }
}

/* Each zone is in a place, and places have all peers. */
static void assert_whole(const struct kith_zone_map *map, uint32_t peers)
{
    uint32_t zones[KITH_PLACES_MAX] = {0}, sum = 0;
    for (uint32_t i = 0; i < map->zones; i++) {
        assert_true(map->place_of[i] < map->count);
        zones[map->place_of[i]]++;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        assert_int_equal(zones[i], map->places[i].zones);
        sum += map->places[i].peers;
    }
    assert_int_equal(sum, peers);
}

/* A grid of 32 x 32 hosts, 310 ms wide, ten of them far from the others: places
 * have 16 each, nine tenths of them within 60 ms of its middle. */
static void test_joined(void **state)
{
    (void)state;
    static double hosts[1024][2];
    for (uint32_t i = 0; i < 1024; i++) {
        hosts[i][0] = 10 * (i % 32);
        hosts[i][1] = 10 * (double)(i / 32) + (i < 10 ? -5000 : 0);
    }
    const struct kith_latencies latencies = {.regions = 1024,
                                             .places = &hosts[0][0]};
    const struct kith_zones zones = {.count = 1024};
    struct kith_zone_map map = map_of(&zones, &latencies, 5000);
    assert_int_equal(map.count, 64);
    assert_whole(&map, 5000);
    uint32_t near = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        const struct kith_map_place *place = &map.places[map.place_of[i]];
        const double at[2] = {place->x, place->y};
        assert_int_equal(place->zones, 16);
        near += apart(hosts[i], at) < 60;
    }
    assert_in_range(near, 1024 * 9 / 10, 1024);
    assert_string_equal(map.places[map.place_of[0]].name, "host 0 and 15 more");
    kith_zone_map_close(&map);
    /* Fewer peers than hosts. */
    map = map_of(&zones, &latencies, 100);
    assert_int_equal(map.zones, 100);
    assert_whole(&map, 100);
    kith_zone_map_close(&map);
}

static void test_by_number(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    must_parse("network={zones: [2, 5, 1]}", &experiment);
    struct kith_zone_map map =
        map_of(&experiment.network.zones, &experiment.network.latencies, 8);
    assert_int_equal(map.count, 3);
    assert_whole(&map, 8);
    assert_int_equal(map.places[1].peers, 5);
    assert_string_equal(map.places[1].name, "zone 1");
    assert_true(isnan(map.places[1].x) && isnan(map.places[1].y));
    kith_zone_map_close(&map);
    kith_experiment_close(&experiment);
    /* Neighbours are joined. */
    uint32_t first[201];
    for (uint32_t i = 0; i <= 200; i++)
        first[i] = 10 * i;
    const struct kith_zones many = {.count = 200, .first = first};
    const struct kith_latencies none = {.regions = 0};
    map = map_of(&many, &none, 2000);
    assert_int_equal(map.count, 64);
    assert_whole(&map, 2000);
    for (uint32_t i = 1; i < 200; i++)
        assert_in_range(map.place_of[i], map.place_of[i - 1],
                        map.place_of[i - 1] + 1);
    assert_string_equal(map.places[0].name, "zone 0 and 2 more");
    kith_zone_map_close(&map);
}

/* A name of 35 bytes is cut at a whole character. Without zones there is no
 * map. */
static void test_names(void **state)
{
    (void)state;
#define LONG_NAME "012345678901234567890123456789"
#define REST                                                                   \
    "\303\244"                                                                 \
    "567"
    char path[] = "/tmp/kith-zone-map-XXXXXX", set[128];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    static const char text[] =
        "ms,a<b>," LONG_NAME REST "\na<b>,0,20\n" LONG_NAME REST ",30,1\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(close(file), 0);
    (void)snprintf(set, sizeof set, "network={matrix: %s}", path);
    struct kith_experiment experiment;
    must_parse(set, &experiment);
    struct kith_zone_map map =
        map_of(&experiment.network.zones, &experiment.network.latencies, 8);
    assert_string_equal(map.places[0].name, "a<b>");
    assert_string_equal(map.places[1].name, LONG_NAME);
    kith_zone_map_close(&map);
    kith_experiment_close(&experiment);
    assert_int_equal(unlink(path), 0);
    const struct kith_zones no_zones = {.count = 0};
    const struct kith_latencies none = {.regions = 0};
    map = map_of(&no_zones, &none, 8);
    assert_int_equal(map.count, 0);
    kith_zone_map_close(&map);
}

static void find_place(const struct kith_zone_map *map, const char *name,
                       double at[2])
{
    uint32_t i = 0;
    while (i < map->count && strcmp(map->places[i].name, name) != 0)
        i++;
    assert_true(i < map->count);
    at[0] = map->places[i].x;
    at[1] = map->places[i].y;
}

/* Virginia is nearer to Ohio than to any region of Asia. */
static void assert_geography(const struct kith_zone_map *map)
{
    double virginia[2], ohio[2];
    find_place(map, "us-east-1", virginia);
    find_place(map, "us-east-2", ohio);
    for (uint32_t i = 0; i < map->count; i++) {
        const double at[2] = {map->places[i].x, map->places[i].y};
        if (strncmp(map->places[i].name, "ap-", 3) == 0)
            assert_true(apart(virginia, at) > 2 * apart(virginia, ohio));
    }
}

/* Regions of AWS, and 1,740 hosts of the Internet. */
static void test_real(void **state)
{
    (void)state;
    const char *data = getenv("KITH_TESTDATA"), *top = getenv("srcdir");
    char root[300], set[800];
    (void)snprintf(root, sizeof root, "%s/../shared/data",
                   top && *top ? top : ".");
    if (data && *data)
        (void)snprintf(root, sizeof root, "%s", data);
    (void)snprintf(set, sizeof set, "%s/traces/aws-p50.json", root);
    if (access(set, R_OK) != 0) {
        printf("SKIP: no traces/ under $KITH_TESTDATA, nor %s\n", root);
        skip();
    }
    for (unsigned i = 0; i < 2; i++) {
        struct kith_experiment experiment;
        (void)snprintf(set, sizeof set, "network={%s: %s/traces/%s}",
                       i == 0 ? "matrix" : "coordinates", root,
                       i == 0 ? "aws-p50.json" : "king.syscoord");
        must_parse(set, &experiment);
        const struct kith_zones *zones = &experiment.network.zones;
        const struct kith_latencies *latencies = &experiment.network.latencies;
        struct kith_zone_map one = map_of(zones, latencies, 100000);
        struct kith_zone_map other = map_of(zones, latencies, 100000);
        assert_same(&one, &other);
        assert_whole(&one, 100000);
        assert_int_equal(one.count, i == 0 ? 33 : 64);
        if (i == 0)
            assert_geography(&one);
        kith_zone_map_close(&one);
        kith_zone_map_close(&other);
        kith_experiment_close(&experiment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plane),  cmocka_unit_test(test_no_plane),
        cmocka_unit_test(test_joined), cmocka_unit_test(test_by_number),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
