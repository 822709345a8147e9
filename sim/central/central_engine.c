/* Virtual time of the central baselines: an event queue, full-duplex access
 * links that carry one message after another in each direction, one processor
 * per machine, and the steps of the workers.
 *
 *   leaves   when the sender's uplink is free, bytes / rate after one another
 *   arrives  + latency + mishaps
 *   is there when the receiver's downlink has taken it in (cut-through)
 *
 * Ties are broken by (time, peer, causing machine, its own counter), as in the
 * other engine. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "sim/central/central_state.h"
#include "sim/delay.h"

#define PARCELS_MIN 64u
#define PROGRESS_EVENTS 64u

void sim_central_fail(struct central *run, enum kith_err err,
                      const char *format, ...)
{
    if (run->err == KITH_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(run->error, SIM_ERROR_BYTES, format, arguments);
        va_end(arguments);
        run->err = err;
    }
    run->over = true;
}

static void push(struct central *run, const struct sim_event *event)
{
    if (sim_queue_push(&run->queue, event) != KITH_OK) {
        sim_central_fail(run, KITH_ENOMEM, "no memory for %zu pending events",
                         run->queue.count);
    }
}

void sim_central_schedule(struct central *run, uint32_t by, uint32_t peer,
                          kith_ns at_ns, enum central_event kind,
                          uint32_t value)
{
    KITH_ASSERT(at_ns >= run->now_ns && by < run->node_count);
    const struct sim_event event = {
        .time_ns = at_ns,
        .sequence = (uint64_t)by << 40 | run->nodes[by].sequence++,
        .peer = peer,
        .kind = (uint32_t)kind & 7u,
        .value = value & SIM_VALUE_MAX,
    };
    push(run, &event);
}

void sim_central_schedule_run(struct central *run, kith_ns at_ns,
                              enum central_own what)
{
    const struct sim_event event = {.time_ns = at_ns,
                                    .sequence = run->sequence++,
                                    .peer = KITH_NOBODY,
                                    .kind = CENTRAL_RUN,
                                    .value = (uint32_t)what & SIM_VALUE_MAX};
    push(run, &event);
}

void sim_central_mark(struct central *run, const char *what, uint32_t node,
                      uint32_t other, uint64_t value)
{
    const uint64_t who = (uint64_t)node << 32 | other;
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, what, strlen(what));
    hash = kith_hash_word(kith_hash_word(hash, (uint64_t)run->now_ns), who);
    run->trace_hash =
        kith_hash_word(run->trace_hash, kith_hash_word(hash, value));
    if (!run->trace) {
        return;
    }
    fprintf(run->trace, "%5" PRId64 ".%09" PRId64 " %5" PRIu32 "  %s",
            run->now_ns / KITH_S, run->now_ns % KITH_S, node, what);
    if (other != CENTRAL_NOBODY) {
        fprintf(run->trace, " %" PRIu32, other);
    }
    fprintf(run->trace, " value %" PRIu64 "\n", value);
}

kith_ns sim_central_wire(const struct central *run, uint64_t bytes)
{
    return sim_wire_time(bytes, run->experiment->network.rate_bits);
}

kith_ns sim_central_reduce_time(const struct central *run, uint64_t bytes)
{
    return sim_wire_time(bytes, run->config->reduce_bits);
}

kith_ns sim_central_update_time(const struct central *run, uint64_t bytes)
{
    return sim_wire_time(bytes, run->config->update_bits);
}

kith_ns sim_central_latency(struct central *run, uint32_t from, uint32_t to,
                            uint64_t bytes)
{
    const struct kith_experiment *experiment = run->experiment;
    const kith_ns latency_ns = experiment->network.latency_ns;
    if (experiment->network.jitter_ns == 0 && run->loss_threshold == 0) {
        return latency_ns;
    }
    struct kith_rng rng;
    kith_rng_init(&rng, experiment->seed, KITH_STREAM_LINK,
                  (uint64_t)from << 32 | to);
    rng.block = run->nodes[from].draws;
    const kith_ns more_ns =
        sim_mishaps(experiment, run->loss_threshold, bytes, &rng);
    run->nodes[from].draws = rng.block;
    return latency_ns + more_ns;
}

void sim_central_step(struct central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    KITH_ASSERT(!worker->stepping);
    if (worker->desk) {
        struct kith_work_result result;
        worker->gradient =
            kith_worker_gradient(worker->desk, worker->steps, &result);
        worker->loss = result.loss;
        run->nonfinite = run->nonfinite || !result.finite;
    }
    worker->stepping = true;
    worker->waited_ns += run->now_ns - worker->idle_ns;
    const kith_ns cost_ns =
        sim_step_time(run->experiment, id, worker->steps, worker->slow);
    worker->busy_ns += cost_ns;
    sim_central_schedule(run, id, id, run->now_ns + cost_ns, CENTRAL_STEP, 0);
}

bool sim_central_finished(const struct central *run, uint32_t worker)
{
    return run->workers[worker].steps >= run->steps;
}

void sim_central_finish(struct central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    if (worker->finished_ns == 0) {
        worker->finished_ns = run->now_ns;
    }
    for (uint32_t i = 0; i < run->worker_count; i++) {
        if (run->workers[i].finished_ns == 0) {
            return;
        }
    }
    run->over = run->completed = true;
}

struct sim_central_parcel *sim_central_parcel(struct central *run)
{
    uint32_t index = run->parcel_free;
    if (index != 0) {
        run->parcel_free = run->parcels[index - 1].next;
    } else {
        if (run->parcel_used == run->parcel_capacity) {
            const uint32_t capacity = 2 * run->parcel_capacity;
            struct sim_central_parcel *parcels =
                realloc(run->parcels, capacity * sizeof *parcels);
            if (!parcels) {
                sim_central_fail(run, KITH_ENOMEM, "no memory for %u messages",
                                 capacity);
                index = run->parcel_used; /* the last one is lost: all ends */
            } else {
                run->parcels = parcels;
                run->parcel_capacity = capacity;
            }
        }
        index = index != 0 ? index : ++run->parcel_used;
    }
    struct sim_central_parcel *parcel = &run->parcels[index - 1];
    *parcel = (struct sim_central_parcel){.from = CENTRAL_NOBODY};
    return parcel;
}

static uint32_t index_of(const struct central *run,
                         const struct sim_central_parcel *parcel)
{
    return (uint32_t)(parcel - run->parcels) + 1;
}

/* A node's message to itself never touches its link. */
void sim_central_send(struct central *run, struct sim_central_parcel *parcel)
{
    struct central_node *from = &run->nodes[parcel->from];
    const uint32_t index = index_of(run, parcel);
    if (parcel->from == parcel->to) {
        parcel->bytes = 0;
        sim_central_schedule(run, parcel->from, parcel->to, run->now_ns,
                             CENTRAL_DELIVER, index);
        return;
    }
    const kith_ns wire_ns = sim_central_wire(run, parcel->bytes);
    kith_ns leaves_ns = run->now_ns;
    if (wire_ns > 0) {
        leaves_ns = from->up_ns > leaves_ns ? from->up_ns : leaves_ns;
        from->up_ns = leaves_ns + wire_ns;
    }
    from->bytes_sent += parcel->bytes;
    leaves_ns +=
        sim_central_latency(run, parcel->from, parcel->to, parcel->bytes);
    sim_central_schedule(run, parcel->from, parcel->to, leaves_ns,
                         wire_ns > 0 ? CENTRAL_ARRIVE : CENTRAL_DELIVER, index);
}

static void arrive(struct central *run, uint32_t index)
{
    const struct sim_central_parcel *parcel = &run->parcels[index - 1];
    struct central_node *to = &run->nodes[parcel->to];
    const kith_ns begins_ns =
        to->down_ns > run->now_ns ? to->down_ns : run->now_ns;
    to->down_ns = begins_ns + sim_central_wire(run, parcel->bytes);
    sim_central_schedule(run, parcel->from, parcel->to, to->down_ns,
                         CENTRAL_DELIVER, index);
}

static void deliver(struct central *run, uint32_t index)
{
    /* The method may ask for parcels: keep nothing inside the pool. */
    const struct sim_central_parcel parcel = run->parcels[index - 1];
    run->nodes[parcel.to].bytes_received += parcel.bytes;
    run->messages++;
    sim_central_mark(run, "<", parcel.to, parcel.from,
                     (uint64_t)parcel.kind << 32 | parcel.subject);
    run->method->delivered(run, &parcel);
    sim_central_block_free(run, parcel.block);
    run->parcels[index - 1].block = NULL;
    run->parcels[index - 1].next = run->parcel_free;
    run->parcel_free = index;
}

void sim_central_compute(struct central *run, uint32_t node, kith_ns cost_ns,
                         uint32_t value)
{
    kith_ns *cpu_ns = &run->nodes[node].cpu_ns;
    *cpu_ns = (*cpu_ns > run->now_ns ? *cpu_ns : run->now_ns) + cost_ns;
    sim_central_schedule(run, node, node, *cpu_ns, CENTRAL_COMPUTED, value);
}

/* compute.slow and `slow` faults; the loader has refused all others. */
static void atoms_due(struct central *run)
{
    const struct kith_experiment *experiment = run->experiment;
    while (run->atom < experiment->atom_count) {
        const struct kith_atom *atom = &experiment->atoms[run->atom];
        if (atom->at_ns > run->now_ns) {
            sim_central_schedule_run(run, atom->at_ns, CENTRAL_ATOM);
            return;
        }
        run->atom++;
        run->workers[atom->peer].slow = atom->factor;
        sim_central_mark(run, "slow", atom->peer, CENTRAL_NOBODY,
                         (uint64_t)(atom->factor * 1000));
        if (atom->statement != UINT32_MAX) {
            run->faults++;
        }
        if (run->options.store) {
            (void)kith_rundb_fault(run->options.store, run->now_ns, atom);
        }
    }
}

static void step_run(struct central *run, enum central_own what)
{
    switch (what) {
    case CENTRAL_EVALUATE:
        sim_central_evaluate(run);
        sim_central_schedule_run(
            run, run->now_ns + run->experiment->evaluate_ns, CENTRAL_EVALUATE);
        break;
    case CENTRAL_STOP:
        run->over = run->completed = true;
        break;
    case CENTRAL_ATOM:
        atoms_due(run);
        break;
    }
}

static void step_worker(struct central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    worker->steps++;
    worker->stepping = false;
    worker->idle_ns = run->now_ns;
    sim_central_mark(run, "step", id, CENTRAL_NOBODY, worker->steps);
    run->method->stepped(run, id);
}

static void step_event(struct central *run, const struct sim_event *event)
{
    switch ((enum central_event)event->kind) {
    case CENTRAL_STEP:
        step_worker(run, event->peer);
        break;
    case CENTRAL_ARRIVE:
        arrive(run, event->value);
        break;
    case CENTRAL_DELIVER:
        deliver(run, event->value);
        break;
    case CENTRAL_COMPUTED:
        run->method->computed(run, event->peer, event->value);
        break;
    case CENTRAL_SENT:
        sim_central_sent(run, event->peer);
        break;
    case CENTRAL_RECEIVED:
        sim_central_received(run, event->peer);
        break;
    case CENTRAL_STAGE:
        sim_central_staged(run, event->peer);
        break;
    case CENTRAL_RUN:
        step_run(run, (enum central_own)event->value);
        break;
    }
}

static void begin(struct central *run)
{
    const struct kith_experiment *experiment = run->experiment;
    atoms_due(run);
    if (experiment->evaluate_ns > 0) {
        sim_central_schedule_run(run, experiment->evaluate_ns,
                                 CENTRAL_EVALUATE);
    }
    if (experiment->stop.time_ns > 0) {
        sim_central_schedule_run(run, experiment->stop.time_ns, CENTRAL_STOP);
    }
    run->method->start(run);
}

void sim_central_loop(struct central *run)
{
    struct sim_event event;
    unsigned since_shown = 0;
    begin(run);
    while (!run->over) {
        if (run->options.stop && *run->options.stop) {
            return;
        }
        if (++since_shown >= PROGRESS_EVENTS) {
            since_shown = 0;
            sim_central_progress(run);
        }
        if (!sim_queue_pop(&run->queue, &event)) {
            sim_central_fail(run, KITH_EAGAIN,
                             "nothing is left to happen, yet workers have not "
                             "finished: a bug of the simulator");
            return;
        }
        run->now_ns = event.time_ns;
        run->events++;
        step_event(run, &event);
    }
}

enum kith_err sim_central_engine_open(struct central *run)
{
    run->parcel_capacity = PARCELS_MIN;
    run->parcels = calloc(run->parcel_capacity, sizeof *run->parcels);
    run->nodes = calloc(run->node_count, sizeof *run->nodes);
    run->workers = calloc(run->worker_count, sizeof *run->workers);
    run->scripts = calloc(run->node_count, sizeof *run->scripts);
    run->loss_threshold = sim_threshold(run->experiment->network.loss);
    if (!run->parcels || !run->nodes || !run->workers || !run->scripts) {
        return KITH_ENOMEM;
    }
    for (uint32_t i = 0; i < run->worker_count; i++) {
        run->workers[i].slow = 1;
    }
    if (run->options.trace_path) {
        run->trace = fopen(run->options.trace_path, "w");
        if (!run->trace) {
            sim_central_fail(run, KITH_EIO, "cannot write the trace to %s: %s",
                             run->options.trace_path, strerror(errno));
            return KITH_EIO;
        }
    }
    return sim_queue_open(&run->queue, run->options.queue,
                          4 * (size_t)run->node_count);
}

void sim_central_engine_close(struct central *run)
{
    for (uint32_t i = 0; i < run->parcel_used; i++) {
        sim_central_block_free(run, run->parcels[i].block);
    }
    if (run->trace) {
        fprintf(run->trace, "hash %016" PRIx64 "\n", run->trace_hash);
        const bool failed = ferror(run->trace) != 0;
        if (fclose(run->trace) != 0 || failed) {
            sim_central_fail(run, KITH_EIO, "cannot write the trace to %s: %s",
                             run->options.trace_path, strerror(errno));
        }
    }
    free(run->parcels);
    free(run->nodes);
    free(run->scripts);
    sim_queue_close(&run->queue);
}
