/* The selection of ms-top-k by itself, for its test. */
#ifndef KITH_GOSSIP_COMPRESSOR_MS_TOP_K_H
#define KITH_GOSSIP_COMPRESSOR_MS_TOP_K_H

#include "sparse.h"

/* Which k of n values a search of `halvings` steps keeps (ms_top_k.c).
 *
 *   v        (n) finite, on how->backend, a host
 *   kept     k, in [0, n]
 *   rng      one draw, where a window is drawn
 *   scratch  overwritten; with no room all passes are over v, and the choice is
 *            the same
 *
 * Cost    O(n): a pass for mean and largest, then one for every four halvings
 *         until the values between both bounds fit the scratch; one that
 *         copies those; the rest of the halvings are of these alone.
 * Source  Shi et al., "Towards Scalable Distributed Training of Deep Learning
 *         on Public Cloud Clusters", MLSys 2021, MSTopK.
 * Test    unit/test_ms_top_k.c (T4.1) */
struct kith_choice kith_ms_top_k_choose(const struct kith_compression *how,
                                        struct kith_view v, size_t kept,
                                        unsigned halvings, struct kith_rng *rng,
                                        struct kith_sparse_scratch scratch);

#endif
