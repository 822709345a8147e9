/* What the curves of many peers come to: mean and quantiles at each point. */
#ifndef KITH_RESULTS_REPORT_SPREAD_H
#define KITH_RESULTS_REPORT_SPREAD_H

#include "src/results/report/database.h"

/* Points in time of a spread, and peers that it counts: of more every 2nd, 3rd
 * ... by rank. */
#define KITH_SPREAD_POINTS_MAX 240u
#define KITH_SPREAD_PEERS_MAX 10000u

/* Adds "spread" to `page`, made of the section of that name of report.sql:
 * {"columns", "rows"}, one row a point in time,
 *
 *   time_s, the mean of step and samples, and for each charted column c
 *   c.low, c.mid, c.high   quantiles 0.1, 0.5 and 0.9 over the peers, linear
 *                          between the two beside (h = (n - 1) q)
 *   c.mean                 their mean; of consensus_distance the root of the
 *                          mean square
 *
 * Each peer is carried forward from its last row; a point stands before
 * a peer has its second row since the last one, where all that are up have had
 * theirs. Null where no peer has a value.
 *
 *   peers  that have rows; 0: nothing is added
 *
 * Cost O(rows + points * columns * peers * log peers) time, O(columns * peers)
 * memory. A failure is the database's.
 * Test    tests/integration/test_report_page.sh */
void kith_spread_add(struct kith_database *database, int64_t peers,
                     json_t *page);

#endif
