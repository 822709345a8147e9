/* Recursive doubling for any n: after m = ceil(log2 n) rounds every worker has
 * the sum of all gradients, and applies it to a replica of its own.
 *
 *   m (T + latency + R) + U
 *
 * Worker i holds S_i(L) = g_i + ... + g_{i-L+1}, indices modulo n. A round
 * makes L into L' = 2L, by S_{i-L}(L) from i - L, or into 2L - 1, by
 * S_{i-L+1}(L) less g_{i-L+1}, which that worker keeps as well, from i - L + 1.
 * The lengths from the last to the first are n, ceil(n/2), ceil(n/4), ..., 1.
 * Source: Thakur et al., IJHPCA 2005 (powers of 2); Bruck et al., TPDS 1997. */
#include "sim/central/central_state.h"

/* Lengths are worked out from the end, halving n: a script that kept them would
 * need memory per machine. */
bool sim_central_doubling(const struct central_shape *shape, uint32_t node,
                          uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node < shape->workers);
    KITH_ASSERT(stage->to == KITH_NOBODY);
    const uint32_t n = shape->workers;
    uint32_t rounds = 0;
    for (uint32_t length = n; length > 1; length = (length + 1) / 2)
        rounds++;
    if (index >= (rounds > 0 ? rounds : 1))
        return false;
    stage->update_bytes = index + 1 >= rounds ? shape->bytes : 0;
    if (rounds == 0)
        return true;
    uint32_t after = n;
    for (uint32_t i = index + 1; i < rounds; i++)
        after = (after + 1) / 2;
    const uint32_t before = (after + 1) / 2;
    const uint32_t distance = after == 2 * before ? before : before - 1;
    stage->to = (node + distance) % n;
    stage->from = (node + n - distance) % n;
    stage->send_bytes = stage->reduce_bytes = shape->bytes;
    return true;
}
