/* Parameter servers that take gradients as they come: how these and the models
 * that go back move. Whether a gradient may be applied, and when a client gets
 * its answer, is for staleness_bound.c and quorum.c to say.
 *
 *   push    k parts, one to each server; with replicas each server sends its
 *           part on and waits for a majority (Project Adam, OSDI 2014)
 *   proxy   adds up its group's gradients, writes one back, hands the model on
 *           (Chen et al., MXNet, 2015)
 *   answer  k parts of the model as it is then
 *
 * One worker alone takes 2T + U for a round; a sweep over n of them that are
 * ready at once nT + U. Source: Langer et al., TPDS 2020, section 2.4. */
#include "sim/central/server.h"

#include <stdlib.h>

#include "kith/assert.h"

enum { PUSH, LOG, ACK, MODEL, UP, DOWN };

/* SIM_EVENT_COMPUTED of a quorum's update; others are client and server. */
#define VALUE_UPDATE SIM_VALUE_MAX

/* What this method keeps; files of the other methods have states of their own
 * behind the same pointer. */
struct server *sim_server_of(struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_server);
    return run->state;
}

/* Servers with replicas stand in groups: the first of a group is the server,
 * and it alone talks to workers. */
uint32_t sim_server_node(const struct sim_central *run, uint32_t server)
{
    KITH_ASSERT(server < run->config->servers);
    const struct kith_central *config = run->config;
    return config->on_workers ? server
                              : run->worker_count + server * config->replicas;
}

/* Servers on workers cost no machine: their processors and access links are the
 * workers'. */
static uint32_t machines(const struct kith_experiment *experiment)
{
    KITH_ASSERT(experiment->central.servers > 0);
    KITH_ASSERT(experiment->central.replicas > 0);
    const struct kith_central *config = &experiment->central;
    return config->on_workers
               ? 0
               : config->servers * config->replicas + config->proxies;
}

/* Two triggers collect a step's gradients before they apply any. */
static bool quorum(const struct sim_central *run)
{
    KITH_ASSERT(run->config->trigger != KITH_CENTRAL_SYNC);
    return run->config->trigger == KITH_CENTRAL_BACKUP ||
           run->config->trigger == KITH_CENTRAL_QUORUM;
}

/* By gradients that count, not by steps: a gradient that was thrown away has
 * moved nothing. */
bool sim_server_done(struct sim_central *run)
{
    KITH_ASSERT(run->updates <= run->applied || run->world->steps == 0);
    if (run->world->steps == UINT64_MAX)
        return false;
    const bool done =
        quorum(run) ? run->updates >= run->world->steps
                    : run->applied >= run->world->steps * run->worker_count;
    if (done)
        sim_end(run->world);
    return done;
}

/* A server's part of what is sent, with the vector of the whole, if any. */
static void send_part(struct sim_central *run, uint32_t from, uint32_t to,
                      uint32_t kind, uint32_t subject, uint32_t part,
                      void *vector)
{
    KITH_ASSERT(part < sim_server_of(run)->servers);
    const struct server *server = sim_server_of(run);
    sim_central_send(run, &(struct sim_central_message){
                              .from = from,
                              .to = to,
                              .kind = kind,
                              .subject = subject,
                              .version = run->updates,
                              .clock = server->clock_min,
                              .vector = vector,
                              .bytes = sim_central_part(
                                  run->shape.bytes, server->servers, part)});
}

/* The client's gradient leaves for the servers; `vector` is the servers' from
 * now on. */
static void push(struct sim_central *run, uint32_t client, void *vector,
                 uint64_t version)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    KITH_ASSERT(version <= run->updates);
    struct server *server = sim_server_of(run);
    struct server_client *from = &server->clients[client];
    struct server_gradient *gradient = malloc(sizeof *gradient);
    if (!gradient) {
        sim_copy_release(run->world, vector);
        sim_fail(run->world, KITH_ENOMEM, "no memory for a gradient");
        return;
    }
    *gradient = (struct server_gradient){
        .vector = vector, .version = version, .members = from->member_count};
    *(from->last ? &from->last->next : &from->first) = gradient;
    from->last = gradient;
    for (uint32_t s = 0; s < server->servers; s++) {
        send_part(run, from->node, sim_server_node(run, s), PUSH,
                  client * server->servers + s, s, NULL);
    }
}

/* Oldest first: a client's gradients are applied in the order in which it made
 * them. */
struct server_gradient *sim_server_take(struct sim_central *run,
                                        uint32_t client)
{
    struct server_client *from = &sim_server_of(run)->clients[client];
    struct server_gradient *gradient = from->first;
    KITH_ASSERT(gradient);
    from->first = gradient->next;
    if (!from->first)
        from->last = NULL;
    return gradient;
}

/* The gradient's vector goes back to the pool, whether it was applied or thrown
 * away. */
void sim_server_drop(struct sim_central *run, struct server_gradient *gradient)
{
    KITH_ASSERT(gradient->version <= run->updates);
    sim_copy_release(run->world, gradient->vector);
    free(gradient);
}

/* The model travels as k parts, but its values with the first alone: all parts
 * are of one moment, and count once the last is there. */
void sim_server_reply(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(client < sim_server_of(run)->count);
    struct server *server = sim_server_of(run);
    struct server_client *to = &server->clients[client];
    to->version = run->updates;
    to->sending = SERVER_SENDS_NEWEST;
    void *x = sim_central_x(run->server);
    if (to->seen && x)
        run->experiment->backend->copy(run->dim, to->seen, x);
    for (uint32_t s = 0; s < server->servers; s++) {
        send_part(run, sim_server_node(run, s), to->node, MODEL, client, s,
                  s == 0 ? sim_central_copy(run, x) : NULL);
    }
}

/* A proxy hands the model on over its own link, one member after another; a
 * worker that is its own client goes on at once. */
void sim_server_release(struct sim_central *run, uint32_t client)
{
    KITH_ASSERT(sim_server_of(run)->clients[client].member_count > 0);
    struct server_client *to = &sim_server_of(run)->clients[client];
    to->fresh = false;
    for (uint32_t i = 0; i < to->member_count; i++) {
        const uint32_t worker = to->member_first + i;
        if (to->node == worker) {
            sim_central_adopt(run, worker, to->inbox, to->inbox_version);
            sim_central_step(run, worker);
        } else {
            sim_central_send_model(run, to->node, worker, DOWN, client,
                                   to->inbox_version,
                                   sim_central_copy(run, to->inbox));
        }
    }
}

/* This server has its part of the client's next gradient, on a majority of
 * replicas. */
static void part_in(struct sim_central *run, uint32_t subject)
{
    KITH_ASSERT(subject <
                sim_server_of(run)->count * sim_server_of(run)->servers);
    struct server *server = sim_server_of(run);
    const uint32_t client = subject / server->servers;
    const uint64_t *parts = &server->parts[client * server->servers];
    server->parts[subject]++;
    for (uint32_t s = 0; s < server->servers; s++)
        if (parts[s] <= server->clients[client].in)
            return;
    server->clients[client].in++;
    sim_trace_decision(run->world, "gradient", client, KITH_NOBODY,
                       server->clients[client].in);
    if (quorum(run))
        sim_quorum_in(run, client);
    else
        sim_bounds_in(run, client);
}

/* An update is safe once a majority has it: the majority of r replicas is the
 * server itself and r / 2 others. */
static void replicate(struct sim_central *run, uint32_t subject, uint32_t node)
{
    KITH_ASSERT(sim_server_of(run)->replicas >= 1);
    struct server *server = sim_server_of(run);
    if (server->replicas == 1) {
        part_in(run, subject);
        return;
    }
    server->acks[subject] = 0;
    for (uint32_t i = 1; i < server->replicas; i++) {
        send_part(run, node, node + i, LOG, subject, subject % server->servers,
                  NULL);
    }
}

/* Two kinds of work on a server's processor: a part of a gradient taken in, and
 * the update of a whole step. */
static void computed(struct sim_central *run, uint32_t node, uint32_t value)
{
    KITH_ASSERT(value == VALUE_UPDATE ||
                value <
                    sim_server_of(run)->count * sim_server_of(run)->servers);
    struct server *server = sim_server_of(run);
    if (value != VALUE_UPDATE)
        replicate(run, value, node);
    else if (--server->updating == 0)
        sim_quorum_updated(run);
}

/* The part has arrived; it counts when the server's processor has taken it in,
 * which may be busy with others'. */
static void step_push(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->subject <
                sim_server_of(run)->count * sim_server_of(run)->servers);
    const struct server *server = sim_server_of(run);
    const uint64_t bytes = sim_central_part(run->shape.bytes, server->servers,
                                            message->subject % server->servers);
    const kith_ns cost_ns = quorum(run) ? sim_quorum_cost(run, bytes)
                                        : sim_central_cost(run, 0, bytes);
    sim_central_compute(run, message->to, cost_ns, message->subject);
}

/* Acknowledgements above the majority change nothing: the part has counted
 * already. */
static void step_ack(struct sim_central *run, uint32_t subject)
{
    KITH_ASSERT(sim_server_of(run)->replicas > 1);
    struct server *server = sim_server_of(run);
    if (++server->acks[subject] == server->replicas / 2)
        part_in(run, subject);
}

/* Parts of a model arrive one by one, over one link each; the client goes on
 * when all servers' parts are there. */
static void step_model(struct sim_central *run,
                       const struct sim_central_message *message)
{
    KITH_ASSERT(message->subject < sim_server_of(run)->count);
    struct server *server = sim_server_of(run);
    struct server_client *to = &server->clients[message->subject];
    if (message->vector) {
        sim_copy_release(run->world, to->inbox);
        to->inbox = sim_copy_hold(message->vector);
    }
    if (++to->parts_out < server->servers)
        return;
    to->parts_out = 0;
    const bool outdated = to->sending == SERVER_SENDS_OUTDATED;
    to->sending = SERVER_SENDS_NONE;
    to->inbox_version = message->version;
    to->inbox_clock = message->clock;
    to->fresh = true;
    sim_bounds_received(run, message->subject, outdated);
}

/* A proxy adds its group's gradients up; they count as one. */
static void step_up(struct sim_central *run,
                    const struct sim_central_message *message)
{
    KITH_ASSERT(run->config->proxies > 0);
    KITH_ASSERT(message->subject < sim_server_of(run)->count);
    const struct kith_backend *backend = run->experiment->backend;
    struct server_client *proxy =
        &sim_server_of(run)->clients[message->subject];
    if (proxy->gathered == 0)
        proxy->gathering = sim_copy_hold(message->vector);
    else if (message->vector)
        backend->add(run->trained, 1, message->vector, proxy->gathering);
    proxy->gathered_version = message->version;
    if (++proxy->gathered == proxy->member_count) {
        proxy->gathered = 0;
        void *sum = proxy->gathering;
        proxy->gathering = NULL;
        push(run, message->subject, sum, proxy->gathered_version);
    }
}

/* Kinds of messages, in the order in which a gradient and its answer travel. */
static void delivered(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->kind <= DOWN);
    switch (message->kind) {
    case PUSH:
        step_push(run, message);
        break;
    case LOG:
        sim_central_send(
            run, &(struct sim_central_message){.from = message->to,
                                               .to = message->from,
                                               .kind = ACK,
                                               .subject = message->subject});
        break;
    case ACK:
        step_ack(run, message->subject);
        break;
    case MODEL:
        step_model(run, message);
        break;
    case UP:
        step_up(run, message);
        break;
    case DOWN:
        sim_central_adopt(run, message->to, message->vector, message->version);
        sim_central_step(run, message->to);
        break;
    default:
        KITH_ASSERT(message->kind <= DOWN);
    }
}

/* The worker's gradient is copied: its buffer is used again by the next step,
 * which may begin before this one has arrived. */
static void stepped(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    const struct central_worker *from = &run->workers[worker];
    const uint32_t client = sim_central_group_of(
        run->worker_count, sim_server_of(run)->count, worker);
    void *gradient = sim_central_copy(run, from->gradient);
    if (run->config->proxies == 0) {
        push(run, client, gradient, from->version);
        sim_bounds_stepped(run, client);
        return;
    }
    sim_central_send_model(run, worker,
                           sim_server_of(run)->clients[client].node, UP, client,
                           from->version, gradient);
}

static void open_clients(struct sim_central *run, struct server *server)
{
    KITH_ASSERT(server->count <= run->worker_count);
    const uint32_t n = run->worker_count, proxies = run->config->proxies;
    const void *x = sim_central_x(run->server);
    for (uint32_t c = 0; c < server->count; c++) {
        struct server_client *client = &server->clients[c];
        client->member_first = sim_central_group_first(n, server->count, c);
        client->member_count =
            sim_central_group_first(n, server->count, c + 1) -
            client->member_first;
        client->node = proxies > 0 ? n + server->servers * server->replicas + c
                                   : client->member_first;
        if (run->config->trigger == KITH_CENTRAL_VALUE)
            client->seen = sim_central_copy(run, x);
        /* Servers that send unasked: a client's cache must hold a model before
         * the first one comes. */
        if (run->config->trigger == KITH_CENTRAL_ESSP)
            client->inbox = sim_central_copy(run, x);
    }
}

/* Counters by client and server, not by message: how often a part has come is
 * all that tells a whole gradient. */
static enum kith_err server_open(struct sim_central *run)
{
    const struct kith_central *config = run->config;
    struct server *server = sim_server_of(run);
    KITH_ASSERT(config->proxies <= run->worker_count);
    server->servers = config->servers;
    server->replicas = config->replicas;
    server->count = config->proxies > 0 ? config->proxies : run->worker_count;
    const size_t parts = (size_t)server->count * server->servers;
    struct sim_world *world = run->world;
    server->clients = sim_alloc(world, server->count, sizeof *server->clients);
    server->parts = sim_alloc(world, parts, sizeof *server->parts);
    server->acks = sim_alloc(world, parts, sizeof *server->acks);
    server->members =
        sim_alloc(world, run->worker_count, sizeof *server->members);
    if (!server->clients || !server->parts || !server->acks || !server->members)
        return KITH_ENOMEM;
    open_clients(run, server);
    return KITH_OK;
}

/* Gradients that wait at the end; those under way have gone with the packets
 * that said so. */
static void server_close(struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_server);
    struct server *server = sim_server_of(run);
    for (uint32_t c = 0; server->clients && c < server->count; c++)
        while (server->clients[c].first)
            sim_server_drop(run, sim_server_take(run, c));
}

const struct central_method sim_central_server = {
    .machines = machines,
    .state_bytes = sizeof(struct server),
    .open = server_open,
    .close = server_close,
    .stepped = stepped,
    .delivered = delivered,
    .computed = computed,
};
