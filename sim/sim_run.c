/* A run from its options to its summary: what sim.h promises. */
#include "sim/world.h"

#include <stdlib.h>

#include "kith/assert.h"

/* In front of each allocation, a cache line of its own: tables stay aligned. */
struct sim_block {
    _Alignas(64) struct sim_block *next;
    size_t bytes;
};

void *sim_alloc(struct sim_world *world, size_t count, size_t size)
{
    KITH_ASSERT(size > 0 && count <= (SIZE_MAX / 2) / size);
    const size_t bytes = sizeof(struct sim_block) + count * size;
    struct sim_block *block = sim_pages(bytes);
    if (!block)
        return NULL;
    *block = (struct sim_block){.next = world->blocks, .bytes = bytes};
    world->blocks = block;
    return block + 1;
}

/* What the loader cannot know: it reads files for every world, and this is said
 * of virtual time alone. */
static enum kith_err check_options(const struct sim_options *options,
                                   char *error)
{
    const struct kith_experiment *experiment = options->experiment;
    KITH_ASSERT(options->threads <= (options->trainer ? 1 : SIM_THREADS_MAX));
    enum kith_err err = sim_check_ranks(options, error);
    if (err == KITH_OK)
        err = sim_check_saves(options, error);
    if (err != KITH_OK)
        return err;
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
    if (experiment->model->absent && experiment->model_config.dim > 0 &&
        options->wire == KITH_WIRE_FULL) {
        snprintf(error, SIM_ERROR_BYTES,
                 "wire: full seals values, and those of model %s are nobody's; "
                 "take wire: sized, or model.dim out",
                 experiment->model->name);
        return KITH_EINVAL;
    }
    return KITH_OK;
}

/* Parts in the order in which they are opened, and closed the other way round:
 * close() accepts what open() left of a part, or never made. NULL: the part has
 * nothing but memory. */
static const struct part {
    enum kith_err (*open)(struct sim_world *world);
    void (*close)(struct sim_world *world);
} parts[] = {
    {sim_ranks_open, NULL},
    {sim_log_open, sim_log_close},
    {sim_models_open, sim_models_close},
    {sim_saves_open, sim_saves_close},
    {sim_engine_open, sim_engine_close},
    {sim_channels_open, sim_channels_close},
    {sim_copies_open, sim_copies_close},
    {sim_packets_open, sim_packets_close},
    {sim_network_open, NULL},
    {sim_sharing_open, sim_sharing_close},
    {sim_hosts_open, NULL},
    {sim_links_open, sim_links_close},
    {sim_directions_open, sim_directions_close},
    {sim_ledger_open, sim_ledger_close},
    {sim_watch_open, sim_watch_close},
    {sim_totals_open, NULL},
    {sim_zone_traffic_open, sim_zone_traffic_close},
    {sim_workers_open, sim_workers_close},
    {sim_work_open, sim_work_close},
    {sim_dump_open, sim_dump_close},
    {sim_points_open, NULL},
    {sim_scores_open, sim_scores_close},
    {sim_results_open, NULL},
    {sim_fault_open, NULL},
    {sim_trace_open, sim_trace_close},
    {sim_timeline_open, sim_timeline_close},
    {sim_windows_open, sim_windows_close},
    {sim_aside_open, sim_aside_close},
};
#define PART_COUNT (sizeof parts / sizeof parts[0])

/* A part that fails leaves the ones after it unopened: closing goes through all
 * of them all the same. */
static enum kith_err world_open(struct sim_world *world)
{
    enum kith_err err = world->protocol->configure(world);
    if (err != KITH_OK)
        return err;
    KITH_ASSERT(world->machine_count >= world->peer_count);
    world->peers = sim_alloc(world, world->machine_count, sizeof *world->peers);
    err = world->peers ? KITH_OK : KITH_ENOMEM;
    for (size_t i = 0; i < PART_COUNT && err == KITH_OK; i++)
        err = parts[i].open(world);
    if (err == KITH_OK && world->protocol->open)
        err = world->protocol->open(world);
    return err;
}

/* The protocol first: its vectors are copies of a pool that a part owns. */
static void world_close(struct sim_world *world)
{
    KITH_ASSERT(world->protocol != NULL);
    if (world->protocol->close)
        world->protocol->close(world);
    for (size_t i = PART_COUNT; i-- > 0;)
        if (parts[i].close)
            parts[i].close(world);
    while (world->blocks) {
        struct sim_block *block = world->blocks;
        world->blocks = block->next;
        sim_pages_free(block, block->bytes);
    }
}

/* What happens at time 0 comes before the first step: a machine that is slow
 * from the start is slow in its first step. */
static void begin(struct sim_world *world)
{
    KITH_ASSERT(sim_time(world) == 0);
    const struct kith_experiment *experiment = world->experiment;
    sim_fault_due(world); /* compute.slow, and what happens at time 0 */
    world->protocol->start(world);
    if (experiment->evaluate_ns > 0)
        sim_schedule_run(world, experiment->evaluate_ns, SIM_RUN_EVALUATE);
    if (experiment->stop.time_ns > 0)
        sim_schedule_run(world, experiment->stop.time_ns, SIM_RUN_STOP);
}

/* Summarised also after an interruption: what was computed by then is kept, and
 * marked as incomplete. */
static enum kith_err carry_out(struct sim_world *world,
                               struct kith_summary *summary)
{
    KITH_ASSERT(!summary->completed);
    begin(world);
    summary->completed = sim_loop(world, &world->report.stalled);
    sim_work_join_all(world);
    sim_dump_end(world, summary->completed);
    if (!sim_ranks_linger(world) && !sim_saves_unfinished(world))
        sim_summarise(world, summary);
    sim_trace_close(world); /* what cannot be written fails the run */
    sim_timeline_close(world);
    return sim_failure(world);
}

/* The one way in, for gossip and for central methods: which one it is, the
 * experiment says. */
enum kith_err sim_run(const struct sim_options *options,
                      struct kith_summary *summary, struct sim_report *report,
                      char *error)
{
    const struct kith_experiment *experiment = options->experiment;
    *summary = (struct kith_summary){.world = "sim"};
    if (report)
        *report = (struct sim_report){0};
    error[0] = '\0';
    enum kith_err err = check_options(options, error);
    if (err != KITH_OK)
        return err;
    struct sim_world *world = calloc(1, sizeof *world);
    if (!world) {
        snprintf(error, SIM_ERROR_BYTES, "no memory for a simulation");
        return KITH_ENOMEM;
    }
    *world = (struct sim_world){
        .options = *options,
        .experiment = experiment,
        .protocol = experiment->central.present ? &sim_central_protocol
                                                : &sim_gossip_protocol,
        .peer_count = experiment->peers,
        .machine_count = experiment->peers,
        .here = {.count = experiment->peers},
        .unfinished = experiment->peers,
        /* An epoch is a number of steps only where a data set says how many
         * rows there are. */
        .steps = kith_experiment_steps(
            experiment, options->dataset ? options->dataset->train.count : 0),
        .dim = kith_model_size_of(experiment->model, &experiment->model_config)
                   .dim,
        .engine = {.error = error},
    };
    kith_backend_threads(1);
    err = world_open(world);
    if (err == KITH_OK) {
        err = carry_out(world, summary);
    } else if (error[0] == '\0') {
        snprintf(error, SIM_ERROR_BYTES, "cannot set up %u peers: %s",
                 world->peer_count, kith_err_text(err));
    }
    if (world->ranks)
        err = sim_ranks_end(world, err, error);
    if (report)
        *report = world->report;
    world_close(world);
    free(world);
    return err;
}

uint64_t sim_bytes_sent(const struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->machine_count);
    return world->peers[peer].bytes_sent;
}
