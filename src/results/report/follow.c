/* What is followed: the page's document, made again where a file has changed,
 * and its changes as operations of two kinds,
 *
 *   {"p": path, "k": keep, "v": rows}   keep so many of a list, then these
 *   {"p": path, "s": value}             put this there
 *
 * A list grows at its end, so that a change is as long as what is new; what the
 * document holds is not known here. See kith/follow.h. */
#include "kith/follow.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "kith/assert.h"
#include "kith/json.h"
#include "kith/limits.h"
#include "kith/report.h"
#include "kith/text.h"
#include "src/results/report/document.h"
#include "src/results/report/page.h"

/* Readers wait for nobody's writing but a moment: the files are read again at
 * the next look. */
#define BUSY_MS 20

/* Changes that are kept for who reads slowly; lists within lists of the page.
 */
#define CHANGES_MAX 64u
#define DEPTH_MAX 8u

struct kith_follow {
    const char *const *paths; /* (count) the caller's */
    unsigned count;
    struct kith_target target;
    json_t *document;
    char *changes[CHANGES_MAX]; /* of generation g at g % CHANGES_MAX; NULL */
    uint32_t generation;
    enum kith_follow_state state;
    uint64_t stamp; /* of all files at the last look */
    char files[KITH_REPORT_FILES_MAX][KITH_PATH_BYTES_MAX];
    unsigned file_count, left_out; /* beyond the most that a page compares */
    char note[KITH_REPORT_ERROR_BYTES];
};

/* --- files ------------------------------------------------------------- */

static void add_file(struct kith_follow *follow, const char *path)
{
    struct stat found;
    if (strlen(path) >= KITH_PATH_BYTES_MAX || stat(path, &found) != 0 ||
        found.st_size == 0)
        return;
    if (follow->file_count == KITH_REPORT_FILES_MAX) {
        follow->left_out++;
        return;
    }
    memcpy(follow->files[follow->file_count++], path, strlen(path) + 1);
    const uint64_t parts[] = {(uint64_t)found.st_ino, (uint64_t)found.st_size,
                              (uint64_t)found.st_mtim.tv_sec,
                              (uint64_t)found.st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        follow->stamp = (follow->stamp ^ parts[i]) * UINT64_C(0x100000001b3);
}

static int is_database(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 3 && strcmp(entry->d_name + length - 3, ".db") == 0;
}

static void add_folder(struct kith_follow *follow, const char *path)
{
    struct dirent **entries = NULL;
    char file[2 * KITH_PATH_BYTES_MAX];
    const int count = scandir(path, &entries, is_database, alphasort);
    for (int i = 0; i < count; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        add_file(follow, file);
        free(entries[i]);
    }
    free(entries);
}

/* Those that are there now; true: something has changed. */
static bool find_files(struct kith_follow *follow)
{
    const uint64_t before = follow->stamp;
    follow->file_count = follow->left_out = 0;
    follow->stamp = 1;
    for (unsigned i = 0; i < follow->count; i++) {
        struct stat found;
        if (stat(follow->paths[i], &found) == 0 && S_ISDIR(found.st_mode))
            add_folder(follow, follow->paths[i]);
        else
            add_file(follow, follow->paths[i]);
    }
    return follow->stamp != before;
}

/* --- changes ----------------------------------------------------------- */

struct change {
    json_t *operations;
    const char *names[DEPTH_MAX]; /* of the path; NULL: a place in a list */
    size_t places[DEPTH_MAX];
    unsigned depth;
};

static void put(struct change *change, json_t *operation)
{
    json_t *path = json_array();
    for (unsigned i = 0; i < change->depth; i++)
        (void)json_array_append_new(
            path, change->names[i] != NULL
                      ? json_string(change->names[i])
                      : json_integer((json_int_t)change->places[i]));
    (void)json_object_set_new(operation, "p", path);
    (void)json_array_append_new(change->operations, operation);
}

static void compare(struct change *change, json_t *old, json_t *new);

static void compare_at(struct change *change, const char *name, size_t place,
                       json_t *old, json_t *new)
{
    KITH_ASSERT(change->depth < DEPTH_MAX);
    change->names[change->depth] = name;
    change->places[change->depth++] = place;
    compare(change, old, new);
    change->depth--;
}

static void compare_lists(struct change *change, json_t *old, json_t *new)
{
    const size_t before = json_array_size(old), now = json_array_size(new);
    size_t keep = 0;
    if (before == now && json_is_object(json_array_get(new, 0))) {
        for (size_t i = 0; i < now; i++)
            compare_at(change, NULL, i, json_array_get(old, i),
                       json_array_get(new, i));
        return;
    }
    while (keep < before && keep < now &&
           json_equal(json_array_get(old, keep), json_array_get(new, keep)))
        keep++;
    json_t *rows = json_array();
    for (size_t i = keep; i < now; i++)
        (void)json_array_append(rows, json_array_get(new, i));
    put(change, json_pack("{s:I, s:o}", "k", (json_int_t)keep, "v", rows));
}

static bool same_keys(json_t *old, json_t *new)
{
    const char *key;
    json_t *value;
    json_object_foreach(new, key, value) if (json_object_get(old, key) ==
                                             NULL) return false;
    return json_object_size(old) == json_object_size(new);
}

/* As deep as the page's document is, which is made here: not as deep as what a
 * database holds. */
static void compare(struct change *change, json_t *old, json_t *new)
{
    const char *key;
    json_t *value;
    if (json_equal(old, new))
        return;
    if (json_is_array(old) && json_is_array(new)) {
        compare_lists(change, old, new);
    } else if (json_is_object(old) && json_is_object(new) &&
               same_keys(old, new) && change->depth + 1 < DEPTH_MAX) {
        json_object_foreach(new, key, value)
            compare_at(change, key, 0, json_object_get(old, key), value);
    } else {
        put(change, json_pack("{s:O}", "s", new));
    }
}

static void take(struct kith_follow *follow, json_t *document)
{
    struct change change = {.operations = json_array()};
    const uint32_t generation = follow->generation + 1;
    char **place = &follow->changes[generation % CHANGES_MAX];
    if (follow->document != NULL)
        compare(&change, follow->document, document);
    free(*place);
    *place = json_dumps(change.operations, JSON_COMPACT | JSON_ENSURE_ASCII |
                                               JSON_REAL_PRECISION(9));
    json_decref(change.operations);
    json_decref(follow->document);
    follow->document = document;
    follow->generation = generation;
}

/* --- public ------------------------------------------------------------ */

static json_t *live_of(const struct kith_follow *follow)
{
    static const char *const names[] = {"waiting", "running", "ended"};
    return json_pack("{s:s}", "state", names[follow->state]);
}

/* What the reader would miss: files beyond a page's most, and `error`. */
static void make_note(struct kith_follow *follow, const char *error)
{
    size_t at = 0;
    follow->note[0] = '\0';
    if (follow->left_out > 0)
        at = kith_text_add(follow->note, sizeof follow->note, at,
                           "found %u databases; a page has at most %u: the "
                           "first ones are shown%s",
                           follow->file_count + follow->left_out,
                           KITH_REPORT_FILES_MAX, error[0] != '\0' ? "; " : "");
    (void)kith_text_add(follow->note, sizeof follow->note, at, "%s", error);
}

bool kith_follow_look(struct kith_follow *follow)
{
    const char *files[KITH_REPORT_FILES_MAX];
    json_t *document = NULL;
    bool running = false;
    if (!find_files(follow) && follow->document != NULL)
        return false;
    for (unsigned i = 0; i < follow->file_count; i++)
        files[i] = follow->files[i];
    char error[KITH_REPORT_ERROR_BYTES] = "";
    const enum kith_err err =
        kith_report_document(files, follow->file_count, BUSY_MS, follow->target,
                             &document, &running, error);
    make_note(follow, err == KITH_EBUSY ? "" : error);
    if (err != KITH_OK) {
        follow->stamp = 0; /* It may be only half begun: look again. */
        if (follow->document != NULL)
            return false;
        follow->file_count = 0;
        if (kith_report_document(files, 0, BUSY_MS, follow->target, &document,
                                 &running, error) != KITH_OK)
            return false;
    }
    follow->state = follow->file_count == 0 ? KITH_FOLLOW_WAITING
                    : running               ? KITH_FOLLOW_RUNNING
                                            : KITH_FOLLOW_ENDED;
    (void)json_object_set_new(document, "live", live_of(follow));
    if (follow->document != NULL && json_equal(document, follow->document)) {
        json_decref(document);
        return false;
    }
    take(follow, document);
    return true;
}

enum kith_err kith_follow_open(const char *const *paths, unsigned count,
                               struct kith_target target,
                               struct kith_follow **follow, char *error)
{
    *follow = NULL;
    if (count == 0 || count > KITH_REPORT_FILES_MAX)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "a report follows 1 to %u databases or folders, "
                              "%u were given",
                              KITH_REPORT_FILES_MAX, count);
    *follow = calloc(1, sizeof **follow);
    if (*follow == NULL)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_ENOMEM,
                              "following %s: out of memory", paths[0]);
    (*follow)->paths = paths;
    (*follow)->count = count;
    (*follow)->target = target;
    return KITH_OK;
}

void kith_follow_close(struct kith_follow *follow)
{
    if (follow == NULL)
        return;
    for (unsigned i = 0; i < CHANGES_MAX; i++)
        free(follow->changes[i]);
    json_decref(follow->document);
    free(follow);
}

enum kith_follow_state kith_follow_state(const struct kith_follow *follow)
{
    return follow->state;
}

const char *kith_follow_note(const struct kith_follow *follow)
{
    return follow->note;
}

uint32_t kith_follow_generation(const struct kith_follow *follow)
{
    return follow->generation;
}

static char *finish(FILE *out, char **text)
{
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return *text;
    free(*text);
    return NULL;
}

void kith_follow_policy(FILE *out)
{
    kith_page_policy(out, true);
}

char *kith_follow_page(const struct kith_follow *follow, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    KITH_ASSERT(follow->document != NULL); /* It was looked at. */
    json_t *page = json_copy(follow->document);
    (void)json_object_set_new(page, "generation",
                              json_integer(follow->generation));
    kith_page_begin(out, true);
    kith_json_embed(out, page);
    kith_page_end(out);
    return finish(out, &text);
}

char *kith_follow_events(const struct kith_follow *follow, uint32_t generation,
                         size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    const uint32_t now = follow->generation;
    bool known =
        generation > 0 && generation < now && now - generation < CHANGES_MAX;
    for (uint32_t at = generation + 1; known && at <= now; at++)
        known = follow->changes[at % CHANGES_MAX] != NULL;
    for (uint32_t at = generation + 1; known && at <= now; at++)
        fprintf(out, "id: %u\nevent: change\ndata: %s\n\n", at,
                follow->changes[at % CHANGES_MAX]);
    if (!known && generation != now) {
        fprintf(out, "id: %u\nevent: whole\ndata: ", now);
        kith_json_embed(out, json_incref(follow->document));
        fputs("\n\n", out);
    }
    return finish(out, &text);
}
