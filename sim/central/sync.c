/* All workers in step.
 *
 *   gradient  g_i = grad(w~); w~ -= eta mean(g_i); the optimiser is the
 * servers' sparknet  tau local steps from w~, each by an optimiser of the
 * worker's own; then w~ = mean(w_i)
 *
 * The exchange says how gradients (or models) and the model travel. What is in
 * them is worked out once, when the first worker has all of it: no script ends
 * before every worker has entered its own.
 * Source: Langer et al., TPDS 2020, section 2.3; Moritz et al., ICLR 2016. */
#include "sim/central/central_state.h"

/* SparkNet exchanges models, all others gradients: one file, because the script
 * and the wait are the same. */
static bool averages(const struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_sync);
    return run->config->method == KITH_CENTRAL_SPARKNET;
}

/* A worker enters the exchange every `every` steps, and waits there for all
 * others. */
static void stepped(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    const uint32_t every = averages(run) ? run->config->every : 1;
    if (averages(run))
        sim_central_descend(run, worker);
    if (run->workers[worker].steps % every == 0)
        sim_central_enter(run, worker);
    else
        sim_central_go_on(run, worker);
}

/* The `round`-th exchange, if it is not done yet. */
static void take_in(struct sim_central *run, uint64_t round)
{
    KITH_ASSERT(run->updates + 1 >= round);
    if (run->updates >= round)
        return;
    for (uint32_t i = 0; i < run->worker_count; i++) {
        run->vectors[i] = sim_central_x(run->workers[i].trainer);
        sim_central_stale(run, i, 0);
    }
    if (averages(run)) {
        run->updates++;
        sim_central_mean(run, run->dim, run->worker_count,
                         sim_central_x(run->server));
    } else {
        sim_central_update(run, NULL, run->worker_count, round - 1);
    }
    run->applied += run->worker_count;
}

/* Servers enter the next round at once; workers take the model and go on. */
static void exchanged(struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(node < run->node_count);
    if (node >= run->worker_count) {
        sim_central_enter(run, node);
        return;
    }
    const uint32_t every = averages(run) ? run->config->every : 1;
    const uint64_t round = run->workers[node].steps / every;
    take_in(run, round);
    sim_central_adopt(run, node, sim_central_x(run->server), round);
    sim_central_go_on(run, node);
}

const struct central_method sim_central_sync = {
    .machines = sim_central_collective_machines,
    .stepped = stepped,
    .exchanged = exchanged,
};
