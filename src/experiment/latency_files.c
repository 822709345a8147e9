/* Files of latency by place: network.matrix, matrix_p90 and coordinates.
 *
 *   matrix, p90  region_table.h, round trips in ms
 *   coordinates  lines "ID X Y h HEIGHT", ms, ids from 0; "# comment". A round
 *                trip is the distance in the plane and both heights (Vivaldi:
 *                Dabek, Cox, Kaashoek, Morris, SIGCOMM 2004)
 *
 * Test: unit/test_latencies.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "region_table.h"
#include "yaml_tree.h"

#define MOST_MS 10000

_Static_assert(MOST_MS *KITH_MS == KITH_TRIP_MAX_NS, "in milliseconds");
_Static_assert(sizeof(kith_ns) == sizeof(int64_t), "a table's values");

static const struct region_cells round_trips = {
    .name = "round trip",
    .names = "round trips",
    .unit = "ms",
    .allowed = "a round trip in milliseconds, from 0 to 10000",
    .most = MOST_MS,
    .scale = (double)KITH_MS,
    .regions_most = KITH_REGIONS_MAX};

/* ---- a matrix */

/* The pairs of `high`, in the order of `low`: malloc'd, or NULL. */
static enum kith_err match(struct region_table *low, struct region_table *high,
                           kith_ns **trips)
{
    const uint32_t n = low->regions;
    uint32_t own[KITH_REGIONS_MAX];
    const enum kith_err err = kith_region_table_order(high, low->names, n, own);
    if (err != KITH_OK)
        return err;
    *trips = malloc((size_t)n * n * sizeof **trips);
    if (*trips == NULL)
        return kith_region_table_fail(high, KITH_ENOMEM,
                                      "out of memory: %u regions", n);
    for (size_t i = 0; i < (size_t)n * n; i++) {
        (*trips)[i] = high->values[(size_t)own[i / n] * n + own[i % n]];
        if ((*trips)[i] < low->values[i])
            return kith_region_table_fail(
                high, KITH_EINVAL,
                "found %g ms from %.60s to %.60s, and a median of "
                "%g ms in network.matrix; allowed: no less",
                (double)(*trips)[i] / KITH_MS, low->names[i / n],
                low->names[i % n], (double)low->values[i] / KITH_MS);
    }
    return KITH_OK;
}

/* Those of the table, and its text: one block, which is malloc'd; NULL: no
 * memory. */
static const char **copy_names(const struct region_table *table)
{
    size_t bytes = table->regions * sizeof *table->names;
    for (uint32_t i = 0; i < table->regions; i++)
        bytes += strlen(table->names[i]) + 1;
    const char **names = malloc(bytes);
    char *at = (char *)(names + table->regions);
    for (uint32_t i = 0; names != NULL && i < table->regions; i++) {
        const size_t length = strlen(table->names[i]) + 1;
        names[i] = memcpy(at, table->names[i], length);
        at += length;
    }
    return names;
}

static void take(struct kith_experiment *experiment, struct region_table *file,
                 kith_ns *trips_p90, const char **names)
{
    kith_latencies_take(&experiment->network.latencies, file->regions,
                        file->values, trips_p90, names);
    file->values = NULL;
}

static enum kith_err take_matrix(const struct tree *tree,
                                 struct kith_experiment *experiment)
{
    struct region_table low, high = {.regions = 0};
    kith_ns *trips_p90 = NULL;
    const char **names = NULL;
    const char *const p90 = experiment->network.files.matrix_p90;
    enum kith_err err = kith_region_table_read(tree, "network.matrix",
                                               experiment->network.files.matrix,
                                               &round_trips, &low);
    if (err == KITH_OK && p90[0] != '\0')
        err = kith_region_table_read(tree, "network.matrix_p90", p90,
                                     &round_trips, &high);
    if (err == KITH_OK && p90[0] != '\0')
        err = match(&low, &high, &trips_p90);
    if (err == KITH_OK && (names = copy_names(&low)) == NULL)
        err = kith_region_table_fail(&low, KITH_ENOMEM,
                                     "out of memory: %u regions", low.regions);
    if (err == KITH_OK)
        take(experiment, &low, trips_p90, names);
    else
        free(trips_p90);
    kith_region_table_close(&low);
    kith_region_table_close(&high);
    return err;
}

/* ---- coordinates */

struct host {
    double x, y, height;
};

static enum kith_err read_host(struct region_table *file, char *line,
                               struct host *host)
{
    char shown[64];
    char *rest = line;
    uint64_t id;
    (void)snprintf(shown, sizeof shown, "%s", line);
    const char *words[5];
    for (unsigned i = 0; i < 5; i++) /* in this order */
        words[i] = strtok_r(rest, REGION_BLANKS, &rest);
    if (words[4] != NULL && strtok_r(rest, REGION_BLANKS, &rest) == NULL &&
        kith_text_u64(words[0], &id) == KITH_OK && id == file->regions &&
        strcmp(words[3], "h") == 0 &&
        kith_text_double(words[1], &host->x) == KITH_OK &&
        kith_text_double(words[2], &host->y) == KITH_OK &&
        kith_text_double(words[4], &host->height) == KITH_OK &&
        fabs(host->x) <= MOST_MS && fabs(host->y) <= MOST_MS &&
        host->height >= 0 && host->height <= MOST_MS)
        return KITH_OK;
    return kith_region_table_fail(
        file, KITH_EPARSE,
        "found \"%s\"; allowed: \"%u X Y h HEIGHT\" in "
        "milliseconds, up to %d",
        shown, file->regions, MOST_MS);
}

static enum kith_err fill_trips(struct region_table *file,
                                const struct host *hosts)
{
    const uint32_t n = file->regions;
    file->line = 0;
    file->values = malloc((size_t)n * n * sizeof *file->values);
    if (file->values == NULL)
        return kith_region_table_fail(file, KITH_ENOMEM,
                                      "out of memory: %u hosts", n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const double x = hosts[i].x - hosts[j].x;
            const double y = hosts[i].y - hosts[j].y;
            const double ms =
                sqrt(x * x + y * y) + hosts[i].height + hosts[j].height;
            if (ms > MOST_MS)
                return kith_region_table_fail(
                    file, KITH_ELIMIT,
                    "found %g ms from host %u to %u; allowed: up "
                    "to %d",
                    ms, i, j, MOST_MS);
            file->values[(size_t)i * n + j] =
                (kith_ns)(ms * (double)KITH_MS + 0.5);
        }
    return KITH_OK;
}

static enum kith_err read_hosts(struct region_table *file, struct host *hosts)
{
    char *rest = file->begins;
    char *line;
    enum kith_err err = KITH_OK;
    while (err == KITH_OK &&
           (line = kith_region_table_line(file, &rest)) != NULL) {
        err =
            file->regions == KITH_REGIONS_MAX
                ? kith_region_table_fail(
                      file, KITH_ELIMIT,
                      "found more hosts; allowed: at most %u", KITH_REGIONS_MAX)
                : read_host(file, line, &hosts[file->regions]);
        file->regions += err == KITH_OK;
    }
    if (err == KITH_OK && file->regions == 0)
        err = kith_region_table_fail(
            file, KITH_EPARSE,
            "found no host; allowed: lines \"ID X Y h HEIGHT\"");
    return err == KITH_OK ? fill_trips(file, hosts) : err;
}

static enum kith_err take_places(struct kith_latencies *latencies,
                                 const struct region_table *file,
                                 const struct host *hosts)
{
    double *places = malloc(2 * (size_t)file->regions * sizeof *places);
    if (places == NULL)
        return kith_region_table_fail(
            file, KITH_ENOMEM, "out of memory: %u places", file->regions);
    latencies->places = places;
    for (uint32_t i = 0; i < file->regions; i++) {
        places[2 * i] = hosts[i].x;
        places[2 * i + 1] = hosts[i].y;
    }
    return KITH_OK;
}

static enum kith_err take_coordinates(const struct tree *tree,
                                      struct kith_experiment *experiment)
{
    struct region_table file = {.tree = tree,
                                .key = "network.coordinates",
                                .path = experiment->network.files.coordinates};
    struct host *hosts = NULL;
    enum kith_err err = kith_region_table_text(&file);
    if (err == KITH_OK) {
        hosts = malloc(KITH_REGIONS_MAX * sizeof *hosts);
        err = hosts == NULL
                  ? kith_region_table_fail(&file, KITH_ENOMEM, "out of memory")
                  : read_hosts(&file, hosts);
    }
    if (err == KITH_OK) {
        take(experiment, &file, NULL, NULL);
        err = take_places(&experiment->network.latencies, &file, hosts);
    }
    free(hosts);
    kith_region_table_close(&file);
    return err;
}

/* ---- the keys */

/* One says what latency is: two would have to be told apart. */
static enum kith_err check_alone(const struct tree *tree, const char *key)
{
    static const char *const others[] = {"network.latency", "network.jitter",
                                         "network.coordinates"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], key) != 0 &&
            kith_yaml_find(tree, others[i]) != NULL)
            return kith_yaml_refuse(tree, others[i],
                                    "found beside %s, which has the latency of "
                                    "every link; allowed: one of them",
                                    key);
    return KITH_OK;
}

enum kith_err kith_experiment_read_latencies(const struct tree *tree,
                                             struct kith_experiment *experiment)
{
    char *const matrix = experiment->network.files.matrix;
    char *const p90 = experiment->network.files.matrix_p90;
    char *const coordinates = experiment->network.files.coordinates;
    enum kith_err err = KITH_OK;
    if (p90[0] != '\0' && matrix[0] == '\0')
        return kith_yaml_refuse(tree, "network.matrix_p90",
                                "found without network.matrix, whose medians "
                                "it needs; allowed: beside it");
    if (matrix[0] != '\0')
        err = check_alone(tree, "network.matrix");
    else if (coordinates[0] != '\0')
        err = check_alone(tree, "network.coordinates");
    else
        return KITH_OK;
    if (err == KITH_OK)
        err = kith_experiment_resolve_path(
            tree, matrix[0] != '\0' ? "network.matrix" : "network.coordinates",
            matrix[0] != '\0' ? matrix : coordinates);
    if (err == KITH_OK && p90[0] != '\0')
        err = kith_experiment_resolve_path(tree, "network.matrix_p90", p90);
    if (err == KITH_OK)
        err = matrix[0] != '\0' ? take_matrix(tree, experiment)
                                : take_coordinates(tree, experiment);
    if (err == KITH_OK)
        experiment->network.link.latency_ns =
            experiment->network.latencies.latency_least;
    return err;
}
