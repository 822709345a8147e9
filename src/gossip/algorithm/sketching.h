/* The table of gs-sgd: a count sketch of what a peer has to say, sums of such
 * tables, and the coordinates that are large in them.
 *
 *   S <- sketch(top_{p1 k}(v)), p1 = `truncate`; 0: of all of v
 *   r = `rows`, c = `columns` times k, hashes from the experiment's seed
 *   candidates: the p2 k largest estimates of S, p2 = `candidates`
 *
 * Where r c cells were no fewer than the d coordinates, the table is v itself:
 * smaller, and without error.
 *
 *   message   fingerprint of the table's configuration, its cells (sketching.c)
 *
 * All of it follows from what is in the cluster's configuration hash; the
 * fingerprint refuses who has another one all the same. */
#ifndef KITH_GOSSIP_ALGORITHM_SKETCHING_H
#define KITH_GOSSIP_ALGORITHM_SKETCHING_H

#include "feedback.h"

/* The table is a vector of the algorithm's. */
enum { SKETCHING_TABLE = FEEDBACK_VECTORS, SKETCHING_VECTORS };

/* Candidates at most; p2 k, or k where estimates stand for sums. */
size_t kith_sketching_wanted(const struct kith_algebra *algebra);
/* Bytes of a message and of scratch. */
size_t kith_sketching_bytes(const struct kith_algebra *algebra);
size_t kith_sketching_scratch(const struct kith_algebra *algebra);

/* The table of one peer. What overflows it says nothing. */
void kith_sketching_begin(struct kith_algebra *algebra);
void kith_sketching_write(struct kith_algebra *algebra);
/* May what came, the table of `models` peers, be used? Every cell is bounded.
 */
bool kith_sketching_is_sane(const struct kith_algebra *algebra, double models);
/* table <- table + what came; table <- what came. */
void kith_sketching_add(struct kith_algebra *algebra);
void kith_sketching_take(struct kith_algebra *algebra);
/* The candidates, by index, with their estimates; in scratch. The same for all
 * that hold the same table. Cost: kith_sketch_largest, and r d / blocks
 * hashes. */
struct kith_top_list kith_sketching_find(const struct kith_algebra *algebra);

/* ---- sketching_values.c: exact values at the candidates, which stand in LIST
 * and BORN.
 *
 *   message   fingerprint of the candidates, values by index
 */
size_t kith_sketching_value_bytes(const struct kith_algebra *algebra);
void kith_sketching_write_values(struct kith_algebra *algebra);
/* Is what came of our candidates? Others has an honest peer whose table is
 * another's. */
bool kith_sketching_are_ours(const struct kith_algebra *algebra);
/* May what came, sums of `models` peers, be used? Each is bounded. */
bool kith_sketching_are_values_sane(const struct kith_algebra *algebra,
                                    double models);
void kith_sketching_add_values(struct kith_algebra *algebra);

#endif
