/* Binomial tree: gradients are summed up on their way to the root, the model
 * comes back the same way. The root is the server, or worker 0.
 *
 *   own machine  2 ceil(log2(n+1)) T + ceil(log2 n) R + U
 *   on workers   2 ceil(log2 n) (T + latency) + ceil(log2 n) R + U
 *
 * Rank v < 2^l has the child v + 2^l; the highest level is first on the way up.
 * A root without a gradient of its own takes the first over as it is.
 * Source: Langer et al., TPDS 2020; Iandola et al., CVPR 2016. */
#include "sim/central/central_state.h"

/* The server stands at the root where it has a machine: ranks are turned by
 * one, so that the root is rank 0 either way. */
bool sim_central_tree(const struct central_shape *shape, uint32_t node,
                      uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node < shape->workers + 1);
    KITH_ASSERT(stage->from == KITH_NOBODY);
    const uint32_t n = shape->workers;
    const uint32_t size = shape->on_workers ? n : n + 1;
    const uint32_t rank = shape->on_workers ? node : (node + 1) % (n + 1);
    uint32_t levels = 0;
    while ((UINT32_C(1) << levels) < size)
        levels++;
    const uint32_t rounds = levels > 0 ? levels : 1;
    if (index >= 2 * rounds)
        return false;
    const bool back = index >= rounds;
    const uint32_t level = back ? index - rounds : rounds - 1 - index;
    const uint32_t step = UINT32_C(1) << level;
    uint32_t other = KITH_NOBODY;
    const bool child = rank >= step && rank < 2 * step;
    if (child)
        other = rank - step;
    else if (rank < step && rank + step < size)
        other = rank + step;
    if (other != KITH_NOBODY) {
        other = shape->on_workers ? other : (other + n) % (n + 1);
        *(child != back ? &stage->to : &stage->from) = other;
        stage->send_bytes = child != back ? shape->bytes : 0;
        const bool fresh = !shape->on_workers && rank == 0 && index == 0;
        if (!child && !back && !fresh)
            stage->reduce_bytes = shape->bytes;
    }
    if (rank == 0 && index == rounds - 1)
        stage->update_bytes = shape->bytes;
    return true;
}
