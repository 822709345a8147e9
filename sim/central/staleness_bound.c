/* When a gradient may be applied, and when its client may go on:
 *
 *   async        at once, at once
 *   ssp          at once; when t_i - min_j t_j <= s        s = 0: all in step
 *   essp         at once; when the model in its cache has all gradients of
 *                clock t_i - s: servers send every new clock's model unasked
 *   value-bound  when max|w~ - w_j| < bound, w_j what the slowest j works on;
 *                at once then
 *
 * t_i counts the client's gradients. The slowest is the one with the oldest
 * model among those that do not wait here themselves, so that somebody always
 * goes on. Caches do not show a worker its own gradients early.
 * Source: Ho et al., NeurIPS 2013; Dai et al., AAAI 2015; Wei et al., SoCC
 * 2015. */
#include <math.h>

#include "sim/central/server.h"

/* The clock of the slowest client: what bounded staleness is measured against.
 * */
static uint64_t clock_min(const struct server *server)
{
    KITH_ASSERT(server->count > 0);
    uint64_t least = UINT64_MAX;
    for (uint32_t c = 0; c < server->count; c++)
        if (server->clients[c].clock < least)
            least = server->clients[c].clock;
    return least;
}

/* max|x - y| of two vectors. */
static double distance(struct sim_central *run, const void *x, const void *y)
{
    KITH_ASSERT(run->dim > 0);
    const struct kith_backend *backend = run->experiment->backend;
    double most = 0;
    backend->read(run->dim, x, run->x);
    backend->read(run->dim, y, run->y);
    for (size_t k = 0; k < run->dim; k++)
        most = fmax(most, fabs(run->x[k] - run->y[k]));
    return most;
}

/* The slowest has not seen enough of what happened. */
static bool too_far(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    const struct server *server = sim_server_of(run);
    const struct server_client *slowest = NULL;
    for (uint32_t c = 0; c < server->count; c++) {
        const struct server_client *other = &server->clients[c];
        if (c != client && !other->waits &&
            (!slowest || other->version < slowest->version))
            slowest = other;
    }
    return slowest && slowest->seen && run->server &&
           distance(run, sim_central_x(run->server), slowest->seen) >=
               run->config->bound;
}

/* Staleness is counted in updates that the model has seen since the gradient's
 * own was read. */
static void apply(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    KITH_ASSERT(sim_server_of(run)->clients[client].clock <
                sim_server_of(run)->clients[client].in);
    struct server *server = sim_server_of(run);
    struct server_client *from = &server->clients[client];
    struct server_gradient *gradient = sim_server_take(run, client);
    const uint64_t missed = run->updates - gradient->version;
    for (uint32_t i = 0; i < from->member_count; i++)
        sim_central_stale(run, from->member_first + i, missed);
    sim_trace_decision(run->world, "update", client, KITH_NOBODY, missed);
    sim_central_apply(run, gradient->vector, run->applied / run->worker_count);
    run->applied += gradient->members;
    from->clock++;
    sim_server_drop(run, gradient);
}

/* ssp: who waits and may go on now, in rank order. */
static void release_within(struct sim_central *run)
{
    KITH_ASSERT(run->config->trigger == KITH_CENTRAL_SSP);
    struct server *server = sim_server_of(run);
    server->clock_min = clock_min(server);
    for (uint32_t c = 0; c < server->count; c++) {
        struct server_client *client = &server->clients[c];
        if (client->waits &&
            client->clock - server->clock_min <= run->config->staleness) {
            client->waits = false;
            sim_server_reply(run, c);
        }
    }
}

/* essp: a new clock's model goes to all; one at a time to each. */
static void offer(struct sim_central *run)
{
    KITH_ASSERT(run->config->trigger == KITH_CENTRAL_ESSP);
    struct server *server = sim_server_of(run);
    const uint64_t least = clock_min(server);
    if (least == server->clock_min)
        return;
    server->clock_min = least;
    for (uint32_t c = 0; c < server->count; c++)
        if (server->clients[c].sending != SERVER_SENDS_NONE)
            server->clients[c].sending = SERVER_SENDS_OUTDATED;
        else
            sim_server_reply(run, c);
}

/* value-bound: the first in line that may, again and again. */
static void release_near(struct sim_central *run)
{
    KITH_ASSERT(run->config->trigger == KITH_CENTRAL_VALUE);
    struct server *server = sim_server_of(run);
    for (;;) {
        uint32_t first = KITH_NOBODY;
        for (uint32_t c = 0; c < server->count; c++)
            if (server->clients[c].waits &&
                (first == KITH_NOBODY ||
                 server->clients[c].order < server->clients[first].order))
                first = c;
        if (first == KITH_NOBODY || too_far(run, first))
            return;
        apply(run, first);
        server->clients[first].waits = false;
        if (sim_server_done(run))
            return;
        sim_server_reply(run, first);
    }
}

/* The gradient is applied before the bound is looked at: under ssp it is the
 * model that a client goes on from which is held back, not the update. */
void sim_bounds_in(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    struct server *server = sim_server_of(run);
    if (run->config->trigger == KITH_CENTRAL_VALUE) {
        server->clients[client].waits = true;
        server->clients[client].order = server->order++;
        release_near(run);
        return;
    }
    apply(run, client);
    if (sim_server_done(run))
        return;
    if (run->config->trigger == KITH_CENTRAL_ESSP) {
        offer(run);
        return;
    }
    if (run->config->trigger == KITH_CENTRAL_ASYNC) {
        sim_server_reply(run, client);
        return;
    }
    server->clients[client].waits = true;
    release_within(run);
}

/* essp: the step `t` of a worker needs all gradients of clock t - s. */
static bool may_step(struct sim_central *run,
                     const struct server_client *client)
{
    KITH_ASSERT(client->member_count == 1);
    const uint64_t steps = run->workers[client->member_first].steps;
    return steps <= client->inbox_clock + run->config->staleness;
}

/* The inbox holds the newest model whether or not the client may use it yet. */
void sim_bounds_received(struct sim_central *run, uint32_t client,
                         bool outdated)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    struct server_client *to = &sim_server_of(run)->clients[client];
    if (run->config->trigger != KITH_CENTRAL_ESSP) {
        sim_server_release(run, client);
        return;
    }
    if (outdated)
        sim_server_reply(run, client);
    if (to->idle && may_step(run, to)) {
        to->idle = false;
        sim_server_release(run, client);
    }
}

/* Under essp nobody waits for an answer of its own: a worker whose cache is
 * fresh enough goes on at once. */
void sim_bounds_stepped(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    struct server_client *from = &sim_server_of(run)->clients[client];
    if (run->config->trigger != KITH_CENTRAL_ESSP)
        return;
    from->idle = !may_step(run, from);
    if (from->idle)
        return;
    if (from->fresh)
        sim_server_release(run, client);
    else
        sim_central_step(run, from->member_first);
}
