/* A cluster has one run and each of its peers a database of its own: those of
 * one run become one.
 *
 *   series, trace events   of all, each under its peer's rank
 *   counts                 sums; means and shares: the mean over the peers
 *   accuracy, loss         the mean over the peers' own models: nobody has the
 *                          average of them
 *   state                  the worst of all; done where all are done
 *
 * Times are each peer's own, since its start. */
#ifndef KITH_JOIN_H
#define KITH_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/types.h"

typedef struct sqlite3 sqlite3;

/* What says of which run a database is a part, and whose. */
struct kith_join_part {
    char run[64]; /* the experiment's hash; its seed is part of it */
    kith_id rank;
    uint32_t peers;
};

/* False: it is not of one peer of a cluster, or older than ranks in databases
 * (`part` is then not filled in). */
bool kith_join_read(sqlite3 *database, struct kith_join_part *part);

/* One database of the parts' run, in a file of SQLite's own that goes with it.
 *
 *   databases  (count) open for reading, one a rank, of the schema of today
 *   parts      (count) of them, of one run
 *
 * *joined is the caller's to close, after an error too, where it is not NULL:
 * sqlite3_errmsg() of it says what failed. KITH_ENOMEM, KITH_EPARSE: a database
 * holds what its tables may not.
 *
 * Cost    every row is copied once.
 * Test    integration/test_peer_report.sh */
KITH_MUST_CHECK enum kith_err kith_join(sqlite3 *const *databases,
                                        const struct kith_join_part *parts,
                                        unsigned count, sqlite3 **joined);

#endif
