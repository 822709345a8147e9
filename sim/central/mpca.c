/* MPCA-SGD, our reading: its coefficients are not published. Workers minimise
 *
 *   L(w_i) + penalty/2 |w_i - w^|^2,   w^ = w~ + (w~ - w~') age / span
 *
 * w~ and w~' are the last two shared models that have reached the worker, age
 * its own steps since w~ was made of, span those between the two: the shared
 * model is extrapolated against its staleness. Sharing goes on behind the
 * steps, one round after the other with at least tau steps in between: the
 * master takes the mean of the workers' models, as they were when the worker
 * entered the round, and sends it back. Nobody waits.
 * Source: Langer, Hall, He, Rahayu, "MPCA SGD", DIDL 2018; TPDS 2020, 2.3. */
#include "sim/central/central_state.h"

struct mpca_worker {
    bool sharing;
    void *sent;           /* its model when the round began */
    void *shared, *older; /* w~, w~' */
    uint64_t sent_step, shared_step, older_step; /* own steps */
    uint64_t rounds;
};

struct mpca {
    double penalty;
    struct mpca_worker workers[];
};

/* Where a round is due: every so many steps, and at the end, because those that
 * still train need everybody. What is sent is the model as it stands when the
 * round begins; steps go on behind it. */
static void share(struct sim_central *run, uint32_t id)
{
    KITH_ASSERT(!((struct mpca *)run->state)->workers[id].sharing);
    struct mpca *mpca = run->state;
    struct mpca_worker *worker = &mpca->workers[id];
    const uint64_t steps = run->workers[id].steps;
    if (steps < worker->sent_step + run->config->every &&
        !sim_central_finished(run, id))
        return;
    worker->sharing = true;
    worker->sent_step = steps;
    sim_copy_release(run->world, worker->sent);
    worker->sent =
        sim_central_copy(run, sim_central_x(run->workers[id].trainer));
    sim_central_enter(run, id);
}

/* g += penalty (x - w^) */
static void penalise(struct sim_central *run, uint32_t id)
{
    KITH_ASSERT(id < run->worker_count);
    const struct kith_backend *backend = run->experiment->backend;
    const struct mpca *mpca = run->state;
    const struct mpca_worker *worker = &mpca->workers[id];
    struct central_worker *self = &run->workers[id];
    if (!self->trainer || !worker->shared)
        return;
    const size_t n = run->trained;
    backend->add(n, mpca->penalty, sim_central_x(self->trainer),
                 self->gradient);
    backend->add(n, -mpca->penalty, worker->shared, self->gradient);
    if (worker->older && worker->shared_step > worker->older_step) {
        const double ahead = (double)(self->steps - worker->shared_step) /
                             (double)(worker->shared_step - worker->older_step);
        backend->add(n, -mpca->penalty * ahead, worker->shared, self->gradient);
        backend->add(n, mpca->penalty * ahead, worker->older, self->gradient);
    }
}

/* The penalty is part of the gradient: it goes through the worker's own
 * optimiser, momentum included. */
static void stepped(struct sim_central *run, uint32_t id)
{
    KITH_ASSERT(id < run->worker_count);
    struct mpca *mpca = run->state;
    penalise(run, id);
    sim_central_descend(run, id);
    const struct mpca_worker *worker = &mpca->workers[id];
    if (!worker->sharing)
        share(run, id);
    sim_central_go_on(run, id);
}

/* The mean of what was sent, once for each round. */
static void take_in(struct sim_central *run, uint64_t round)
{
    KITH_ASSERT(round <= run->updates + 1);
    const struct mpca *mpca = run->state;
    if (run->updates >= round)
        return;
    run->updates++;
    run->applied += run->worker_count;
    for (uint32_t i = 0; i < run->worker_count; i++)
        run->vectors[i] = mpca->workers[i].sent;
    sim_central_mean(run, run->dim, run->worker_count,
                     sim_central_x(run->server));
}

/* A round has ended for this machine: the last two shared models are what the
 * extrapolation is made from. */
static void exchanged(struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(node < run->node_count);
    struct mpca *mpca = run->state;
    if (node >= run->worker_count) {
        sim_central_enter(run, node);
        return;
    }
    struct mpca_worker *worker = &mpca->workers[node];
    take_in(run, ++worker->rounds);
    sim_central_stale(run, node, run->workers[node].steps - worker->sent_step);
    worker->sharing = false;
    sim_copy_release(run->world, worker->older);
    worker->older = worker->shared;
    worker->shared = sim_central_copy(run, sim_central_x(run->server));
    worker->older_step = worker->shared_step;
    worker->shared_step = worker->sent_step;
    share(run, node);
}

/* 0.1 is the penalty where none is given: our choice, because the paper gives
 * no value. */
static enum kith_err mpca_open(struct sim_central *run)
{
    KITH_ASSERT(run->worker_count > 0);
    struct mpca *mpca = run->state;
    mpca->penalty = run->config->alpha >= 0 ? run->config->alpha : 0.1;
    return KITH_OK;
}

const struct central_method sim_central_mpca = {
    .machines = sim_central_collective_machines,
    .state_bytes = sizeof(struct mpca),
    .node_bytes = sizeof(struct mpca_worker),
    .open = mpca_open,
    .stepped = stepped,
    .exchanged = exchanged,
};
