/* Elastic averaging with one master, asynchronously. At own step t:
 *
 *   t mod tau = 0:  d = alpha (w_i - w~);  send d;  w_i -= d
 *                   w_i -= eta g(the w_i before that)
 *   the master      w~ += beta / alpha d
 *
 * The master's model is asked for when the step begins, so that fetching it
 * hides behind the gradient. alpha = beta = 0.9 / n where nothing is given.
 * Source: Zhang, Choromanska, LeCun, NeurIPS 2015, Alg. 1. */
#include <stdlib.h>

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
    } * workers;          /* (worker_count) */
};

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
static void begin(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(!run->workers[worker].stepping);
    struct easgd *easgd = run->state;
    if (run->workers[worker].steps % run->config->every == 0) {
        easgd->workers[worker].asked = true;
        sim_central_send(run, &(struct sim_central_message){.from = worker,
                                                            .to = master(run),
                                                            .kind = ASK});
    }
    sim_central_step(run, worker);
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

/* The elastic force before the gradient step: both are taken at the same w_i,
 * as in the paper's Algorithm 1. */
static void finish_step(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(!run->workers[worker].stepping);
    KITH_ASSERT(!((struct easgd *)run->state)->workers[worker].asked);
    struct easgd *easgd = run->state;
    struct easgd_worker *state = &easgd->workers[worker];
    state->stepped = false;
    if (state->fetched) {
        if (state->model) {
            pull(run, worker, state->model);
        }
        state->fetched = false;
        sim_central_send(
            run, &(struct sim_central_message){.from = worker,
                                               .to = master(run),
                                               .kind = FORCE,
                                               .subject = worker,
                                               .version = state->version,
                                               .vector = state->model,
                                               .bytes = run->shape.bytes});
        state->model = NULL;
    }
    sim_central_descend(run, worker);
    if (sim_central_finished(run, worker)) {
        sim_central_finish(run, worker);
    } else {
        begin(run, worker);
    }
}

/* A step that ends before the master's model has come waits for it. */
static void stepped(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    struct easgd *easgd = run->state;
    easgd->workers[worker].stepped = true;
    if (!easgd->workers[worker].asked) {
        finish_step(run, worker);
    }
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
                        sim_central_update_time(run, message->bytes), 0);
}

/* Three kinds: a worker asks, the master answers with its model, the worker
 * sends the force that it was pulled with. */
static void delivered(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->kind <= FORCE);
    struct easgd *easgd = run->state;
    if (message->kind == FORCE) {
        take_force(run, message);
        return;
    }
    if (message->kind == ASK) {
        void *x = run->server ? sim_central_x(run->server) : NULL;
        sim_central_send(run, &(struct sim_central_message){
                                  .from = message->to,
                                  .to = message->from,
                                  .kind = MODEL,
                                  .version = run->updates,
                                  .vector = sim_central_copy(run, x),
                                  .bytes = run->shape.bytes});
        return;
    }
    KITH_ASSERT(message->kind == MODEL);
    struct easgd_worker *state = &easgd->workers[message->to];
    state->asked = false;
    state->fetched = true;
    state->version = message->version;
    state->model = sim_copy_hold(message->vector);
    if (state->stepped) {
        finish_step(run, message->to);
    }
}

/* A worker's first step asks for the master's model, too: all models are equal
 * then, and the force is 0. */
static void start(struct sim_central *run)
{
    KITH_ASSERT(run->unfinished == run->worker_count);
    for (uint32_t i = 0; i < run->worker_count && !sim_ended(run->world); i++) {
        begin(run, i);
    }
}

/* 0.9 / n is the paper's choice: the forces of all n workers together stay
 * below the master's own weight. */
static enum kith_err easgd_open(struct sim_central *run)
{
    KITH_ASSERT(run->state == NULL);
    const struct kith_central *config = run->config;
    struct easgd *easgd = calloc(1, sizeof *easgd);
    run->state = easgd;
    if (!easgd) {
        return KITH_ENOMEM;
    }
    easgd->alpha =
        config->alpha >= 0 ? config->alpha : 0.9 / (double)run->worker_count;
    easgd->beta = config->beta >= 0 ? config->beta : easgd->alpha;
    easgd->workers = calloc(run->worker_count, sizeof *easgd->workers);
    return easgd->workers ? KITH_OK : KITH_ENOMEM;
}

/* Also of what easgd_open() left half done. */
static void easgd_close(struct sim_central *run)
{
    KITH_ASSERT(run->node_count > run->worker_count);
    struct easgd *easgd = run->state;
    for (uint32_t i = 0; easgd && easgd->workers && i < run->worker_count;
         i++) {
        sim_copy_release(run->world, easgd->workers[i].model);
    }
    if (easgd) {
        free(easgd->workers);
    }
    free(easgd);
}

const struct central_method sim_central_easgd = {
    .machines = machines,
    .open = easgd_open,
    .close = easgd_close,
    .start = start,
    .stepped = stepped,
    .delivered = delivered,
};
