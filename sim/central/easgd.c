/* Elastic averaging with one master, asynchronously. At own step t:
 *
 *   t mod tau = 0:  d = alpha (w_i - w~);  send d;  w_i -= d
 *                   w_i -= eta g(the w_i before that)
 *   the master      w~ += beta / alpha d
 *
 * The master's model is asked for when the step begins, so that fetching it
 * hides behind the gradient. alpha = beta = 0.9 / n where nothing is given.
 * Source: Zhang, Choromanska, LeCun, NeurIPS 2015, Alg. 1. */
#include "kith/assert.h"
#include "sim/central/central_state.h"

enum { ASK, MODEL, FORCE };

struct easgd {
    double alpha, beta;
    struct easgd_worker {
        /* Waits for the master's model; has it; its step is done. */
        bool asked, fetched, stepped;
        void *model;
        uint64_t version; /* of it */
    } workers[];
};

static struct easgd_worker *worker_of(const struct sim_central *run,
                                      uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    return &((struct easgd *)run->state)->workers[worker];
}

/* The master. */
static uint32_t machines(const struct kith_experiment *experiment)
{
    KITH_ASSERT(experiment->peers > 0);
    (void)experiment;
    return 1;
}

/* One master stands behind the workers. */
static uint32_t master(const struct sim_central *run)
{
    KITH_ASSERT(run->node_count == run->worker_count + 1);
    return run->worker_count;
}

/* The model is asked for when the step begins, so that its way here hides
 * behind the gradient. */
static void begins(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(!run->workers[worker].stepping);
    if (run->workers[worker].steps % run->config->every == 0) {
        worker_of(run, worker)->asked = true;
        sim_central_send(run, &(struct sim_central_message){.from = worker,
                                                            .to = master(run),
                                                            .kind = ASK});
    }
}

/* The elastic force: `model` becomes d = alpha (x - model), and x -= d. */
static void pull(struct sim_central *run, uint32_t worker, void *model)
{
    KITH_ASSERT(((const struct easgd *)run->state)->alpha >= 0);
    const struct kith_backend *backend = run->experiment->backend;
    const struct easgd *easgd = run->state;
    void *x = sim_central_x(run->workers[worker].trainer);
    backend->scale(run->dim, -easgd->alpha, model);
    backend->add(run->dim, easgd->alpha, x, model);
    backend->add(run->dim, -1, model, x);
}

/* A step that ends before the master's model has come waits for it. The elastic
 * force is before the gradient step: both are taken at the same w_i, as in the
 * paper's Algorithm 1. */
static void stepped(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(!run->workers[worker].stepping);
    struct easgd_worker *state = worker_of(run, worker);
    state->stepped = true;
    if (state->asked)
        return;
    state->stepped = false;
    if (state->model)
        pull(run, worker, state->model);
    if (state->fetched) {
        state->fetched = false;
        sim_central_send_model(run, worker, master(run), FORCE, worker,
                               state->version, state->model);
        state->model = NULL;
    }
    sim_central_descend(run, worker);
    sim_central_go_on(run, worker);
}

/* The master's model has moved on by so many forces since it was fetched. */
static void take_force(struct sim_central *run,
                       const struct sim_central_message *message)
{
    KITH_ASSERT(message->to == master(run));
    KITH_ASSERT(message->version <= run->updates);
    const struct easgd *easgd = run->state;
    if (run->server && message->vector && easgd->alpha > 0) {
        run->experiment->backend->add(run->dim, easgd->beta / easgd->alpha,
                                      message->vector,
                                      sim_central_x(run->server));
    }
    sim_central_stale(run, message->subject, run->updates - message->version);
    run->updates++;
    run->applied++;
    sim_central_compute(run, message->to,
                        sim_central_cost(run, 0, message->bytes), 0);
}

/* Three kinds: a worker asks, the master answers with its model, the worker
 * sends the force that it was pulled with. */
static void delivered(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->kind <= FORCE);
    if (message->kind == FORCE) {
        take_force(run, message);
        return;
    }
    if (message->kind == ASK) {
        sim_central_send_model(
            run, message->to, message->from, MODEL, 0, run->updates,
            sim_central_copy(run, sim_central_x(run->server)));
        return;
    }
    struct easgd_worker *state = worker_of(run, message->to);
    KITH_ASSERT(state->asked && !state->fetched);
    state->asked = false;
    state->fetched = true;
    state->version = message->version;
    state->model = sim_copy_hold(message->vector);
    if (state->stepped)
        stepped(run, message->to);
}

/* 0.9 / n is the paper's choice: the forces of all n workers together stay
 * below the master's own weight. */
static enum kith_err easgd_open(struct sim_central *run)
{
    KITH_ASSERT(run->worker_count > 0);
    const struct kith_central *config = run->config;
    struct easgd *easgd = run->state;
    easgd->alpha =
        config->alpha >= 0 ? config->alpha : 0.9 / (double)run->worker_count;
    easgd->beta = config->beta >= 0 ? config->beta : easgd->alpha;
    return KITH_OK;
}

const struct central_method sim_central_easgd = {
    .machines = machines,
    .state_bytes = sizeof(struct easgd),
    .node_bytes = sizeof(struct easgd_worker),
    .open = easgd_open,
    .begins = begins,
    .stepped = stepped,
    .delivered = delivered,
};
