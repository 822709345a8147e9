/* `kith report`: run databases in, one self-contained page or CSV out. */
#ifndef KITH_REPORT_H
#define KITH_REPORT_H

#include <stdbool.h>

#include "kith/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_REPORT_ERROR_BYTES 512
/* Runs compared in one page: more lines than this cannot be told apart. */
#define KITH_REPORT_RUNS_MAX 16u

/* Read `count` run databases (kith/store.h) and write `out`: one HTML page
 * that loads nothing from elsewhere, or with `csv` one table of all rows.
 * Databases are opened read-only; a run that is still being written may be
 * read. `out` appears whole or not at all (temporary file, then rename).
 *
 *   error   (KITH_REPORT_ERROR_BYTES) one line: what was attempted, what was
 *           found, what to do; untouched on success
 *
 * Returns KITH_OK, or
 *   KITH_EINVAL  count is 0 or above KITH_REPORT_RUNS_MAX
 *   KITH_ENOENT  a database is not there, or not readable
 *   KITH_EPARSE  a file is no run database, or one of another version
 *   KITH_ENOSPC, KITH_EIO     `out` cannot be written
 *   KITH_ENOMEM
 *
 * All text of a database is escaped: a hostile name stays text.
 * Test    tests/integration/test_report.sh
 */
KITH_MUST_CHECK enum kith_err kith_report_write(const char *const *databases,
                                                unsigned count, const char *out,
                                                bool csv, char *error);

#ifdef __cplusplus
}
#endif
#endif
