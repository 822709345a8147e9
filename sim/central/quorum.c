/* A step needs the first n - b gradients only.
 *
 *   backup  the late ones are thrown away: their workers get the new model
 *   quorum  the late ones join the next step
 *
 * w~ -= eta mean(collected), a collected worker waits for the new model.
 * Source: Chen et al., "Revisiting distributed synchronous SGD", ICLR workshop
 * 2016; TensorFlow, OSDI 2016, section 4.4. */
#include "sim/central/server.h"

/* SIM_EVENT_COMPUTED of the update; see server.c. */
#define VALUE_UPDATE SIM_VALUE_MAX

/* The b slowest are not waited for: the step is as fast as the n - b fastest
 * machines. */
static uint32_t needed(const struct sim_central *run)
{
    KITH_ASSERT(run->config->backup < run->worker_count);
    return run->worker_count - run->config->backup;
}

/* The first gradient of a step is taken over as it is; only later ones are
 * added. */
kith_ns sim_quorum_cost(const struct sim_central *run, uint64_t bytes)
{
    KITH_ASSERT(bytes <= run->shape.bytes);
    const struct server *server = run->state;
    return server->collected > 0 ? sim_central_cost(run, bytes, 0) : 0;
}

/* Enough are there: every server applies its part. */
static void close_step(struct sim_central *run)
{
    KITH_ASSERT(sim_server_of(run)->updating == 0);
    KITH_ASSERT(sim_server_of(run)->collected == needed(run));
    struct server *server = sim_server_of(run);
    server->updating = server->servers;
    for (uint32_t s = 0; s < server->servers; s++) {
        const uint64_t bytes =
            sim_central_part(run->shape.bytes, server->servers, s);
        sim_central_compute(run, sim_server_node(run, s),
                            sim_central_cost(run, 0, bytes), VALUE_UPDATE);
    }
}

/* The servers act as one: the step is closed where the last gradient that it
 * needs is counted. */
static void collect(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    KITH_ASSERT(!sim_server_of(run)->members[client]);
    struct server *server = sim_server_of(run);
    server->members[client] = true;
    if (++server->collected == needed(run))
        close_step(run);
}

/* The client waits for a model whatever becomes of its gradient: nobody
 * computes on one that a step has left behind. */
void sim_quorum_in(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    struct server *server = sim_server_of(run);
    struct server_client *from = &server->clients[client];
    from->waits = true;
    if (server->updating > 0)
        return; /* too late for this step: sim_quorum_updated() sees to it */
    if (run->config->trigger == KITH_CENTRAL_BACKUP &&
        from->first->version != run->updates) {
        run->refused++;
        from->waits = false;
        sim_server_drop(run, sim_server_take(run, client));
        sim_server_reply(run, client);
        return;
    }
    collect(run, client);
}

/* The model is new. Those that have waited get it. */
void sim_quorum_updated(struct sim_central *run)
{
    KITH_ASSERT(sim_server_of(run)->updating == 0);
    struct server *server = sim_server_of(run);
    for (uint32_t c = 0; c < server->count; c++) {
        if (server->members[c]) {
            const struct server_gradient *gradient = server->clients[c].first;
            sim_central_stale(run, c, run->updates - gradient->version);
        }
    }
    sim_central_update(run, server->members, needed(run), run->updates);
    run->applied += server->collected;
    server->collected = 0;
    sim_trace_decision(run->world, "update", KITH_NOBODY, KITH_NOBODY,
                       run->updates);
    if (sim_server_done(run))
        return;
    for (uint32_t c = 0; c < server->count; c++) {
        struct server_client *client = &server->clients[c];
        const bool member = server->members[c];
        server->members[c] = false;
        if (!client->waits)
            continue;
        if (!member && run->config->trigger == KITH_CENTRAL_QUORUM) {
            if (server->updating == 0)
                collect(run, c);
            continue;
        }
        run->refused += !member;
        client->waits = false;
        sim_server_drop(run, sim_server_take(run, c));
        sim_server_reply(run, c);
    }
}
