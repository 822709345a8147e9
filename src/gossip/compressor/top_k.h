/* Which are the k largest, for compressors that write them differently. */
#ifndef KITH_GOSSIP_COMPRESSOR_TOP_K_H
#define KITH_GOSSIP_COMPRESSOR_TOP_K_H

#include "sparse.h"

/* Of n values the `kept` largest by size, the first of equal ones. */
struct kith_choice kith_top_k_choose(const struct kith_compression *how,
                                     struct kith_view v, size_t kept,
                                     struct kith_sparse_scratch scratch);

#endif
