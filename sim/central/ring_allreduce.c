/* Ring all-reduce: n parts travel around once and are summed up, and once more
 * to be handed out; every worker applies the sum to a replica of its own.
 *
 *   2 (n-1) (latency + T/n) + (n-1)/n R + U
 *
 * Source: Patarasuk and Yuan, JPDC 2009. */
#include "sim/central/central_state.h"

/* Both halves of the rounds are the same ring: parts are summed in the first
 * and replaced in the second. */
bool sim_central_ring(const struct central_shape *shape, uint32_t node,
                      uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node < shape->workers);
    KITH_ASSERT(stage->to == KITH_NOBODY);
    const uint32_t n = shape->workers;
    const uint32_t rounds = n > 1 ? 2 * (n - 1) : 1;
    if (index >= rounds)
        return false;
    stage->update_bytes = index == rounds - 1 ? shape->bytes : 0;
    if (n == 1)
        return true;
    const bool back = index >= n - 1;
    const uint32_t round = back ? index - (n - 1) : index;
    /* Part i starts at worker i; its sum ends at i - 1 and goes on from there.
     */
    const uint32_t part = (node + 2 * n - round + back) % n;
    stage->to = (node + 1) % n;
    stage->from = (node + n - 1) % n;
    stage->send_bytes = sim_central_part(shape->bytes, n, part);
    stage->reduce_bytes =
        back ? 0 : sim_central_part(shape->bytes, n, (part + n - 1) % n);
    return true;
}
