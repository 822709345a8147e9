/* Scatter-reduce and broadcast: worker i sums up part i of all gradients, so
 * that the server gets each part once, and hands its part of the model on.
 *
 *   one server  (2 + 2 (n-1)/n) T + (n-1)/n R + U
 *   on workers  2 (n-1)/n T + (n-1)/n R + U/n: naive with a server on each
 *
 * Source: Langer et al., TPDS 2020. */
#include "sim/central/central_state.h"

/* Round r of n - 1 among the workers; summing parts up, or handing them on. */
static void among(const struct central_shape *shape, uint32_t node,
                  uint32_t round, bool back, struct central_stage *stage)
{
    KITH_ASSERT(round > 0 && round < shape->workers);
    KITH_ASSERT(node < shape->workers);
    const uint32_t n = shape->workers;
    const uint32_t next = (node + round) % n, last = (node + n - round) % n;
    stage->to = next;
    stage->from = last;
    stage->send_bytes = sim_central_part(shape->bytes, n, back ? node : next);
    stage->reduce_bytes = back ? 0 : sim_central_part(shape->bytes, n, node);
}

/* Four blocks of stages; a machine that has no part in a stage passes it at
 * once, so indices mean the same everywhere. */
bool sim_central_scatter(const struct central_shape *shape, uint32_t node,
                         uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node <= shape->workers);
    KITH_ASSERT(stage->to == KITH_NOBODY);
    const uint32_t n = shape->workers, server = n;
    if (shape->on_workers) {
        struct central_shape all = *shape;
        all.servers = n;
        return sim_central_naive(&all, node, index, stage);
    }
    if (index >= 4 * n - 2)
        return false;
    /* n - 1 rounds, n parts up, n parts down, n - 1 rounds. */
    const bool worker = node != server;
    if (index < n - 1 || index >= 3 * n - 1) {
        const bool back = index >= 3 * n - 1;
        if (worker) {
            among(shape, node, 1 + (back ? index - (3 * n - 1) : index), back,
                  stage);
        }
        return true;
    }
    const bool back = index >= 2 * n - 1;
    const uint32_t turn = index - (back ? 2 * n - 1 : n - 1);
    if (worker && node != turn)
        return true;
    const uint32_t other = worker ? server : turn;
    if (worker != back) {
        stage->to = other;
        stage->send_bytes = sim_central_part(shape->bytes, n, turn);
    } else {
        stage->from = other;
    }
    if (!worker && !back && turn == n - 1)
        stage->update_bytes = shape->bytes;
    return true;
}
