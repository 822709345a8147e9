/* Files in, runs out: see databases.h. */
#include "src/results/report/databases.h"

#include <string.h>

#include "kith/join.h"
#include "kith/text.h"

#define FILES_MAX KITH_REPORT_FILES_MAX

/* Files as they were given, and of which run each is. */
struct files {
    struct kith_database open[FILES_MAX]; /* (count) */
    struct kith_join_part parts[FILES_MAX];
    unsigned runs[FILES_MAX];
    bool is_part[FILES_MAX];
    unsigned count, run_count;
};

/* It may be of that run: one of its peers', and none of its ranks there. */
static bool belongs(const struct files *files, unsigned at, unsigned run)
{
    bool same = false;
    for (unsigned i = 0; i < at; i++) {
        if (files->runs[i] != run)
            continue;
        if (!files->is_part[i] ||
            strcmp(files->parts[i].run, files->parts[at].run) != 0 ||
            files->parts[i].rank == files->parts[at].rank)
            return false;
        same = true;
    }
    return same;
}

static void find_run(struct files *files, unsigned at)
{
    unsigned run = 0;
    files->is_part[at] =
        kith_join_read(files->open[at].handle, &files->parts[at]);
    while (run < files->run_count &&
           !(files->is_part[at] && belongs(files, at, run)))
        run++;
    files->runs[at] = run;
    if (run == files->run_count)
        files->run_count++;
}

static enum kith_err join(struct files *files, unsigned first, unsigned count,
                          struct kith_database *joined, char *error)
{
    sqlite3 *handles[FILES_MAX];
    struct kith_join_part parts[FILES_MAX];
    unsigned found = 0;
    for (unsigned i = first; i < files->count; i++)
        if (files->runs[i] == files->runs[first]) {
            handles[found] = files->open[i].handle;
            parts[found++] = files->parts[i];
        }
    *joined = files->open[first];
    joined->more = count - 1;
    const enum kith_err err = kith_join(handles, parts, count, &joined->handle);
    if (err == KITH_OK)
        return KITH_OK;
    (void)kith_text_fail(error, KITH_REPORT_ERROR_BYTES, err,
                         "joining %u databases of one run, the first being "
                         "%s: %s",
                         count, joined->path,
                         joined->handle == NULL
                             ? "out of memory"
                             : sqlite3_errmsg(joined->handle));
    sqlite3_close(joined->handle);
    return err;
}

/* Takes the run's only file over, or joins its files. */
static enum kith_err take(struct files *files, unsigned run,
                          struct kith_database *database, char *error)
{
    unsigned first = files->count, count = 0;
    for (unsigned i = files->count; i-- > 0;)
        if (files->runs[i] == run) {
            first = i;
            count++;
        }
    if (count > 1)
        return join(files, first, count, database, error);
    *database = files->open[first];
    files->open[first].handle = NULL;
    return KITH_OK;
}

static enum kith_err check_counts(const struct files *files, unsigned count,
                                  char *error)
{
    if (count == 0 || count > FILES_MAX)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "a report reads 1 to %u databases, %u were given",
                              FILES_MAX, count);
    if (files->run_count > KITH_REPORT_RUNS_MAX)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "a report compares 1 to %u runs, these are %u",
                              KITH_REPORT_RUNS_MAX, files->run_count);
    return KITH_OK;
}

enum kith_err kith_databases_open(const char *const *paths, unsigned count,
                                  int wait_ms, struct kith_databases *databases,
                                  char *error)
{
    struct files files = {.count = 0};
    databases->count = 0;
    enum kith_err err = check_counts(&files, count, error);
    while (err == KITH_OK && files.count < count) {
        err = kith_database_open(paths[files.count], wait_ms,
                                 &files.open[files.count], error);
        if (err == KITH_OK)
            find_run(&files, files.count++);
    }
    if (err == KITH_OK)
        err = check_counts(&files, count, error);
    for (unsigned run = 0; err == KITH_OK && run < files.run_count; run++) {
        err = take(&files, run, &databases->list[run], error);
        databases->count += err == KITH_OK;
    }
    for (unsigned i = 0; i < files.count; i++)
        kith_database_close(&files.open[i]);
    if (err != KITH_OK)
        kith_databases_close(databases);
    return err;
}

void kith_databases_close(struct kith_databases *databases)
{
    for (unsigned i = 0; i < databases->count; i++)
        kith_database_close(&databases->list[i]);
    databases->count = 0;
}
