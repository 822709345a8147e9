/* Files of latency by place: network.matrix, matrix_p90 and coordinates.
 *
 *   JSON         {"data": {FROM: {TO: ms, ...}, ...}}, every pair once; regions
 *                in the order of the outer keys
 *   CSV          first line: any word, then the regions; then a line a region,
 *                in any order: its name and a round trip, ms, to each of the
 *                first line's. "# comment", empty lines
 *   coordinates  lines "ID X Y h HEIGHT", ms, ids from 0; "# comment". A round
 *                trip is the distance in the plane and both heights (Vivaldi:
 *                Dabek, Cox, Kaashoek, Morris, SIGCOMM 2004)
 *
 * Everything is bounded before memory is taken for it. Test:
 * unit/test_latencies.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/plain_file.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "yaml_tree.h"

#define BLANKS " \t\r"
#define UNKNOWN (-1)
#define MOST_MS 10000

_Static_assert(MOST_MS *KITH_MS == KITH_TRIP_MAX_NS, "in milliseconds");

struct latency_file {
    const struct tree *tree; /* of the experiment */
    const char *key, *path;
    char *text;       /* (size), then a 0 */
    char *begins;     /* behind a byte order mark */
    struct tree json; /* where it is that: owns the names */
    bool is_json;
    uint32_t line;
    uint32_t regions;
    const char **names; /* (regions); NULL: coordinates */
    kith_ns *trips;     /* (regions, regions), or UNKNOWN */
};

/* "network.matrix: FILE:LINE: what"; line 0: none. */
static enum kith_err KITH_PRINTF(3, 4)
    file_fail(const struct latency_file *file, enum kith_err err,
              const char *format, ...)
{
    char where[16] = "", what[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (file->line > 0)
        (void)snprintf(where, sizeof where, ":%u", file->line);
    return kith_yaml_fail(file->tree, kith_yaml_find(file->tree, file->key),
                          file->key, err, "%.200s%s: %s", file->path, where,
                          what);
}

static void file_close(struct latency_file *file)
{
    if (file->is_json)
        kith_yaml_close(&file->json);
    free(file->text);
    free(file->names);
    free(file->trips);
    *file = (struct latency_file){.regions = 0};
}

/* ---- the text */

static enum kith_err read_stream(struct latency_file *file, FILE *stream,
                                 size_t size)
{
    file->text = malloc(size + 1);
    if (file->text == NULL)
        return file_fail(file, KITH_ENOMEM, "out of memory: %zu bytes", size);
    const size_t got = fread(file->text, 1, size, stream);
    file->text[got] = '\0';
    if (ferror(stream))
        return file_fail(file, KITH_EIO, "cannot be read to its end");
    if (memchr(file->text, 0, got) != NULL)
        return file_fail(file, KITH_EPARSE,
                         "found a byte 0; allowed: text, in ASCII or UTF-8");
    file->begins = file->text;
    if (strncmp(file->text, "\xef\xbb\xbf", 3) == 0)
        file->begins += 3;
    return KITH_OK;
}

static enum kith_err read_text(struct latency_file *file)
{
    char why[KITH_FILE_WHY_BYTES];
    size_t size;
    int fd;
    enum kith_err err = kith_file_open(file->path, &fd, &size, why);
    if (err != KITH_OK)
        return file_fail(file, err, "cannot be opened: %s", why);
    FILE *stream = kith_file_stream(fd, "rb");
    if (stream == NULL)
        return file_fail(file, KITH_EIO, "cannot be opened");
    err =
        size > KITH_LATENCIES_BYTES_MAX
            ? file_fail(file, KITH_ELIMIT,
                        "found %zu bytes; allowed: at most %u, for %u regions",
                        size, KITH_LATENCIES_BYTES_MAX, KITH_REGIONS_MAX)
            : read_stream(file, stream, size);
    (void)fclose(stream);
    return err;
}

/* The next line that is not empty nor a comment, cut off from the rest; NULL:
 * there is none. */
static char *next_line(struct latency_file *file, char **rest)
{
    while (*rest != NULL && **rest != '\0') {
        char *line = *rest;
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        *rest = end == NULL ? NULL : end + 1;
        file->line++;
        line += strspn(line, BLANKS);
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
    cell += strspn(cell, BLANKS);
    while (end > cell && strchr(BLANKS, end[-1]) != NULL)
        *--end = '\0';
    return cell;
}

/* ---- the table */

static enum kith_err open_table(struct latency_file *file, uint32_t regions)
{
    if (regions == 0 || regions > KITH_REGIONS_MAX)
        return file_fail(file, regions == 0 ? KITH_EINVAL : KITH_ELIMIT,
                         "found %s%u regions; allowed: 1 to %u",
                         regions > KITH_REGIONS_MAX ? "at least " : "", regions,
                         KITH_REGIONS_MAX);
    const size_t pairs = (size_t)regions * regions;
    file->regions = regions;
    file->names = calloc(regions, sizeof *file->names);
    file->trips = malloc(pairs * sizeof *file->trips);
    if (file->names == NULL || file->trips == NULL)
        return file_fail(file, KITH_ENOMEM, "out of memory: %u regions",
                         regions);
    for (size_t i = 0; i < pairs; i++)
        file->trips[i] = UNKNOWN;
    return KITH_OK;
}

/* regions: there is none of that name. */
static uint32_t region_of(const struct latency_file *file, const char *name)
{
    uint32_t i = 0;
    while (i < file->regions &&
           (file->names[i] == NULL || strcmp(file->names[i], name) != 0))
        i++;
    return i;
}

static enum kith_err put_name(struct latency_file *file, uint32_t i,
                              const char *name)
{
    KITH_ASSERT(i < file->regions);
    if (name[0] == '\0' || name[0] == '"')
        return file_fail(file, KITH_EPARSE,
                         "found region %u named %s; allowed: a name without "
                         "quotes",
                         i, name[0] == '\0' ? "nothing" : name);
    if (region_of(file, name) < file->regions)
        return file_fail(file, KITH_EINVAL,
                         "found the region %.60s twice; allowed: each once",
                         name);
    file->names[i] = name;
    return KITH_OK;
}

static enum kith_err put_trip(struct latency_file *file, uint32_t from,
                              uint32_t to, const char *text)
{
    double ms;
    KITH_ASSERT(from < file->regions && to < file->regions);
    if (kith_text_double(text, &ms) != KITH_OK || !(ms >= 0 && ms <= MOST_MS))
        return file_fail(
            file, KITH_EPARSE,
            "found \"%.40s\" from %.60s to %.60s; allowed: a round "
            "trip in milliseconds, from 0 to %d",
            text, file->names[from], file->names[to], MOST_MS);
    file->trips[(size_t)from * file->regions + to] =
        (kith_ns)(ms * (double)KITH_MS + 0.5);
    return KITH_OK;
}

/* ---- CSV */

static enum kith_err read_header(struct latency_file *file, char *line)
{
    uint32_t regions = 0;
    for (const char *at = line; *at != '\0'; at++)
        regions += *at == ',';
    enum kith_err err = open_table(file, regions);
    (void)next_cell(&line);
    for (uint32_t i = 0; err == KITH_OK && i < regions; i++)
        err = put_name(file, i, next_cell(&line));
    return err;
}

static enum kith_err read_row(struct latency_file *file, char *line)
{
    const char *const name = next_cell(&line);
    const uint32_t from = region_of(file, name);
    enum kith_err err = KITH_OK;
    if (from == file->regions)
        return file_fail(file, KITH_EINVAL,
                         "found a row of %.60s, which the first line does not "
                         "name; allowed: its regions, each once",
                         name);
    if (file->trips[(size_t)from * file->regions] != UNKNOWN)
        return file_fail(file, KITH_EINVAL,
                         "found a second row of %.60s; allowed: one a region",
                         name);
    for (uint32_t to = 0; err == KITH_OK && to < file->regions; to++) {
        const char *const cell = next_cell(&line);
        err = cell == NULL
                  ? file_fail(file, KITH_EPARSE,
                              "found %u round trips from %.60s; allowed: %u, "
                              "one to each region of the first line",
                              to, name, file->regions)
                  : put_trip(file, from, to, cell);
    }
    if (err == KITH_OK && line != NULL)
        err = file_fail(file, KITH_EPARSE,
                        "found more than %u round trips from %.60s; allowed: "
                        "one to each region of the first line",
                        file->regions, name);
    return err;
}

static enum kith_err read_csv(struct latency_file *file)
{
    char *rest = file->begins;
    char *line = next_line(file, &rest);
    if (line == NULL)
        return file_fail(file, KITH_EPARSE,
                         "found nothing; allowed: JSON as {\"data\": {FROM: "
                         "{TO: ms}}}, or CSV whose first line and first column "
                         "name the regions");
    enum kith_err err = read_header(file, line);
    while (err == KITH_OK && (line = next_line(file, &rest)) != NULL)
        err = read_row(file, line);
    return err;
}

/* ---- JSON, which is YAML */

static enum kith_err read_pairs(struct latency_file *file,
                                const struct tree_item *row, uint32_t from)
{
    const struct tree_item *item = kith_yaml_first(&file->json, row);
    enum kith_err err = KITH_OK;
    for (; err == KITH_OK && item != NULL;
         item = kith_yaml_next(&file->json, item)) {
        const uint32_t to = region_of(file, item->key);
        file->line = item->line;
        if (to == file->regions)
            err = file_fail(file, KITH_EINVAL,
                            "found %.60s in %.60s, which is not one of the %u "
                            "regions themselves; allowed: those",
                            item->key, row->key, file->regions);
        else if (item->kind != TREE_SCALAR)
            err = file_fail(file, KITH_EPARSE,
                            "found no number from %.60s to %.60s", row->key,
                            item->key);
        else
            err = put_trip(file, from, to, item->text);
    }
    return err;
}

static enum kith_err read_json(struct latency_file *file)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    file->is_json = true;
    enum kith_err err = kith_yaml_open(&file->json, file->path, file->begins,
                                       strlen(file->begins), error);
    if (err != KITH_OK)
        return kith_yaml_fail(file->tree, kith_yaml_find(file->tree, file->key),
                              file->key, err, "%.600s%s", error,
                              err != KITH_ELIMIT
                                  ? ""
                                  : " (more regions than JSON has room for "
                                    "here: give CSV)");
    const struct tree_item *data = kith_yaml_find(&file->json, "data");
    file->line = data == NULL ? 1 : data->line;
    if (data == NULL || data->kind != TREE_MAP)
        return file_fail(file, KITH_EPARSE,
                         "found no mapping \"data\"; allowed: {\"data\": "
                         "{FROM: {TO: ms}}}");
    err = open_table(file, data->count);
    const struct tree_item *row = kith_yaml_first(&file->json, data);
    for (uint32_t i = 0; err == KITH_OK && row != NULL;
         i++, row = kith_yaml_next(&file->json, row)) {
        file->line = row->line;
        err = row->kind == TREE_MAP
                  ? put_name(file, i, row->key)
                  : file_fail(file, KITH_EPARSE,
                              "found no mapping of %.60s; allowed: {TO: ms}",
                              row->key);
    }
    row = kith_yaml_first(&file->json, data);
    for (uint32_t i = 0; err == KITH_OK && row != NULL;
         i++, row = kith_yaml_next(&file->json, row))
        err = read_pairs(file, row, i);
    return err;
}

/* ---- a matrix */

static enum kith_err check_whole(struct latency_file *file)
{
    const size_t pairs = (size_t)file->regions * file->regions;
    file->line = 0;
    for (size_t i = 0; i < pairs; i++)
        if (file->trips[i] == UNKNOWN)
            return file_fail(file, KITH_EINVAL,
                             "found no round trip from %.60s to %.60s; "
                             "allowed: one for each pair of the %u regions",
                             file->names[i / file->regions],
                             file->names[i % file->regions], file->regions);
    return KITH_OK;
}

/* Opened whether it fails or not. */
static enum kith_err read_matrix(const struct tree *tree, const char *key,
                                 const char *path, struct latency_file *file)
{
    *file = (struct latency_file){.tree = tree, .key = key, .path = path};
    enum kith_err err = read_text(file);
    if (err != KITH_OK)
        return err;
    err = file->begins[strspn(file->begins, BLANKS "\n")] == '{'
              ? read_json(file)
              : read_csv(file);
    return err == KITH_OK ? check_whole(file) : err;
}

/* The pairs of `high`, in the order of `low`: malloc'd, or NULL. */
static enum kith_err match(struct latency_file *low, struct latency_file *high,
                           kith_ns **trips)
{
    const uint32_t n = low->regions;
    uint32_t own[KITH_REGIONS_MAX];
    if (high->regions != n)
        return file_fail(high, KITH_EINVAL,
                         "found %u regions; allowed: the %u of network.matrix",
                         high->regions, n);
    for (uint32_t i = 0; i < n; i++) {
        own[i] = region_of(high, low->names[i]);
        if (own[i] == n)
            return file_fail(high, KITH_EINVAL,
                             "found no region %.60s, which network.matrix has; "
                             "allowed: the same regions",
                             low->names[i]);
    }
    *trips = malloc((size_t)n * n * sizeof **trips);
    if (*trips == NULL)
        return file_fail(high, KITH_ENOMEM, "out of memory: %u regions", n);
    for (size_t i = 0; i < (size_t)n * n; i++) {
        (*trips)[i] = high->trips[(size_t)own[i / n] * n + own[i % n]];
        if ((*trips)[i] < low->trips[i])
            return file_fail(high, KITH_EINVAL,
                             "found %g ms from %.60s to %.60s, and a median of "
                             "%g ms in network.matrix; allowed: no less",
                             (double)(*trips)[i] / KITH_MS, low->names[i / n],
                             low->names[i % n],
                             (double)low->trips[i] / KITH_MS);
    }
    return KITH_OK;
}

static void take(struct kith_experiment *experiment, struct latency_file *file,
                 kith_ns *trips_p90)
{
    kith_latencies_take(&experiment->network.latencies, file->regions,
                        file->trips, trips_p90);
    file->trips = NULL;
}

static enum kith_err take_matrix(const struct tree *tree,
                                 struct kith_experiment *experiment)
{
    struct latency_file low, high = {.regions = 0};
    kith_ns *trips_p90 = NULL;
    const char *const p90 = experiment->network.files.matrix_p90;
    enum kith_err err = read_matrix(tree, "network.matrix",
                                    experiment->network.files.matrix, &low);
    if (err == KITH_OK && p90[0] != '\0')
        err = read_matrix(tree, "network.matrix_p90", p90, &high);
    if (err == KITH_OK && p90[0] != '\0')
        err = match(&low, &high, &trips_p90);
    if (err == KITH_OK)
        take(experiment, &low, trips_p90);
    else
        free(trips_p90);
    file_close(&low);
    file_close(&high);
    return err;
}

/* ---- coordinates */

struct host {
    double x, y, height;
};

static enum kith_err read_host(struct latency_file *file, char *line,
                               struct host *host)
{
    char shown[64];
    char *rest = line;
    uint64_t id;
    (void)snprintf(shown, sizeof shown, "%s", line);
    const char *const words[] = {
        strtok_r(rest, BLANKS, &rest), strtok_r(rest, BLANKS, &rest),
        strtok_r(rest, BLANKS, &rest), strtok_r(rest, BLANKS, &rest),
        strtok_r(rest, BLANKS, &rest)};
    if (words[4] != NULL && strtok_r(rest, BLANKS, &rest) == NULL &&
        kith_text_u64(words[0], &id) == KITH_OK && id == file->regions &&
        strcmp(words[3], "h") == 0 &&
        kith_text_double(words[1], &host->x) == KITH_OK &&
        kith_text_double(words[2], &host->y) == KITH_OK &&
        kith_text_double(words[4], &host->height) == KITH_OK &&
        fabs(host->x) <= MOST_MS && fabs(host->y) <= MOST_MS &&
        host->height >= 0 && host->height <= MOST_MS)
        return KITH_OK;
    return file_fail(file, KITH_EPARSE,
                     "found \"%s\"; allowed: \"%u X Y h HEIGHT\" in "
                     "milliseconds, up to %d",
                     shown, file->regions, MOST_MS);
}

static enum kith_err fill_trips(struct latency_file *file,
                                const struct host *hosts)
{
    const uint32_t n = file->regions;
    file->line = 0;
    file->trips = malloc((size_t)n * n * sizeof *file->trips);
    if (file->trips == NULL)
        return file_fail(file, KITH_ENOMEM, "out of memory: %u hosts", n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const double x = hosts[i].x - hosts[j].x;
            const double y = hosts[i].y - hosts[j].y;
            const double ms =
                sqrt(x * x + y * y) + hosts[i].height + hosts[j].height;
            if (ms > MOST_MS)
                return file_fail(file, KITH_ELIMIT,
                                 "found %g ms from host %u to %u; allowed: up "
                                 "to %d",
                                 ms, i, j, MOST_MS);
            file->trips[(size_t)i * n + j] =
                (kith_ns)(ms * (double)KITH_MS + 0.5);
        }
    return KITH_OK;
}

static enum kith_err read_hosts(struct latency_file *file, struct host *hosts)
{
    char *rest = file->begins;
    char *line;
    enum kith_err err = KITH_OK;
    while (err == KITH_OK && (line = next_line(file, &rest)) != NULL) {
        err = file->regions == KITH_REGIONS_MAX
                  ? file_fail(file, KITH_ELIMIT,
                              "found more hosts; allowed: at most %u",
                              KITH_REGIONS_MAX)
                  : read_host(file, line, &hosts[file->regions]);
        file->regions += err == KITH_OK;
    }
    if (err == KITH_OK && file->regions == 0)
        err = file_fail(file, KITH_EPARSE,
                        "found no host; allowed: lines \"ID X Y h HEIGHT\"");
    return err == KITH_OK ? fill_trips(file, hosts) : err;
}

static enum kith_err take_coordinates(const struct tree *tree,
                                      struct kith_experiment *experiment)
{
    struct latency_file file = {.tree = tree,
                                .key = "network.coordinates",
                                .path = experiment->network.files.coordinates};
    struct host *hosts = NULL;
    enum kith_err err = read_text(&file);
    if (err == KITH_OK) {
        hosts = malloc(KITH_REGIONS_MAX * sizeof *hosts);
        err = hosts == NULL ? file_fail(&file, KITH_ENOMEM, "out of memory")
                            : read_hosts(&file, hosts);
    }
    if (err == KITH_OK)
        take(experiment, &file, NULL);
    free(hosts);
    file_close(&file);
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
