/* Every worker sends every server its part of the gradient, gets its part of
 * the model back, and they take turns. n workers, k <= n servers, S bytes:
 *
 *   servers' own machines   2 n/k T + (n-1)/k R + U/k, k = 1: 2nT + (n-1)R + U
 *   on workers, k = n       2 (n-1)/n T + (n-1)/n R + U/n
 *
 * T, R, U: time to send, to add, to apply S bytes. In turn r worker i is with
 * server (r - i) mod n, so that nobody is with two. With m proxies each worker
 * is with its proxy first, and the proxies are with the server.
 * Source: Langer et al., TPDS 2020, section 2.4 of its delays; Li et al., OSDI
 * 2014 (servers); Project Adam, OSDI 2014 (many servers). */
#include "sim/central/central_state.h"

/* Nodes: n workers, then k servers. */
static bool own_machines(const struct central_shape *shape, uint32_t node,
                         uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node < shape->workers + shape->servers);
    KITH_ASSERT(shape->servers <= shape->workers);
    const uint32_t n = shape->workers, k = shape->servers;
    const bool back = index >= n;
    const uint32_t turn = back ? index - n : index;
    if (index >= 2 * n)
        return false;
    const bool server = node >= n;
    const uint32_t rank = server ? node - n : node;
    const uint32_t other = (turn + n - rank) % n;
    const uint32_t part = server ? rank : other;
    if (!server && other >= k)
        return true;
    const uint64_t bytes = sim_central_part(shape->bytes, k, part);
    const bool sends = server == back;
    if (sends) {
        stage->to = server ? other : n + other;
        stage->send_bytes = bytes;
    } else {
        stage->from = server ? other : n + other;
    }
    if (server && !back) {
        stage->reduce_bytes = turn > 0 ? bytes : 0;
        stage->update_bytes = turn + 1 == n ? bytes : 0;
    }
    return true;
}

/* Node i is server i, too, where i < k: round r is with the r-th neighbour. */
static bool on_workers(const struct central_shape *shape, uint32_t node,
                       uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node < shape->workers);
    KITH_ASSERT(shape->servers <= shape->workers);
    const uint32_t n = shape->workers, k = shape->servers;
    const uint32_t rounds = n > 1 ? n - 1 : 1;
    const bool back = index >= rounds;
    const uint32_t round = (back ? index - rounds : index) + 1;
    if (index >= 2 * rounds)
        return false;
    const bool server = node < k;
    const uint32_t next = (node + round) % n, last = (node + n - round) % n;
    const uint64_t own = server ? sim_central_part(shape->bytes, k, node) : 0;
    if (next != node && (back ? server : next < k)) {
        stage->to = next;
        stage->send_bytes =
            back ? own : sim_central_part(shape->bytes, k, next);
    }
    if (last != node && (back ? last < k : server)) {
        stage->from = last;
        stage->reduce_bytes = back ? 0 : own;
    }
    stage->update_bytes = !back && round == rounds ? own : 0;
    return true;
}

/* A proxy's script: its group one after another, the server, its group again.
 * All proxies' scripts are as long as the largest group's, so that indices mean
 * the same everywhere. */
static void proxy_stage(const struct central_shape *shape, uint32_t proxy,
                        uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(proxy < shape->proxies);
    const uint32_t n = shape->workers, server = n;
    const uint32_t first = sim_central_group_first(n, shape->proxies, proxy);
    const uint32_t size =
        sim_central_group_first(n, shape->proxies, proxy + 1) - first;
    if (index < n) {
        if (index < size) {
            stage->from = first + index;
            stage->reduce_bytes = index > 0 ? shape->bytes : 0;
        }
    } else if (index == n) {
        stage->to = server;
        stage->send_bytes = shape->bytes;
    } else if (index == n + 1) {
        stage->from = server;
    } else if (index - n - 2 < size) {
        stage->to = first + (index - n - 2);
        stage->send_bytes = shape->bytes;
    }
}

/* Nodes: n workers, the server, m proxies. */
static bool with_proxies(const struct central_shape *shape, uint32_t node,
                         uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(node <= shape->workers + shape->proxies);
    const uint32_t n = shape->workers, m = shape->proxies;
    if (index >= 2 * n + 2)
        return false;
    if (node > n) {
        proxy_stage(shape, node - n - 1, index, stage);
    } else if (node == n && index < m) {
        stage->from = n + 1 + index;
        stage->reduce_bytes = index > 0 ? shape->bytes : 0;
        stage->update_bytes = index + 1 == m ? shape->bytes : 0;
    } else if (node == n && index < 2 * m) {
        stage->to = n + 1 + (index - m);
        stage->send_bytes = shape->bytes;
    } else if (node < n && index == 0) {
        stage->to = n + 1 + sim_central_group_of(n, m, node);
        stage->send_bytes = shape->bytes;
    } else if (node < n && index == 1) {
        stage->from = n + 1 + sim_central_group_of(n, m, node);
    }
    return true;
}

/* Three layouts of one pattern; which one it is, the experiment says once for
 * all machines. */
bool sim_central_naive(const struct central_shape *shape, uint32_t node,
                       uint32_t index, struct central_stage *stage)
{
    KITH_ASSERT(stage->to == KITH_NOBODY && stage->from == KITH_NOBODY);
    if (shape->proxies > 0)
        return with_proxies(shape, node, index, stage);
    return shape->on_workers ? on_workers(shape, node, index, stage)
                             : own_machines(shape, node, index, stage);
}
