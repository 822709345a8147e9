/* A plan of many runs, as it stands in a database. */
#ifndef KITH_RESULTS_RUNDB_SWEEP_PLAN_H
#define KITH_RESULTS_RUNDB_SWEEP_PLAN_H

#include "rundb_store.h"

/* All in one transaction, with an index for each run's rows. */
enum kith_err kith_sweep_plan_write(struct kith_rundb *store,
                                    const struct kith_plan *plan);
/* The rows of seeds from `first` on, inside a transaction. */
void kith_sweep_plan_write_runs(struct kith_rundb *store,
                                const struct kith_plan *plan, uint32_t first);
/* Bounded: what is more, or is not as kith_sweep_plan_write() has it, fails the
 * store. */
enum kith_err kith_sweep_plan_read(struct kith_rundb *store,
                                   struct kith_plan *plan);
/* The same runs, wherever their file stands. */
bool kith_sweep_plan_same_cell(const struct kith_cell *a,
                               const struct kith_cell *b);
/* KIND of NAME-KIND-N.db: of a shard "sweep-2of4". */
#define KITH_FILE_KIND_BYTES (KITH_NAME_MAX + 24)
void kith_sweep_plan_file_kind(const struct kith_plan *plan,
                               char kind[KITH_FILE_KIND_BYTES]);
/* A database of many runs, of this version? */
enum kith_err kith_sweep_plan_check(sqlite3 *database, const char *path,
                                    char *error);

#endif
