/* Shards of a sweep, opened with the suspicion of a report, become one. */
#include <stdlib.h>

#include "kith/report.h"
#include "kith/rundb.h"
#include "kith/text.h"
#include "src/results/report/database.h"

/* Opens all files, merges them, closes what was opened. */
static enum kith_err merge(struct kith_database *open,
                           const char *const *databases, unsigned count,
                           const char *out, uint32_t *missing, char *error)
{
    sqlite3 *handles[KITH_REPORT_FILES_MAX];
    enum kith_err err = KITH_OK;
    unsigned opened = 0;
    while (opened < count && err == KITH_OK) {
        err = kith_database_open(databases[opened], KITH_DATABASE_WAIT_MS,
                                 &open[opened], error);
        if (err == KITH_OK) {
            handles[opened] = open[opened].handle;
            opened++;
        }
    }
    if (err == KITH_OK)
        err = kith_runs_merge(handles, databases, count, out, missing, error);
    while (opened-- > 0)
        kith_database_close(&open[opened]);
    return err;
}

enum kith_err kith_report_merge(const char *const *databases, unsigned count,
                                const char *out, uint32_t *missing, char *error)
{
    _Static_assert(KITH_REPORT_ERROR_BYTES >= KITH_RUNDB_ERROR_BYTES,
                   "an error of either fits");
    if (count == 0 || count > KITH_REPORT_FILES_MAX)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_EINVAL,
                              "merging joins 1 to %u databases, %u were given",
                              KITH_REPORT_FILES_MAX, count);
    struct kith_database *open = calloc(count, sizeof *open);
    if (open == NULL)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_ENOMEM,
                              "merging %u databases: out of memory", count);
    const enum kith_err err =
        merge(open, databases, count, out, missing, error);
    free(open);
    return err;
}
