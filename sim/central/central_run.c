/* Central methods as a protocol of the engine: machines from the experiment,
 * events to the method, and what the results ask for. */
#include <math.h>

#include "kith/assert.h"
#include "sim/central/central_state.h"

static sim_stage_of *const exchanges[] = {
    [KITH_CENTRAL_NAIVE] = sim_central_naive,
    [KITH_CENTRAL_TREE] = sim_central_tree,
    [KITH_CENTRAL_SCATTER] = sim_central_scatter,
    [KITH_CENTRAL_DOUBLING] = sim_central_doubling,
    [KITH_CENTRAL_RING] = sim_central_ring,
};
_Static_assert(sizeof exchanges / sizeof exchanges[0] ==
                   KITH_CENTRAL_EXCHANGE_COUNT,
               "every exchange has its script");

/* Of gradients the trigger says who moves them; see method_of(). */
static const struct central_method *const methods[] = {
    [KITH_CENTRAL_GRADIENT] = &sim_central_server,
    [KITH_CENTRAL_SPARKNET] = &sim_central_sync,
    [KITH_CENTRAL_EASGD] = &sim_central_easgd,
    [KITH_CENTRAL_TREEEASGD] = &sim_central_treeeasgd,
    [KITH_CENTRAL_MPCA] = &sim_central_mpca,
    [KITH_CENTRAL_VERTICAL] = &sim_central_vertical,
};
_Static_assert(sizeof methods / sizeof methods[0] == KITH_CENTRAL_METHOD_COUNT,
               "every method has its record");

/* The trigger parts the methods that send gradients in two: those of a step
 * together are a collective, those that come one by one need a server that
 * decides. */
static const struct central_method *method_of(const struct kith_central *config)
{
    KITH_ASSERT(config->method < KITH_CENTRAL_METHOD_COUNT);
    KITH_ASSERT(config->trigger < KITH_CENTRAL_TRIGGER_COUNT);
    const bool sync = config->method == KITH_CENTRAL_GRADIENT &&
                      config->trigger == KITH_CENTRAL_SYNC;
    return sync ? &sim_central_sync : methods[config->method];
}

/* Servers of a pattern stand behind the workers, unless a worker is one in its
 * spare time: then it costs no machine, and shares its access link. */
uint32_t
sim_central_collective_machines(const struct kith_experiment *experiment)
{
    KITH_ASSERT(experiment->central.exchange < KITH_CENTRAL_EXCHANGE_COUNT);
    const struct kith_central *config = &experiment->central;
    const uint32_t machines[KITH_CENTRAL_EXCHANGE_COUNT] = {
        [KITH_CENTRAL_NAIVE] = config->servers + config->proxies,
        [KITH_CENTRAL_TREE] = 1,
        [KITH_CENTRAL_SCATTER] = 1};
    return config->on_workers ? 0 : machines[config->exchange];
}

/* ---- from the experiment to the first step */

/* Before any part is opened, because pools are sized by what is counted here. A
 * model that does not learn has no vectors: its payload is bytes alone, as a
 * study of timing wants it. */
static enum kith_err central_configure(struct sim_world *world)
{
    KITH_ASSERT(world->experiment->central.present);
    KITH_ASSERT(world->central == NULL);
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_central *config = &experiment->central;
    const size_t element = experiment->backend->element_bytes;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    struct sim_central *run = sim_alloc(world, 1, sizeof *run);
    if (!run)
        return KITH_ENOMEM;
    world->central = run;
    *run = (struct sim_central){
        .world = world,
        .experiment = experiment,
        .config = config,
        .method = method_of(config),
        .stage_of = exchanges[config->exchange],
        .worker_count = experiment->peers,
        .dim = kith_model_learns(experiment->model) ? size.dim : 0,
        .trained = size.trained,
        .shape = {.workers = experiment->peers,
                  .servers = config->servers,
                  .on_workers = config->on_workers,
                  .proxies = config->proxies,
                  .bytes = size.dim > 0 ? size.gossiped * element
                                        : config->payload_bytes},
    };
    run->node_count =
        run->worker_count +
        (run->method->machines ? run->method->machines(experiment) : 0);
    world->machine_count = run->node_count;
    world->dim = run->dim;
    world->vector_bytes = run->dim * element;
    return KITH_OK;
}

/* The shared model is a worker of its own, opened like peer 0: all begin with
 * the weights of the seed, so that nothing has to be sent before the first
 * step. */
static enum kith_err open_vectors(struct sim_central *run)
{
    KITH_ASSERT(run->dim > 0);
    KITH_ASSERT(run->server == NULL);
    struct sim_world *world = run->world;
    run->x = sim_alloc(world, run->dim, sizeof *run->x);
    run->y = sim_alloc(world, run->dim, sizeof *run->y);
    run->sum = sim_copy_take(world);
    if (!run->x || !run->y || !run->sum)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < run->worker_count; i++)
        run->workers[i].trainer = sim_peer_worker(world, i);
    return sim_worker_open(world, 0, &run->server);
}

/* After all parts: a method's vectors are copies from the pool, and its workers
 * those of the work part. */
static enum kith_err central_open(struct sim_world *world)
{
    KITH_ASSERT(world->machine_count >= world->peer_count);
    struct sim_central *run = world->central;
    run->nodes = sim_alloc(world, run->node_count, sizeof *run->nodes);
    run->workers = sim_alloc(world, run->worker_count, sizeof *run->workers);
    run->vectors = sim_alloc(world, run->worker_count, sizeof *run->vectors);
    run->state = sim_alloc(world, 1,
                           run->method->state_bytes + 1 +
                               run->node_count * run->method->node_bytes);
    if (!run->nodes || !run->workers || !run->vectors || !run->state)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < run->node_count; i++)
        kith_link_flow_init(&run->nodes[i].flow, &run->experiment->network.link,
                            run->experiment->seed, i, KITH_NOBODY);
    enum kith_err err = run->dim > 0 ? open_vectors(run) : KITH_OK;
    if (err == KITH_OK && run->method->open)
        err = run->method->open(run);
    return err != KITH_OK ? err : sim_failure(world);
}

static void central_close(struct sim_world *world)
{
    KITH_ASSERT(world->protocol == &sim_central_protocol);
    struct sim_central *run = world->central;
    if (run && run->state && run->method->close)
        run->method->close(run);
    if (run)
        kith_worker_close(run->server);
}

/* Servers of a collective enter their scripts before any worker steps: the
 * first message may find them at once. */
static void central_start(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) == 0);
    KITH_ASSERT(world->unfinished == world->peer_count);
    struct sim_central *run = world->central;
    if (run->method->start) {
        run->method->start(run);
        return;
    }
    for (uint32_t node = run->worker_count;
         run->method->exchanged && node < run->node_count; node++)
        sim_central_enter(run, node);
    for (uint32_t i = 0; i < run->worker_count && !sim_ended(world); i++)
        sim_central_step(run, i);
}

/* ---- events */

/* Events of the network have been carried out before they come here: what is
 * left are processors, steps and stages. */
static void central_step(struct sim_world *world, const struct sim_event *event)
{
    KITH_ASSERT(event->peer < world->machine_count);
    struct sim_central *run = world->central;
    if (event->kind == SIM_EVENT_WORK_DONE) {
        sim_central_step_done(run, event->peer);
    } else if (event->kind == SIM_EVENT_STAGE) {
        sim_central_stage_event(run, event->peer,
                                (enum sim_stage_event)event->value);
    } else if (run->method->computed) {
        KITH_ASSERT(event->kind == SIM_EVENT_COMPUTED);
        run->method->computed(run, event->peer, event->value);
    }
}

/* The trace says who was told what, by numbers alone: what a message carries is
 * never hashed. */
static void central_delivered(struct sim_world *world,
                              const struct sim_central_message *message)
{
    KITH_ASSERT(message->to < world->machine_count);
    KITH_ASSERT(message->from < world->machine_count);
    sim_trace_decision(world, "<", message->to, message->from,
                       (uint64_t)message->kind << 32 | message->subject);
    world->central->method->delivered(world->central, message);
}

/* No goodbyes: what is under way at stop.time is lost, as the methods' own
 * papers count it. */
static void central_stop(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) > 0);
    sim_end(world);
}

/* ---- for results */

/* Stages of a pipeline hold parts of one model: whichever is asked for, the
 * whole one answers. */
static struct kith_worker *central_worker(const struct sim_world *world,
                                          kith_id peer)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->machine_count);
    const struct sim_central *run = world->central;
    if (peer == KITH_NOBODY || run->method->one_model)
        return run->server;
    return peer < run->worker_count ? run->workers[peer].trainer : NULL;
}

/* An exchange of a central run is a gradient or a model that the shared one has
 * taken in; whose it was is counted at the worker, too. */
static void central_counters(const struct sim_world *world, kith_id peer,
                             struct kith_node_counters *counters)
{
    KITH_ASSERT(peer == KITH_NOBODY || peer < world->central->worker_count);
    const struct sim_central *run = world->central;
    *counters = (struct kith_node_counters){0};
    for (uint32_t i = 0; i < run->worker_count; i++) {
        const struct central_worker *worker = &run->workers[i];
        if (peer == KITH_NOBODY || peer == i) {
            counters->steps += worker->steps;
            counters->waited_ns =
                kith_ns_add(counters->waited_ns, worker->waited_ns);
            counters->attempts += worker->taken_in;
            counters->done += worker->taken_in;
        }
    }
    if (peer == KITH_NOBODY) {
        counters->done = run->applied;
        counters->refused = run->refused;
        counters->attempts = run->applied + run->refused;
    }
}

static double central_take_loss(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->central->worker_count);
    return sim_losses_take(&world->central->workers[peer].losses);
}

const struct sim_protocol sim_central_protocol = {
    .configure = central_configure,
    .open = central_open,
    .close = central_close,
    .start = central_start,
    .step = central_step,
    .delivered = central_delivered,
    .stop = central_stop,
    .worker = central_worker,
    .counters = central_counters,
    .take_loss = central_take_loss,
    .always_counts = true,
};
