/* A run from its options to its summary: what sim.h promises. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "sim/central_run.h"

static uint64_t own_steps(const struct sim_options *options)
{
    return kith_experiment_steps(
        options->experiment,
        options->dataset ? options->dataset->train.count : 0);
}

static enum kith_err check_options(const struct sim_options *options,
                                   char *error)
{
    const struct kith_experiment *experiment = options->experiment;
    KITH_ASSERT(options->threads <= SIM_THREADS_MAX);
    if (experiment->compute.step_ns <= 0) {
        snprintf(error, SIM_ERROR_BYTES,
                 "the simulator needs the cost of a training step: add "
                 "`compute: {step: 5ms}`, or measure it with --calibrate");
        return KITH_EINVAL;
    }
    if (experiment->model->input != KITH_INPUT_NONE && !options->dataset) {
        snprintf(error, SIM_ERROR_BYTES, "model %s needs a data set",
                 experiment->model->name);
        return KITH_EINVAL;
    }
    /* It carries vectors between peers itself, in the host's memory. */
    if (experiment->backend->host != experiment->backend) {
        snprintf(error, SIM_ERROR_BYTES,
                 "train.backend: the simulator computes on the host, not on "
                 "%s; add --set train.backend=%s",
                 experiment->backend->name, experiment->backend->host->name);
        return KITH_EINVAL;
    }
    return KITH_OK;
}

static enum kith_err world_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    enum kith_err err =
        kith_experiment_node_config(experiment, own_steps(&world->options),
                                    &world->topology, &world->config);
    if (err != KITH_OK) {
        return err;
    }
    world->config.topology = &world->topology;
    world->node_stride = (kith_node_size(&world->config) + 7) / 8 * 8;
    world->peers = sim_pages(world->peer_count * sizeof *world->peers);
    world->nodes = sim_pages(world->peer_count * world->node_stride);
    world->effects = calloc(1, sizeof *world->effects);
    if (world->options.store) {
        world->bytes_received =
            calloc(world->peer_count, sizeof *world->bytes_received);
        world->tallies = calloc(world->peer_count, sizeof *world->tallies);
    }
    if (!world->peers || !world->nodes || !world->effects ||
        (world->options.store && (!world->bytes_received || !world->tallies))) {
        return KITH_ENOMEM;
    }
    if (world->options.store) {
        kith_rundb_start_writer(world->options.store);
    }
    for (kith_id id = 0; id < world->peer_count; id++) {
        world->peers[id].near = KITH_NOBODY;
    }
    err = sim_queue_open(&world->queue, world->options.queue,
                         2 * (size_t)world->peer_count);
    if (err == KITH_OK) {
        err = sim_network_open(world);
    }
    if (err == KITH_OK) {
        err = sim_channels_open(world);
    }
    if (err == KITH_OK) {
        err = sim_ledger_open(world);
    }
    if (err == KITH_OK) {
        err = sim_work_open(world);
    }
    if (err == KITH_OK) {
        err = sim_fault_open(world);
    }
    if (err == KITH_OK) {
        err = sim_trace_open(world);
    }
    return err;
}

/* Releases what world_open() made, however far it came. */
static void world_close(struct sim_world *world)
{
    sim_trace_close(world);
    sim_fault_close(world);
    sim_work_close(world); /* joins the threads: nothing runs any more */
    sim_ledger_close(world);
    sim_channels_close(world);
    sim_network_close(world);
    sim_blocks_close(world);
    sim_queue_close(&world->queue);
    free(world->effects);
    free(world->bytes_received);
    free(world->tallies);
    const size_t peers = world->peer_count;
    sim_pages_free(world->nodes, peers * world->node_stride);
    sim_pages_free(world->peers, peers * sizeof *world->peers);
}

static void begin(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    world->unfinished = world->peer_count;
    kith_checks_start(&world->checks);
    kith_values_clear(&world->values);
    world->correlation_lowest = NAN;
    sim_fault_due(world); /* compute.slow, and what happens at time 0 */
    for (kith_id id = 0; id < world->peer_count && !world->over; id++) {
        if (!(world->peers[id].flags & SIM_CRASHED)) {
            sim_ledger_start(world, id, false);
            sim_start(world, id, 0, false);
        }
    }
    if (experiment->evaluate_ns > 0) {
        sim_schedule_run(world, experiment->evaluate_ns, SIM_EVENT_EVALUATE);
    }
    if (experiment->stop.time_ns > 0) {
        sim_schedule_run(world, experiment->stop.time_ns, SIM_EVENT_STOP);
    }
}

enum kith_err sim_run(const struct sim_options *options,
                      struct kith_summary *summary, struct sim_report *report,
                      char *error)
{
    struct sim_report unwanted;
    report = report ? report : &unwanted;
    *summary = (struct kith_summary){.world = "sim"};
    *report = (struct sim_report){0};
    if (options->experiment->central.present) {
        return sim_central_run(options, summary, report, error);
    }
    error[0] = '\0';
    enum kith_err err = check_options(options, error);
    if (err != KITH_OK) {
        return err;
    }
    struct sim_world *world = calloc(1, sizeof *world);
    if (!world) {
        snprintf(error, SIM_ERROR_BYTES, "no memory for a simulation");
        return KITH_ENOMEM;
    }
    world->options = *options;
    world->experiment = options->experiment;
    world->peer_count = options->experiment->peers;
    world->error = error;
    world->trace_hash = KITH_HASH_START;
    world->wall_start_s = sim_wall();
    kith_backend_threads(1);

    err = world_open(world);
    if (err == KITH_OK) {
        begin(world);
        summary->completed = sim_loop(world, &report->stalled);
        sim_work_join_all(world);
        sim_summarise(world, summary, report);
        sim_trace_close(world); /* a trace that cannot be written fails it */
        err = world->err;
    } else if (error[0] == '\0') {
        snprintf(error, SIM_ERROR_BYTES, "cannot set up %u peers: %s",
                 world->peer_count, kith_err_text(err));
    }
    world_close(world);
    free(world);
    return err;
}

kith_ns sim_now(const struct sim_world *world)
{
    return world->now_ns;
}

uint64_t sim_events(const struct sim_world *world)
{
    return world->events;
}

uint64_t sim_trace_hash(const struct sim_world *world)
{
    return world->trace_hash;
}

bool sim_alive(const struct sim_world *world, kith_id peer)
{
    return !(world->peers[peer].flags & SIM_CRASHED);
}

const struct kith_node *sim_node(const struct sim_world *world, kith_id peer)
{
    return sim_node_at(world, peer);
}

struct kith_worker *sim_worker(const struct sim_world *world, kith_id peer)
{
    return world->desks ? world->desks[peer].worker : NULL;
}

uint64_t sim_bytes_sent(const struct sim_world *world, kith_id peer)
{
    return world->peers[peer].bytes_sent;
}
